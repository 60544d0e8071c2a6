//! A request that waits: in its class, if the policy holds it, or at the gate.

use std::future::pending;
use std::sync::Arc;

use tidegate::{AdmissionOwned, Lane, OwnedPermit, OwnedTicket, Stopped};
use tidegate_policy::reason::Reason;
use tokio::time::sleep_until;

use super::answer::{Answer, unavailable};
use super::away::{judged, refused};
use super::decision::{self, Queued};
use super::shared::Shared;
use super::slot::Slot;
use crate::policy::{GateAlone, Held, Refused, Verdict};
use crate::server::named::Named;

/// Where it waits, and what the log knows of it. Dropping it is leaving.
#[derive(Debug)]
pub(super) struct Waiting {
    at: At,
    rank: Option<u32>,
    log: Queued,
}

#[derive(Debug)]
enum At {
    /// At the gate, and for the policy's part what follows it when it is admitted.
    Gate(OwnedTicket, Option<GateAlone>),
    /// In its class.
    Class(Held),
    /// It waits no longer.
    Over,
}

impl Waiting {
    /// Asks the gate. `alone` is the policy's part, where the policy leaves a request to
    /// it. `Err` is the answer of one that is refused.
    pub(super) fn at_gate(
        shared: &Shared,
        rank: Option<u32>,
        alone: Option<GateAlone>,
        named: &Named,
    ) -> Result<Result<Slot, Self>, Box<Answer>> {
        let admission = shared
            .gate
            .request_owned(rank)
            .map_err(|rejection| refused(shared, &rejection, named))?;
        Ok(match admission {
            AdmissionOwned::Admitted(permit) => {
                decision::admitted(&shared.decisions, named, permit.lane());
                Ok(slot(shared, permit, alone))
            }
            AdmissionOwned::Queued(ticket) => {
                let (position, lane) = place(&ticket);
                Err(Self {
                    log: Queued::new(&shared.decisions, named, lane, position),
                    at: At::Gate(ticket, alone),
                    rank,
                })
            }
        })
    }

    /// The policy has just begun to hold it.
    pub(super) fn in_class(shared: &Shared, held: Held, rank: Option<u32>, named: &Named) -> Self {
        Self {
            log: Queued::held(&shared.decisions, named, held.position()),
            at: At::Class(held),
            rank,
        }
    }

    /// Waits for its turn. `Err` is the answer of one whose turn does not come. Cancel
    /// safe: it keeps its place. Ask no more once it was told.
    pub(super) async fn turn(&mut self, shared: &Shared) -> Result<Slot, Box<Answer>> {
        loop {
            match &mut self.at {
                At::Class(held) => {
                    let verdict = held.verdict().await;
                    if let Some(told) = self.decided(shared, verdict) {
                        return told;
                    }
                }
                At::Gate(ticket, alone) => {
                    let leaves = alone.as_ref().and_then(GateAlone::leaves);
                    let time_is_up = async {
                        match leaves {
                            Some(at) => sleep_until(at).await,
                            None => pending().await,
                        }
                    };
                    let permit = tokio::select! {
                        biased;
                        permit = ticket => Some(permit),
                        () = time_is_up => None,
                    };
                    let At::Gate(_, alone) = std::mem::replace(&mut self.at, At::Over) else {
                        continue;
                    };
                    return self.gate_said(shared, permit, alone);
                }
                At::Over => return Err(unavailable("The worker has stopped")),
            }
        }
    }

    /// What becomes of it by the policy; `None` if it waits at the gate now.
    fn decided(&mut self, shared: &Shared, verdict: Verdict) -> Option<Result<Slot, Box<Answer>>> {
        self.at = At::Over;
        Some(match verdict {
            Verdict::In(permit, inside) => {
                self.log.admitted(permit.lane());
                Ok(Slot::new(permit, Arc::clone(&shared.drain)).followed(inside))
            }
            Verdict::Refused(refused) => {
                self.log.over();
                Err(judged(shared, &refused, self.log.named()))
            }
            Verdict::GateAlone(alone) => {
                let named = self.log.named().clone();
                match Self::at_gate(shared, self.rank, Some(alone), &named) {
                    Ok(Ok(slot)) => {
                        self.log.over();
                        Ok(slot)
                    }
                    Ok(Err(waiting)) => {
                        self.log.over();
                        *self = waiting;
                        return None;
                    }
                    Err(answer) => {
                        self.log.over();
                        Err(answer)
                    }
                }
            }
            Verdict::Gone => {
                let stopped = "The worker has stopped";
                self.log.gave_up(&stopped);
                Err(unavailable(stopped))
            }
        })
    }

    /// What becomes of it by the gate; no permit is that its class's time is up.
    fn gate_said(
        &mut self,
        shared: &Shared,
        permit: Option<Result<OwnedPermit, Stopped>>,
        alone: Option<GateAlone>,
    ) -> Result<Slot, Box<Answer>> {
        match permit {
            Some(Ok(permit)) => {
                let waited = self.log.admitted(permit.lane());
                shared.metrics.waited(permit.lane(), waited);
                Ok(slot(shared, permit, alone))
            }
            Some(Err(stopped)) => {
                self.log.gave_up(&stopped);
                Err(unavailable("The worker has stopped"))
            }
            None => {
                let reason = Reason::QueueTimeout;
                self.log.gave_up(&reason);
                let refused = Refused {
                    class: alone.map(|alone| alone.class()).unwrap_or_default(),
                    reason,
                    ahead: 0,
                };
                Err(judged(shared, &refused, self.log.named()))
            }
        }
    }

    /// Its position, from 1, approximately, and the lane in which it is counted.
    pub(super) fn place(&self) -> (u64, Lane) {
        match &self.at {
            At::Gate(ticket, _) => place(ticket),
            At::Class(held) => (held.position(), Lane::Unspecified),
            At::Over => (1, Lane::Unspecified),
        }
    }

    /// It gives its place up for a reason of its own.
    pub(super) fn gave_up(mut self, reason: &dyn std::fmt::Display) {
        self.log.gave_up(reason);
    }
}

fn slot(shared: &Shared, permit: OwnedPermit, alone: Option<GateAlone>) -> Slot {
    let slot = Slot::new(permit, Arc::clone(&shared.drain));
    match alone {
        Some(alone) => slot.followed(alone.entered()),
        None => slot,
    }
}

fn place(ticket: &OwnedTicket) -> (u64, Lane) {
    let lane = ticket.lane().unwrap_or(Lane::Unspecified);
    (ticket.position().max(1), lane)
}
