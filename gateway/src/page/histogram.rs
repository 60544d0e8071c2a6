//! Buckets of a histogram, and quantiles of what is in them.

use crate::scrape::exposition::Page;

/// Observations by their bucket: the upper bound, and how many lie at or below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram(Vec<(f64, f64)>);

impl Histogram {
    /// All series of `name` (without `_bucket`) whose labels `which` takes, together.
    #[must_use]
    pub fn of(page: &Page, name: &str, which: impl Fn(&str, &str) -> bool) -> Self {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        let series = page.samples.iter().filter(|sample| {
            sample.name.strip_suffix("_bucket") == Some(name)
                && sample
                    .labels
                    .iter()
                    .all(|(label, value)| which(label, value))
        });
        for sample in series {
            let bound = sample.labels.get("le").and_then(|le| le.parse().ok());
            let Some(bound) = bound.filter(|bound: &f64| !bound.is_nan()) else {
                continue;
            };
            match buckets.iter_mut().find(|(at, _)| *at == bound) {
                Some((_, count)) => *count += sample.value,
                None => buckets.push((bound, sample.value)),
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(buckets)
    }

    /// What came since `before`; everything, if it was counted anew since then.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.count() < before.count() || self.0.len() != before.0.len() {
            return self.clone();
        }
        let both = self.0.iter().zip(&before.0);
        Self(both.map(|(now, then)| (now.0, now.1 - then.1)).collect())
    }

    /// These and those of another with the same buckets, or with none.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        if self.0.is_empty() {
            return other.clone();
        }
        for (bound, count) in &other.0 {
            if let Some(at) = self.0.iter_mut().find(|at| at.0 == *bound) {
                at.1 += count;
            }
        }
        self
    }

    /// How many observations.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// The value that a share `q` of observations is at or below, as Prometheus'
    /// `histogram_quantile` has it: evenly spread within a bucket, and never beyond
    /// the largest finite bound. `None` without observations.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = q * self.count();
        let at = self.0.iter().position(|(_, count)| *count >= wanted)?;
        if self.count().is_nan() || self.count() <= 0.0 {
            return None;
        }
        let (lower, below) = match at {
            0 => (0.0, 0.0),
            _ => self.0[at - 1],
        };
        let (upper, count) = self.0[at];
        if upper.is_infinite() {
            return Some(lower);
        }
        let within = (count - below).max(f64::MIN_POSITIVE);
        Some(lower + (upper - lower) * ((wanted - below) / within).clamp(0.0, 1.0))
    }

    /// Three quantiles at once.
    #[must_use]
    pub fn quantiles(&self, q: [f64; 3]) -> Option<[f64; 3]> {
        let [one, two, three] = q.map(|q| self.quantile(q));
        Some([one?, two?, three?])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scrape::exposition::read;

    fn of(text: &str) -> Histogram {
        Histogram::of(&read(text), "h", |_, _| true)
    }

    const ONE: &str = "h_bucket{a=\"1\",le=\"1\"} 5\nh_bucket{a=\"1\",le=\"2\"} 10\nh_bucket{a=\"1\",le=\"+Inf\"} 10\n";

    #[test]
    fn quantiles_are_what_prometheus_says() {
        let one = of(ONE);
        assert_eq!(one.count(), 10.0);
        assert_eq!(one.quantile(0.5), Some(1.0));
        assert_eq!(one.quantile(0.75), Some(1.5));
        assert_eq!(one.quantile(1.0), Some(2.0));
        let beyond = of("h_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 3\n");
        assert_eq!(beyond.quantile(0.5), Some(1.0));
        assert_eq!(of("h_bucket{le=\"+Inf\"} 0\n").quantile(0.5), None);
        assert_eq!(of("").quantile(0.5), None);
    }

    #[test]
    fn series_add_up_and_what_came_since_is_told_from_what_was_there() {
        let both = of(&format!("{ONE}{}", ONE.replace("\"1\",le", "\"2\",le")));
        assert_eq!(both.count(), 20.0);
        let since = both.since(&of(ONE));
        assert_eq!(since.count(), 10.0);
        assert_eq!(of(ONE).and(&of(ONE)), both);
        // Started anew: all of it is new.
        assert_eq!(of(ONE).since(&both), of(ONE));
        let chosen = Histogram::of(&read(ONE), "h", |name, value| name != "a" || value == "2");
        assert_eq!(chosen, Histogram::default());
    }

    proptest! {
        #[test]
        fn any_buckets_are_answered(counts in prop::collection::vec(any::<f64>(), 0..6), q in 0.0..=1.0) {
            let lines = counts.iter().enumerate();
            let text: String = lines.map(|(le, count)| format!("h_bucket{{le=\"{le}\"}} {count}\n")).collect();
            let _ = of(&text).quantiles([q, 0.5, 1.0]);
        }
    }
}
