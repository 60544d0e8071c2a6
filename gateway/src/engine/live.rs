//! A rank in real time: a task that drives a [`Batch`].
//!
//! The task keeps a virtual clock, the sum of the steps' durations divided by
//! the speed, and sleeps until that instant rather than for that long. Timers
//! fire about 1 ms late; a late step is followed at once by those that are due,
//! so lateness never adds up, and at high speed several steps run on one timer.
//! A task that fell more than a second behind (a suspended machine, or a speed
//! beyond what it can compute) starts counting anew from the present.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, BatchConfig, StepOutcome, Work};
use super::counts::RankCounts;
use super::metrics::RankMetrics;

const MAX_LAG: Duration = Duration::from_secs(1);
const MAX_STEP: Duration = Duration::from_secs(86_400);

/// The numbers behind [`RankCounts`]. Each is a statistic of its own: nothing is
/// read on the strength of another, so `Relaxed` suffices throughout.
#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    waiting: AtomicUsize,
    kv_used: AtomicU32,
    received: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
    preemptions: AtomicU64,
    generated: AtomicU64,
    /// Requests that somebody holds, counted without the task's delay.
    held: AtomicUsize,
}

/// What happens to a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Token,
    Finished,
}

enum Command {
    Submit(u64, Work, UnboundedSender<Event>),
    Cancel(u64),
}

/// A request in the engine; dropping it cancels it and frees what it holds.
pub(super) struct Request {
    id: u64,
    events: UnboundedReceiver<Event>,
    commands: UnboundedSender<Command>,
    shared: Arc<Shared>,
}

impl Request {
    /// The next event; `None` once finished, or when the engine stops.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(1, Relaxed);
        // A task that is gone holds nothing to free.
        let _ = self.commands.send(Command::Cancel(self.id));
    }
}

/// A rank as the request handlers see it.
pub(super) struct Rank {
    id: u32,
    kv_total: u32,
    commands: UnboundedSender<Command>,
    shared: Arc<Shared>,
}

impl Rank {
    /// Starts the rank's task, which ends when `stop` is cancelled.
    pub fn spawn(
        id: u32,
        config: &BatchConfig,
        speed: f64,
        metrics: Arc<RankMetrics>,
        stop: CancellationToken,
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        let task = RankTask {
            batch: Batch::new(config.clone()),
            clients: HashMap::new(),
            shared: shared.clone(),
            metrics,
            speed,
        };
        tokio::spawn(task.run(inbox, stop));
        Self {
            id,
            kv_total: config.kv_blocks,
            commands,
            shared,
        }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// Requests held by their handlers: the load to compare ranks by.
    pub fn load(&self) -> usize {
        self.shared.held.load(Relaxed)
    }

    /// Submits a request under an id unique in the engine. One that can never
    /// fit yields no event; callers check its length first.
    pub fn submit(&self, id: u64, work: Work) -> Request {
        let (tx, events) = mpsc::unbounded_channel();
        self.shared.held.fetch_add(1, Relaxed);
        // With the task gone the sender is dropped here and `next` says None.
        let _ = self.commands.send(Command::Submit(id, work, tx));
        Request {
            id,
            events,
            commands: self.commands.clone(),
            shared: self.shared.clone(),
        }
    }

    pub fn counts(&self) -> RankCounts {
        let s = &self.shared;
        RankCounts {
            rank: self.id,
            running: s.running.load(Relaxed),
            waiting: s.waiting.load(Relaxed),
            kv_blocks_used: s.kv_used.load(Relaxed),
            kv_blocks_total: self.kv_total,
            received: s.received.load(Relaxed),
            finished: s.finished.load(Relaxed),
            cancelled: s.cancelled.load(Relaxed),
            preemptions: s.preemptions.load(Relaxed),
            generated_tokens: s.generated.load(Relaxed),
        }
    }
}

/// How long a step takes on the wall clock; absurd constants give a day.
fn real_time(step: Duration, speed: f64) -> Duration {
    let scaled = Duration::try_from_secs_f64(step.as_secs_f64() / speed);
    scaled.unwrap_or(MAX_STEP).min(MAX_STEP)
}

struct Client {
    events: UnboundedSender<Event>,
    arrived: Instant,
    prompt_tokens: u32,
    has_token: bool,
}

struct RankTask {
    batch: Batch,
    clients: HashMap<u64, Client>,
    shared: Arc<Shared>,
    metrics: Arc<RankMetrics>,
    speed: f64,
}

impl RankTask {
    async fn run(mut self, mut inbox: UnboundedReceiver<Command>, stop: CancellationToken) {
        let mut due = Instant::now();
        loop {
            while let Ok(command) = inbox.try_recv() {
                self.apply(command);
            }
            let Some(step) = self.batch.step() else {
                self.publish();
                tokio::select! {
                    () = stop.cancelled() => return,
                    command = inbox.recv() => match command {
                        Some(command) => self.apply(command),
                        None => return,
                    }
                }
                due = due.max(Instant::now());
                continue;
            };
            self.publish();
            let now = Instant::now();
            if now.saturating_duration_since(due) > MAX_LAG {
                due = now;
            }
            due += real_time(step.duration, self.speed);
            loop {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    Some(command) = inbox.recv() => self.apply(command),
                    () = sleep_until(due) => break,
                }
            }
            self.deliver(step);
        }
    }

