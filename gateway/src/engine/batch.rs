//! Continuous batching on one rank, without a clock.
//!
//! [`Batch::step`] decides what the next step of the engine computes, applies
//! its effects and says how long it takes. Who calls it owns the time: the live
//! engine waits that long, a simulation adds it to a counter.
//!
//! The rules are those of vLLM's scheduler. Running sequences come first, in the
//! order in which they were admitted, then waiting ones in order of arrival,
//! while sequences, tokens of the step and KV blocks last. Long prompts are
//! prefilled in chunks. A running sequence that finds no block takes those of
//! the youngest running one, which returns to the head of the waiting queue and
//! computes all its tokens again later. Nothing limits the waiting queue: that
//! is what an admission gate is for.

use std::collections::VecDeque;
use std::time::Duration;

use super::cost::{CostModel, StepShape};
use super::kv::KvPool;

/// Share of the KV blocks that admitting a sequence leaves free for the running
/// ones to grow: one part in this many.
const WATERMARK: u32 = 100;

/// The limits of one rank.
#[derive(Clone, Debug)]
pub struct BatchConfig {
    /// Most sequences running at once, at least 1.
    pub max_num_seqs: u32,
    /// Most tokens in one step, at least 1; should be at least `max_num_seqs`.
    pub max_num_batched_tokens: u32,
    /// KV blocks, at least 1.
    pub kv_blocks: u32,
    /// Tokens per KV block, at least 1.
    pub block_size: u32,
    /// How long steps take.
    pub cost: CostModel,
}

impl BatchConfig {
    /// Most tokens, prompt and output together, that a sequence may have.
    pub fn max_model_len(&self) -> u64 {
        u64::from(self.kv_blocks) * u64::from(self.block_size)
    }
}

impl Default for BatchConfig {
    /// vLLM's defaults, and the KV cache that Llama-2-7B leaves on an 80 GB GPU.
    fn default() -> Self {
        Self {
            max_num_seqs: 256,
            max_num_batched_tokens: 2048,
            kv_blocks: 6700,
            block_size: 16,
            cost: CostModel::default(),
        }
    }
}

/// What a request asks of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Tokens to prefill; 0 counts as 1.
    pub prompt_tokens: u32,
    /// Tokens to generate; 0 for a request that only prefills (an embedding).
    pub output_tokens: u32,
}

/// The request cannot run even alone: it has more tokens than the KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tokens} tokens do not fit in the {max_model_len} that the KV cache holds")]
pub struct TooLong {
    /// Prompt and output tokens of the request.
    pub tokens: u64,
    /// What the KV cache holds.
    pub max_model_len: u64,
}

/// What one step did. All lists name sequences by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOutcome {
    /// How long the step takes; its tokens exist at the end of it.
    pub duration: Duration,
    /// Sequences that got one more token.
    pub emitted: Vec<u64>,
    /// Sequences that ended; the last token of each is in `emitted` too.
    pub finished: Vec<u64>,
    /// Sequences that lost their KV blocks and wait again.
    pub preempted: Vec<u64>,
    /// Computed tokens that the preempted sequences must compute again.
    pub lost_tokens: u64,
    /// What the step computed.
    pub shape: StepShape,
}

#[derive(Clone, Debug)]
struct Sequence {
    id: u64,
    prompt: u64,
    output: u64,
    emitted: u64,
    /// Tokens whose KV is in the cache.
    computed: u64,
    /// Tokens this step computes.
    scheduled: u64,
    blocks: u32,
}

impl Sequence {
    fn pending(&self) -> u64 {
        self.prompt + self.emitted - self.computed
    }
}

/// The sequences of one rank: those in the batch and those waiting for it.
#[derive(Clone, Debug)]
pub struct Batch {
    config: BatchConfig,
    kv: KvPool,
    running: Vec<Sequence>,
    waiting: VecDeque<Sequence>,
}

