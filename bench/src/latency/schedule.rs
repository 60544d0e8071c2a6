//! When requests arrive.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl;

/// Poisson arrivals: the moments since the start, in order, until `span` is over.
pub(super) fn arrivals(rate: f64, span: Duration, seed: u64) -> impl Iterator<Item = Duration> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 0.0;
    std::iter::from_fn(move || {
        at += -(1.0 - random.f64()).ln() / rate;
        Some(Duration::from_secs_f64(at))
    })
    .take_while(move |at| *at < span)
}

/// Sleeps until then; at once if it has passed.
pub(super) fn sleep_until(then: Instant) {
    let left = then.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::sleep(left);
    }
}

/// Asks for this thread's sleeps to end on time: by default the kernel may let
/// them last 50 µs longer.
pub(super) fn sleep_exactly() {
    // Where it is refused, sleeps are longer for every subject alike, and the
    // schedule's own row shows it.
    let _ = prctl::set_timerslack(1);
}

#[cfg(test)]
mod tests {
    use super::arrivals;
    use std::time::Duration;

    #[test]
    fn arrivals_come_at_the_rate_and_in_order() {
        let all: Vec<_> = arrivals(1_000.0, Duration::from_secs(10), 3).collect();
        assert!((9_500..10_500).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted());
        let again: Vec<_> = arrivals(1_000.0, Duration::from_secs(10), 3).collect();
        assert_eq!(all, again);
    }
}
