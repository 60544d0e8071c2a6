//! Which workers a request may go to, and why not to the others.

use std::sync::Arc;

use tokio::time::Instant;

use super::member::Member;
use super::models::Served;
use crate::monitor::{Busy, Threshold};

/// What counts for one worker about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may have it.
    Free,
    /// It has more than its thresholds allow.
    Busy,
    /// It refused a request a moment ago.
    Marked,
    /// It does not answer.
    Unwell,
    /// It had this request already.
    Tried,
}

impl Standing {
    /// Those that say something of a worker beside any request.
    pub(super) const SHOWN: [Self; 4] = [Self::Free, Self::Busy, Self::Marked, Self::Unwell];

    /// The metrics label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Busy => "busy",
            Self::Marked => "marked",
            Self::Unwell => "unwell",
            Self::Tried => "tried",
        }
    }
}

impl Member {
    /// How it stands now: busy if it is so for a model that it serves.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        let busy = |model: &String| self.watched.busy(model).worker;
        let busy = Busy {
            worker: self.models().iter().any(busy),
            ranks: Vec::new(),
        };
        standing(self, &busy, &[], now)
    }

    /// How many of its ranks are over each threshold, for the model of which that is most.
    pub(super) fn ranks_over(&self) -> [(Threshold, usize); Threshold::ALL.len()] {
        let models = self.models();
        Threshold::ALL.map(|threshold| {
            let over = |model: &String| self.watched.ranks_over(threshold, model);
            (threshold, models.iter().map(over).max().unwrap_or(0))
        })
    }

    /// What it lists, or no name, which stands for anything.
    fn models(&self) -> Vec<String> {
        let listed: Vec<String> = self.served().names().cloned().collect();
        match listed.is_empty() {
            true => vec![String::new()],
            false => listed,
        }
    }
}

/// Who serves a model, as far as the workers have told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Serving<T = usize> {
    /// These, of those that were given.
    These(Vec<T>),
    /// Nobody, though some told what they serve.
    Nobody,
    /// Nobody told yet.
    Untold,
}

/// Who serves `model`; any worker does without one. Those that have no list are
/// asked for what nobody lists.
pub(super) fn serving(served: &[Served], model: Option<&str>) -> Serving {
    let those = |which: &dyn Fn(&Served) -> bool| -> Vec<usize> {
        (0..served.len()).filter(|&at| which(&served[at])).collect()
    };
    let Some(model) = model else {
        return Serving::These(those(&|_| true));
    };
    let listing = those(&|served| served.lists(model));
    if !listing.is_empty() {
        return Serving::These(listing);
    }
    let unlisted = those(&|served| *served == Served::Unlisted);
    if !unlisted.is_empty() {
        Serving::These(unlisted)
    } else if served.iter().all(|served| *served == Served::Unknown) {
        Serving::Untold
    } else {
        Serving::Nobody
    }
}

/// What counts for a worker. `busy` is by the thresholds of the model.
fn standing(member: &Member, busy: &Busy, tried: &[u64], now: Instant) -> Standing {
    if tried.contains(&member.id) {
        return Standing::Tried;
    }
    // One lock at a time.
    let (well, marked) = {
        let free = member.watched.last_free();
        let known = member.known();
        (known.health.is_well(), known.mark.is_out(now, free))
    };
    if !well {
        Standing::Unwell
    } else if marked {
        Standing::Marked
    } else if busy.worker {
        Standing::Busy
    } else {
        Standing::Free
    }
}

/// How many of those that serve a model stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) busy: usize,
    pub(super) marked: usize,
    pub(super) unwell: usize,
}

/// How many there are, those included that had the request.
pub(super) fn all(counts: Counts, tried: usize) -> usize {
    counts.busy + counts.marked + counts.unwell + tried
}

/// A worker that may have the request.
#[derive(Clone, Debug)]
pub(super) struct Free {
    pub(super) member: Arc<Member>,
    /// Those of its ranks that are busy.
    pub(super) busy_ranks: Vec<u32>,
}

/// Those that may have the request, and how the others stand. `model` is that of the
/// thresholds.
pub(super) fn view(
    serving: &[Arc<Member>],
    model: &str,
    tried: &[u64],
    now: Instant,
) -> (Vec<Free>, Counts) {
    let (mut free, mut counts) = (Vec::new(), Counts::default());
    for member in serving {
        let busy = member.watched.busy(model);
        match standing(member, &busy, tried, now) {
            Standing::Free => free.push(Free {
                member: Arc::clone(member),
                busy_ranks: busy.ranks,
            }),
            Standing::Busy => counts.busy += 1,
            Standing::Marked => counts.marked += 1,
            Standing::Unwell => counts.unwell += 1,
            Standing::Tried => {}
        }
    }
    (free, counts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn listed(names: &[&str]) -> Served {
        let models: BTreeMap<String, Value> = names
            .iter()
            .map(|&name| (name.to_owned(), Value::Null))
            .collect();
        Served::Listed(Arc::new(models))
    }

    #[test]
    fn those_that_list_a_model_serve_it_and_nobody_else() {
        let all = [
            listed(&["a", "b"]),
            Served::Unlisted,
            listed(&["b"]),
            Served::Unknown,
        ];
        assert_eq!(serving(&all, Some("a")), Serving::These(vec![0]));
        assert_eq!(serving(&all, Some("b")), Serving::These(vec![0, 2]));
        assert_eq!(serving(&all, None), Serving::These(vec![0, 1, 2, 3]));
    }

    #[test]
    fn what_nobody_lists_goes_to_those_without_a_list() {
        let all = [listed(&["a"]), Served::Unlisted, Served::Unknown];
        assert_eq!(serving(&all, Some("c")), Serving::These(vec![1]));
    }

    #[test]
    fn a_model_that_nobody_serves_is_told_from_nobody_having_told() {
        let told = [listed(&["a"]), Served::Unknown];
        assert_eq!(serving(&told, Some("c")), Serving::Nobody);
        assert_eq!(serving(&[listed(&[])], Some("c")), Serving::Nobody);
        assert_eq!(serving(&[Served::Unknown], Some("c")), Serving::Untold);
        assert_eq!(serving(&[], Some("c")), Serving::Untold);
    }
}
