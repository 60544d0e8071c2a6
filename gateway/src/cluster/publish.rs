//! A worker's part: says who it is and how much it has to do, for as long as it runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::Client;
use async_nats::connection::State;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use super::bucket::{Bucket, Kept};
use super::codec::encode;
use super::connect::{NatsConfig, connect};
use super::counts::{Counts, Kind};
use super::event::{Announcement, Limits, LoadEvent, RankLoad, Turn, VERSION};
use super::name::WorkerName;
use super::subject;
use crate::proxy::engine::EngineUrl;

/// A load that stays the same is said again after this time, so that it does not grow
/// too old.
const SAY_AGAIN: Duration = Duration::from_secs(1);

/// How long taking leave may take.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// How often a worker announces itself within the time after which it is taken for dead.
const TIMES: u32 = 3;

/// What a worker says, and to whom.
#[derive(Clone, Debug)]
pub struct PublishConfig {
    /// How NATS is reached.
    pub nats: NatsConfig,
    /// Its name; `None` is made of the host's and the port.
    pub name: Option<WorkerName>,
    /// Where requests go; `None` is where it listens.
    pub url: Option<EngineUrl>,
    /// The silence after which it is taken for dead.
    pub member_ttl: Duration,
    /// From one look at the load to the next.
    pub load_interval: Duration,
    /// What Dynamo calls the engine.
    pub dynamo_worker_id: Option<u64>,
}

impl PublishConfig {
    /// The defaults of `tidegate worker`.
    #[must_use]
    pub fn new(nats: NatsConfig) -> Self {
        Self {
            nats,
            name: None,
            url: None,
            member_ttl: Duration::from_secs(15),
            load_interval: Duration::from_millis(250),
            dynamo_worker_id: None,
        }
    }
}

/// What a worker is, as far as it knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What it does.
    pub worker_type: Option<&'static str>,
    /// The models that it serves.
    pub models: Option<Vec<String>>,
    /// Its ranks.
    pub ranks: Option<Vec<u32>>,
    /// Its limits per rank.
    pub limits: Option<Limits>,
}

/// How much it has to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Whether it could take another request.
    pub room: Option<bool>,
    /// By rank.
    pub ranks: Vec<RankLoad>,
}

/// Who is asked what to say. Answers at once.
pub trait Telling: Send + Sync {
    /// What the worker is.
    fn about(&self) -> About;
    /// How much it has to do now.
    fn busy(&self) -> Busy;
}

/// Says what a worker is and does, under one name and address.
pub struct Publisher {
    config: PublishConfig,
    name: WorkerName,
    url: String,
    told: Arc<dyn Telling>,
    counts: Arc<Counts>,
    started: Instant,
    /// What is there once NATS was reached.
    said: Mutex<Option<Said>>,
}

