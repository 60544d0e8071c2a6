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
    /// Recorded requests in order of time, to be taken instead of generated ones,
    /// over and over, and faster or slower as the rate asks.
    pub recorded: Vec<Planned>,
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
            recorded: Vec::new(),
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

    /// Lengths and arrivals of a recorded schedule, in order of time.
    #[must_use]
    pub fn replaying(mut self, planned: Vec<Planned>) -> Self {
        self.recorded = planned;
        self
    }

    /// How long the recording takes at the mix's rate; `None` without one.
    #[must_use]
    pub fn once(&self) -> Option<Duration> {
        let seconds = self.recorded.len() as f64 / self.mix.rate;
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|_| !self.recorded.is_empty())
    }

    /// All requests before `until`. The same seed gives the same ones.
    #[must_use]
    pub fn generate(&self, until: Duration, seed: u64) -> Vec<Request> {
        let before = |planned: &Planned| planned.at < until;
        if self.recorded.is_empty() {
            let arrivals = Arrivals::new(self.mix.clone(), seed);
            self.classed(arrivals.take_while(before), seed)
        } else {
            self.classed(self.replayed().take_while(before), seed)
        }
    }

    /// The recorded requests at the mix's rate, again from the start when they
    /// end; none at a rate that is not above 0.
    fn replayed(&self) -> impl Iterator<Item = Planned> {
        let last = self.recorded.last().map_or(0.0, |p| p.at.as_secs_f64());
        let own = self.recorded.len() as f64 / last.max(1e-3);
        let speed = if self.mix.rate > 0.0 {
            self.mix.rate / own
        } else {
            0.0
        };
        // One mean interval lies between the last and the first again.
        let round = last.max(1e-3) + 1.0 / own;
        (0_u32..).flat_map(move |rounds| {
            self.recorded.iter().map(move |planned| {
                let at = (f64::from(rounds) * round + planned.at.as_secs_f64()) / speed;
                Planned {
                    at: Duration::try_from_secs_f64(at).unwrap_or(Duration::MAX),
                    ..*planned
                }
            })
        })
    }

    /// Classes drawn by seed for a schedule.
    fn classed(&self, planned: impl Iterator<Item = Planned>, seed: u64) -> Vec<Request> {
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

    #[test]
    fn a_recorded_schedule_is_replayed_at_the_rate_asked_for() {
        let planned = |ms, prompt_tokens| Planned {
            at: Duration::from_millis(ms),
            prompt_tokens,
            output_tokens: 1,
            rank: None,
            leaves_after: None,
        };
        let recorded = vec![planned(0, 1), planned(300, 2), planned(1_000, 3)];
        let workload = Workload::default().replaying(recorded);
        let requests = workload.at_rate(6.0).generate(Duration::from_secs(100), 1);
        let rate = requests.len() as f64 / 100.0;
        // Four intervals where the rate was told from three requests in a second.
        assert!((4.0..=6.1).contains(&rate), "{rate}");
        let sizes: Vec<_> = requests[..4].iter().map(|r| r.prompt_tokens).collect();
        assert_eq!(sizes, [1, 2, 3, 1]);
        assert_eq!(requests[1].at, Duration::from_millis(150), "twice as fast");
    }
}
