//! The workers as a door that a policy holds requests before.
//!
//! There is room while a worker that serves the model is well, not busy and not marked,
//! and not on [trial](super::trial). Where every one of them is unwell nothing is waited
//! for: the request goes on, and is told that nobody is there.

use std::sync::Arc;

use tidegate_policy::desk::Entry;
use tokio::time::{Instant, sleep_until};

use super::choose::pick;
use super::eligible::{Counts, Free, Serving, view};
use super::member::Member;
use super::members::Members;
use super::pick::Picker;
use crate::monitor::{self, Monitor};
use crate::policy::Door;

/// The workers of one frontend. A cheap clone.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    members: Arc<Members>,
    picker: Arc<Picker>,
    monitor: Monitor,
}

/// What a request wants of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The model; any worker does without one.
    pub(super) model: Option<String>,
    /// The rank that the client names.
    pub(super) rank: Option<u32>,
    pub(super) prompt_bytes: u64,
}

/// A place at a worker, accounted for from now on. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Reserved {
    /// The rank that was chosen, if one was.
    pub(super) rank: Option<u32>,
    /// Its share of the worker's load, until the request takes it.
    pub(super) load: Option<monitor::Held>,
    on_trial: OnTrial,
}

/// Counts against the worker's trial until it is dropped.
#[derive(Debug)]
struct OnTrial(Arc<Member>);

impl Reserved {
    fn new(member: Arc<Member>, chosen: Option<u32>, wanted: &Wanted) -> Self {
        let (rank, model) = (chosen.or(wanted.rank), wanted.model.as_deref());
        let load = member
            .watched
            .started(rank, model.unwrap_or_default(), wanted.prompt_bytes);
        member.trial().sent();
        Self {
            rank: chosen,
            load: Some(load),
            on_trial: OnTrial(member),
        }
    }

    /// Where it is.
    pub(super) fn member(&self) -> &Arc<Member> {
        &self.on_trial.0
    }

    /// The worker began to answer.
    pub(super) fn answered(self) {
        self.on_trial.0.trial().one_more();
    }
}

impl Drop for OnTrial {
    fn drop(&mut self) {
        self.0.trial().over();
        self.0.watched.tell_news();
    }
}

impl Workers {
    pub(super) fn new(members: Arc<Members>, picker: Arc<Picker>, monitor: Monitor) -> Self {
        Self {
            members,
            picker,
            monitor,
        }
    }

    /// Those that may have it, and how the others stand; who is on trial counts as
    /// marked.
    fn view(&self, wanted: &Wanted, now: Instant) -> (Vec<Free>, Counts) {
        let model = wanted.model.as_deref();
        let Serving::These(those) = self.members.serving(model) else {
            return (Vec::new(), Counts::default());
        };
        let (mut free, mut counts) = view(&those, model.unwrap_or_default(), &[], now);
        let before = free.len();
        free.retain(|free| free.member.trial().has_room());
        counts.marked += before - free.len();
        (free, counts)
    }
}

impl Door for Workers {
    type Wanted = Wanted;
    /// `None` if there is nobody to wait for.
    type Permit = Option<Reserved>;

    fn enter(&self, wanted: &Wanted) -> Entry<Self::Permit> {
        let now = Instant::now();
        let (mut free, counts) = self.view(wanted, now);
        if let Some((member, choice)) = pick(&self.picker, &mut free, wanted.rank, now) {
            Entry::In(Some(Reserved::new(member, choice.rank, wanted)))
        } else if counts.busy + counts.marked == 0 {
            Entry::In(None)
        } else {
            Entry::Full
        }
    }

    fn has_room(&self, wanted: &Wanted) -> Option<bool> {
        let (free, counts) = self.view(wanted, Instant::now());
        Some(!free.is_empty() || counts.busy + counts.marked == 0)
    }

    fn room(&self) -> impl Future<Output = ()> + Send {
        let news = self.monitor.news();
        let now = Instant::now();
        let members = self.members.all();
        let ends = members.iter().map(|member| member.known().mark.ends(now));
        let next = ends.flatten().min();
        async move {
            match next {
                Some(at) => tokio::select! {
                    () = news => {}
                    () = sleep_until(at) => {}
                },
                None => news.await,
            }
        }
    }

    fn set_limit(&self, _: u32) -> bool {
        // Each worker has its own.
        true
    }
}