    fn apply(&mut self, command: Command) {
        match command {
            Command::Submit(id, work, events) => {
                if self.batch.submit(id, work).is_err() {
                    return;
                }
                self.shared.received.fetch_add(1, Relaxed);
                let client = Client {
                    events,
                    arrived: Instant::now(),
                    prompt_tokens: work.prompt_tokens,
                    has_token: false,
                };
                self.clients.insert(id, client);
            }
            Command::Cancel(id) => {
                // A sequence may end in the very step in which its client leaves.
                if self.clients.remove(&id).is_some() {
                    self.batch.cancel(id);
                    self.shared.cancelled.fetch_add(1, Relaxed);
                }
            }
        }
        self.publish();
    }

    fn deliver(&mut self, step: StepOutcome) {
        let preempted = step.preempted.len() as u64;
        self.shared.preemptions.fetch_add(preempted, Relaxed);
        self.metrics.preemptions.increment(preempted);
        let generated = step.emitted.len() as u64;
        self.shared.generated.fetch_add(generated, Relaxed);
        self.metrics.generation_tokens.increment(generated);
        for id in &step.emitted {
            if let Some(client) = self.clients.get_mut(id) {
                client.token(&self.metrics);
            }
        }
        for id in &step.finished {
            if let Some(mut client) = self.clients.remove(id) {
                client.token_or_prefill(&self.metrics);
                self.shared.finished.fetch_add(1, Relaxed);
                self.metrics.success.increment(1);
                self.metrics.e2e.record(client.arrived.elapsed());
                let _ = client.events.send(Event::Finished);
            }
        }
    }

    fn publish(&self) {
        self.shared.running.store(self.batch.running(), Relaxed);
        self.shared.waiting.store(self.batch.waiting(), Relaxed);
        self.shared.kv_used.store(self.batch.kv().used(), Relaxed);
    }
}

impl Client {
    fn token(&mut self, metrics: &RankMetrics) {
        self.token_or_prefill(metrics);
        // A receiver that is gone has sent its cancellation.
        let _ = self.events.send(Event::Token);
    }

    /// Counts the prompt once, when the first result exists.
    fn token_or_prefill(&mut self, metrics: &RankMetrics) {
        if !std::mem::replace(&mut self.has_token, true) {
            metrics.prompt_tokens.increment(self.prompt_tokens.into());
            metrics.first_token.record(self.arrived.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_divides_time_and_absurd_steps_are_bounded() {
        let step = Duration::from_millis(20);
        assert_eq!(real_time(step, 10.0), Duration::from_millis(2));
        assert_eq!(real_time(Duration::ZERO, 1e6), Duration::ZERO);
        assert_eq!(real_time(Duration::MAX, 1e-3), MAX_STEP);
    }
}
