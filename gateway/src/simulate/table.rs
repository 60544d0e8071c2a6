//! A sweep as text: a line for all classes at each load, and one for each class.

use super::report::ClassReport;
use super::sweep::Point;

/// The heading of the columns.
pub const HEADING: &str = "load   per second  class         goodput  tokens/s  attainment       p50       p99     p99.9   refused\n";

/// The lines of one load.
#[must_use]
pub fn lines(point: &Point) -> String {
    let mut text = format!("{:<5.2}{:>12.1}  ", point.load, point.rate);
    text += &line(&point.report.in_all());
    if point.report.classes.len() > 1 {
        for class in &point.report.classes {
            text += &format!("{:19}{}", "", line(class));
        }
    }
    text
}

/// What the policy would have refused at this load, by class.
#[must_use]
pub fn observed(point: &Point) -> String {
    let report = &point.report;
    let classes = report.classes.iter().zip(&report.decisions);
    let each = classes.map(|(class, counts)| format!("{} {}", class.name, counts.refused_in_all()));
    let each: Vec<_> = each.collect();
    format!("{:19}would have refused: {}\n", "", each.join(", "))
}

fn line(class: &ClassReport) -> String {
    let attainment = class.attainment();
    let attainment = attainment.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    let latencies = match class.first_token_ms() {
        Some(quantiles) => quantiles.map(|ms| format!("{ms:.0} ms")),
        None => ["-", "-", "-"].map(str::to_owned),
    };
    let [p50, p99, p999] = latencies;
    format!(
        "{:<12}{:>9.2}{:>10.0}{attainment:>12}{p50:>10}{p99:>10}{p999:>10}{:>10}\n",
        class.name,
        class.goodput(),
        class.token_goodput(),
        class.refused_in_all()
    )
}
