//! What one request takes of a worker, by the frontend's own accounting.

use std::sync::Arc;

use super::own::Share;
use super::shared::Shared;

/// A request that was sent to a worker. Dropping it says that the request has ended,
/// however it did.
#[derive(Debug)]
pub struct Held {
    worker: Arc<Shared>,
    rank: Option<u32>,
    model: String,
    prompt_bytes: u64,
    prompt_tokens: u64,
    output_tokens: u64,
    /// Whether the prompt is still read.
    prefill: bool,
    block_size: u32,
    share: Share,
}

impl Held {
    pub(super) fn new(
        worker: Arc<Shared>,
        rank: Option<u32>,
        model: &str,
        prompt_bytes: u64,
    ) -> Self {
        let told = worker.state().totals_of(rank.unwrap_or(0)).block_size;
        let mut held = Self {
            prompt_tokens: worker.settings.ratios.tokens(model, prompt_bytes),
            block_size: told.unwrap_or(worker.settings.block_size).max(1),
            worker,
            rank,
            model: model.to_owned(),
            prompt_bytes,
            output_tokens: 0,
            prefill: true,
            share: Share::default(),
        };
        held.account();
        held
    }

    /// The first output token has come: its prompt is read. Later calls do nothing.
    pub fn first_token(&mut self) {
        if self.prefill {
            self.prefill = false;
            self.account();
        }
    }

    /// So many more output tokens have come. Their blocks count only with
    /// `--router-track-output-blocks`.
    pub fn generated(&mut self, tokens: u64) {
        self.output_tokens = self.output_tokens.saturating_add(tokens);
        if self.worker.settings.track_output_blocks {
            self.account();
        }
    }

    /// The engine's `usage` says how many tokens the prompt was. Corrects this
    /// request's count, and the estimates of later ones for the same model.
    pub fn prompt_was(&mut self, tokens: u64) {
        let ratios = &self.worker.settings.ratios;
        ratios.learn(&self.model, self.prompt_bytes, tokens);
        if tokens > 0 {
            // An absurd count is not believed, for this request either.
            self.prompt_tokens = tokens.min(self.prompt_bytes.saturating_mul(16).max(1));
            self.account();
        }
    }

    /// Brings the worker's sums in line with what this request takes now.
    fn account(&mut self) {
        let mut tokens = self.prompt_tokens;
        if self.worker.settings.track_output_blocks {
            tokens = tokens.saturating_add(self.output_tokens);
        }
        self.set(Share {
            running: 1,
            blocks: tokens.div_ceil(u64::from(self.block_size)),
            prefill_tokens: if self.prefill { self.prompt_tokens } else { 0 },
        });
    }

    fn set(&mut self, share: Share) {
        if share != self.share {
            let mut state = self.worker.state();
            state.own.replace(self.rank, self.share, share);
            drop(state);
            let less = share.less_than(self.share);
            self.share = share;
            if less {
                self.worker.settings.news.notify_waiters();
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(Share::default());
    }
}
