//! What is known of an engine without asking it.

/// What flags say about the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownEngine {
    /// Its data-parallel ranks; one rank, 0, if only `max_num_seqs` is known.
    pub ranks: Option<Vec<u32>>,
    /// Sequences in one batch of one rank.
    pub max_num_seqs: Option<u32>,
}
