//! 20,000 held requests at once, before whatever a policy holds them before: scenes that
//! each of those plays, and the gate's performance of them. How late timeouts are is
//! printed, and judged when `TIDEGATE_TIMEOUTS` is set: on a machine that does nothing else.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tidegate::{Gate, Settings as GateSettings};
use tidegate_policy::class::ClassId;
use tidegate_policy::file;
use tidegate_policy::reason::Reason;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;
use tidegate_policy::state::{DeviceSample, EngineSample, State};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::asked::Asked;
use super::door::Door;
use super::entering::Verdict;
use super::keeper::keep;
use super::layer::{Layer, Size};

const HELD: u64 = 20_000;

/// Within which all that is waited for comes.
const LONG: Duration = Duration::from_secs(5);

/// A layer that has let in as many as there is room for, and what runs for it.
pub(crate) struct Full<D: Door> {
    layer: Arc<Layer<D>>,
    wanted: D::Wanted,
    inside: Vec<Verdict<D>>,
    _keeps: Box<dyn Any>,
}

/// One class that waits for so long.
pub(crate) fn policy(queue_timeout: Duration) -> Settings {
    let text = format!(
        "utilisation_target = 1.0\n[cold_start]\nidle_ms = 3600000\n\
         [[class]]\nname = \"a\"\nfirst_token_ms = 3600000\nqueue_timeout_ms = {}\n",
        queue_timeout.as_millis()
    );
    file::parse(&text).expect("a policy")
}

impl<D: Door<Wanted: Clone + Sync>> Full<D> {
    /// There is room for so many.
    pub(crate) fn new(
        layer: Arc<Layer<D>>,
        wanted: D::Wanted,
        room: usize,
        keeps: impl Any,
    ) -> Self {
        let mut full = Self {
            layer,
            wanted,
            inside: Vec::new(),
            _keeps: Box::new(keeps),
        };
        for _ in 0..room {
            let first = full.ask().now_or_never().expect("there is room");
            assert!(matches!(first, Verdict::In(..)), "{first:?}");
            full.inside.push(first);
        }
        full
    }

    /// One more that asks.
    fn ask(&self) -> impl Future<Output = Verdict<D>> + Send + use<D> {
        let (layer, wanted) = (Arc::clone(&self.layer), self.wanted.clone());
        async move { layer.enter(&Asked::default(), None, None, wanted).await }
    }

