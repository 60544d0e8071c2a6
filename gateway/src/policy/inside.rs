//! What a request holds that is inside the engine.

use std::sync::Arc;

use tidegate_policy::judge;

use super::layer::Layer;

/// A request inside the engine, as the policy sees it. Dropping it says that the
/// request failed or was left by its client; [`ended`](Self::ended) that it was
/// served.
#[derive(Debug)]
pub(crate) struct Inside {
    layer: Arc<Layer>,
    /// `None` once it was given back.
    held: Option<judge::Inside>,
}

impl Inside {
    pub(super) fn new(layer: Arc<Layer>, held: judge::Inside) -> Self {
        let held = Some(held);
        Self { layer, held }
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

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let now = self.layer.now();
            self.layer.with(|counter| counter.desk.left(now, held));
            self.layer.happened.notify_one();
        }
    }
}
