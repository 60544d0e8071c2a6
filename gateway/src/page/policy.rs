//! A policy, as the metrics of a worker or of a frontend tell it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::histogram::Histogram;
use super::named::{Named, label, whole};
use crate::scrape::exposition::{Page, Sample};

/// A policy's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policy {
    /// Its decisions are only counted.
    pub observes: bool,
    /// The engine's state is known.
    pub fresh: bool,
    /// The age of the state, in seconds.
    pub age_seconds: f64,
    /// Shares of the GPU in use, as far as they are known.
    pub gpu: BTreeMap<String, f64>,
    /// Requests that it lets run.
    pub limit: u64,
    /// The share of the limit that the tuner uses.
    pub target: f64,
    /// Its classes, by name: pages have series in any order.
    pub classes: Vec<Class>,
}

/// What a frontend's policy holds for one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Queue {
    /// The model, or `unknown` for all that no worker lists.
    pub model: String,
    /// Its decisions are only counted.
    pub observes: bool,
    /// Its classes, by name.
    pub classes: Vec<Class>,
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Requests that are held.
    pub held: u64,
    /// Answers per second within its promise.
    pub goodput: f64,
    /// Share of answers within its promise; `None` without answers.
    pub attainment: Option<f64>,
    /// Seconds to the first token: median, 99 and 99.9 of a hundred.
    pub first_token: [Option<f64>; 3],
    /// Requests admitted.
    pub admitted: u64,
    /// Requests refused, by reason; those that never occurred are left out.
    pub refused: BTreeMap<String, u64>,
    /// Time from arrival until it was let in, at a frontend.
    #[serde(skip)]
    pub waits: Histogram,
    /// The same lately, in seconds: median, 99 and 99.9 of a hundred.
    pub wait: Option<[f64; 3]>,
}

impl Policy {
    /// The policy of a worker, if it has one.
    pub(super) fn of(named: &Named) -> Option<Self> {
        let fresh = named.value("policy_state_fresh")? == 1.0;
        let gpu = named.all("policy_gpu_share").filter(known);
        let gpu = gpu.map(|sample| (label(sample, "of").to_owned(), sample.value));
        Some(Self {
            observes: observes(named),
            fresh,
            age_seconds: named.value("policy_state_age_seconds").unwrap_or_default(),
            gpu: gpu.collect(),
            limit: named.whole("policy_engine_request_limit"),
            target: named.value("policy_utilisation_target").unwrap_or_default(),
            classes: classes(named),
        })
    }
}

impl Queue {
    /// The queues of a frontend whose series begin with `prefix`, by model.
    pub(super) fn all(page: &Page, prefix: &str) -> Vec<Self> {
        let named = Named::new(page, prefix);
        let mut models: Vec<&str> = named
            .all("policy_observes")
            .map(|sample| label(sample, "model"))
            .collect();
        models.sort_unstable();
        let waits = format!("{prefix}policy_wait_seconds");
        let queue = |model: &str| {
            let named = named.only("model", model);
            let mut classes = classes(&named);
            for class in &mut classes {
                class.waits = Histogram::of(page, &waits, |label, value| match label {
                    "model" => value == model,
                    "class" => value == class.name,
                    _ => true,
                });
            }
            Self {
                model: model.to_owned(),
                observes: observes(&named),
                classes,
            }
        };
        models.into_iter().map(queue).collect()
    }
}

impl Class {
    /// Requests refused, for whatever reason.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refused.values().copied().fold(0, u64::saturating_add)
    }
}

fn observes(named: &Named) -> bool {
    named.value("policy_observes") == Some(1.0)
}

fn known(sample: &&Sample) -> bool {
    sample.value.is_finite()
}

