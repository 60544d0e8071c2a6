//! Thresholds that nothing is known to judge by, and who is told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::members::{Monitor, WeakMonitor};
use super::threshold::Threshold;

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the workers of a model have to tell their size before it is missed.
const GRACE: Duration = Duration::from_secs(5);

/// A model's threshold.
type Of = (String, Threshold);

/// What the operator has been told.
#[derive(Debug, Default)]
struct Told {
    first_seen: BTreeMap<String, Instant>,
    missing: BTreeSet<Of>,
}

/// What there is to tell.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    missing: Vec<Of>,
    found: Vec<Of>,
}

impl Told {
    /// What is new of `models` and their thresholds without a source.
    fn learn(&mut self, models: &BTreeMap<String, Vec<Threshold>>, now: Instant) -> News {
        self.first_seen
            .retain(|model, _| models.contains_key(model));
        let mut missing = BTreeSet::new();
        for (model, thresholds) in models {
            let seen = *self.first_seen.entry(model.clone()).or_insert(now);
            if now.saturating_duration_since(seen) >= GRACE {
                let of = thresholds
                    .iter()
                    .map(|threshold| (model.clone(), *threshold));
                missing.extend(of);
            }
        }
        let news = News {
            missing: missing.difference(&self.missing).cloned().collect(),
            found: self.missing.difference(&missing).cloned().collect(),
        };
        self.missing = missing;
        news
    }
}

/// Warns once of each threshold that is set, at the start or later, and that nothing is
/// known to judge by 5 s after its model was found. Ends with the monitor's last other
/// clone; cancel safe.
pub fn watch(monitor: &Monitor) -> impl Future<Output = ()> + Send + use<> {
    look(monitor.downgrade())
}

async fn look(monitor: WeakMonitor) {
    let mut told = Told::default();
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        let Some(monitor) = monitor.upgrade() else {
            return;
        };
        let models = monitor.models().into_iter().map(|model| {
            let missing = monitor.without_source(&model, &monitor.thresholds(&model));
            (model, missing)
        });
        tell(&told.learn(&models.collect(), Instant::now()));
    }
}

fn tell(news: &News) {
    for (model, threshold) in &news.missing {
        let needs = match threshold {
            Threshold::DecodeBlocks => {
                "no worker's metrics page tells how many KV blocks it has: set --kv-total-blocks"
            }
            Threshold::PrefillTokens => "no worker serves the model",
            Threshold::PrefillTokensFrac => {
                "no worker tells max_num_batched_tokens: set --max-num-batched-tokens"
            }
        };
        let name = threshold.name();
        warn!(model, "{name} is set and refuses nothing: {needs}");
    }
    for (model, threshold) in &news.found {
        info!(model, "{} is judged by, or no longer set", threshold.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_after_a_while_and_again_when_it_is_missing_again() {
        let of = |thresholds: &[Threshold]| BTreeMap::from([("m".to_owned(), thresholds.to_vec())]);
        let news = |missing: &[Threshold], found: &[Threshold]| {
            let named = |of: &[Threshold]| of.iter().map(|t| ("m".to_owned(), *t)).collect();
            News {
                missing: named(missing),
                found: named(found),
            }
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let blocks = [Threshold::DecodeBlocks];
        let both = [Threshold::DecodeBlocks, Threshold::PrefillTokensFrac];
        let mut told = Told::default();
        assert_eq!(told.learn(&of(&blocks), at(0)), News::default());
        assert_eq!(told.learn(&of(&blocks), at(4)), News::default());
        assert_eq!(told.learn(&of(&blocks), at(5)), news(&blocks, &[]));
        assert_eq!(told.learn(&of(&both), at(6)), news(&both[1..], &[]));
        assert_eq!(told.learn(&of(&both), at(7)), News::default());
        assert_eq!(told.learn(&of(&[]), at(8)), news(&[], &both));
        assert_eq!(told.learn(&of(&blocks), at(9)), news(&blocks, &[]));
        // A model that nobody serves is forgotten, and its time begins anew.
        assert_eq!(told.learn(&BTreeMap::new(), at(10)), news(&[], &blocks));
        assert_eq!(told.learn(&of(&blocks), at(11)), News::default());
    }
}
