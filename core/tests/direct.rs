//! What direct admission does without: the allocator, locks, clocks, threads.

mod common;
mod heap;

use common::*;
use heap::allocations;
use tidegate::{Admission, Gate};

/// Whole lives of borrowed permits, in every lane.
fn lives(gate: &Gate, ranks: &[Option<u32>]) {
    for rank in ranks {
        let mut permit = gate.try_admit(*rank).unwrap();
        permit.first_token();
        drop(permit);
        drop(gate.try_admit(*rank).unwrap());
        drop(gate.enter_if_room(*rank).unwrap());
        match gate.request(*rank).unwrap() {
            Admission::Admitted(permit) => drop(permit),
            Admission::Queued(_) => unreachable!("there is room"),
        }
    }
}

#[test]
fn direct_admission_allocates_nothing() {
    let gate = ranked(4, 4, 4, 0..4);
    let ranks = [Some(0), Some(1), Some(2), Some(3), None, Some(99)];
    let (count, ()) = allocations(|| (0..1000).for_each(|_| lives(&gate, &ranks)));
    assert_eq!(count, 0);
    let unreported = self::gate(4, 4, 4);
    let (count, ()) = allocations(|| (0..1000).for_each(|_| lives(&unreported, &[None])));
    assert_eq!(count, 0);
    idle_check(&gate);
}

#[test]
fn direct_admission_with_tokens_from_elsewhere_allocates_nothing() {
    let gate = ranked(2, 2, 2, [0, 1]);
    let rank_1 = [enter(&gate, Some(1)), enter(&gate, Some(1))];
    let _unranked = [enter(&gate, None), enter(&gate, None)];
    drop(rank_1);
    let (count, ()) = allocations(|| lives(&gate, &[Some(0)]));
    assert_eq!(count, 0);
}

#[test]
fn refusals_allocate_nothing() {
    let gate = ranked(1, 1, 1, 0..2);
    let _full = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let _queued = [queue(&gate, Some(0)), queue(&gate, None)];
    gate.settle();
    let (count, ()) = allocations(|| {
        for rank in [Some(0), Some(1), None, Some(99)] {
            assert!(gate.try_admit(rank).is_err());
            assert!(gate.request(rank).is_err());
            assert!(gate.enter_if_room(rank).is_none());
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn queueing_and_cancelling_allocate_nothing_once_slots_are_there() {
    let gate = gate(1, 1, 8);
    let _full = enter(&gate, None);
    queue(&gate, None).cancel();
    let (count, ()) = allocations(|| {
        for _ in 0..1000 {
            queue(&gate, None).cancel();
        }
    });
    assert_eq!(count, 0);
}

/// What blocks, tells the time or allocates, and the only files that name it:
/// none of them is on the path of a request that enters, runs, ends or is refused.
const SLOW: [(&str, &[&str]); 9] = [
    ("Mutex", &["orphans.rs", "shared.rs", "sync.rs"]),
    (".lock()", &["configure.rs", "orphans.rs", "sync.rs"]),
    ("Instant", &["park.rs"]),
    ("SystemTime", &[]),
    ("park_timeout", &["park.rs"]),
    ("yield_now", &["observe.rs", "run.rs"]),
    ("spawn(", &["gate.rs", "orphans.rs"]),
    // Slots, listeners and what a report brings, each before anything is held.
    ("Box::new(", &["chunks.rs", "configure.rs", "listeners.rs"]),
    ("vec![", &["lists.rs", "metrics.rs", "spec.rs"]),
];

#[test]
fn what_is_slow_is_named_only_off_the_direct_path() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = 0;
    for folder in [src.clone(), src.join("word")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            // The hooks of tests are in no build that runs.
            if path.is_dir() || ["stall.rs", "model.rs"].contains(&&*file) {
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code = code.split("#[cfg(all(test").next().unwrap();
            for line in code.lines().map(str::trim_start) {
                for (word, allowed) in SLOW {
                    assert!(
                        line.starts_with("//") || !line.contains(word) || allowed.contains(&&*file),
                        "{file} names {word}: {line}"
                    );
                }
            }
        }
    }
    assert!(files > 20, "only {files} files were looked at");
}
