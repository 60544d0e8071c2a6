//! What was recorded, by how it ended. Values are nanoseconds since the intended start.

use std::time::Instant;

use hdrhistogram::Histogram;

/// Latencies up to this are told apart; what lasts longer counts as this: a minute.
const LONGEST: u64 = 60_000_000_000;

/// Histograms of one thread, or of several merged.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Until the permit was there.
    pub admitted: Histogram<u64>,
    /// Until the refusal.
    pub refused: Histogram<u64>,
    /// Until the request had left the queue again.
    pub cancelled: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order");
        Tally {
            admitted: histogram.clone(),
            refused: histogram.clone(),
            cancelled: histogram,
        }
    }
}

impl Tally {
    /// Adds another's counts.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, others) in [
            (&mut self.admitted, &other.admitted),
            (&mut self.refused, &other.refused),
            (&mut self.cancelled, &other.cancelled),
        ] {
            mine.add(others).expect("all have the same bounds");
        }
    }

    /// Every request, however it ended.
    pub fn requests(&self) -> u64 {
        self.admitted.len() + self.refused.len() + self.cancelled.len()
    }
}

/// Records the time since the intended start.
pub(super) fn record(histogram: &mut Histogram<u64>, intended: Instant) {
    let nanoseconds = intended.elapsed().as_nanos();
    histogram.saturating_record(u64::try_from(nanoseconds).unwrap_or(LONGEST).max(1));
}

/// p50, p90, p99, p99.9, p99.99 and the maximum, in microseconds.
pub fn quantiles(histogram: &Histogram<u64>) -> [f64; 6] {
    [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0].map(|q| histogram.value_at_quantile(q) as f64 / 1e3)
}
