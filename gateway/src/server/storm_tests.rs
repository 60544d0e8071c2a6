//! Many clients that all want in at once and do as Retry-After says, second by
//! second, without a clock.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// Clients that come in the first second.
const CLIENTS: u64 = 2_000;
/// Requests that the engine finishes in one.
const RATE: u64 = 20;
/// Requests that may queue.
const QUEUE: u64 = 100;

/// What a storm cost.
#[derive(Debug)]
struct Cost {
    refusals: u64,
    /// The most requests in one second after the first.
    peak: u64,
    /// How long until the last one was in.
    seconds: u64,
}

/// `wait` is what a refused client is told, given what is ahead and a random share.
fn storm(wait: impl Fn(&Drain, Counts, f64) -> u64) -> Cost {
    let mut random = StdRng::seed_from_u64(1);
    let drain = Drain::new();
    let mut cost = Cost {
        refusals: 0,
        peak: 0,
        seconds: 0,
    };
    let (mut queued, mut done) = (QUEUE, 0);
    let mut coming = BTreeMap::from([(1u64, CLIENTS)]);
    while let Some((second, clients)) = coming.pop_first() {
        while cost.seconds < second {
            cost.seconds += 1;
            let finished = RATE.min(queued);
            queued -= finished;
            drain.done.fetch_add(finished, Ordering::Relaxed);
            done = drain.observe(done, Duration::from_secs(1));
        }
        if second > 1 {
            cost.peak = cost.peak.max(clients);
        }
        let entering = clients.min(QUEUE - queued);
        queued += entering;
        for _ in entering..clients {
            cost.refusals += 1;
            let ahead = Counts {
                queued,
                ..Counts::default()
            };
            let later = wait(&drain, ahead, random.random());
            *coming.entry(second + later).or_default() += 1;
        }
    }
    cost
}

#[test]
fn a_storm_costs_less_by_the_drain_estimate_and_peaks_lower_with_jitter() {
    let fixed = storm(|_, _, _| 1);
    let estimated = storm(|drain, ahead, _| drain.retry_after(ahead, true, 0.0));
    let spread = storm(|drain, ahead, jitter| drain.retry_after(ahead, true, jitter));
    println!("a second: {fixed:?}\nestimate: {estimated:?}\nwith jitter: {spread:?}");
    assert!(spread.refusals * 4 < fixed.refusals, "{fixed:?} {spread:?}");
    assert!(spread.peak * 2 < estimated.peak, "{estimated:?} {spread:?}");
    // Nobody is kept out for much longer by that.
    assert!(spread.seconds < 2 * fixed.seconds, "{fixed:?} {spread:?}");
}
