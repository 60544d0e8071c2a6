//! 20,000 held requests at once. How late their timeouts are is printed, and judged
//! when `TIDEGATE_TIMEOUTS` is set: on a machine that does nothing else.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Gate, Settings as GateSettings};
use tidegate_policy::file;
use tidegate_policy::reason::Reason;
use tidegate_policy::shadow::Mode;
use tidegate_policy::state::{DeviceSample, EngineSample, State};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::asked::Asked;
use super::entering::{Arrived, Verdict};
use super::keeper::keep;
use super::layer::{Layer, Size};

const HELD: u64 = 20_000;

/// A layer before a gate with one place, which is taken, and its keeper.
fn full(timeout: Duration) -> (Arc<Layer>, JoinSet<()>, Verdict) {
    let text = format!(
        "utilisation_target = 1.0\n[cold_start]\nidle_ms = 3600000\n\
         [[class]]\nname = \"a\"\nfirst_token_ms = 3600000\nqueue_timeout_ms = {}\n",
        timeout.as_millis()
    );
    let gate = Gate::builder().settings(GateSettings {
        engine_request_limit: Some(1),
        ..GateSettings::default()
    });
    let size = Size {
        limit: 1,
        ranks: 1,
        batch: 1,
    };
    let settings = file::parse(&text).expect("a policy");
    let gate = gate.build().expect("limits in range");
    let layer = Arc::new(Layer::new(gate, size, settings, Mode::Enforce));
    // Fresh for ever: it comes from the future.
    layer.state.publish(State {
        at: Duration::from_secs(3_600),
        engine: EngineSample::default(),
        device: DeviceSample::default(),
        memory: None,
        idle_ms: 0.0,
        steps_per_second: None,
    });
    layer.observe();
    let mut tasks = JoinSet::new();
    tasks.spawn(keep(Arc::clone(&layer)));
    let first = futures_util::FutureExt::now_or_never(ask(&layer)).expect("there is room");
    assert!(matches!(first, Verdict::In(..)), "{first:?}");
    (layer, tasks, first)
}

async fn ask(layer: &Arc<Layer>) -> Verdict {
    match layer.arrives(&Asked::default(), None, None, None) {
        Arrived::Decided(verdict) => verdict,
        Arrived::Held(mut held) => held.verdict().await,
    }
}

fn held(layer: &Layer) -> u64 {
    layer.with(|counter| counter.desk.held(tidegate_policy::class::ClassId(0)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timeouts_come_on_time_however_many_are_held() {
    let timeout = Duration::from_secs(1);
    let (layer, _keeper, _first) = full(timeout);
    let mut all = JoinSet::new();
    for _ in 0..HELD {
        let layer = Arc::clone(&layer);
        all.spawn(async move {
            let asked = Instant::now();
            match ask(&layer).await {
                Verdict::Refused(refused) if refused.reason == Reason::QueueTimeout => {
                    Some(asked.elapsed())
                }
                // Who comes after two seconds without an end finds no room to be held.
                Verdict::Refused(refused) if refused.reason == Reason::QueueFull => None,
                other => panic!("{other:?}"),
            }
        });
    }
    let held_for = all.join_all().await.into_iter().flatten();
    let late = |held: Duration| held.checked_sub(timeout).expect("none is sent away early");
    let mut late: Vec<Duration> = held_for.map(late).collect();
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100];
    let (all, p50, p99, most) = (late.len(), at(50), at(99), at(100));
    eprintln!("{all} held: timeouts late by {p50:?} at p50, {p99:?} at p99, {most:?} at most");
    assert_eq!(held(&layer), 0);
    if std::env::var_os("TIDEGATE_TIMEOUTS").is_some() {
        assert_eq!(late.len() as u64, HELD);
        assert!(p99 <= Duration::from_millis(5), "{p99:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_leavers_leaves_nothing_behind() {
    let (layer, _keeper, first) = full(Duration::from_secs(600));
    let mut all = JoinSet::new();
    for _ in 0..HELD {
        let layer = Arc::clone(&layer);
        all.spawn(async move { ask(&layer).await });
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    while held(&layer) < HELD && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(held(&layer), HELD);
    // One stays, and gets in when the first ends.
    let stays = tokio::spawn({
        let layer = Arc::clone(&layer);
        async move { ask(&layer).await }
    });
    all.shutdown().await;
    while held(&layer) > 1 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(held(&layer), 1);
    drop(first);
    let verdict = tokio::time::timeout(Duration::from_secs(5), stays).await;
    let verdict = verdict.expect("in time").expect("no panic");
    assert!(matches!(verdict, Verdict::In(..)), "{verdict:?}");
    drop(verdict);
    layer.with(|counter| {
        let told = &counter.desk.decisions()[0];
        assert_eq!((told.left, told.admitted), (HELD, 2));
        assert_eq!(counter.desk.judge().inside(), 0);
    });
}
