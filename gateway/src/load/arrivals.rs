//! Seeded, bursty schedules.
//!
//! Arrivals are a Markov-modulated Poisson process of two states: calm and
//! burst. Each state lasts an exponentially distributed time, and within it
//! requests come at that state's rate. Bursts are thus seconds long, and
//! neighbouring seconds resemble each other, as they do in recorded traffic;
//! independent arrivals would never fill a queue for long.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::planned::Planned;

/// How long clients that leave are prepared to wait, in seconds, on average.
const PATIENCE_SECONDS: f64 = 1.0;

/// What a generated schedule is made of.
#[derive(Debug, Clone)]
pub struct Mix {
    /// Mean rate over calm and burst, in requests per second; above 0.
    pub rate: f64,
    /// A burst's rate as a multiple of the mean, from 1 (no bursts at all) to
    /// `1 + calm_seconds / burst_seconds` (nothing between them).
    pub burst: f64,
    /// Mean length of a calm stretch, in seconds; above 0.
    pub calm_seconds: f64,
    /// Mean length of a burst, in seconds; above 0.
    pub burst_seconds: f64,
    /// Median prompt length, in tokens.
    pub prompt_tokens: u32,
    /// Median output length, in tokens.
    pub output_tokens: u32,
    /// Ranks that requests may name.
    pub ranks: Vec<u32>,
    /// Share of requests that name a rank, 0 to 1.
    pub ranked: f64,
    /// Share of clients that leave early, 0 to 1.
    pub leave: f64,
}

impl Default for Mix {
    fn default() -> Self {
        Mix {
            rate: 10.0,
            burst: 3.0,
            calm_seconds: 2.0,
            burst_seconds: 0.75,
            prompt_tokens: 1000,
            output_tokens: 130,
            ranks: Vec::new(),
            ranked: 0.0,
            leave: 0.0,
        }
    }
}

/// An endless schedule. The same seed and mix give the same one.
#[derive(Debug)]
pub struct Arrivals {
    mix: Mix,
    rng: StdRng,
    now: f64,
    bursting: bool,
    state_ends: f64,
}

impl Arrivals {
    /// Starts a schedule, in a calm stretch.
    pub fn new(mix: Mix, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let state_ends = exponential(&mut rng, mix.calm_seconds);
        Arrivals {
            mix,
            rng,
            now: 0.0,
            bursting: false,
            state_ends,
        }
    }

    /// Requests per second in the present state. The two average to the mix's rate.
    fn rate_now(&self) -> f64 {
        let mix = &self.mix;
        let burst = mix.rate * mix.burst;
        if self.bursting {
            burst
        } else {
            let cycle = (mix.calm_seconds + mix.burst_seconds) * mix.rate;
            ((cycle - mix.burst_seconds * burst) / mix.calm_seconds).max(0.0)
        }
    }

    /// Moves to the next arrival. A wait that reaches past the present state
    /// is drawn anew from there: an exponential wait has no memory.
    fn advance(&mut self) {
        loop {
            let rate = self.rate_now();
            if rate > 0.0 {
                let next = self.now + exponential(&mut self.rng, 1.0 / rate);
                if next <= self.state_ends {
                    self.now = next;
                    return;
                }
            }
            self.now = self.state_ends;
            self.bursting = !self.bursting;
            let mean = if self.bursting {
                self.mix.burst_seconds
            } else {
                self.mix.calm_seconds
            };
            self.state_ends = self.now + exponential(&mut self.rng, mean);
        }
    }
}

impl Iterator for Arrivals {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        // Without a rate nothing ever comes.
        if self.mix.rate.is_nan() || self.mix.rate <= 0.0 || self.mix.burst.is_nan() {
            return None;
        }
        self.advance();
        let ranked =
            !self.mix.ranks.is_empty() && self.rng.random_bool(self.mix.ranked.clamp(0.0, 1.0));
        let rank = ranked.then(|| self.mix.ranks[self.rng.random_range(0..self.mix.ranks.len())]);
        let leaves_after = self
            .rng
            .random_bool(self.mix.leave.clamp(0.0, 1.0))
            .then(|| Duration::from_secs_f64(exponential(&mut self.rng, PATIENCE_SECONDS)));
        Some(Planned {
            at: Duration::from_secs_f64(self.now),
            prompt_tokens: length(&mut self.rng, self.mix.prompt_tokens, 0.8),
            output_tokens: length(&mut self.rng, self.mix.output_tokens, 0.6),
            rank,
            leaves_after,
        })
    }
}

