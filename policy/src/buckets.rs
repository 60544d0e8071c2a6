//! Latency buckets: eight, spaced evenly in the logarithm, from p50 to p99.9.
//!
//! ```text
//! edge(i) = p50 × (p99.9 / p50)^(i / 8)        i = 0 … 8, in milliseconds
//! ```
//!
//! Latencies of inference are skewed: the tail is many times the median. Equal
//! ratios give the tail buckets of its own width, and the error of a bucket is
//! the same share of the latency everywhere, at most `(p99.9 / p50)^(1/8) - 1`.
//!
//! Two choices, where recipes for this differ. The edges are milliseconds, as
//! the latencies are, so that both can be compared; edges in logarithms cannot.
//! And eight buckets have the indices 0 to 7: what lies beyond the last edge is
//! in the last bucket, there is no ninth.

/// How many buckets there are.
pub const BUCKETS: usize = 8;

/// The buckets of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buckets {
    edges: [f64; BUCKETS + 1],
}

/// A bucket's index, 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(usize);

impl Bucket {
    /// All eight, the fastest first.
    pub fn all() -> impl Iterator<Item = Bucket> {
        (0..BUCKETS).map(Bucket)
    }

    /// Its place among them, 0 to 7.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

impl Buckets {
    /// Buckets between two quantiles in milliseconds. `None` unless
    /// `0 < p50 ≤ p99.9 < ∞`. Quantiles that hardly differ are drawn apart to
    /// 1 %, so that no bucket is empty.
    #[must_use]
    pub fn between(p50_ms: f64, p999_ms: f64) -> Option<Self> {
        if !(p50_ms >= 1e-6 && p50_ms <= p999_ms && p999_ms <= 1e12) {
            return None;
        }
        let last = p999_ms.max(p50_ms * 1.01);
        let ratio = last / p50_ms;
        let mut edges = [p50_ms; BUCKETS + 1];
        for (i, edge) in edges.iter_mut().enumerate() {
            *edge *= ratio.powf(i as f64 / BUCKETS as f64);
        }
        edges[BUCKETS] = last;
        Some(Buckets { edges })
    }

    /// The bucket that a latency falls in. What is faster than p50, or not a
    /// number, is in the first; what is slower than p99.9 in the last.
    #[must_use]
    pub fn classify(&self, ms: f64) -> Bucket {
        let inner = &self.edges[1..BUCKETS];
        Bucket(inner.iter().filter(|&&edge| ms >= edge).count())
    }

    /// The bucket's lower edge, in milliseconds.
    #[must_use]
    pub fn lower(&self, bucket: Bucket) -> f64 {
        self.edges[bucket.0]
    }

    /// The bucket's upper edge, in milliseconds.
    #[must_use]
    pub fn upper(&self, bucket: Bucket) -> f64 {
        self.edges[bucket.0 + 1]
    }

    /// One bucket's width, as a factor: how much slower the next edge is.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.edges[1] / self.edges[0]
    }

    /// The bucket's geometric middle, in milliseconds.
    #[must_use]
    pub fn middle(&self, bucket: Bucket) -> f64 {
        (self.lower(bucket) * self.upper(bucket)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_are_milliseconds_and_evenly_spaced_in_the_logarithm() {
        let buckets = Buckets::between(10.0, 2560.0).unwrap();
        let lower: Vec<_> = Bucket::all().map(|b| buckets.lower(b).round()).collect();
        assert_eq!(lower, [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0]);
        assert_eq!(buckets.upper(Bucket(7)), 2560.0);
        assert!((buckets.width() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn there_are_eight_whatever_is_asked() {
        let buckets = Buckets::between(10.0, 2560.0).unwrap();
        assert_eq!(Bucket::all().count(), 8);
        for (ms, index) in [
            (0.0, 0),
            (9.0, 0),
            (19.9, 0),
            (20.0, 1),
            (2559.0, 7),
            (2560.0, 7),
            (f64::INFINITY, 7),
            (f64::NAN, 0),
            (-1.0, 0),
        ] {
            assert_eq!(buckets.classify(ms).index(), index, "{ms}");
        }
    }

    #[test]
    fn quantiles_that_are_none_make_no_buckets() {
        for (p50, p999) in [
            (0.0, 1.0),
            (-1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (1.0, f64::INFINITY),
        ] {
            assert_eq!(Buckets::between(p50, p999), None, "{p50} {p999}");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_round_trips(p50 in 1e-3..1e6_f64, ratio in 1.0..1e4_f64) {
            let buckets = Buckets::between(p50, p50 * ratio).unwrap();
            for bucket in Bucket::all() {
                prop_assert_eq!(buckets.classify(buckets.middle(bucket)), bucket);
                prop_assert!(buckets.lower(bucket) < buckets.upper(bucket));
            }
        }

        #[test]
        fn slower_is_never_a_faster_bucket(
            p50 in 1e-3..1e6_f64,
            ratio in 1.0..1e4_f64,
            a in prop::num::f64::POSITIVE,
            b in prop::num::f64::POSITIVE,
        ) {
            let buckets = Buckets::between(p50, p50 * ratio).unwrap();
            prop_assert!(buckets.classify(a.min(b)) <= buckets.classify(a.max(b)));
        }

        #[test]
        fn what_lies_between_the_quantiles_lies_in_its_bucket(
            p50 in 1e-3..1e6_f64,
            ratio in 1.0..1e4_f64,
            at in 0.0..1.0_f64,
        ) {
            let buckets = Buckets::between(p50, p50 * ratio).unwrap();
            let ms = p50 * ratio.powf(at);
            let bucket = buckets.classify(ms);
            let near = 1.0 + 1e-9;
            prop_assert!(buckets.lower(bucket) <= ms * near && ms <= buckets.upper(bucket) * near);
        }
    }
}
