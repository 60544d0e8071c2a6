//! A request's way through the desk.

use std::sync::Arc;

use tidegate::Gate;
use tidegate_policy::class::ClassId;
use tidegate_policy::desk::{Alone, Desk, Place};
use tidegate_policy::shadow::Mode;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::asked::Asked;
use super::door::Door;
use super::inside::Inside;
use super::layer::{Counter, Layer, Refused, Told, Waiter};

/// What the policy says to a request.
#[derive(Debug)]
pub(crate) enum Verdict<D: Door = Gate> {
    /// It is in.
    In(D::Permit, Inside<D>),
    /// It is refused.
    Refused(Refused),
    /// The gate alone decides about it.
    GateAlone(GateAlone<D>),
    /// There is no policy any more: the worker stopped.
    Gone,
}

/// What becomes of a request that arrives.
#[derive(Debug)]
pub(crate) enum Arrived<D: Door = Gate> {
    /// It has been decided about.
    Decided(Verdict<D>),
    /// It is held.
    Held(Held<D>),
}

/// A request that the gate alone decides about.
#[derive(Debug)]
pub(crate) struct GateAlone<D: Door = Gate> {
    layer: Arc<Layer<D>>,
    alone: Alone,
}

impl<D: Door> GateAlone<D> {
    /// The gate let it in.
    pub(crate) fn entered(self) -> Inside<D> {
        let now = self.layer.now();
        let held = self
            .layer
            .with(|counter| counter.desk.entered(now, self.alone));
        Inside::new(self.layer, held)
    }

    /// When it leaves the gate's queue: its class's timeout goes on there. `None` if it
    /// was never held, and has none.
    pub(crate) fn leaves(&self) -> Option<Instant> {
        let leaves = self.alone.leaves()?;
        Some(self.layer.instant(leaves))
    }

    /// The name of its class.
    pub(crate) fn class(&self) -> String {
        self.layer.name(self.alone.class())
    }
}

impl<D: Door> Inside<D> {
    /// What is behind the door turned it away: it is held again, in its old place and
    /// with the rest of its time. As [`Layer::enter`].
    pub(crate) async fn again(
        self,
        asked: &Asked,
        key: Option<&str>,
        class: Option<&str>,
        wanted: D::Wanted,
    ) -> Verdict<D> {
        let Some((layer, inside)) = self.turned_away() else {
            return Verdict::Gone;
        };
        let (held, told) = layer.ask(|desk, now, mut gate, moves| {
            let classes = &desk.judge().settings().classes;
            let class = classes.choose(key, class, &asked.model);
            let waiter = Waiter {
                wanted,
                class,
                tell: None,
            };
            let place = desk.returns(now, inside, class, waiter, &mut gate, moves)?;
            told_later(desk, place)
        });
        layer.arrived(held, told).verdict().await
    }
}

/// A way to tell whoever is held here what becomes of it.
fn told_later<D: Door>(
    desk: &mut Desk<Waiter<D>>,
    place: Place,
) -> Option<(Place, oneshot::Receiver<Told<D>>)> {
    let (tell, told) = oneshot::channel();
    desk.who_mut(place)?.tell = Some(tell);
    Some((place, told))
}

impl<D: Door> Arrived<D> {
    /// Waits for as long as it is held.
    pub(crate) async fn verdict(self) -> Verdict<D> {
        match self {
            Arrived::Decided(verdict) => verdict,
            Arrived::Held(mut held) => held.verdict().await,
        }
    }
}

impl<D: Door> Layer<D> {
    /// Asks the policy, and waits for as long as it holds the request. Dropping
    /// the future, which is what happens when the client leaves, takes the request
    /// out at once.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        asked: &Asked,
        key: Option<&str>,
        class: Option<&str>,
        wanted: D::Wanted,
    ) -> Verdict<D> {
        self.arrives(asked, key, class, wanted).verdict().await
    }

    /// Asks the policy about a request.
    pub(crate) fn arrives(
        self: &Arc<Self>,
        asked: &Asked,
        key: Option<&str>,
        class: Option<&str>,
        wanted: D::Wanted,
    ) -> Arrived<D> {
        let model = model(asked);
        let (held, told) = self.ask(|desk, now, mut gate, moves| {
            let judge = desk.judge();
            let class = judge.settings().classes.choose(key, class, &asked.model);
            let profile = judge.profile_of(&model, class, asked.input(), asked.most_output);
            let room = match desk.mode() {
                Mode::Observe => self.door.has_room(&wanted),
                Mode::Enforce => None,
            };
            // One that is let in or refused at once needs no way to be told later.
            let waiter = Waiter {
                wanted,
                class,
                tell: None,
            };
            if let Some(room) = room {
                desk.watches(now, profile, waiter, room, moves);
                return None;
            }
            let place = desk.arrives(now, profile, waiter, &mut gate, moves)?;
            told_later(desk, place)
        });
        self.arrived(held, told)
    }

    fn arrived(
        self: &Arc<Self>,
        held: Option<(Place, oneshot::Receiver<Told<D>>)>,
        told: Option<Told<D>>,
    ) -> Arrived<D> {
        let Some((place, told)) = held else {
            return Arrived::Decided(self.verdict(told));
        };
        // The keeper looks after it from now on.
        self.happened.notify_one();
        let layer = Arc::clone(self);
        Arrived::Held(Held {
            layer,
            place,
            told,
            over: false,
        })
    }

    fn verdict(self: &Arc<Self>, told: Option<Told<D>>) -> Verdict<D> {
        match told {
            Some(Told::In(permit, inside)) => Verdict::In(permit, inside),
            Some(Told::Refused(refused)) => Verdict::Refused(refused),
            Some(Told::GateAlone(alone)) => Verdict::GateAlone(GateAlone {
                layer: Arc::clone(self),
                alone,
            }),
            // Nobody at the desk is dropped without an answer.
            None => Verdict::Gone,
        }
    }

    pub(super) fn name(&self, class: ClassId) -> String {
        self.with(|counter| {
            let classes = &counter.desk.judge().settings().classes;
            classes.get(class).name.clone()
        })
    }
}

/// Answers that are not streamed come as one token: they are learned apart.
fn model(asked: &Asked) -> String {
    match asked.stream {
        true => asked.model.clone(),
        false => format!("{} (whole)", asked.model),
    }
}

/// A request that the policy holds. Dropping it, which is what happens when the client
/// leaves, takes it out at once.
#[derive(Debug)]
pub(crate) struct Held<D: Door = Gate> {
    layer: Arc<Layer<D>>,
    place: Place,
    told: oneshot::Receiver<Told<D>>,
    /// It has been told, and its place is free.
    over: bool,
}

impl<D: Door> Held<D> {
    /// Waits for what becomes of it; ask no more afterwards. Cancel safe: it keeps its
    /// place.
    pub(crate) async fn verdict(&mut self) -> Verdict<D> {
        let told = (&mut self.told).await.ok();
        self.over = true;
        self.layer.verdict(told)
    }

    /// Its position among all that are held, from 1, approximately.
    pub(crate) fn position(&self) -> u64 {
        let position = self.layer.with(|counter| counter.desk.position(self.place));
        position.unwrap_or(1)
    }
}

impl<D: Door> Drop for Held<D> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Told or not, a place is good for one request.
        let now = self.layer.now();
        let left = |counter: &mut Counter<D>| counter.desk.leaves(now, self.place);
        if self.layer.with(left) {
            self.layer.happened.notify_one();
        }
    }
}
