//! What a request holds that is inside the engine.

use std::sync::Arc;

use tidegate::Gate;
use tidegate_policy::judge;

use super::door::Door;
use super::layer::Layer;

/// A request inside the engine, as the policy sees it. Dropping it says that the
/// request failed or was left by its client; [`ended`](Self::ended) that it was
/// served.
#[derive(Debug)]
pub(crate) struct Inside<D: Door = Gate> {
    layer: Arc<Layer<D>>,
    /// `None` once it was given back.
    held: Option<judge::Inside>,
}

impl<D: Door> Inside<D> {
    pub(super) fn new(layer: Arc<Layer<D>>, held: judge::Inside) -> Self {
        let held = Some(held);
        Self { layer, held }
    }

    /// Its class's name.
    pub(crate) fn class(&self) -> Option<String> {
        let class = self.held.as_ref()?.class();
        Some(self.layer.name(class))
    }

    /// It was turned away behind the door: takes it out, with its layer.
    pub(super) fn turned_away(mut self) -> Option<(Arc<Layer<D>>, judge::Inside)> {
        let held = self.held.take()?;
        Some((Arc::clone(&self.layer), held))
    }

    /// The first token came. A second one changes nothing.
    pub(crate) fn first_token(&mut self) {
        let Some(held) = &mut self.held else {
            return;
        };
        let now = self.layer.now();
        self.layer
            .with(|counter| counter.desk.first_token(now, held));
        self.layer.happened.notify_one();
    }

    /// The request was served, with so many tokens, if that is known.
    pub(crate) fn ended(mut self, output: Option<u64>) {
        if let Some(held) = self.held.take() {
            let now = self.layer.now();
            self.layer
                .with(|counter| counter.desk.ended(now, held, output));
            self.layer.happened.notify_one();
        }
    }
}

impl<D: Door> Drop for Inside<D> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let now = self.layer.now();
            self.layer.with(|counter| counter.desk.left(now, held));
            self.layer.happened.notify_one();
        }
    }
}