/// A draw from the exponential distribution with this mean.
fn exponential(rng: &mut StdRng, mean: f64) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// A draw from a log-normal distribution with this median, at least 1 and at
/// most 16 times the median.
fn length(rng: &mut StdRng, median: u32, spread: f64) -> u32 {
    // Box and Muller's way from two uniform draws to a normal one.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
    let median = f64::from(median);
    // Bounded by 16 medians, and the cast saturates.
    (median * (spread * normal).exp())
        .min(16.0 * median)
        .max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(mix: Mix, seed: u64, length: usize) -> Vec<f64> {
        let mut counts = vec![0.0; length];
        for planned in Arrivals::new(mix, seed) {
            match counts.get_mut(planned.at.as_secs() as usize) {
                Some(count) => *count += 1.0,
                None => break,
            }
        }
        counts
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn the_mean_rate_is_the_one_asked_for() {
        for burst in [1.0, 2.0, 3.0] {
            let mix = Mix {
                rate: 20.0,
                burst,
                ..Mix::default()
            };
            let rate = mean(&seconds(mix, 1, 4000));
            assert!((rate - 20.0).abs() < 1.5, "burst {burst}: {rate}");
        }
    }

    #[test]
    fn bursts_are_longer_than_a_second() {
        let correlation = |burst| {
            let counts = seconds(
                Mix {
                    rate: 20.0,
                    burst,
                    ..Mix::default()
                },
                2,
                4000,
            );
            let mean = mean(&counts);
            let spread: f64 = counts.iter().map(|c| (c - mean).powi(2)).sum();
            let lagged: f64 = counts
                .windows(2)
                .map(|w| (w[0] - mean) * (w[1] - mean))
                .sum();
            lagged / spread
        };
        assert!(correlation(3.0) > 0.2, "{}", correlation(3.0));
        assert!(correlation(1.0).abs() < 0.1, "{}", correlation(1.0));
    }

    #[test]
    fn no_rate_is_an_empty_schedule() {
        for rate in [0.0, -1.0, f64::NAN] {
            assert_eq!(
                Arrivals::new(
                    Mix {
                        rate,
                        ..Mix::default()
                    },
                    1
                )
                .next(),
                None
            );
        }
    }

    #[test]
    fn shares_of_ranked_and_leaving_are_kept() {
        let mix = Mix {
            ranks: vec![3, 9],
            ranked: 0.5,
            leave: 0.25,
            ..Mix::default()
        };
        let planned: Vec<_> = Arrivals::new(mix, 3).take(4000).collect();
        let share = |n: usize| n as f64 / 4000.0;
        let ranked = share(planned.iter().filter(|p| p.rank.is_some()).count());
        let leaving = share(planned.iter().filter(|p| p.leaves_after.is_some()).count());
        assert!(
            (ranked - 0.5).abs() < 0.05 && (leaving - 0.25).abs() < 0.05,
            "{ranked} {leaving}"
        );
        assert!(
            planned
                .iter()
                .all(|p| p.rank.is_none_or(|rank| [3, 9].contains(&rank)))
        );
    }

    proptest! {
        #[test]
        fn a_seed_is_a_schedule(seed in any::<u64>(), rate in 0.01_f64..5000.0, burst in 1.0_f64..3.6) {
            let mix = Mix { rate, burst, ..Mix::default() };
            let once: Vec<_> = Arrivals::new(mix.clone(), seed).take(50).collect();
            let again: Vec<_> = Arrivals::new(mix, seed).take(50).collect();
            prop_assert_eq!(&once, &again);
            prop_assert!(once.windows(2).all(|pair| pair[0].at <= pair[1].at));
            prop_assert!(once.iter().all(|p| p.prompt_tokens >= 1 && p.output_tokens >= 1));
        }
    }
}
