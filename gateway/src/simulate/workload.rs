//! Where requests come from: a seeded generator, or a recorded schedule.
//!
//! Generated arrivals are the bursty, autocorrelated ones of
//! [`load::arrivals`](crate::load::arrivals). Classes are drawn apart from them,
//! so that a seed has the same arrivals whatever the classes are.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tidegate_policy::class::ClassId;

use super::request::Request;
use crate::load::arrivals::{Arrivals, Mix};
use crate::load::planned::Planned;

/// What requests are made of.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Arrivals and lengths. Ranks and clients that leave are not simulated.
    pub mix: Mix,
    /// How often each class is drawn, in the classes' order; all 0, or none at
    /// all, draws the first only.
    pub class_weights: Vec<f64>,
}

impl Default for Workload {
    /// Three classes, 20 %, 30 % and 50 %; bursts of twice the mean rate, with two
    /// thirds of it between them.
    fn default() -> Self {
        Workload {
            mix: Mix {
                burst: 2.0,
                ..Mix::default()
            },
            class_weights: vec![0.2, 0.3, 0.5],
        }
    }
}

impl Workload {
    /// The same at another mean rate, in requests per second.
    #[must_use]
    pub fn at_rate(mut self, rate: f64) -> Self {
        self.mix.rate = rate;
        self
    }

    /// All requests before `until`. The same seed gives the same ones.
    #[must_use]
    pub fn generate(&self, until: Duration, seed: u64) -> Vec<Request> {
        let arrivals = Arrivals::new(self.mix.clone(), seed);
        self.classed(arrivals.take_while(|planned| planned.at < until), seed)
    }

    /// A recorded schedule, with classes drawn by seed.
    #[must_use]
    pub fn classed(&self, planned: impl Iterator<Item = Planned>, seed: u64) -> Vec<Request> {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed_c1a5);
        let request = |planned: Planned| Request {
            at: planned.at,
            class: self.draw(rng.random()),
            prompt_tokens: planned.prompt_tokens,
            output_tokens: planned.output_tokens,
        };
        planned.map(request).collect()
    }

    /// The class at a point from 0 to 1 of the weights laid end to end.
    fn draw(&self, point: f64) -> ClassId {
        let weights = || self.class_weights.iter().map(|weight| weight.max(0.0));
        let mut left = point * weights().sum::<f64>();
        let found = weights().position(|weight| {
            left -= weight;
            left < 0.0
        });
        ClassId(found.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_in_their_shares_and_leave_arrivals_alone() {
        let until = Duration::from_secs(400);
        let workload = Workload::default();
        let requests = workload.generate(until, 7);
        for (class, weight) in workload.class_weights.iter().enumerate() {
            let of_class = requests.iter().filter(|r| r.class == ClassId(class));
            let share = of_class.count() as f64 / requests.len() as f64;
            assert!((share - weight).abs() < 0.03, "{class}: {share}");
        }
        let plain = Workload {
            class_weights: Vec::new(),
            ..workload
        };
        let one_class = plain.generate(until, 7);
        assert!(one_class.iter().all(|r| r.class == ClassId(0)));
        let times = |all: &[Request]| all.iter().map(|r| r.at).collect::<Vec<_>>();
        assert_eq!(times(&one_class), times(&requests));
    }
}