impl Batch {
    /// An idle rank.
    pub fn new(config: BatchConfig) -> Self {
        Self {
            kv: KvPool::new(config.kv_blocks, config.block_size),
            config,
            running: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Sequences in the batch, never more than `max_num_seqs`.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Sequences waiting for the batch, preempted ones included.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The KV cache.
    pub fn kv(&self) -> &KvPool {
        &self.kv
    }

    /// Puts a request at the end of the waiting queue, under an id that the
    /// caller does not use for another sequence of this batch.
    ///
    /// # Errors
    /// [`TooLong`] when it can never run; nothing is kept of it.
    pub fn submit(&mut self, id: u64, work: Work) -> Result<(), TooLong> {
        let (prompt, output) = (
            u64::from(work.prompt_tokens.max(1)),
            u64::from(work.output_tokens),
        );
        let max_model_len = self.config.max_model_len();
        if prompt + output > max_model_len {
            return Err(TooLong {
                tokens: prompt + output,
                max_model_len,
            });
        }
        self.waiting.push_back(Sequence {
            id,
            prompt,
            output,
            emitted: 0,
            computed: 0,
            scheduled: 0,
            blocks: 0,
        });
        Ok(())
    }

    /// Removes a sequence and frees its KV blocks and its place at once.
    /// `false` when there is none of that id (any more). Looks through all of
    /// them.
    pub fn cancel(&mut self, id: u64) -> bool {
        if let Some(at) = self.running.iter().position(|s| s.id == id) {
            let mut gone = self.running.remove(at);
            self.kv.release(&mut gone.blocks);
            return true;
        }
        let at = self.waiting.iter().position(|s| s.id == id);
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }

    /// Runs one step; `None` when there is nothing to do. Every step moves the
    /// oldest running sequence forward, so that work always ends.
    pub fn step(&mut self) -> Option<StepOutcome> {
        let mut outcome = StepOutcome::default();
        let budget = self.schedule_running(&mut outcome);
        if outcome.preempted.is_empty() {
            self.schedule_waiting(budget);
        }
        if self.running.is_empty() {
            return None;
        }
        self.compute(&mut outcome);
        outcome.duration = self.config.cost.step(outcome.shape);
        Some(outcome)
    }

    /// Gives every running sequence its tokens and blocks, preempting from the
    /// young end. Returns the tokens left of the step's budget.
    fn schedule_running(&mut self, outcome: &mut StepOutcome) -> u64 {
        let mut budget = u64::from(self.config.max_num_batched_tokens.max(1));
        let mut at = 0;
        while at < self.running.len() && budget > 0 {
            let sequence = &mut self.running[at];
            let tokens = sequence.pending().min(budget);
            if self
                .kv
                .grow(&mut sequence.blocks, sequence.computed + tokens)
            {
                sequence.scheduled = tokens;
                budget -= tokens;
                at += 1;
            } else if let Some(mut victim) = self.running.pop() {
                // Not yet scheduled in this step: the young end comes last.
                self.kv.release(&mut victim.blocks);
                outcome.lost_tokens += std::mem::take(&mut victim.computed);
                outcome.preempted.push(victim.id);
                self.waiting.push_front(victim);
            }
        }
        budget
    }

    fn schedule_waiting(&mut self, mut budget: u64) {
        while budget > 0 && self.running.len() < self.config.max_num_seqs.max(1) as usize {
            let Some(next) = self.waiting.front() else {
                break;
            };
            let tokens = next.pending().min(budget);
            let reserve = if self.running.is_empty() {
                0
            } else {
                self.kv.total() / WATERMARK
            };
            if self.kv.blocks_for(tokens) + u64::from(reserve) > u64::from(self.kv.free()) {
                break;
            }
            let Some(mut sequence) = self.waiting.pop_front() else {
                break;
            };
            // The room was checked just above.
            let fits = self.kv.grow(&mut sequence.blocks, tokens);
            debug_assert!(fits);
            sequence.scheduled = tokens;
            budget -= tokens;
            self.running.push(sequence);
        }
    }

    /// Applies the scheduled tokens: contexts grow, tokens appear, sequences end.
    fn compute(&mut self, outcome: &mut StepOutcome) {
        let shape = &mut outcome.shape;
        let kv = &mut self.kv;
        self.running.retain_mut(|s| {
            let tokens = std::mem::take(&mut s.scheduled);
            shape.tokens += tokens;
            if tokens == 1 {
                shape.kv_read += s.computed + 1;
            } else {
                // Each new token attends to the cached ones and to those before it.
                let pairs = tokens.saturating_mul(s.computed + tokens.div_ceil(2));
                shape.prefill_pairs = shape.prefill_pairs.saturating_add(pairs);
            }
            s.computed += tokens;
            if s.pending() > 0 || tokens == 0 {
                return true;
            }
            if s.emitted < s.output {
                s.emitted += 1;
                outcome.emitted.push(s.id);
            }
            if s.emitted < s.output {
                return true;
            }
            kv.release(&mut s.blocks);
            outcome.finished.push(s.id);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(max_num_seqs: u32, tokens: u32, kv_blocks: u32) -> Batch {
        Batch::new(BatchConfig {
            max_num_seqs,
            max_num_batched_tokens: tokens,
            kv_blocks,
            ..BatchConfig::default()
        })
    }

    fn work(prompt_tokens: u32, output_tokens: u32) -> Work {
        Work {
            prompt_tokens,
            output_tokens,
        }
    }

    #[test]
    fn a_prompt_longer_than_the_budget_is_prefilled_in_chunks() {
        let mut b = batch(4, 64, 100);
        b.submit(1, work(150, 1)).unwrap();
        assert!(b.step().unwrap().emitted.is_empty());
        assert!(b.step().unwrap().emitted.is_empty());
        let last = b.step().unwrap();
        assert_eq!((last.emitted, last.finished), (vec![1], vec![1]));
        assert_eq!((b.step(), b.kv().used()), (None, 0));
    }

    #[test]
    fn sequences_beyond_the_limit_wait() {
        let mut b = batch(2, 64, 100);
        for id in 0..3 {
            b.submit(id, work(4, 2)).unwrap();
        }
        assert_eq!(b.step().unwrap().emitted, [0, 1]);
        assert_eq!((b.running(), b.waiting()), (2, 1));
        assert_eq!(b.step().unwrap().finished, [0, 1]);
        assert_eq!(b.step().unwrap().emitted, [2]);
    }

    #[test]
    fn the_youngest_is_preempted_and_computes_again() {
        let mut b = batch(4, 64, 2);
        b.submit(1, work(16, 8)).unwrap();
        b.submit(2, work(16, 8)).unwrap();
        assert_eq!(b.step().unwrap().emitted, [1, 2]);
        let second = b.step().unwrap();
        assert_eq!((second.preempted, second.lost_tokens), (vec![2], 16));
        assert_eq!(second.emitted, [1]);
        let (mut tokens, mut finished) = (0, vec![]);
        while let Some(step) = b.step() {
            tokens += step.emitted.len();
            finished.extend(step.finished);
        }
        assert_eq!((tokens, finished), (6 + 7, vec![1, 2]));
    }

    #[test]
    fn cancelling_frees_blocks_at_once() {
        let mut b = batch(1, 64, 10);
        b.submit(1, work(30, 50)).unwrap();
        b.submit(2, work(30, 50)).unwrap();
        b.step();
        assert_eq!(b.kv().used(), 2);
        assert!(b.cancel(1) && b.cancel(2) && !b.cancel(2));
        assert_eq!((b.running(), b.waiting(), b.kv().used()), (0, 0, 0));
    }

    #[test]
    fn what_can_never_fit_is_refused() {
        let mut b = batch(1, 64, 2);
        assert!(b.submit(1, work(16, 16)).is_ok());
        let error = b.submit(2, work(17, 16)).unwrap_err();
        assert_eq!((error.tokens, error.max_model_len), (33, 32));
        assert!(b.submit(3, work(u32::MAX, u32::MAX)).is_err());
    }

    #[test]
    fn an_embedding_ends_with_its_prefill() {
        let mut b = batch(1, 64, 10);
        b.submit(1, work(0, 0)).unwrap();
        let step = b.step().unwrap();
        assert_eq!((step.emitted, step.finished), (vec![], vec![1]));
    }
}
