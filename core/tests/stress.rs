//! Many threads at once: a million operations, ten seconds on two cores without
//! optimisation. For a quick look, or a long one:
//! `TIDEGATE_STRESS_OPS=50000 cargo test -p tidegate --test stress`.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use common::*;
use tidegate::{Admission, Lane, LaneSnapshot};

/// Counts who is inside, and the most there ever were.
#[derive(Default)]
struct Inside {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Inside {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn peak(&self) -> u64 {
        self.peak.load(Ordering::SeqCst)
    }
}

#[test]
fn sixty_four_threads_are_eight_at_most() {
    let gate = gate(8, 8, 1000);
    let inside = Inside::default();
    let each = stress_ops().div_ceil(64);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..each {
                    let permit = gate.admit_blocking(None).unwrap();
                    inside.enter();
                    // The first ones stay until all eight places are taken.
                    while inside.peak() < 8 {
                        thread::yield_now();
                    }
                    inside.leave();
                    drop(permit);
                }
            });
        }
    });
    assert_eq!(inside.peak(), 8, "exactly eight");
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!((seen.received, seen.admitted()), (each * 64, each * 64));
    idle_check(&gate);
}

#[test]
fn tokens_ends_cancellations_and_refusals_mix_without_loss() {
    let gate = ranked(3, 2, 2, [0, 1, 2]);
    let each = stress_ops() / 8 / 8;
    let ranks = [Inside::default(), Inside::default(), Inside::default()];
    let refused = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (gate, ranks, refused) = (&gate, &ranks, &refused);
            scope.spawn(move || {
                for turn in 0..each {
                    let rank = match (thread + turn) % 4 {
                        3 => None,
                        rank => Some(rank as u32),
                    };
                    let mut permit = match gate.request(rank) {
                        Ok(Admission::Admitted(permit)) => permit,
                        Ok(Admission::Queued(ticket)) if turn % 3 == 0 => {
                            ticket.cancel();
                            continue;
                        }
                        Ok(Admission::Queued(ticket)) => ticket.wait().unwrap(),
                        Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                    };
                    let place = rank.map(|rank| &ranks[rank as usize]);
                    place.inspect(|place| place.enter());
                    if turn % 2 == 0 {
                        permit.first_token();
                    }
                    if turn % 16 == 0 {
                        thread::yield_now();
                    }
                    place.inspect(|place| place.leave());
                }
            });
        }
    });
    for (rank, inside) in ranks.iter().enumerate() {
        assert!(inside.peak() <= 3, "rank {rank} held {}", inside.peak());
    }
    gate.settle();
    let snapshot = gate.snapshot();
    assert_eq!(snapshot.total(|lane| lane.received), each * 8);
    assert_eq!(
        snapshot.total(LaneSnapshot::rejected),
        refused.into_inner(),
        "cancellations are no rejections"
    );
    idle_check(&gate);
}

#[test]
fn every_reading_of_a_busy_gate_is_consistent() {
    let gate = ranked(2, 1, 1, [0, 1]);
    let done = AtomicBool::new(false);
    let each = stress_ops() / 8 / 4;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u32)
            .map(|thread| {
                let gate = &gate;
                scope.spawn(move || {
                    for turn in 0..each {
                        let rank = (thread != 3).then_some(thread % 2);
                        if let Ok(Admission::Admitted(mut permit)) = gate.request(rank)
                            && turn % 2 == 0
                        {
                            permit.first_token();
                        }
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut readings = 0_u64;
            while !done.load(Ordering::Acquire) {
                let snapshot = gate.snapshot();
                for lane in &snapshot.lanes {
                    assert!(lane.conserves(), "{lane:?}");
                    assert!(lane.waiting <= lane.running, "{lane:?}");
                    if lane.lane != Lane::Unspecified {
                        assert!(lane.running <= 2 && lane.waiting <= 1 && lane.queued <= 1);
                    }
                }
                assert!(snapshot.worker.running <= 4 && snapshot.worker.waiting <= 2);
                assert!(snapshot.worker.queued <= 2);
                readings += 1;
            }
            readings
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Release);
        assert!(reader.join().unwrap() > 0);
    });
    idle_check(&gate);
}

#[cfg(target_os = "linux")]
#[test]
fn parked_threads_use_no_cpu() {
    use std::time::Duration;

    // Nanoseconds that this thread has run on a processor.
    let cpu = || -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        stat.split_whitespace().next().unwrap().parse().unwrap()
    };
    if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
        return;
    }
    let gate = gate(1, 1, 64);
    let holder = enter(&gate, None);
    let used: u64 = thread::scope(|scope| {
        let parked: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let before = cpu();
                    drop(gate.admit_blocking(None).unwrap());
                    cpu() - before
                })
            })
            .collect();
        eventually("all are queued", || held(&gate).2 == 64);
        thread::sleep(Duration::from_millis(500));
        drop(holder);
        parked
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    // Spinning would have used half a second at the least.
    assert!(used < 250_000_000, "64 parked threads used {used} ns");
    idle_check(&gate);
}
