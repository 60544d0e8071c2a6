//! What the policy promises under overload, live: the plateau, shares beside a flood,
//! the floor, timeouts. The same is shown in virtual time in `simulate.rs` and
//! `simulate_sharing.rs`, where nothing disturbs it; bars here leave room for a machine.

mod live;
mod stack;
mod tenants;

use std::time::Duration;

use live::{Ended, live, live_on, say, seconds};
use tenants::{by_order_alone, of_class, policy, tenants, together};
use tidegate_gateway::load::{Outcome, RefusedBy};

/// Answers of a class that came to their end.
fn answers(all: &[Ended], class: usize) -> usize {
    let of = all.iter().filter(|ended| ended.class == class);
    of.filter(|ended| ended.outcome == Outcome::Ok).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goodput_stays_on_its_plateau() {
    let Some(seconds) = seconds() else { return };
    const PROMISE: Duration = Duration::from_millis(1000);
    let settings = "[tuner]\nenabled = false\n\
                    [[class]]\nname = \"a\"\ncritical = true\nfirst_token_ms = 1000\n";
    let mut kept = Vec::new();
    for rate in [10.0, 20.0, 40.0] {
        let all = live(policy(settings), &of_class(0, rate, seconds, 11)).await;
        let in_time = |ended: &&Ended| {
            ended.outcome == Outcome::Ok && ended.first_token.is_some_and(|first| first <= PROMISE)
        };
        kept.push(all.iter().filter(in_time).count() as f64 / seconds as f64);
    }
    say(&format!(
        "goodput at 10, 20 and 40 requests a second: {kept:.2?} a second"
    ));
    let peak = kept.iter().copied().fold(0.0, f64::max);
    assert!(kept[1] >= 0.9 * peak && kept[2] >= 0.9 * peak, "{kept:?}");
}

/// Both ask for more than there is, one ten times as much as the other; who waits too
/// long hears so on time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_flood_each_tenant_gets_its_weight_and_timeouts_come_on_time() {
    let Some(seconds) = seconds() else { return };
    let requests = together(&[
        of_class(0, 20.0, seconds, 1),
        of_class(1, 200.0, seconds, 2),
    ]);
    let all = live(tenants(1), &requests).await;
    // Who got in while both were backlogged: once there were enough, and until no more come.
    let backlogged = Duration::from_secs(3)..Duration::from_secs(seconds);
    let then: Vec<Ended> = all
        .iter()
        .filter(|ended| {
            let first = ended.first_token.map(|first| ended.at + first);
            first.is_some_and(|first| backlogged.contains(&first))
        })
        .cloned()
        .collect();
    let [quiet, flood] = [0, 1].map(|class| answers(&then, class) as f64);
    let share = quiet / (quiet + flood);
    let mut late: Vec<f64> = all
        .iter()
        .filter(|ended| ended.outcome == Outcome::Refused(RefusedBy::Class))
        .map(|ended| ended.took.as_secs_f64() * 1e3 - 4000.0)
        // Others are refused at once, since too many are held.
        .filter(|late| *late > -500.0)
        .collect();
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    say(&format!(
        "answers {quiet} and {flood}, {:.1} % for the quiet one; {} timeouts, later than theirs \
         by {:.1} ms at the median, {:.1} ms at p99, hop and client included",
        100.0 * share,
        late.len(),
        at(0.5),
        at(0.99)
    ));
    assert!((0.475..=0.525).contains(&share), "{share:.3}");
    assert!(at(0.0) >= -1.0 && at(0.5) < 20.0, "{} {}", at(0.0), at(0.5));
}

/// One asks for half of its share, the other for five times what there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_flood_who_asks_for_less_than_its_share_waits_as_long_as_alone_on_it() {
    let Some(seconds) = seconds() else { return };
    let own = of_class(0, 2.5, seconds, 1);
    let both = together(&[own.clone(), of_class(1, 25.0, seconds, 2)]);
    // What a tenant lately needed is known once it has asked for a while.
    let known = Duration::from_secs(seconds / 3);
    let first_tokens = |all: &[Ended]| {
        let quiet = all.iter().filter(|ended| ended.class == 0);
        let quiet: Vec<_> = quiet.filter(|ended| ended.at >= known).collect();
        let ended = quiet.iter().filter(|e| e.outcome == Outcome::Ok);
        assert_eq!(ended.count(), quiet.len(), "none is refused");
        let mut ms: Vec<_> = quiet
            .iter()
            .filter_map(|ended| Some(ended.first_token?.as_secs_f64() * 1e3))
            .collect();
        ms.sort_by(f64::total_cmp);
        [0.5, 0.95, 0.99].map(|share: f64| ms[((ms.len() - 1) as f64 * share) as usize])
    };
    let beside = first_tokens(&live(tenants(1), &both).await);
    let on_share = first_tokens(&live_on(0.5, tenants(1), &own).await);
    let by_order = live(by_order_alone(tenants(1)), &both).await;
    let by_order = first_tokens(&by_order);
    say(&format!(
        "first token, ms at p50, p95, p99: beside the flood {beside:.0?}, alone on half of the \
         engine {on_share:.0?}, beside the flood by order alone {by_order:.0?}"
    ));
    assert!(beside[2] <= 1.5 * on_share[2], "{beside:?} {on_share:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_traffic_of_a_high_priority_leaves_the_low_one_its_floor() {
    let Some(seconds) = seconds() else { return };
    let settings = "[tuner]\nenabled = false\n[fairness]\nfloor = 0.1\nby = \"requests\"\n\
        [[class]]\nname = \"high\"\npriority = 9\nfirst_token_ms = 60000\nqueue_share = 1.0\n\
        queue_timeout_ms = 2000\ncritical = true\n\
        [[class]]\nname = \"low\"\nfirst_token_ms = 60000\nqueue_share = 1.0\n\
        queue_timeout_ms = 30000\ncritical = true\n";
    let requests = together(&[of_class(0, 60.0, seconds, 1), of_class(1, 5.0, seconds, 2)]);
    let all = live(policy(settings), &requests).await;
    let [high, low] = [0, 1].map(|class| answers(&all, class) as f64);
    let share = low / (low + high);
    say(&format!(
        "answers {high} and {low}: {:.1} % for the low priority, whose floor is 10 %",
        100.0 * share
    ));
    assert!(share >= 0.09, "{share:.3}");
}
