use super::*;
use crate::monitor::RankLoad;

fn with_running(id: u64, running: u64) -> Candidate {
    Candidate {
        id,
        load: Load {
            running,
            ..Load::default()
        },
        avoid: Vec::new(),
    }
}

/// A worker whose ranks, from 0, have these blocks and prompt tokens.
fn with_ranks(id: u64, ranks: &[(u64, u64)]) -> Candidate {
    let ranks = ranks
        .iter()
        .enumerate()
        .map(|(rank, &(blocks, tokens))| RankLoad {
            rank: rank as u32,
            active_decode_blocks: blocks,
            active_prefill_tokens: tokens,
            ..RankLoad::default()
        });
    Candidate {
        id,
        load: Load {
            running: 0,
            ranks: ranks.collect(),
        },
        avoid: Vec::new(),
    }
}

fn picks(mode: RouterMode, candidates: &[Candidate], count: usize) -> Vec<u64> {
    let picker = Picker::new(mode, 16, 7);
    (0..count)
        .map(|_| candidates[picker.pick(candidates, None).unwrap().at].id)
        .collect()
}

#[test]
fn nobody_is_picked_where_nobody_is() {
    for mode in [
        RouterMode::RoundRobin,
        RouterMode::Random,
        RouterMode::LeastLoaded,
        RouterMode::Kv,
    ] {
        assert_eq!(Picker::new(mode, 16, 0).pick(&[], None), None);
    }
}

#[test]
fn turns_go_round_and_a_worker_that_is_missing_loses_only_its_own() {
    let all = [3, 5, 9].map(|id| with_running(id, 0));
    assert_eq!(
        picks(RouterMode::RoundRobin, &all, 7),
        [3, 5, 9, 3, 5, 9, 3]
    );
    let picker = Picker::new(RouterMode::RoundRobin, 16, 0);
    let id = |candidates: &[Candidate]| candidates[picker.pick(candidates, None).unwrap().at].id;
    assert_eq!(id(&all), 3);
    assert_eq!(id(&[all[0].clone(), all[2].clone()]), 9);
    assert_eq!(id(&all), 3);
    assert_eq!(id(&all), 5);
}

#[test]
fn chance_favours_nobody_and_a_seed_repeats_it() {
    let all = [1, 2, 3, 4].map(|id| with_running(id, id));
    let one = picks(RouterMode::Random, &all, 4000);
    assert_eq!(one, picks(RouterMode::Random, &all, 4000));
    for id in 1..=4 {
        let count = one.iter().filter(|&&picked| picked == id).count();
        assert!((850..1150).contains(&count), "{id}: {count}");
    }
    assert_eq!(random::at(&all, 0.999_999_999_999_999_9), 3);
    assert_eq!(random::at(&all, 0.0), 0);
}

#[test]
fn the_fewest_requests_win_and_equals_take_turns() {
    let all = [with_running(1, 5), with_running(2, 2), with_running(3, 2)];
    assert_eq!(picks(RouterMode::LeastLoaded, &all, 4), [2, 3, 2, 3]);
}

#[test]
fn the_rank_with_the_least_work_wins_and_is_told() {
    let all = [
        with_ranks(1, &[(10, 0), (4, 32)]),
        with_ranks(2, &[(3, 64), (5, 0)]),
    ];
    // Blocks: 10, 4 + 2, 3 + 4, 5.
    let picker = Picker::new(RouterMode::Kv, 16, 0);
    let choice = picker.pick(&all, None).unwrap();
    assert_eq!((choice.at, choice.rank), (1, Some(1)));
}

#[test]
fn a_worker_of_one_rank_is_told_none() {
    let all = [with_ranks(1, &[(9, 0)]), with_ranks(2, &[(0, 16)])];
    let choice = Picker::new(RouterMode::Kv, 16, 0).pick(&all, None).unwrap();
    assert_eq!((choice.at, choice.rank), (1, None));
}

#[test]
fn ranks_that_are_to_be_left_alone_are_the_last_resort() {
    let mut worker = with_ranks(1, &[(0, 0), (50, 0)]);
    worker.avoid = vec![0];
    let picker = Picker::new(RouterMode::Kv, 16, 0);
    let pick = |worker: &Candidate| picker.pick(std::slice::from_ref(worker), None).unwrap();
    assert_eq!(pick(&worker).rank, Some(1));
    worker.avoid = vec![0, 1];
    assert_eq!(pick(&worker).rank, Some(0));
}

#[test]
fn a_rank_that_the_client_names_is_looked_at_and_left_to_it() {
    let all = [
        with_ranks(1, &[(0, 0), (8, 0)]),
        with_ranks(2, &[(9, 0), (7, 0)]),
    ];
    let picker = Picker::new(RouterMode::Kv, 16, 0);
    let choice = picker.pick(&all, Some(1)).unwrap();
    assert_eq!((choice.at, choice.rank), (1, None));
    // A rank that nobody has: as if none were named, but none is told.
    let choice = picker.pick(&all, Some(77)).unwrap();
    assert_eq!((choice.at, choice.rank), (0, None));
}

#[test]
fn work_beyond_all_counting_breaks_nothing() {
    let all = [
        with_ranks(1, &[(u64::MAX, u64::MAX)]),
        with_ranks(2, &[(u64::MAX, 0), (u64::MAX - 1, 0)]),
    ];
    let choice = Picker::new(RouterMode::Kv, 0, 0).pick(&all, None).unwrap();
    assert_eq!((choice.at, choice.rank), (1, Some(1)));
}
