//! Prompt tokens that the engine reads, by lane: what a worker tells of them to frontends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tidegate::Lane;

/// Bytes of a request's body that are about one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The tokens of all requests whose first token has not come.
#[derive(Debug, Default)]
pub(super) struct Prompts(Mutex<BTreeMap<Lane, u64>>);

/// One request's. Dropping it says that its prompt is read.
#[derive(Debug)]
pub(super) struct Prompt {
    of: Arc<Prompts>,
    lane: Lane,
    tokens: u64,
}

impl Prompts {
    /// A request with these headers enters the engine. One that does not say how long it
    /// is counts for nothing.
    pub(super) fn enters(self: &Arc<Self>, lane: Lane, headers: &HeaderMap) -> Prompt {
        let length = headers.get(CONTENT_LENGTH);
        let bytes: Option<u64> = length.and_then(|value| value.to_str().ok()?.parse().ok());
        let tokens = bytes.unwrap_or(0) / BYTES_PER_TOKEN;
        let mut lanes = self.lanes();
        let sum = lanes.entry(lane).or_default();
        // What is not added would be missing later.
        let tokens = tokens.min(u64::MAX - *sum);
        *sum += tokens;
        Prompt {
            of: Arc::clone(self),
            lane,
            tokens,
        }
    }

    /// The tokens in a lane.
    pub(super) fn of(&self, lane: Lane) -> u64 {
        self.lanes().get(&lane).copied().unwrap_or(0)
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Lane, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        if let Some(sum) = self.of.lanes().get_mut(&self.lane) {
            *sum = sum.saturating_sub(self.tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_enters_leaves_again() {
        let prompts = Arc::new(Prompts::default());
        let headers =
            |length: &str| HeaderMap::from_iter([(CONTENT_LENGTH, length.parse().unwrap())]);
        let first = prompts.enters(Lane::Rank(1), &headers("400"));
        let second = prompts.enters(Lane::Rank(1), &headers("40"));
        let unclear = prompts.enters(Lane::Unspecified, &headers("x"));
        assert_eq!(prompts.of(Lane::Rank(1)), 110);
        assert_eq!(prompts.of(Lane::Unspecified), 0);
        drop(first);
        assert_eq!(prompts.of(Lane::Rank(1)), 10);
        let huge = prompts.enters(Lane::Rank(1), &headers("18446744073709551615"));
        drop((second, unclear, huge));
        assert_eq!(prompts.of(Lane::Rank(1)), 0);
    }
}