/// The connection, and the newest word.
#[derive(Clone)]
struct Said {
    client: Client,
    turn: Turn,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Publisher {
    /// Says nothing yet. `url` is where the worker listens.
    #[must_use]
    pub fn new(
        config: PublishConfig,
        name: WorkerName,
        url: String,
        told: Arc<dyn Telling>,
        counts: Arc<Counts>,
    ) -> Self {
        let url = config.url.as_ref().map_or(url, ToString::to_string);
        Self {
            config,
            name,
            url,
            told,
            counts,
            started: Instant::now(),
            said: Mutex::default(),
        }
    }

    /// The worker's name.
    #[must_use]
    pub fn name(&self) -> &WorkerName {
        &self.name
    }

    /// What is counted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Says what there is to say, for ever. Whatever NATS does, the worker goes on.
    /// Cancel safe.
    pub async fn run(&self) {
        let client = connect(&self.config.nats, self.name.as_str(), &self.counts).await;
        let mut bucket = Bucket::new(client.clone());
        let incarnation = self.incarnation(&mut bucket).await;
        info!(name = %self.name, url = self.url, "the worker announces itself over NATS");
        *self.said() = Some(Said {
            client: client.clone(),
            turn: Turn {
                incarnation,
                sequence: 0,
            },
        });
        let mut clock = interval(self.config.load_interval);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announced: Option<(About, Instant)> = None;
        let mut loaded: Option<(Busy, Instant)> = None;
        loop {
            clock.tick().await;
            if client.connection_state() != State::Connected {
                // What is said now would be old when it is heard.
                (announced, loaded) = (None, None);
                continue;
            }
            let now = Instant::now();
            let about = self.told.about();
            let again = self.config.member_ttl / TIMES;
            if is_due(announced.as_ref(), &about, again, now) {
                self.announce(&mut bucket, &about, false).await;
                announced = Some((about, now));
            }
            let busy = self.told.busy();
            if is_due(loaded.as_ref(), &busy, SAY_AGAIN, now) {
                self.say_load(&client, &busy).await;
                loaded = Some((busy, now));
            }
        }
    }

    /// Says that the worker shuts down, if NATS is there. Takes a second at most.
    pub async fn leave(&self) {
        let Some(said) = self.said().clone() else {
            return;
        };
        if said.client.connection_state() != State::Connected {
            return;
        }
        let leave = async {
            let mut bucket = Bucket::new(said.client.clone());
            self.announce(&mut bucket, &self.told.about(), true).await;
            bucket.clear(&self.name).await;
            // A message that was not written yet is lost otherwise.
            let _ = said.client.flush().await;
        };
        if timeout(LEAVE_TIME, leave).await.is_err() {
            warn!("NATS did not take the worker's leave in time");
        }
    }

    /// A number above that of any earlier start: the time, or more if a clock went back.
    async fn incarnation(&self, bucket: &mut Bucket) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let before = bucket.earlier(&self.name).await;
        now.max(before.map_or(0, |before| before.saturating_add(1)))
    }

    async fn announce(&self, bucket: &mut Bucket, about: &About, leaving: bool) {
        let Some(turn) = self.next() else { return };
        let about = about.clone();
        let said = Announcement {
            v: VERSION,
            worker: self.name.clone(),
            turn,
            url: self.url.clone(),
            ttl_ms: u64::try_from(self.config.member_ttl.as_millis()).unwrap_or(u64::MAX),
            leaving,
            worker_type: about.worker_type.map(str::to_owned),
            models: about.models,
            ranks: about.ranks,
            limits: about.limits,
            dynamo_worker_id: self.config.dynamo_worker_id,
        };
        match bucket.put(&self.name, encode(&said).into()).await {
            Kept::InBucket | Kept::SaidOnly => self.counts.message(Kind::Member),
            Kept::Lost => {}
        }
    }

    async fn say_load(&self, client: &Client, busy: &Busy) {
        let Some(turn) = self.next() else { return };
        let said = LoadEvent {
            v: VERSION,
            worker: self.name.clone(),
            turn,
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            room: busy.room,
            ranks: busy.ranks.clone(),
        };
        let subject = subject::load(&self.name);
        if client.publish(subject, encode(&said).into()).await.is_ok() {
            self.counts.message(Kind::Load);
        }
    }

    /// The next word's turn, once NATS was reached.
    fn next(&self) -> Option<Turn> {
        let mut said = self.said();
        let turn = &mut said.as_mut()?.turn;
        turn.sequence = turn.sequence.saturating_add(1);
        Some(*turn)
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Option<Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something is to be said: it is new, or was said too long ago.
fn is_due<T: PartialEq>(
    last: Option<&(T, Instant)>,
    is: &T,
    again: Duration,
    now: Instant,
) -> bool {
    last.is_none_or(|(said, at)| said != is || now.saturating_duration_since(*at) >= again)
}

/// A name made of this host's and a port.
#[must_use]
pub fn default_name(port: u16) -> WorkerName {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "worker",
        host => host,
    };
    WorkerName::from_any(&format!("{host}-{port}"))
}