fn classes(named: &Named) -> Vec<Class> {
    let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
    for sample in named.all("policy_held_count") {
        let name = label(sample, "class");
        let class = classes.entry(name).or_default();
        class.name = name.to_owned();
        class.held = whole(sample.value);
    }
    let mut tell = |metric: &str, take: &dyn Fn(&mut Class, &Sample)| {
        for sample in named.all(metric).filter(known) {
            if let Some(class) = classes.get_mut(label(sample, "class")) {
                take(class, sample);
            }
        }
    };
    tell("policy_goodput", &|class, sample| {
        class.goodput = sample.value
    });
    tell("policy_attainment", &|class, sample| {
        class.attainment = Some(sample.value);
    });
    tell("policy_first_token_seconds", &|class, sample| {
        let at = ["0.5", "0.99", "0.999"];
        let at = at.iter().position(|at| *at == label(sample, "quantile"));
        if let Some(at) = at {
            class.first_token[at] = Some(sample.value);
        }
    });
    tell("policy_decision_total", &|class, sample| {
        let (count, reason) = (whole(sample.value), label(sample, "reason"));
        match label(sample, "decision") {
            "admitted" => class.admitted = count,
            "refused" if count > 0 => drop(class.refused.insert(reason.to_owned(), count)),
            _ => {}
        }
    });
    classes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::exposition::read;

    const PAGE: &str = r#"
p_policy_state_fresh 1
p_policy_gpu_share{of="memory"} 0.5
p_policy_gpu_share{of="utilisation"} NaN
p_policy_held_count{class="gold"} 1
p_policy_held_count{class="bronze"} 0
p_policy_goodput{class="gold"} 2.5
p_policy_attainment{class="gold"} 0.9
p_policy_attainment{class="bronze"} NaN
p_policy_first_token_seconds{class="gold",quantile="0.99"} 0.25
p_policy_decision_total{class="gold",decision="refused",reason="queue_full"} 7
p_policy_decision_total{class="gold",decision="refused",reason="too_large"} 0
p_policy_decision_total{class="gold",decision="admitted",reason=""} 9
"#;

    const FRONTEND: &str = r#"
f_policy_observes{model="b"} 1
f_policy_observes{model="a"} 0
f_policy_held_count{class="gold",model="b"} 4
f_policy_held_count{class="gold",model="a"} 5
f_policy_decision_total{class="gold",model="a",decision="refused",reason="queue_timeout"} 3
f_policy_wait_seconds_bucket{model="a",class="gold",le="+Inf"} 6
f_policy_wait_seconds_bucket{model="b",class="gold",le="+Inf"} 7
f_policy_wait_seconds_bucket{model="a",class="silver",le="+Inf"} 8
"#;

    #[test]
    fn a_policy_tells_what_is_known_and_nothing_else() {
        let page = read(PAGE);
        let policy = Policy::of(&Named::new(&page, "p_")).unwrap();
        assert!(policy.fresh && !policy.observes);
        assert_eq!(policy.gpu, BTreeMap::from([("memory".to_owned(), 0.5)]));
        let [bronze, gold] = &policy.classes[..] else {
            panic!("{:?}", policy.classes);
        };
        assert_eq!(
            (gold.held, gold.goodput, gold.attainment),
            (1, 2.5, Some(0.9))
        );
        assert_eq!(gold.first_token, [None, Some(0.25), None]);
        assert_eq!(gold.refused, BTreeMap::from([("queue_full".to_owned(), 7)]));
        assert_eq!((gold.admitted, bronze.attainment), (9, None));
    }

    #[test]
    fn a_frontend_has_a_queue_for_each_model() {
        let [a, b] = &Queue::all(&read(FRONTEND), "f_")[..] else {
            panic!("not two");
        };
        assert_eq!((a.model.as_str(), b.model.as_str()), ("a", "b"));
        assert!(b.observes && !a.observes);
        let (one, other) = (&a.classes[0], &b.classes[0]);
        assert_eq!((one.held, other.held), (5, 4));
        assert_eq!((one.refusals(), other.refusals()), (3, 0));
        assert_eq!((one.waits.count(), other.waits.count()), (6.0, 7.0));
        assert_eq!(Queue::all(&read(PAGE), "f_"), []);
    }
}
