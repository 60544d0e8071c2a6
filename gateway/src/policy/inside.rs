//! What a request holds that is inside the engine.

use std::sync::Arc;

use tidegate_policy::class::ClassId;
use tidegate_policy::judge;
use tokio::time::Instant;

use super::layer::Layer;

/// A request inside the engine, as the policy sees it. Dropping it says that the
/// request failed or was left by its client; [`ended`](Self::ended) that it was
/// served.
#[derive(Debug)]
pub(crate) struct Inside {
    layer: Arc<Layer>,
    /// `None` once it was given back.
    held: Option<judge::Inside>,
    arrived: Instant,
    first_token: Option<Instant>,
}

impl Inside {
    pub(super) fn new(layer: Arc<Layer>, held: judge::Inside, arrived: Instant) -> Self {
        Self {
            layer,
            held: Some(held),
            arrived,
            first_token: None,
        }
    }

    /// The first token came. A second one changes nothing.
    pub(crate) fn first_token(&mut self) {
        let (None, Some(held)) = (self.first_token, &mut self.held) else {
            return;
        };
        self.first_token = Some(Instant::now());
        let now = self.layer.now();
        self.layer
            .with(|counter| counter.desk.first_token(now, held));
        self.layer.happened.notify_one();
    }

    /// The request was served, with so many tokens, if that is known.
    pub(crate) fn ended(mut self, output: Option<u64>) {
        let Some(held) = self.held.take() else {
            return;
        };
        let (layer, end) = (&self.layer, Instant::now());
        let first = self.first_token.unwrap_or(end);
        let ms = |at: Instant| at.duration_since(self.arrived).as_secs_f64() * 1e3;
        let (first, end) = (ms(first), ms(end));
        let now = layer.now();
        layer.with(|counter| {
            let ClassId(class) = held.class();
            if let Some(quality) = counter.quality.get_mut(class) {
                quality.ended(now, first, end);
            }
            counter.desk.ended(now, held, output);
        });
        layer.happened.notify_one();
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let now = self.layer.now();
            self.layer.with(|counter| counter.desk.left(now, held));
            self.layer.happened.notify_one();
        }
    }
}
