//! A request's way through the desk.

use std::sync::Arc;

use tidegate::Gate;
use tidegate_policy::class::ClassId;
use tidegate_policy::desk::{Alone, Place};
use tidegate_policy::reason::Reason;
use tidegate_policy::shadow::Mode;
use tokio::sync::oneshot;

use super::asked::Asked;
use super::door::Door;
use super::inside::Inside;
use super::layer::{Counter, Layer, Told, Waiter};

/// What the policy says to a request.
#[derive(Debug)]
pub(crate) enum Verdict<D: Door = Gate> {
    /// It is in.
    In(D::Permit, Inside<D>),
    /// It is refused: its class, and why.
    Refused(String, Reason),
    /// The gate alone decides about it.
    GateAlone(GateAlone<D>),
    /// There is no policy any more: the worker stopped.
    Gone,
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
        let (tell, told) = oneshot::channel();
        let place = layer.ask(|desk, now, mut gate, moves| {
            let classes = &desk.judge().settings().classes;
            let class = classes.choose(key, class, &asked.model);
            let waiter = Waiter {
                wanted,
                class,
                tell,
            };
            desk.returns(now, inside, class, waiter, &mut gate, moves)
        });
        layer.verdict(place, told).await
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
        let (tell, told) = oneshot::channel();
        let place = self.ask(|desk, now, mut gate, moves| {
            let classes = &desk.judge().settings().classes;
            let class = classes.choose(key, class, &asked.model);
            let profile =
                desk.judge()
                    .profile(&model(asked), class, asked.input, asked.most_output);
            let room = match desk.mode() {
                Mode::Observe => self.door.has_room(&wanted),
                Mode::Enforce => None,
            };
            let waiter = Waiter {
                wanted,
                class,
                tell,
            };
            match room {
                Some(room) => {
                    desk.watches(now, profile, waiter, room, moves);
                    None
                }
                None => desk.arrives(now, profile, waiter, &mut gate, moves),
            }
        });
        self.verdict(place, told).await
    }

    /// Waits for what is told to whoever is at this place, or was told already.
    async fn verdict(
        self: &Arc<Self>,
        place: Option<Place>,
        told: oneshot::Receiver<Told<D>>,
    ) -> Verdict<D> {
        let _held = place.map(|place| {
            // The keeper looks after it from now on.
            self.happened.notify_one();
            Held { layer: self, place }
        });
        match told.await {
            Ok(Told::In(permit, inside)) => Verdict::In(permit, inside),
            Ok(Told::Refused(class, reason)) => Verdict::Refused(self.name(class), reason),
            Ok(Told::GateAlone(alone)) => Verdict::GateAlone(GateAlone {
                layer: Arc::clone(self),
                alone,
            }),
            // Nobody at the desk is dropped without an answer.
            Err(_) => Verdict::Gone,
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

/// Takes a held request out if its client leaves. Afterwards it does nothing: a
/// place is good for one request.
struct Held<'l, D: Door> {
    layer: &'l Layer<D>,
    place: Place,
}

impl<D: Door> Drop for Held<'_, D> {
    fn drop(&mut self) {
        let now = self.layer.now();
        let left = |counter: &mut Counter<D>| counter.desk.leaves(now, self.place);
        if self.layer.with(left) {
            self.layer.happened.notify_one();
        }
    }
}
