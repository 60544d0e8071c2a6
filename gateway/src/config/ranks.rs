//! Lists of data-parallel ranks, as written on a command line.

use std::collections::BTreeSet;

use thiserror::Error;
use tidegate::limits::MAX_RANKS;

/// Why a list of ranks was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RanksError {
    /// A part that is neither an id nor a range of ids.
    #[error(
        "{0:?} is no rank or range of ranks: write ids from 0 to 4294967295, such as 0-7 or 0,2,4-6"
    )]
    Malformed(String),
    /// The same id more than once.
    #[error("rank {0} is listed twice")]
    Duplicate(u32),
    /// More than [`MAX_RANKS`] ids.
    #[error("more than {MAX_RANKS} ranks: a worker has 1 to {MAX_RANKS}")]
    TooMany,
}

/// Reads ids and inclusive ranges of ids, separated by commas: `0-7`, `0,2,4-6`.
/// Ids come back in ascending order.
///
/// # Errors
/// A malformed part, a range that runs backwards, an id listed twice, or more
/// than [`MAX_RANKS`] ids.
pub fn parse_ranks(text: &str) -> Result<Vec<u32>, RanksError> {
    let mut ranks = BTreeSet::new();
    for part in text.split(',') {
        let malformed = || RanksError::Malformed(part.to_owned());
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| malformed())?;
        let last: u32 = last.trim().parse().map_err(|_| malformed())?;
        if first > last {
            return Err(malformed());
        }
        for rank in first..=last {
            if ranks.len() == MAX_RANKS {
                return Err(RanksError::TooMany);
            }
            if !ranks.insert(rank) {
                return Err(RanksError::Duplicate(rank));
            }
        }
    }
    Ok(ranks.into_iter().collect())
}

/// Writes ascending ids the short way: `0-3, 7`.
pub fn show_ranks(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    parts.join(", ")
}

/// Rank ids, ascending and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks(pub Vec<u32>);

impl std::str::FromStr for Ranks {
    type Err = RanksError;
    fn from_str(text: &str) -> Result<Self, RanksError> {
        parse_ranks(text).map(Ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_and_ranges() {
        assert_eq!(parse_ranks("0-3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(parse_ranks("4"), Ok(vec![4]));
        assert_eq!(parse_ranks(" 7, 0 - 1 "), Ok(vec![0, 1, 7]));
        assert_eq!(parse_ranks("4294967295"), Ok(vec![u32::MAX]));
    }

    #[test]
    fn bad_lists_say_what_is_wrong() {
        for text in ["", ",", "a", "-1", "3-1", "1-", "0--2", "4294967296"] {
            assert!(
                matches!(parse_ranks(text), Err(RanksError::Malformed(_))),
                "{text:?}"
            );
        }
        assert_eq!(parse_ranks("0-3,2"), Err(RanksError::Duplicate(2)));
        assert_eq!(parse_ranks("0-1024"), Err(RanksError::TooMany));
        assert_eq!(parse_ranks("0-4294967295"), Err(RanksError::TooMany));
        assert_eq!(parse_ranks("0-1023").map(|r| r.len()), Ok(MAX_RANKS));
    }

    #[test]
    fn shown_in_runs() {
        assert_eq!(show_ranks(&[0, 1, 2, 7, 9, 10]), "0-2, 7, 9-10");
        assert_eq!(show_ranks(&[u32::MAX]), "4294967295");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _ = parse_ranks(&text);
        }

        #[test]
        fn what_is_shown_reads_back(ranks in prop::collection::btree_set(any::<u32>(), 1..40)) {
            let ranks: Vec<u32> = ranks.into_iter().collect();
            prop_assert_eq!(parse_ranks(&show_ranks(&ranks)), Ok(ranks));
        }
    }
}
