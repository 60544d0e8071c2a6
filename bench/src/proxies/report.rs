//! The table.

use super::kind::Kind;
use super::proxy::Make;
use super::rounds::{Reading, Series};
use crate::timing::{median, quantile};

/// What ours is held to: at least nginx's requests per second of processor time.
pub const LEAST_RATIO: f64 = 1.0;

/// And less than this added at the median, in microseconds.
pub const MOST_ADDED: f64 = 100.0;

const HEAD: &str = "\
| requests | proxy | per second | per CPU-second | of nginx's | bar ≥ 1 | first byte | added | of nginx's | bar < 100 µs |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

/// All series as a table in Markdown. Figures are medians over the rounds, quartiles in
/// brackets; ratios and differences are taken within a round.
#[must_use]
pub fn markdown(all: &[Series]) -> String {
    let mut table = HEAD.to_owned();
    for kind in Kind::ALL {
        let of_kind: Vec<&Series> = all.iter().filter(|series| series.kind == kind).collect();
        let find = |make: Make| of_kind.iter().copied().find(|series| series.make == make);
        let (direct, nginx) = (find(Make::Direct), find(Make::Nginx));
        for series in of_kind.iter().copied() {
            table += &line(series, direct, nginx);
        }
    }
    table
}

fn line(series: &Series, direct: Option<&Series>, nginx: Option<&Series>) -> String {
    let rate = figures(series.readings.iter().map(|reading| reading.rate));
    let first = figures(series.readings.iter().map(|reading| reading.latency.first));
    let added = |series| differences(series, direct);
    let ours = !matches!(series.make, Make::Direct | Make::Nginx);
    let mut cells = vec![series.kind.to_string(), series.make.name().to_owned()];
    cells.push(show(rate.as_ref(), 0, ""));
    if series.make == Make::Direct {
        cells.extend(["", "", ""].map(str::to_owned));
        cells.push(show(first.as_ref(), 0, " µs"));
        cells.extend(["", "", ""].map(str::to_owned));
    } else {
        let per_second = |reading: &Reading| reading.per_processor_second;
        let ratio = nginx.and_then(|nginx| {
            let both = series.readings.iter().zip(&nginx.readings);
            figures(both.map(|(own, peer)| per_second(own) / per_second(peer)))
        });
        let added_ratio = nginx.and_then(|nginx| {
            let both = added(series).into_iter().zip(added(nginx));
            figures(both.map(|(own, peer)| own / peer))
        });
        let added = figures(added(series).into_iter());
        let judged = |met: Option<bool>| match met.filter(|_| ours) {
            Some(true) => "met".to_owned(),
            Some(false) => "**missed**".to_owned(),
            None => String::new(),
        };
        cells.push(show(
            figures(series.readings.iter().map(per_second)).as_ref(),
            0,
            "",
        ));
        cells.push(show(ratio.as_ref().filter(|_| ours), 2, " ×"));
        cells.push(judged(ratio.map(|[_, middle, _]| middle >= LEAST_RATIO)));
        cells.push(show(first.as_ref(), 0, " µs"));
        cells.push(show(added.as_ref(), 0, " µs"));
        cells.push(show(added_ratio.as_ref().filter(|_| ours), 2, " ×"));
        cells.push(judged(added.map(|[_, middle, _]| middle < MOST_ADDED)));
    }
    format!("| {} |\n", cells.join(" | "))
}

/// What a proxy adds to the time to the first byte, round by round.
fn differences(series: &Series, direct: Option<&Series>) -> Vec<f64> {
    let Some(direct) = direct else {
        return Vec::new();
    };
    let both = series.readings.iter().zip(&direct.readings);
    both.map(|(own, none)| own.latency.first - none.latency.first)
        .collect()
}

/// Quartile, median, quartile; `None` without a value.
fn figures(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    if values.is_empty() {
        return None;
    }
    let middle = median(&mut values);
    Some([
        quantile(&mut values, 0.25),
        middle,
        quantile(&mut values, 0.75),
    ])
}

fn show(figures: Option<&[f64; 3]>, digits: usize, unit: &str) -> String {
    figures.map_or(String::new(), |[low, middle, high]| {
        format!("{middle:.digits$}{unit} [{low:.digits$}, {high:.digits$}]")
    })
}

#[cfg(test)]
mod tests {
    use super::super::rounds::Latency;
    use super::*;

    fn series(make: Make, readings: &[(f64, f64)]) -> Series {
        let reading = |(per_processor_second, first): &(f64, f64)| Reading {
            rate: 1000.0,
            per_processor_second: *per_processor_second,
            latency: Latency {
                first: *first,
                whole: 2.0 * first,
            },
        };
        Series {
            make,
            kind: Kind::Whole,
            readings: readings.iter().map(reading).collect(),
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let none = f64::INFINITY;
        let all = [
            series(Make::Direct, &[(none, 50.0), (none, 500.0), (none, 60.0)]),
            series(Make::Nginx, &[(100.0, 90.0), (10.0, 540.0), (100.0, 100.0)]),
            series(
                Make::Worker,
                &[(120.0, 130.0), (12.0, 580.0), (110.0, 140.0)],
            ),
            series(
                Make::Frontend,
                &[(50.0, 250.0), (5.0, 700.0), (50.0, 260.0)],
            ),
        ];
        let table = markdown(&all);
        let line = |name: &str| {
            let found = table.lines().find(|line| line.contains(name));
            found.expect("a line").to_owned()
        };
        assert!(
            line("worker").contains("| 1.20 × [1.15, 1.20] | met |"),
            "{table}"
        );
        assert!(line("worker").contains("| 80 µs [80, 80] | 2.00 × [2.00, 2.00] | met |"));
        assert!(line("frontend").contains("| 0.50 × [0.50, 0.50] | **missed** |"));
        assert!(
            line("frontend").contains("| 200 µs [200, 200] | 5.00 × [5.00, 5.00] | **missed** |")
        );
        assert!(line("nginx |").contains("| 100 [55, 100] |"), "{table}");
        let cells = |line: &str| line.matches('|').count();
        let first = cells(&line("requests"));
        assert!(table.lines().all(|line| cells(line) == first), "{table}");
    }

    #[test]
    fn a_table_without_peers_is_a_table() {
        let table = markdown(&[
            series(Make::Worker, &[(1.0, 1.0)]),
            series(Make::Nginx, &[]),
        ]);
        assert!(table.contains("tidegate worker"), "{table}");
    }
}
