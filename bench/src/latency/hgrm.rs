//! The percentile distribution, in the format that HdrHistogram's plotters read.

use std::io::{self, Write};

use hdrhistogram::Histogram;

/// Writes the distribution of a histogram of nanoseconds, in microseconds.
///
/// # Errors
/// What the writer reports.
pub fn write(histogram: &Histogram<u64>, to: &mut impl Write) -> io::Result<()> {
    writeln!(
        to,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut count = 0;
    for step in histogram.iter_quantiles(5) {
        count += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64 / 1e3;
        let share = step.quantile_iterated_to();
        let rest = 1.0 / (1.0 - share);
        if rest.is_finite() {
            writeln!(to, "{value:>12.3} {share:>14.12} {count:>10} {rest:>14.2}")?;
        } else {
            writeln!(to, "{value:>12.3} {share:>14.12} {count:>10}")?;
        }
    }
    writeln!(
        to,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        histogram.mean() / 1e3,
        histogram.stdev() / 1e3
    )?;
    writeln!(
        to,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        histogram.max() as f64 / 1e3,
        histogram.len()
    )?;
    writeln!(
        to,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        histogram.buckets(),
        histogram.distinct_values() / usize::from(histogram.buckets())
    )
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    #[test]
    fn the_distribution_ends_at_all_of_them() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in 1..=1_000 {
            histogram.record(value * 1_000).unwrap();
        }
        let mut text = Vec::new();
        super::write(&histogram, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("1.000000000000       1000\n"), "{text}");
        assert!(text.contains("Total count    =         1000"), "{text}");
    }
}
