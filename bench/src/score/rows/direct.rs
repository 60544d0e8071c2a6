//! Entering at once, and leaving.

use crate::ours::Borrowed;
use crate::peers::{AsyncLockPair, Floor, MutexGate, PlainMutex, TokioPair, TowerLimit};
use crate::subject::Subject;
use crate::timing::pair;
use crate::work;

use super::super::{Bar, Contender, Row, Unit};
use super::{Make, on_one_thread, on_two_threads};

pub(super) const ROWS: &[Make] = &[
    one_thread,
    two_ranks,
    one_rank,
    no_ranks,
    unranked,
    mixed_half_full,
    mixed_nearly_full,
];

const OWN_LINE: &str = "floor, own lines";

fn row(name: &'static str, ours: Contender, peers: Vec<Contender>, bars: Vec<Bar>) -> Row {
    Row {
        name,
        unit: Unit::Nanoseconds,
        long: false,
        ours,
        peers,
        bars,
        note: "admit, first token, release; time over the lifecycles of all threads",
    }
}

fn one_thread() -> Row {
    let peers = vec![
        on_one_thread::<Floor>(),
        on_one_thread::<MutexGate>(),
        on_one_thread::<TokioPair>(),
        on_one_thread::<PlainMutex>(),
        on_one_thread::<AsyncLockPair>(),
        on_one_thread::<TowerLimit>(),
    ];
    let bars = vec![
        Bar::times(1.3, 0).stretch(1.15),
        Bar::times(0.6, 1),
        Bar::times(0.5, 2),
    ];
    row(
        "direct lifecycle, 1 thread",
        on_one_thread::<Borrowed>(),
        peers,
        bars,
    )
}

fn two_ranks() -> Row {
    const RANKS: [Option<u32>; 2] = [Some(0), Some(1)];
    let peers = vec![
        on_two_threads::<Floor>(2, RANKS).called(OWN_LINE),
        on_two_threads::<MutexGate>(2, RANKS),
        on_two_threads::<TokioPair>(2, RANKS),
        on_two_threads::<PlainMutex>(2, RANKS),
    ];
    let bars = vec![Bar::times(1.4, 0).stretch(1.15), Bar::times(0.2, 1)];
    row(
        "direct, 2 threads on 2 ranks",
        on_two_threads::<Borrowed>(2, RANKS),
        peers,
        bars,
    )
}

fn one_rank() -> Row {
    together("direct, 2 threads on 1 rank", 1, Some(0))
}

fn no_ranks() -> Row {
    together("direct, 2 threads, no ranks reported", 0, None)
}

/// Both threads where the other is.
fn together(name: &'static str, ranks: u32, rank: Option<u32>) -> Row {
    let peers = vec![
        on_two_threads::<MutexGate>(ranks, [rank; 2]),
        on_two_threads::<Floor>(2, [Some(0), Some(1)]).called(OWN_LINE),
        on_two_threads::<Floor>(1, [Some(0); 2]).called("floor, shared line"),
        on_two_threads::<TokioPair>(ranks, [rank; 2]),
        on_two_threads::<PlainMutex>(ranks, [rank; 2]),
    ];
    let bars = vec![Bar::times(0.8, 0), Bar::wish(1.5, 1)];
    row(
        name,
        on_two_threads::<Borrowed>(ranks, [rank; 2]),
        peers,
        bars,
    )
}

fn unranked() -> Row {
    let peers = vec![
        on_two_threads::<Floor>(2, [Some(0), Some(1)]).called(OWN_LINE),
        on_two_threads::<MutexGate>(8, [None; 2]),
    ];
    row(
        "unranked on 8 ranks, 2 threads",
        on_two_threads::<Borrowed>(8, [None; 2]),
        peers,
        vec![Bar::times(1.5, 0)],
    )
}

fn mixed_half_full() -> Row {
    mixed("mixed on 8 ranks, half full, 2 threads", 256)
}

fn mixed_nearly_full() -> Row {
    mixed("mixed on 8 ranks, 95 % full, 2 threads", 486)
}

fn mixed(name: &'static str, held: u32) -> Row {
    Row {
        note: "every other request ranked, going round the thread's 4 ranks; R = W = 64, and of \
               what is held and streams already every other is unranked",
        ..row(
            name,
            crowded::<Borrowed>(held),
            vec![crowded::<MutexGate>(held)],
            vec![Bar::times(0.6, 0).stretch(0.4)],
        )
    }
}

/// Two threads of mixed requests, while `held` of 512 places are taken.
fn crowded<S: Subject>(held: u32) -> Contender {
    let gate: &'static S = super::leaked(8, 64, 64, 512);
    let permits: Vec<_> = (0..held)
        .map(|i| {
            let rank = (i % 2 == 0).then_some(i / 2 % 8);
            let mut permit = gate.try_admit(rank).expect("room");
            S::first_token(&mut permit);
            permit
        })
        .collect();
    let ranks = [0, 4].map(|first| {
        [first, first + 1, first + 2, first + 3]
            .into_iter()
            .flat_map(|rank| [Some(rank), None])
            .collect::<Vec<_>>()
    });
    Contender::new(S::NAME, move |plan| {
        // Held for as long as it is measured.
        let _held = &permits;
        pair(plan.span, |thread, n| work::mixed(gate, &ranks[thread], n))
    })
}
