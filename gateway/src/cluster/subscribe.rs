//! A frontend's part: hears who is there and how much each has to do.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use super::allow::AllowWorkers;
use super::bucket::Bucket;
use super::codec;
use super::connect::{NatsConfig, connect};
use super::counts::{Counts, Dropped, Kind};
use super::directory::{Change, Directory, Known};
use super::dynamo;
use super::event::{Announcement, LoadEvent, RankLoad, Turn};
use super::name::WorkerName;
use super::subject;
use crate::monitor::{Member, Reading, Sample, Source, Totals};
use crate::proxy::engine::EngineUrl;

/// How often it is looked who has lapsed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Messages that are read at one go, before anything else is looked at.
const AT_ONCE: usize = 256;

/// Entries of the bucket that wait to be taken in.
const KEPT_WAITING: usize = 64;

/// What a frontend hears.
#[derive(Clone, Debug)]
pub struct SubscribeConfig {
    /// How NATS is reached.
    pub nats: NatsConfig,
    /// Where members may be.
    pub allow: Vec<AllowWorkers>,
    /// Where Dynamo's load events are said.
    pub dynamo_subjects: Vec<String>,
}

impl SubscribeConfig {
    /// Nobody may join, and nothing of Dynamo's is heard.
    #[must_use]
    pub fn new(nats: NatsConfig) -> Self {
        Self {
            nats,
            allow: Vec::new(),
            dynamo_subjects: Vec::new(),
        }
    }
}

/// What a frontend has of a member.
#[derive(Clone, Debug)]
pub struct Joined {
    /// Its number within the frontend.
    pub id: u64,
    /// Its load.
    pub watched: Member,
    /// Whether it was there anyway, by `--worker`: then it stays.
    pub configured: bool,
}

/// The workers of a frontend, which come and go by what is heard.
pub trait Roster: Send + Sync {
    /// Whether a worker is there anyway, by `--worker`.
    fn is_configured(&self, url: &EngineUrl) -> bool;
    /// Takes in a worker, or finds the one that is there.
    ///
    /// # Errors
    /// When there can be no connection to it.
    fn join(&self, url: EngineUrl, said: &Announcement) -> io::Result<Joined>;
    /// It says something new of itself.
    fn tells(&self, id: u64, said: &Announcement);
    /// Takes it out.
    fn leave(&self, id: u64);
    /// Whether it answers.
    fn is_well(&self, id: u64) -> bool;
}

