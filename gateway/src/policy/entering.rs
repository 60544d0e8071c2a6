//! A request's way through the desk.

use std::sync::Arc;

use tidegate::OwnedPermit;
use tidegate_policy::class::ClassId;
use tidegate_policy::desk::{Alone, Place};
use tidegate_policy::reason::Reason;
use tokio::sync::oneshot;

use super::asked::Asked;
use super::inside::Inside;
use super::layer::{Counter, Layer, Told, Waiter};

/// What the policy says to a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is in.
    In(OwnedPermit, Inside),
    /// It is refused: its class, and why.
    Refused(String, Reason),
    /// The gate alone decides about it.
    GateAlone(GateAlone),
    /// There is no policy any more: the worker stopped.
    Gone,
}

/// A request that the gate alone decides about.
#[derive(Debug)]
pub(crate) struct GateAlone {
    layer: Arc<Layer>,
    alone: Alone,
}

impl GateAlone {
    /// The gate let it in.
    pub(crate) fn entered(self) -> Inside {
        let now = self.layer.now();
        let held = self
            .layer
            .with(|counter| counter.desk.entered(now, self.alone));
        Inside::new(self.layer, held)
    }
}

impl Layer {
    /// Asks the policy, and waits for as long as it holds the request. Dropping
    /// the future, which is what happens when the client leaves, takes the request
    /// out at once.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        asked: &Asked,
        key: Option<&str>,
        class: Option<&str>,
        rank: Option<u32>,
    ) -> Verdict {
        let (tell, told) = oneshot::channel();
        let place = self.ask(|desk, now, mut gate, moves| {
            let classes = &desk.judge().settings().classes;
            let class = classes.choose(key, class, &asked.model);
            let profile =
                desk.judge()
                    .profile(&model(asked), class, asked.input, asked.most_output);
            let waiter = Waiter { rank, class, tell };
            desk.arrives(now, profile, waiter, &mut gate, moves)
        });
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

    fn name(&self, class: ClassId) -> String {
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
struct Held<'l> {
    layer: &'l Layer,
    place: Place,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let now = self.layer.now();
        let left = |counter: &mut Counter| counter.desk.leaves(now, self.place);
        if self.layer.with(left) {
            self.layer.happened.notify_one();
        }
    }
}
