//! Which engine limit keeps a request out.

use crate::error::Limit;
use crate::word::Kind;

/// An engine limit that was reached: one rank's own, or the whole worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) kind: Kind,
    pub(crate) of_worker: bool,
}

impl Reached {
    pub(crate) fn by_rank(kind: Kind) -> Self {
        Reached {
            kind,
            of_worker: false,
        }
    }

    pub(crate) fn by_worker(kind: Kind) -> Self {
        Reached {
            kind,
            of_worker: true,
        }
    }

    pub(crate) fn limit(self) -> Limit {
        match self.kind {
            Kind::Running => Limit::EngineRequest,
            Kind::Waiting => Limit::EngineRequestWaiting,
        }
    }

    /// In three bits, none of them for nothing.
    pub(crate) fn to_bits(reached: Option<Self>) -> u64 {
        reached.map_or(0, |reached| {
            4 | u64::from(reached.kind == Kind::Waiting) | u64::from(reached.of_worker) << 1
        })
    }

    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let kind = if bits & 1 == 0 {
            Kind::Running
        } else {
            Kind::Waiting
        };
        let of_worker = bits & 2 != 0;
        (bits & 4 != 0).then_some(Reached { kind, of_worker })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_survives_its_bits() {
        let kinds = [Kind::Running, Kind::Waiting];
        let all = kinds.map(Reached::by_rank).into_iter();
        let all = all.chain(kinds.map(Reached::by_worker)).map(Some);
        for reached in all.chain([None]) {
            let bits = Reached::to_bits(reached);
            assert!(bits < 8);
            assert_eq!(Reached::from_bits(bits), reached);
        }
    }
}
