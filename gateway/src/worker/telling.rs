//! What a worker tells over NATS: its gate's counts, and what its engine's pages say.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{Lane, Snapshot};
use tokio::time::{Instant, sleep};

use super::args::WorkerType;
use super::prompts::Prompts;
use super::shared::{Cluster, Shared};
use crate::cluster::event::{Limits, RankLoad};
use crate::cluster::publish::{About, Busy, PublishConfig, Publisher, Telling, default_name};
use crate::monitor::{Sample, page};
use crate::proxy::models::{self, Served};
use crate::scrape::page::{Fetch, PageUrl};
use crate::server::url_of;

/// How often the engine's metrics page is read.
const PAGE_EVERY: Duration = Duration::from_millis(500);

/// How often it is asked which models it serves.
const MODELS_EVERY: Duration = Duration::from_secs(10);

/// How long it may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a page says counts for this long.
const FRESH: Duration = Duration::from_secs(5);

/// Tokens in one KV block, where a page does not tell.
const BLOCK_SIZE: u32 = 16;

/// What is told.
pub(super) struct Told {
    shared: Arc<Shared>,
    prompts: Arc<Prompts>,
    worker_type: Option<WorkerType>,
    page: Fetch,
    seen: Mutex<Seen>,
}

/// What the engine's pages said last.
#[derive(Default)]
struct Seen {
    ranks: BTreeMap<Option<u32>, Sample>,
    at: Option<Instant>,
    models: Option<Vec<String>>,
}

/// The parts that tell: the one that reads pages, and the one that speaks.
pub(super) struct Parts {
    pub(super) told: Arc<Told>,
    pub(super) publisher: Arc<Publisher>,
}

impl Parts {
    /// Of the worker that listens at `addr`.
    ///
    /// # Errors
    /// For an `https` engine, when the system's trusted certificates cannot be read.
    pub(super) fn new(
        shared: &Arc<Shared>,
        cluster: &Cluster,
        config: PublishConfig,
        worker_type: Option<WorkerType>,
        addr: std::net::SocketAddr,
    ) -> io::Result<Self> {
        let told = Arc::new(Told {
            page: Fetch::new(PageUrl::of(shared.engine.url().clone(), "/metrics"))?,
            shared: Arc::clone(shared),
            prompts: Arc::clone(&cluster.prompts),
            worker_type,
            seen: Mutex::default(),
        });
        let name = config.name.clone();
        let name = name.unwrap_or_else(|| default_name(addr.port()));
        let publisher = Publisher::new(
            config,
            name,
            url_of(addr),
            Arc::clone(&told) as Arc<dyn Telling>,
            Arc::clone(&cluster.counts),
        );
        Ok(Self {
            told,
            publisher: Arc::new(publisher),
        })
    }
}

impl Told {
    /// Reads the engine's pages now and then, less often while it does not answer. Runs
    /// for ever; cancel safe.
    pub(super) async fn read(&self) {
        tokio::join!(self.read_metrics(), self.read_models());
    }

    async fn read_metrics(&self) {
        let mut pause = PAGE_EVERY;
        loop {
            match self.page.text(ANSWER_TIME).await {
                Ok(text) => {
                    let read = page::read(&text, BLOCK_SIZE);
                    let mut seen = self.seen();
                    (seen.ranks, seen.at) = (read.ranks, Some(Instant::now()));
                    pause = PAGE_EVERY;
                }
                Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            sleep(pause).await;
        }
    }

    async fn read_models(&self) {
        let mut pause = PAGE_EVERY;
        loop {
            if let Ok(Some(served)) = models::ask(&self.shared.engine, ANSWER_TIME).await {
                let names =
                    matches!(served, Served::Listed(_)).then(|| served.names().cloned().collect());
                self.seen().models = names;
                pause = MODELS_EVERY;
            } else {
                pause = (pause * 2).min(MODELS_EVERY);
            }
            sleep(pause).await;
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Telling for Told {
    fn about(&self) -> About {
        let seen = self.shared.gate.snapshot();
        let ranks: Vec<u32> = seen.lanes.iter().filter_map(|lane| id(lane.lane)).collect();
        let limits = seen.limits;
        About {
            worker_type: self.worker_type.map(WorkerType::label),
            models: self.seen().models.clone(),
            ranks: (!ranks.is_empty()).then_some(ranks),
            limits: Some(Limits {
                engine_request_limit: limits.engine_request_limit,
                engine_request_waiting_limit: limits.engine_request_waiting_limit,
                request_queue_limit: limits.request_queue_limit,
            }),
        }
    }

    fn busy(&self) -> Busy {
        let gate = self.shared.gate.snapshot();
        let seen = self.seen();
        let fresh = seen.at.is_some_and(|at| at.elapsed() < FRESH);
        let ranks = gate.lanes.iter().map(|lane| {
            let rank = id(lane.lane);
            let page = seen.ranks.get(&rank).filter(|_| fresh).copied();
            let page = page.unwrap_or_default();
            RankLoad {
                rank,
                running: Some(lane.running),
                queued: Some(lane.queued),
                active_decode_blocks: page.active_decode_blocks,
                active_prefill_tokens: Some(self.prompts.of(lane.lane)),
                kv_used_blocks: page.kv_used_blocks,
                kv_total_blocks: page.totals.kv_total_blocks,
                max_num_batched_tokens: page.totals.max_num_batched_tokens,
            }
        });
        Busy {
            ranks: ranks.collect(),
            room: Some(has_room(&gate)),
        }
    }
}

/// Whether the gate would admit or queue another request, of no rank.
fn has_room(seen: &Snapshot) -> bool {
    let (held, ranks) = (seen.worker, seen.ranks());
    let below = |count: u64, limit: u32| count < u64::from(limit) * ranks;
    let enters = below(held.running, seen.limits.engine_request_limit)
        && below(held.waiting, seen.limits.engine_request_waiting_limit);
    enters || below(held.queued, seen.limits.request_queue_limit)
}

fn id(lane: Lane) -> Option<u32> {
    match lane {
        Lane::Rank(rank) => Some(rank),
        _ => None,
    }
}
