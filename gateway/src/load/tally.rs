//! Outcomes and latencies, added up.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::client::{Outcome, RefusedBy};

/// Longest latency that is told apart, in microseconds: one hour.
const LONGEST_US: u64 = 3_600_000_000;

/// What became of the requests of one load.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Requests sent.
    pub sent: u64,
    /// Answered to the end.
    pub ok: u64,
    /// Refused, by who refused them.
    pub refused: BTreeMap<RefusedBy, u64>,
    /// Failed in some other way, by what happened.
    pub failed: BTreeMap<String, u64>,
    /// Left by their client.
    pub left: u64,
    /// Time from intended start to first token, in microseconds, of those that got one.
    first_token_us: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            sent: 0,
            ok: 0,
            refused: BTreeMap::new(),
            failed: BTreeMap::new(),
            left: 0,
            first_token_us: Histogram::new_with_bounds(1, LONGEST_US, 3)
                .expect("bounds and precision are fixed and valid"),
        }
    }
}

impl Tally {
    /// Counts a request that starts.
    pub fn start(&mut self) {
        self.sent += 1;
    }

    /// Counts how a request ended, and its first token if it got one.
    pub fn end(&mut self, outcome: Outcome, first_token: Option<Duration>) {
        match outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Refused(by) => *self.refused.entry(by).or_default() += 1,
            Outcome::Failed(why) => *self.failed.entry(why).or_default() += 1,
            Outcome::Left => self.left += 1,
        }
        if let Some(latency) = first_token {
            let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
            self.first_token_us.saturating_record(micros);
        }
    }

    /// Requests refused, by anyone.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Requests failed, for any reason.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Requests that have not ended.
    pub fn in_flight(&self) -> u64 {
        self.sent - self.ok - self.refusals() - self.failures() - self.left
    }

    /// Time from intended start to first token at this quantile (0 to 1), if
    /// any request got one.
    pub fn first_token(&self, quantile: f64) -> Option<Duration> {
        (!self.first_token_us.is_empty())
            .then(|| Duration::from_micros(self.first_token_us.value_at_quantile(quantile)))
    }

    /// One line, for while it runs.
    pub fn line(&self) -> String {
        let mut line = format!(
            "sent {}  in flight {}  ok {}  refused {}  left {}  failed {}",
            self.sent,
            self.in_flight(),
            self.ok,
            self.refusals(),
            self.left,
            self.failures(),
        );
        if let (Some(p50), Some(p99)) = (self.first_token(0.5), self.first_token(0.99)) {
            line += &format!("  first token p50 {} p99 {}", millis(p50), millis(p99));
        }
        line
    }
}

fn millis(latency: Duration) -> String {
    format!("{:.0} ms", latency.as_secs_f64() * 1000.0)
}

/// The summary at the end.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |n: u64| 100.0 * n as f64 / self.sent.max(1) as f64;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, n: u64| {
            writeln!(f, "  {name:<26}{n:>9}  {:>5.1} %", share(n))
        };
        writeln!(f, "  {:<26}{:>9}", "requests", self.sent)?;
        row(f, "ok", self.ok)?;
        for (by, n) in &self.refused {
            row(f, &format!("refused: {by}"), *n)?;
        }
        row(f, "left by the client", self.left)?;
        for (why, n) in &self.failed {
            row(f, &format!("failed: {why}"), *n)?;
        }
        if self.in_flight() > 0 {
            row(f, "not ended", self.in_flight())?;
        }
        if !self.first_token_us.is_empty() {
            write!(
                f,
                "  first token, from the intended start, n = {}:",
                self.first_token_us.len()
            )?;
            for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
                let latency = self.first_token(quantile).unwrap_or_default();
                write!(f, "  {name} {}", millis(latency))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_one_place() {
        let mut tally = Tally::default();
        for _ in 0..6 {
            tally.start();
        }
        tally.end(Outcome::Ok, Some(Duration::from_millis(40)));
        tally.end(Outcome::Refused(RefusedBy::Worker), None);
        tally.end(Outcome::Refused(RefusedBy::Rank), None);
        tally.end(Outcome::Failed("status 502".into()), None);
        tally.end(Outcome::Left, None);
        assert_eq!(
            (tally.ok, tally.refusals(), tally.failures(), tally.left),
            (1, 2, 1, 1)
        );
        assert_eq!(tally.in_flight(), 1);
        let first = tally.first_token(0.5).expect("one token").as_secs_f64();
        assert!((first - 0.04).abs() < 0.001, "{first}");
        let text = tally.to_string();
        for part in [
            "refused: worker",
            "refused: rank",
            "failed: status 502",
            "not ended",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn nothing_sent_is_no_division_by_zero() {
        let tally = Tally::default();
        assert_eq!(tally.first_token(0.99), None);
        assert!(tally.to_string().contains("0.0 %"));
    }

    #[test]
    fn a_latency_beyond_the_longest_is_kept_as_the_longest() {
        let mut tally = Tally::default();
        tally.start();
        tally.end(Outcome::Ok, Some(Duration::MAX));
        assert!(tally.first_token(1.0).expect("recorded") >= Duration::from_secs(3600));
    }
}
