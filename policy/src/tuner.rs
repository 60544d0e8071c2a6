//! The tuner: how much of the gate's limit can be used before promises break.
//!
//! The best share depends on the model, the hardware and the traffic, and moves
//! with the traffic. So it is looked for: up a step while promises are kept, down a
//! step when they are not.
//!
//! ```text
//! start   the policy's target (75 %)                       bounds 25 % to 100 %
//! window  10 s, and at least 20 answers
//! late    answers of the window that broke their promise / all of them
//!
//! late > 1 %                          target -= 5 points, then patience
//! late ≤ 1 %, the limit was reached   target += 5 points, if patience is over
//! the limit was not reached           target goes back towards the start by 5 points
//! ```
//!
//! # Damping
//! At the knee each step up breaks promises and is taken back. So the tuner waits
//! before it tries again: one window after the first time, twice as many after each
//! further one, at most 16. When the requests change (their mean need by half of
//! what it was), what was learned says nothing any more, and the waiting ends.
//!
//! # Undoing
//! A target that was found under one load is not kept for the next: while the limit
//! is not reached there is nothing to learn, and the target goes back to the start.
//! Refused requests are not counted: refusing is how the target is kept.

use std::time::Duration;

use crate::limit;

/// How the target is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The time over which answers are counted.
    pub window: Duration,
    /// The share of answers that may break their promise, 0 to 1.
    pub late: f64,
    /// Whether the target moves at all.
    pub enabled: bool,
}

/// How far the target moves at a time.
pub const STEP: f64 = 0.05;

/// The lowest target.
pub const LOWEST: f64 = 0.25;

/// Fewer answers than this say nothing.
pub const FEWEST: u64 = 20;

/// Windows that are waited at most before a step is tried again.
const MOST_PATIENCE: u32 = 16;

/// The requests have changed if their mean need has grown or shrunk by this factor.
const OTHER_REQUESTS: f64 = 1.5;

impl Default for Settings {
    fn default() -> Self {
        Settings {
            window: Duration::from_secs(10),
            late: 0.01,
            enabled: true,
        }
    }
}

/// Follows one engine.
#[derive(Clone, Copy, Debug)]
pub struct Tuner {
    settings: Settings,
    start: f64,
    target: f64,
    since: Duration,
    window: Window,
    /// Windows to wait before the next step up, and how many after the next failure.
    wait: u32,
    patience: u32,
    /// The mean need when a step last failed.
    failed_at: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    ended: u64,
    late: u64,
    need: f64,
    looks: u64,
    reached: u64,
}

impl Tuner {
    /// Starts with the policy's target.
    #[must_use]
    pub fn new(settings: Settings, start: f64, now: Duration) -> Self {
        Tuner {
            settings,
            start,
            target: start,
            since: now,
            window: Window::default(),
            wait: 0,
            patience: 1,
            failed_at: None,
        }
    }

    /// The share of the gate's limit to use.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// An answer ended, to a request of this need, and kept its promise or not.
    pub fn ended(&mut self, need: u64, kept: bool) {
        self.window.ended += 1;
        self.window.late += u64::from(!kept);
        self.window.need += need as f64;
    }

    /// Looks at the limit, at each new state: whether as many run as it allows, but for
    /// what is [kept](crate::kept) of it. The target moves when a window is over.
    pub fn look(&mut self, now: Duration, reached: bool) {
        self.window.looks += 1;
        self.window.reached += u64::from(reached);
        let over = now.saturating_sub(self.since) >= self.settings.window;
        if over && (self.window.ended >= FEWEST || self.window.is_idle()) {
            self.turn();
            (self.since, self.window) = (now, Window::default());
        }
    }

    fn turn(&mut self) {
        if !self.settings.enabled {
            return;
        }
        let window = self.window;
        if self.other_requests(window.mean_need()) {
            (self.wait, self.patience, self.failed_at) = (0, 1, None);
        }
        if window.late as f64 > self.settings.late * window.ended as f64 {
            self.step(-STEP);
            self.wait = self.patience;
            self.patience = (self.patience * 2).min(MOST_PATIENCE);
            self.failed_at = Some(window.mean_need());
        } else if window.is_idle() {
            let back = (self.start - self.target).clamp(-STEP, STEP);
            self.step(back);
        } else if self.wait > 0 {
            self.wait -= 1;
        } else {
            self.step(STEP);
        }
    }

    fn step(&mut self, by: f64) {
        // Rounded to points, so that steps up and down end where they began.
        let points = ((self.target + by) * 100.0).round() / 100.0;
        self.target = points.clamp(LOWEST.min(self.start), limit::WHOLE);
    }

    fn other_requests(&self, need: f64) -> bool {
        self.failed_at.is_some_and(|then| {
            let (more, less) = (then * OTHER_REQUESTS, then / OTHER_REQUESTS);
            need > 0.0 && !(less..=more).contains(&need)
        })
    }
}

impl Window {
    /// The limit was hardly ever reached.
    fn is_idle(&self) -> bool {
        self.reached * 10 < self.looks
    }

    fn mean_need(&self) -> f64 {
        self.need / self.ended.max(1) as f64
    }
}

#[cfg(test)]
#[path = "tuner_tests.rs"]
mod tests;
