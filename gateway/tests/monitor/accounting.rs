//! The frontend's own accounting.

use tidegate_gateway::monitor::{
    Joining, Member, Monitor, MonitorSettings, RankLoad, Thresholds, Totals,
};

fn member(settings: MonitorSettings, joining: Joining) -> Member {
    Monitor::new(settings).add(joining).unwrap()
}

fn one() -> Member {
    member(MonitorSettings::default(), Joining::new(1))
}

fn rank(member: &Member, at: usize) -> (u64, u64, u64) {
    let RankLoad {
        running,
        active_decode_blocks,
        active_prefill_tokens,
        ..
    } = member.load().ranks[at];
    (running, active_decode_blocks, active_prefill_tokens)
}

#[test]
fn a_request_counts_from_its_start_to_its_drop() {
    let member = one();
    assert_eq!(rank(&member, 0), (0, 0, 0));
    // 4 bytes a token until an engine has told: 100 tokens, 7 blocks.
    let mut held = member.started(None, "m", 400);
    assert_eq!(rank(&member, 0), (1, 7, 100));
    held.first_token();
    assert_eq!(rank(&member, 0), (1, 7, 0), "its prompt is read");
    held.first_token();
    held.generated(1000);
    assert_eq!(
        rank(&member, 0),
        (1, 7, 0),
        "output blocks are not asked for"
    );
    let second = member.started(Some(0), "m", 1);
    assert_eq!(rank(&member, 0), (2, 8, 1));
    drop(held);
    assert_eq!(rank(&member, 0), (1, 1, 1));
    drop(second);
    assert_eq!(rank(&member, 0), (0, 0, 0));
}

#[test]
fn output_blocks_count_if_they_are_asked_for() {
    let settings = MonitorSettings {
        track_output_blocks: true,
        ..MonitorSettings::default()
    };
    let member = member(settings, Joining::new(1));
    let mut held = member.started(None, "m", 400);
    held.generated(12);
    assert_eq!(rank(&member, 0), (1, 7, 100), "112 tokens are 7 blocks");
    held.generated(1);
    assert_eq!(rank(&member, 0), (1, 8, 100));
    held.generated(u64::MAX);
    drop(held);
    assert_eq!(rank(&member, 0), (0, 0, 0));
}

#[test]
fn usage_corrects_this_request_and_later_ones_of_the_model() {
    let member = one();
    let mut held = member.started(None, "m", 4_000);
    assert_eq!(rank(&member, 0), (1, 63, 1_000));
    held.prompt_was(2_000);
    assert_eq!(rank(&member, 0), (1, 125, 2_000));
    drop(held);
    for _ in 0..100 {
        member.started(None, "m", 4_000).prompt_was(2_000);
    }
    let later = member.started(None, "m", 8_000);
    let (_, _, tokens) = rank(&member, 0);
    assert!((3_900..=4_000).contains(&tokens), "{tokens}");
    drop(later);
    let _other = member.started(None, "another", 8_000);
    assert_eq!(rank(&member, 0).2, 2_000);
}

#[test]
fn an_absurd_usage_is_not_believed() {
    let member = one();
    let mut held = member.started(None, "m", 100);
    held.prompt_was(u64::MAX);
    assert_eq!(rank(&member, 0), (1, 100, 1_600));
    held.prompt_was(0);
    assert_eq!(rank(&member, 0), (1, 100, 1_600));
    drop(held);
    let mut empty = member.started(None, "m", 0);
    empty.prompt_was(7);
    drop(empty);
    assert_eq!(rank(&member, 0), (0, 0, 0));
}

#[test]
fn ranks_are_told_apart_and_block_sizes_are_the_workers() {
    let joining = Joining {
        ranks: Some(vec![3, 5]),
        totals: Totals {
            block_size: Some(32),
            kv_total_blocks: Some(10),
            ..Totals::default()
        },
        ..Joining::new(9)
    };
    let settings = MonitorSettings {
        thresholds: Thresholds {
            active_decode_blocks: Some(0.3),
            ..Thresholds::default()
        },
        ..MonitorSettings::default()
    };
    let member = member(settings, joining);
    let on_five = member.started(Some(5), "m", 4 * 32 * 4);
    assert_eq!((rank(&member, 0).1, rank(&member, 1).1), (0, 4));
    let busy = member.busy("m");
    assert_eq!((busy.worker, busy.ranks), (false, vec![5]));
    let on_three = member.started(Some(3), "m", 4 * 32 * 4);
    assert!(member.busy("m").worker);
    drop(on_five);
    assert_eq!(member.busy("m").ranks, [3]);
    drop(on_three);
    assert!(member.busy("m").ranks.is_empty());
}

#[test]
fn what_is_dropped_on_other_threads_comes_back() {
    let member = one();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let member = &member;
            scope.spawn(move || {
                for bytes in 0..500 {
                    let mut held = member.started(Some(thread % 2), "m", bytes);
                    if bytes % 3 == 0 {
                        held.first_token();
                    }
                }
            });
        }
    });
    assert_eq!(rank(&member, 0), (0, 0, 0));
    assert_eq!(member.load().running, 0);
}

#[test]
fn a_request_outlives_its_worker() {
    let monitor = Monitor::new(MonitorSettings::default());
    let member = monitor.add(Joining::new(1)).unwrap();
    let held = member.started(None, "m", 100);
    assert!(monitor.remove(1) && !monitor.remove(1));
    assert!(monitor.member(1).is_none() && monitor.snapshot().is_empty());
    drop(held);
    assert_eq!(member.load().running, 0);
    let again = monitor.add(Joining::new(1)).unwrap();
    assert_eq!(again.load().running, 0, "a new one begins at nothing");
}
