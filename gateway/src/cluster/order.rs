//! Which of a worker's words are new, and how old they are. Time is passed in.

use std::time::Duration;

use tokio::time::Instant;

use super::event::Turn;

/// How fast the shortest way is forgotten: the clocks of two machines drift less.
const DRIFT: u32 = 1000;

/// The newest word of one worker of one kind. What is not newer is a replay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest(Option<Turn>);

impl Newest {
    /// Whether `turn` is newer than everything before; then it is the newest.
    pub fn take(&mut self, turn: Turn) -> bool {
        let newer = self.0.is_none_or(|newest| turn > newest);
        if newer {
            self.0 = Some(turn);
        }
        newer
    }
}

/// How long a worker's words are on their way, beyond the shortest way of late. What
/// waits in a buffer for seconds then does not look fresh, and no clock has to be set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delay(Option<Shortest>);

/// The least difference between our clock and the worker's.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    /// When the worker was started by our clock, in milliseconds from `base`, if its
    /// words took no time.
    started: i128,
    seen: Instant,
    base: Instant,
}

impl Delay {
    /// The moment of which a word is true that was said `uptime_ms` after the worker's
    /// start, and came `now`.
    pub fn moment(&mut self, uptime_ms: u64, now: Instant) -> Instant {
        let known = self.0.unwrap_or(Shortest {
            started: i128::MAX,
            seen: now,
            base: now,
        });
        let since = now.saturating_duration_since(known.base).as_millis() as i128;
        let started = since - i128::from(uptime_ms);
        let forgotten = now.saturating_duration_since(known.seen) / DRIFT;
        let least = known.started.saturating_add(forgotten.as_millis() as i128);
        let seen = if forgotten.is_zero() { known.seen } else { now };
        self.0 = Some(Shortest {
            started: least.min(started),
            seen,
            base: known.base,
        });
        let late = started.saturating_sub(least).max(0);
        let late = Duration::from_millis(u64::try_from(late).unwrap_or(u64::MAX));
        now.checked_sub(late).unwrap_or(known.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_newer_counts() {
        let mut newest = Newest::default();
        let turn = |incarnation, sequence| Turn {
            incarnation,
            sequence,
        };
        for (said, counts) in [
            (turn(5, 3), true),
            (turn(5, 3), false),
            (turn(5, 2), false),
            (turn(5, 9), true),
            (turn(4, 99), false),
            (turn(6, 0), true),
            (turn(u64::MAX, u64::MAX), true),
        ] {
            assert_eq!(newest.take(said), counts, "{said:?}");
        }
    }

    #[test]
    fn what_waited_is_as_old_as_it_is() {
        let (mut delay, start) = (Delay::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(delay.moment(10_000, at(0)), at(0));
        assert_eq!(delay.moment(10_250, at(250)), at(250));
        // Said at 500, and held up for 3 s.
        assert_eq!(delay.moment(10_500, at(3_500)), at(503));
        // A shorter way than ever.
        assert_eq!(delay.moment(14_000, at(3_900)), at(3_900));
    }

    #[test]
    fn clocks_that_drift_are_followed_and_absurd_ones_do_no_harm() {
        let (mut delay, start) = (Delay::default(), Instant::now());
        // The worker's clock loses 50 ms in 100 s, for a day.
        for step in 0..864 {
            let now = start + Duration::from_secs(step * 100);
            let said = delay.moment(step * 99_950, now);
            let late = now - said;
            assert!(late <= Duration::from_millis(60), "{late:?} at {step}");
        }
        let now = start + Duration::from_secs(100_000);
        assert!(delay.moment(u64::MAX, now) <= now);
        assert!(delay.moment(0, now + Duration::from_secs(1)) <= now);
    }
}