/// Hears what there is to hear, for ever, and keeps `roster` up to date. Whatever NATS
/// does, those who are known stay known. Cancel safe.
pub async fn run(config: SubscribeConfig, roster: Arc<dyn Roster>, counts: Arc<Counts>) {
    let client = connect(&config.nats, "tidegate-frontend", &counts).await;
    let mut heard = loop {
        match subscribe(&client, &config).await {
            Ok(heard) => break heard,
            Err(error) => {
                warn!(%error, "NATS does not let this frontend listen");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    };
    let mut hearing = Hearing {
        directory: Directory::default(),
        allow: config.allow,
        roster,
        counts,
    };
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut connected = false;
    let (kept, mut entries) = mpsc::channel(KEPT_WAITING);
    loop {
        tokio::select! {
            biased;
            _ = clock.tick() => {
                let before = connected;
                connected = client.connection_state() == State::Connected;
                if connected && !before {
                    hearing.directory.begin_anew(Instant::now());
                    tokio::spawn(read_bucket(client.clone(), kept.clone()));
                }
                if connected {
                    hearing.look();
                }
            }
            Some((name, said)) = entries.recv() => hearing.member(&name, &said),
            Some(message) = heard.next() => {
                hearing.message(&message);
                for _ in 1..AT_ONCE {
                    match futures_util::FutureExt::now_or_never(heard.next()) {
                        Some(Some(message)) => hearing.message(&message),
                        _ => break,
                    }
                }
            }
        }
    }
}

async fn subscribe(
    client: &Client,
    config: &SubscribeConfig,
) -> Result<SelectAll<Subscriber>, async_nats::SubscribeError> {
    let mut all = vec![
        client.subscribe(subject::members()).await?,
        client.subscribe(subject::loads()).await?,
    ];
    for subject in &config.dynamo_subjects {
        all.push(client.subscribe(subject.clone()).await?);
    }
    Ok(select_all(all))
}

/// Passes on what the bucket has. Nobody may be left to take it.
async fn read_bucket(client: Client, kept: mpsc::Sender<(WorkerName, Bytes)>) {
    if Bucket::new(client).read(&kept).await {
        debug!("read who is kept as a member");
    }
}

/// What is known, and who is told.
struct Hearing {
    directory: Directory<Joined>,
    allow: Vec<AllowWorkers>,
    roster: Arc<dyn Roster>,
    counts: Arc<Counts>,
}

impl Hearing {
    fn message(&mut self, message: &Message) {
        let subject = message.subject.as_str();
        if let Some(name) = subject::of_load(subject) {
            self.counts.message(Kind::Load);
            let taken = self.load(&name, &message.payload);
            self.count(taken);
        } else if let Some(name) = subject::of_member(subject) {
            // JetStream's own marks of what was deleted are empty.
            if !message.payload.is_empty() {
                self.counts.message(Kind::Member);
                self.member(&name, &message.payload);
            }
        } else if subject.starts_with("$KV.") || subject.starts_with("tidegate.") {
            self.counts.dropped(Dropped::OtherName);
        } else {
            self.counts.message(Kind::Dynamo);
            let taken = self.dynamo(&message.payload);
            self.count(taken);
        }
    }

    fn count(&self, taken: Result<(), Dropped>) {
        if let Err(why) = taken {
            self.counts.dropped(why);
        }
    }

    fn member(&mut self, name: &WorkerName, said: &[u8]) {
        let taken = self.announced(name, said);
        if let Err(why) = taken {
            debug!(%name, why = why.label(), "an announcement changed nothing");
            self.counts.dropped(why);
        }
        self.count_members();
    }

    fn announced(&mut self, name: &WorkerName, said: &[u8]) -> Result<(), Dropped> {
        if let Some(known) = self.directory.get(name)
            && !known.rate.allows()
        {
            return Err(Dropped::Flood);
        }
        let said = codec::announcement(said, name)?;
        let url: EngineUrl = said.url.parse().map_err(|_| Dropped::Unusable)?;
        let allowed = self.allow.iter().any(|place| place.covers(&url));
        if !allowed && !self.roster.is_configured(&url) {
            return Err(Dropped::NotAllowed);
        }
        let now = Instant::now();
        match self.directory.take(&said, now) {
            Change::Joins => self.join(url, said, now),
            Change::Stays | Change::Nothing => self.tells(name),
            Change::Restarted => {
                info!(%name, %url, "a worker was started anew");
                self.tells(name);
            }
            Change::Moves => {
                self.remove(name, "moves");
                match self.directory.take(&said, now) {
                    Change::Joins => self.join(url, said, now),
                    Change::Dropped(why) => return Err(why),
                    _ => {}
                }
            }
            Change::Leaves => self.remove(name, "leaves"),
            Change::Dropped(why) => return Err(why),
        }
        Ok(())
    }

    fn join(&mut self, url: EngineUrl, said: Announcement, now: Instant) {
        match self.roster.join(url, &said) {
            Ok(joined) => {
                let name = said.worker.clone();
                info!(%name, url = said.url, worker = joined.id, "a worker joins");
                let silent = self.directory.join(said, joined.clone(), now);
                if let Some(silent) = silent
                    && silent.id != joined.id
                    && !silent.configured
                {
                    self.roster.leave(silent.id);
                }
                self.tells(&name);
            }
            Err(error) => warn!(name = %said.worker, %error, "a worker cannot join"),
        }
    }

    fn tells(&mut self, name: &WorkerName) {
        let Some(known) = self.directory.get(name) else {
            return;
        };
        if let Some(ranks) = &known.said.ranks {
            known.worker.watched.declare(ranks);
        }
        self.roster.tells(known.worker.id, &known.said);
    }

    fn remove(&mut self, name: &WorkerName, why: &str) {
        if let Some(joined) = self.directory.remove(name) {
            info!(%name, worker = joined.id, "a worker {why}");
            if !joined.configured {
                self.roster.leave(joined.id);
            }
        }
    }

    /// A load event. What a stranger says is not even read.
    fn load(&mut self, name: &WorkerName, bytes: &[u8]) -> Result<(), Dropped> {
        let known = self.directory.get(name).ok_or(Dropped::UnknownWorker)?;
        if !known.rate.allows() {
            return Err(Dropped::Flood);
        }
        let said = codec::load(bytes, name)?;
        // A start that has not announced itself may be anybody.
        if said.turn.incarnation > known.said.turn.incarnation {
            return Err(Dropped::UnknownWorker);
        }
        let other = said.turn.incarnation < known.said.turn.incarnation;
        if other || !known.loads.take(said.turn) {
            return Err(Dropped::Replayed);
        }
        let now = Instant::now();
        let moment = known.delay.moment(said.uptime_ms, now);
        let reading = reading(&said);
        known
            .worker
            .watched
            .observe(Source::Events, &reading, moment);
        self.directory.heard(name, now);
        Ok(())
    }

    fn dynamo(&mut self, bytes: &[u8]) -> Result<(), Dropped> {
        let Some(said) = dynamo::read(bytes)? else {
            return Ok(());
        };
        let known = self.directory.by_dynamo(said.worker_id);
        let known = known.ok_or(Dropped::UnknownWorker)?;
        if !known.rate.allows() {
            return Err(Dropped::Flood);
        }
        follow(known, said.publisher_id, said.sequence)?;
        let sample = Sample {
            active_decode_blocks: said.active_decode_blocks,
            kv_used_blocks: said.kv_used_blocks,
            active_prefill_tokens: said.active_prefill_tokens,
            ..Sample::default()
        };
        let reading = Reading {
            ranks: BTreeMap::from([(Some(said.dp_rank), sample)]),
            ..Reading::default()
        };
        let watched = &known.worker.watched;
        watched.observe(Source::Dynamo, &reading, Instant::now());
        Ok(())
    }

    /// Who is silent for too long, and who of those does not answer either.
    fn look(&mut self) {
        for name in self.directory.lapse(Instant::now()) {
            warn!(%name, "a worker is silent on NATS: it stays while it answers");
        }
        let roster = Arc::clone(&self.roster);
        let gone = self.directory.lapsed(|joined| !roster.is_well(joined.id));
        for name in gone {
            self.remove(&name, "is silent and does not answer: it is gone");
        }
        self.count_members();
    }

    fn count_members(&self) {
        let (live, lapsed) = self.directory.count();
        self.counts.members(live as u64, lapsed as u64);
    }
}

/// Whether an event of Dynamo's is new. A publisher's number says nothing of its age.
fn follow(known: &mut Known<Joined>, publisher: u64, sequence: u64) -> Result<(), Dropped> {
    let replayed = known
        .dynamo
        .is_some_and(|last| last.incarnation == publisher && sequence <= last.sequence);
    if replayed {
        return Err(Dropped::Replayed);
    }
    known.dynamo = Some(Turn {
        incarnation: publisher,
        sequence,
    });
    Ok(())
}

fn reading(said: &LoadEvent) -> Reading {
    let sample = |rank: &RankLoad| Sample {
        active_decode_blocks: rank.active_decode_blocks,
        kv_used_blocks: rank.kv_used_blocks,
        active_prefill_tokens: rank.active_prefill_tokens,
        running: rank.running,
        waiting: rank.queued,
        totals: Totals {
            kv_total_blocks: rank.kv_total_blocks,
            max_num_batched_tokens: rank.max_num_batched_tokens,
            block_size: None,
        },
    };
    let ranks = said.ranks.iter().map(|rank| (rank.rank, sample(rank)));
    Reading {
        ranks: ranks.collect(),
        room: said.room,
        dropped: 0,
    }
}
