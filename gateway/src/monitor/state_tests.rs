use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn thresholds(share: f64) -> Thresholds {
    Thresholds {
        active_decode_blocks: Some(share),
        ..Thresholds::default()
    }
}

/// A rank of 100 blocks, `used` of them in use.
fn used(used: u64) -> Sample {
    Sample {
        kv_used_blocks: Some(used),
        totals: Totals {
            kv_total_blocks: Some(100),
            ..Totals::default()
        },
        ..Sample::default()
    }
}

fn reading(ranks: &[(Option<u32>, Sample)]) -> Reading {
    Reading {
        ranks: ranks.iter().copied().collect(),
        ..Reading::default()
    }
}

/// A state, with a clock that the test moves.
struct Watched {
    state: State,
    now: Instant,
}

impl Watched {
    fn new(ranks: Option<&[u32]>) -> Self {
        Self {
            state: State::new(ranks, Totals::default()),
            now: Instant::now(),
        }
    }

    fn later(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn take(&mut self, source: Source, ranks: &[(Option<u32>, Sample)]) {
        self.state.take(source, &reading(ranks), self.now);
    }

    fn busy(&self) -> Busy {
        self.state.busy(&thresholds(0.85), self.now, TTL)
    }

    fn load(&self) -> Load {
        self.state.load(self.now, TTL)
    }

    fn ranks(&self) -> Vec<u32> {
        self.load().ranks.iter().map(|rank| rank.rank).collect()
    }
}

#[test]
fn a_check_clears_as_soon_as_what_is_said_is_under() {
    let mut watched = Watched::new(None);
    assert!(!watched.busy().worker, "nothing is known");
    watched.take(Source::Scrape, &[(Some(0), used(86))]);
    assert_eq!(
        watched.busy(),
        Busy {
            worker: true,
            ranks: vec![0]
        }
    );
    watched.take(Source::Scrape, &[(Some(0), used(85))]);
    assert_eq!(watched.busy(), Busy::default());
}

#[test]
fn sources_stand_beside_each_other() {
    let mut watched = Watched::new(None);
    watched.take(Source::Scrape, &[(Some(0), used(10))]);
    watched.take(Source::Events, &[(Some(0), used(90))]);
    assert!(watched.busy().worker, "either is enough");
    watched.take(Source::Scrape, &[(Some(0), used(20))]);
    assert!(watched.busy().worker, "one takes nothing back of the other");
    watched.take(Source::Events, &[(Some(0), used(30))]);
    assert!(!watched.busy().worker);
    assert_eq!(watched.load().ranks[0].active_decode_blocks, 30);
}

#[test]
fn silence_makes_and_keeps_nobody_busy() {
    let mut watched = Watched::new(Some(&[0, 1]));
    watched.take(Source::Scrape, &[(Some(0), used(99)), (Some(1), used(99))]);
    watched.later(10.0);
    assert!(watched.busy().worker, "up to the age it counts");
    watched.later(0.001);
    assert_eq!(watched.busy(), Busy::default(), "past it no more");
    assert_eq!(watched.load().ranks[0].active_decode_blocks, 0);
    assert_eq!(
        watched.load().ranks[0].kv_total_blocks,
        Some(100),
        "a size does not age"
    );
    watched.later(3600.0);
    assert_eq!(watched.busy(), Busy::default());
}

#[test]
fn one_source_that_falls_silent_leaves_the_other() {
    let mut watched = Watched::new(None);
    watched.take(Source::Events, &[(Some(0), used(99))]);
    watched.later(6.0);
    watched.take(Source::Scrape, &[(Some(0), used(1))]);
    assert!(watched.busy().worker);
    watched.later(6.0);
    assert!(!watched.busy().worker, "the events are too old");
}

#[test]
fn the_newest_counts_whatever_comes_last() {
    let mut watched = Watched::new(None);
    let early = watched.now;
    watched.later(2.0);
    watched.take(Source::Events, &[(Some(0), used(10))]);
    // An answer that was long on its way, and a clock that seems to jump.
    watched
        .state
        .take(Source::Events, &reading(&[(Some(0), used(99))]), early);
    assert!(!watched.busy().worker);
    let future = watched.now + Duration::from_secs(3600);
    watched
        .state
        .take(Source::Events, &reading(&[(Some(0), used(99))]), future);
    assert!(watched.busy().worker);
    assert_eq!(watched.state.heard(Source::Events), Some(future));
}

#[test]
fn what_a_sample_leaves_out_stays_as_it_was() {
    let mut watched = Watched::new(None);
    watched.take(Source::Events, &[(Some(0), used(99))]);
    watched.later(9.0);
    let running = Sample {
        running: Some(3),
        ..Sample::default()
    };
    watched.take(Source::Events, &[(Some(0), running)]);
    assert!(watched.busy().worker);
    watched.later(2.0);
    assert!(!watched.busy().worker, "and ages from when it was said");
    assert_eq!(watched.load().running, 3);
}

#[test]
fn a_worker_is_busy_only_with_all_its_ranks_and_one_not_heard_of_is_free() {
    let mut watched = Watched::new(Some(&[4, 7, 9]));
    watched.take(Source::Scrape, &[(Some(4), used(99)), (Some(9), used(99))]);
    assert_eq!(
        watched.busy(),
        Busy {
            worker: false,
            ranks: vec![4, 9]
        }
    );
    watched.take(Source::Scrape, &[(Some(7), used(99))]);
    assert!(watched.busy().worker);
}

#[test]
fn pages_tell_the_ranks_unless_they_were_declared() {
    let mut declared = Watched::new(Some(&[0, 1]));
    declared.take(
        Source::Scrape,
        &[(Some(1), used(1)), (Some(u32::MAX), used(99))],
    );
    assert_eq!((declared.ranks(), declared.state.dropped), (vec![0, 1], 1));

    let mut told = Watched::new(None);
    assert_eq!(told.ranks(), [0]);
    told.take(Source::Events, &[(Some(5), used(99))]);
    assert_eq!(
        (told.ranks(), told.state.dropped),
        (vec![0], 1),
        "events tell none"
    );
    told.take(Source::Scrape, &[(Some(2), used(1)), (Some(3), used(1))]);
    assert_eq!(told.ranks(), [2, 3]);
    let torn = Reading {
        dropped: 1,
        ..reading(&[(Some(3), used(99))])
    };
    told.state.take(Source::Scrape, &torn, told.now);
    assert_eq!(told.ranks(), [2, 3], "a page with faults may have lost one");
    assert!(!told.busy().worker);
    told.take(Source::Scrape, &[(Some(3), used(99))]);
    assert_eq!(told.ranks(), [3], "the engine came back with fewer");
    told.take(Source::Scrape, &[]);
    assert_eq!(told.ranks(), [3], "a page without any changes nothing");
}

#[test]
fn more_ranks_than_there_may_be_are_not_believed() {
    let ranks: Vec<u32> = (0..5000).collect();
    let watched = Watched::new(Some(&ranks));
    assert_eq!(watched.ranks(), [0]);
    let mut watched = Watched::new(None);
    let page: Vec<_> = ranks.iter().map(|rank| (Some(*rank), used(1))).collect();
    watched.take(Source::Scrape, &page);
    assert_eq!(watched.ranks().len(), MOST_RANKS);
    assert_eq!(watched.state.dropped, 5000 - MOST_RANKS as u64);
}

#[test]
fn with_one_rank_what_is_said_of_none_is_said_of_it() {
    let mut one = Watched::new(None);
    let both = Sample {
        running: Some(3),
        waiting: Some(2),
        ..used(99)
    };
    one.take(Source::Scrape, &[(None, both)]);
    assert!(one.busy().worker);
    assert_eq!(one.load().running, 5);
    let mut two = Watched::new(Some(&[0, 1]));
    two.take(Source::Scrape, &[(None, both)]);
    assert!(!two.busy().worker, "nobody knows whose it is");
    assert_eq!(two.load().running, 5);
    assert_eq!(
        two.load().ranks[0].kv_total_blocks,
        Some(100),
        "a size is each one's"
    );
}

#[test]
fn the_own_accounting_counts_beside_what_is_said() {
    let mut watched = Watched::new(Some(&[0, 1]));
    watched.take(Source::Scrape, &[(Some(0), used(10)), (Some(1), used(10))]);
    let share = |blocks| Share {
        running: 1,
        blocks,
        prefill_tokens: 16 * blocks,
    };
    let none = Share::default();
    watched.state.own.replace(Some(0), none, share(86));
    assert_eq!(watched.busy().ranks, [0]);
    watched.state.own.replace(None, none, share(172));
    assert!(watched.busy().worker, "an unranked one falls to both alike");
    let load = watched.load();
    assert_eq!(load.running, 2);
    assert_eq!(load.ranks[1].active_decode_blocks, 86);
    assert_eq!(load.ranks[1].active_prefill_tokens, 86 * 16);
    let tokens = Thresholds {
        active_prefill_tokens: Some(86 * 16),
        ..Thresholds::default()
    };
    let busy = watched.state.busy(&tokens, watched.now, TTL);
    assert_eq!(busy.ranks, [0], "prefill tokens need no size");
    watched.state.own.replace(None, share(172), none);
    assert_eq!(watched.busy().ranks, [0]);
    watched.later(3600.0);
    assert_eq!(
        watched.busy().ranks,
        [0],
        "what was sent and has not ended does not age"
    );
}

#[test]
fn a_sample_says_when_it_has_room() {
    let mut watched = Watched::new(None);
    assert_eq!(watched.state.free(), None);
    let waiting = |waiting| Sample {
        waiting: Some(waiting),
        ..used(100)
    };
    watched.take(Source::Scrape, &[(Some(0), waiting(1))]);
    assert_eq!(watched.state.free(), None);
    watched.take(Source::Events, &[(Some(0), used(100))]);
    assert_eq!(watched.state.free(), None, "all blocks are taken");
    watched.take(Source::Scrape, &[(Some(0), waiting(0))]);
    let first = watched.now;
    assert_eq!(watched.state.free(), Some(first));
    watched.later(1.0);
    let full = Reading {
        room: Some(false),
        ..reading(&[(Some(0), waiting(0))])
    };
    watched.state.take(Source::Scrape, &full, watched.now);
    assert_eq!(
        watched.state.free(),
        Some(first),
        "a gate's own word goes before"
    );
    watched.take(Source::Events, &[(Some(0), used(99))]);
    assert_eq!(watched.state.free(), Some(watched.now));
    watched.later(1.0);
    let free = watched.state.free();
    watched.take(Source::Scrape, &[]);
    watched.take(Source::Events, &[(Some(77), waiting(0))]);
    assert_eq!(
        watched.state.free(),
        free,
        "who says nothing says nothing of room"
    );
}

#[test]
fn sizes_decide_which_thresholds_have_a_source() {
    let mut watched = Watched::new(None);
    let have = |state: &State| Threshold::ALL.map(|threshold| state.has_source(threshold));
    assert_eq!(have(&watched.state), [false, true, false]);
    watched.take(Source::Scrape, &[(None, used(1))]);
    assert_eq!(have(&watched.state), [true, true, false]);
    let batch = Totals {
        max_num_batched_tokens: Some(8192),
        ..Totals::default()
    };
    assert_eq!(have(&State::new(None, batch)), [false, true, true]);
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let count = || any::<Option<u64>>();
    let totals = (count(), count(), any::<Option<u32>>());
    (count(), count(), count(), count(), count(), totals).prop_map(
        |(active, used, tokens, running, waiting, totals)| Sample {
            active_decode_blocks: active,
            kv_used_blocks: used,
            active_prefill_tokens: tokens,
            running,
            waiting,
            totals: Totals {
                kv_total_blocks: totals.0,
                max_num_batched_tokens: totals.1,
                block_size: totals.2,
            },
        },
    )
}

proptest! {
    /// Whatever is said, in whatever order: after so long a silence nobody is busy, and
    /// nothing panics on the way.
    #[test]
    fn any_words_are_taken_and_silence_frees(
        said in prop::collection::vec(
            (any::<bool>(), any::<Option<u8>>(), any_sample(), 0_u64..30, any::<bool>()), 0..30,
        ),
        declared in any::<bool>(),
    ) {
        let mut watched = Watched::new(declared.then_some(&[0, 1, 2]));
        for (events, rank, sample, at, torn) in said {
            let source = if events { Source::Events } else { Source::Scrape };
            let mut reading = reading(&[(rank.map(u32::from), sample)]);
            reading.dropped = u64::from(torn);
            let at = watched.now + Duration::from_secs(at);
            watched.state.take(source, &reading, at);
            let _ = (watched.busy(), watched.load());
        }
        prop_assert!(!watched.ranks().is_empty());
        watched.later(30.0 + 10.001);
        prop_assert_eq!(watched.busy(), Busy::default());
        prop_assert_eq!(watched.load().running, 0);
    }
}