    /// Waits until something is so.
    async fn until(&self, what: &str, reached: impl Fn([u64; 4]) -> bool) {
        let deadline = Instant::now() + LONG;
        while !reached(self.counts()) {
            assert!(
                Instant::now() < deadline,
                "never: {what}: {:?}",
                self.counts()
            );
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// All of them, by what became of them: admitted, refused, left, held.
    fn counts(&self) -> [u64; 4] {
        self.layer.with(|counter| {
            let told = &counter.desk.decisions()[0];
            let refused = Reason::ALL.into_iter().map(|why| told.refused(why)).sum();
            let held = counter.desk.held(ClassId(0));
            [told.admitted, refused, told.left, held]
        })
    }
}

/// Nobody is let in, and each is sent away when its class says.
pub(crate) async fn timeouts_come_on_time<D>(full: Full<D>, queue_timeout: Duration)
where
    D: Door<Wanted: Clone + Sync>,
{
    let mut all = JoinSet::new();
    for _ in 0..HELD {
        let asks = full.ask();
        all.spawn(async move {
            let asked = Instant::now();
            match asks.await {
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
    let late = |held: Duration| {
        held.checked_sub(queue_timeout)
            .expect("none is sent away early")
    };
    let mut late: Vec<Duration> = held_for.map(late).collect();
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100];
    let (all, p50, p99, most) = (late.len(), at(50), at(99), at(100));
    let door = std::any::type_name::<D>();
    eprintln!(
        "{door}: {all} held: timeouts late by {p50:?} at p50, {p99:?} at p99, {most:?} at most"
    );
    assert_eq!(full.counts()[3], 0);
    if std::env::var_os("TIDEGATE_TIMEOUTS").is_some() {
        assert_eq!(all as u64, HELD);
        assert!(p99 <= Duration::from_millis(5), "{p99:?}");
    }
}

/// All leave at once but one, who gets in when there is room.
pub(crate) async fn a_storm_of_leavers_leaves_nothing_behind<D>(mut full: Full<D>)
where
    D: Door<Wanted: Clone + Sync>,
{
    let stays = tokio::spawn(full.ask());
    full.until("one is held", |[.., held]| held == 1).await;
    let before = full.inside.len() as u64;
    let mut all = JoinSet::new();
    for _ in 0..HELD {
        all.spawn(full.ask());
    }
    let came = |counts: [u64; 4]| counts.iter().sum::<u64>() == before + 1 + HELD;
    full.until("all have come", came).await;
    // On a slow machine some are too late to be held.
    let [_, refused, _, held] = full.counts();
    assert!(held > 1_000, "{held}");
    all.shutdown().await;
    full.until("one is held", |[.., held]| held == 1).await;
    drop(full.inside.pop());
    let verdict = timeout(LONG, stays).await.expect("in time");
    let verdict = verdict.expect("no panic");
    assert!(matches!(verdict, Verdict::In(..)), "{verdict:?}");
    drop(verdict);
    assert_eq!(full.counts(), [before + 1, refused, held - 1, 0]);
    full.inside.clear();
    let inside = full.layer.with(|counter| counter.desk.judge().inside());
    assert_eq!(inside, 0);
}

/// While all kinds of things become of them, each is at every moment admitted, refused,
/// left, or held.
pub(crate) async fn each_is_counted_once_at_every_moment<D>(mut full: Full<D>)
where
    D: Door<Wanted: Clone + Sync>,
{
    let first = full.inside.len() as u64;
    full.inside.clear();
    let asking = Arc::new(AtomicU64::new(first));
    let asked = Arc::new(AtomicU64::new(first));
    let mut all = JoinSet::new();
    for number in 0..HELD {
        let asks = full.ask();
        let (asking, asked) = (Arc::clone(&asking), Arc::clone(&asked));
        all.spawn(async move {
            sleep(Duration::from_millis(number % 500)).await;
            asking.fetch_add(1, Ordering::SeqCst);
            let mut asks = std::pin::pin!(asks);
            let at_once = asks.as_mut().now_or_never();
            asked.fetch_add(1, Ordering::SeqCst);
            let verdict = match at_once {
                Some(verdict) => Some(verdict),
                // Every third one leaves.
                None if number % 3 == 0 => {
                    let patience = Duration::from_millis(number % 400);
                    timeout(patience, asks).await.ok()
                }
                None => Some(asks.await),
            };
            if let Some(Verdict::In(permit, inside)) = verdict {
                sleep(Duration::from_millis(1)).await;
                drop(permit);
                inside.ended(Some(1));
            }
        });
    }
    let mut looks = 0;
    while !all.is_empty() {
        let least = asked.load(Ordering::SeqCst);
        let counts = full.counts();
        let most = asking.load(Ordering::SeqCst);
        let sum: u64 = counts.iter().sum();
        assert!((least..=most).contains(&sum), "{least} {most} {counts:?}");
        looks += 1;
        sleep(Duration::from_millis(1)).await;
        while let Some(ended) = all.try_join_next() {
            ended.expect("no panic");
        }
    }
    let counts @ [admitted, refused, left, held] = full.counts();
    eprintln!("{looks} looks: {admitted} admitted, {refused} refused, {left} left, {held} held");
    assert_eq!(counts.iter().sum::<u64>(), first + HELD);
    assert!(
        admitted > first && refused > 0 && left > 0 && held == 0,
        "{counts:?}"
    );
}

/// A layer before a gate with one place.
fn gate(queue_timeout: Duration) -> Full<Gate> {
    let gate = Gate::builder().settings(GateSettings {
        engine_request_limit: Some(1),
        ..GateSettings::default()
    });
    let size = Size {
        limit: 1,
        ranks: 1,
        batch: 1,
    };
    let gate = gate.build().expect("limits in range");
    let layer = Arc::new(Layer::new(gate, size, policy(queue_timeout), Mode::Enforce));
    // Fresh for ever: it comes from the future.
    layer.knows(State {
        at: Duration::from_secs(3_600),
        engine: EngineSample::default(),
        device: DeviceSample::default(),
        memory: None,
        idle_ms: 0.0,
        steps_per_second: None,
    });
    let mut keeps = JoinSet::new();
    keeps.spawn(keep(Arc::clone(&layer)));
    Full::new(layer, None, 1, keeps)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_a_gate_timeouts_come_on_time_however_many_are_held() {
    let queue_timeout = Duration::from_secs(1);
    timeouts_come_on_time(gate(queue_timeout), queue_timeout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_a_gate_a_storm_of_leavers_leaves_nothing_behind() {
    a_storm_of_leavers_leaves_nothing_behind(gate(Duration::from_secs(600))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_a_gate_each_is_counted_once_at_every_moment() {
    each_is_counted_once_at_every_moment(gate(Duration::from_millis(300))).await;
}
