//! The policy of a frontend: a layer for each model, with queues of its own, since a
//! request waits for the workers that serve its model and for no others.
//!
//! # The limit of that
//! Priorities, weights and the floor hold inside one model. Between models that share
//! workers, such as LoRA adapters of one engine, there are none: whose keeper wakes first
//! gets the worker that freed, so that bronze of one may go before gold of the other. A
//! layer for all models with the same workers would give them an order, but that set
//! changes whenever a worker comes, goes, or tells of another model, and thresholds are by
//! model: whoever is held then would have to move to another layer with its place, time
//! and counts, or wait behind a model that its new workers have nothing to do with. The
//! desk would have to hold them by model itself, and pass over the blocked ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Recorder;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;
use tidegate_policy::state::{DeviceSample, EngineSample, State};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::workers::Workers;
use crate::policy::{Layer, PolicyConfig, Size, keep};
use crate::server::drain::Drain;

/// The layers of one frontend.
#[derive(Debug)]
pub(super) struct Policies {
    workers: Workers,
    mode: Mode,
    following: Mutex<Following>,
}

#[derive(Debug)]
struct Following {
    settings: Settings,
    queues: BTreeMap<String, Arc<Queue>>,
}

/// A model's layer, and what runs for it.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) layer: Arc<Layer<Workers>>,
    /// How fast those finish that it let in.
    pub(super) drain: Arc<Drain>,
    _keeper: AbortOnDropHandle<()>,
    _watch: AbortOnDropHandle<()>,
}

impl Policies {
    pub(super) fn new(workers: Workers, config: PolicyConfig) -> Self {
        Self {
            workers,
            mode: config.mode,
            following: Mutex::new(Following {
                settings: config.settings.before_many(),
                queues: BTreeMap::new(),
            }),
        }
    }

    /// The queue of a model, which is one that a worker lists, or stands for all others.
    /// It stays, since its counters only grow.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(super) fn of(&self, model: &str) -> Arc<Queue> {
        let mut following = self.following();
        if let Some(queue) = following.queues.get(model) {
            return Arc::clone(queue);
        }
        let queue = Queue::start(self.workers.clone(), &following.settings, self.mode);
        let queue = Arc::new(queue);
        following
            .queues
            .insert(model.to_owned(), Arc::clone(&queue));
        queue
    }

    /// Follows other settings from now on.
    pub(super) fn follow(&self, settings: Settings) {
        let mut following = self.following();
        following.settings = settings.before_many();
        for queue in following.queues.values() {
            queue.layer.reload(following.settings.clone());
        }
    }

    /// Sets every series as it is now.
    pub(super) fn publish(&self, recorder: &impl Recorder, prefix: &str) {
        for (model, queue) in &self.following().queues {
            queue.layer.publish_queue(recorder, prefix, model);
        }
    }

    fn following(&self) -> MutexGuard<'_, Following> {
        self.following
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn start(workers: Workers, settings: &Settings, mode: Mode) -> Self {
        let size = Size {
            limit: u32::MAX,
            ranks: 1,
            batch: 1,
        };
        let layer = Arc::new(Layer::new(workers, size, settings.clone(), mode));
        layer.knows(always());
        let drain = Arc::new(Drain::new());
        let watch = watch(Arc::clone(&layer), Arc::clone(&drain));
        Self {
            _keeper: AbortOnDropHandle::new(tokio::spawn(keep(Arc::clone(&layer)))),
            _watch: AbortOnDropHandle::new(tokio::spawn(watch)),
            layer,
            drain,
        }
    }
}

/// Decides anew about all that are held, now and then: what only time makes so, such as a
/// load that is too old to count, is noticed by this. And keeps up how fast requests finish.
async fn watch(layer: Arc<Layer<Workers>>, drain: Arc<Drain>) {
    let decide = async {
        loop {
            sleep(layer.interval()).await;
            layer.observe();
        }
    };
    tokio::join!(decide, drain.keep(|| layer.is_at_work()));
}

/// What is known of the engines is nothing, and that is never stale.
fn always() -> State {
    State {
        at: Duration::MAX,
        engine: EngineSample::default(),
        device: DeviceSample::default(),
        memory: None,
        idle_ms: 0.0,
        steps_per_second: None,
    }
}
