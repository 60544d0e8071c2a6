//! A request that waits at the gate.

use std::sync::Arc;

use tidegate::{Lane, OwnedPermit, OwnedTicket, Stopped};

use super::answer::{Answer, unavailable};
use super::decision::Queued;
use super::shared::Shared;
use super::slot::Slot;
use crate::page::Decisions;
use crate::server::named::Named;

/// Its ticket, and what the log knows of it. Dropping it is leaving.
#[derive(Debug)]
pub(super) struct Waiting {
    ticket: OwnedTicket,
    log: Queued,
}

impl Waiting {
    /// The request has just queued.
    pub(super) fn new(page: &Arc<Decisions>, ticket: OwnedTicket, named: &Named) -> Self {
        let (position, lane) = place(&ticket);
        let log = Queued::new(page, named, lane, position);
        Self { ticket, log }
    }

    /// Waits for its turn. Cancel safe: it keeps its place.
    pub(super) fn turn(&mut self) -> &mut OwnedTicket {
        &mut self.ticket
    }

    /// Its position in its lane, from 1, approximately.
    pub(super) fn place(&self) -> (u64, Lane) {
        place(&self.ticket)
    }

    /// It no longer waits. `Err` is its answer if the gate was stopped.
    pub(super) fn over(
        self,
        shared: &Shared,
        permit: Result<OwnedPermit, Stopped>,
    ) -> Result<Slot, Box<Answer>> {
        match permit {
            Ok(permit) => {
                let waited = self.log.admitted(permit.lane());
                shared.metrics.waited(permit.lane(), waited);
                Ok(Slot::new(permit, Arc::clone(&shared.drain)))
            }
            Err(stopped) => {
                self.log.gave_up(&stopped);
                Err(unavailable("The worker has stopped"))
            }
        }
    }

    /// It gives its place up for a reason of its own.
    pub(super) fn gave_up(self, reason: &dyn std::fmt::Display) {
        self.log.gave_up(reason);
    }
}

fn place(ticket: &OwnedTicket) -> (u64, Lane) {
    let lane = ticket.lane().unwrap_or(Lane::Unspecified);
    (ticket.position().max(1), lane)
}
