//! Who has announced itself: a value, with time passed in.
//!
//! A member joins by its announcement, and leaves by saying so. One that is silent for as
//! long as it said is *lapsed*: it may have died, or only NATS may not reach it. Whoever
//! asks it decides: it goes once it does not answer either.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::counts::Dropped;
use super::event::{Announcement, Turn};
use super::name::WorkerName;
use super::order::{Delay, Newest};
use super::rate::Rate;

/// The most members that are kept.
pub const MOST_MEMBERS: usize = 16_384;

/// A member.
#[derive(Debug)]
pub struct Known<W> {
    /// What the frontend has of it.
    pub worker: W,
    /// Its newest announcement.
    pub said: Announcement,
    /// Whether it has been silent for too long.
    pub lapsed: bool,
    /// Its load events.
    pub loads: Newest,
    /// Of Dynamo's publisher for it: who, and what came last.
    pub dynamo: Option<Turn>,
    /// How long its words take.
    pub delay: Delay,
    /// How much it may say.
    pub rate: Rate,
    heard: Instant,
}

/// What an announcement comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Somebody new, who may be taken in by [`Directory::join`].
    Joins,
    /// It is where it was before; whatever else it says may be new.
    Stays,
    /// It was started anew where it was before.
    Restarted,
    /// It is to be taken out by [`Directory::remove`], and joins anew elsewhere.
    Moves,
    /// It is to be taken out by [`Directory::remove`].
    Leaves,
    /// It says what is known.
    Nothing,
    /// It changes nothing.
    Dropped(Dropped),
}

/// All members. `W` is what the frontend has of each.
#[derive(Debug)]
pub struct Directory<W> {
    members: HashMap<WorkerName, Known<W>>,
    /// Who is where.
    places: HashMap<String, WorkerName>,
    /// Who is what in Dynamo's events.
    dynamo: HashMap<u64, WorkerName>,
}

impl<W> Default for Directory<W> {
    fn default() -> Self {
        Self {
            members: HashMap::new(),
            places: HashMap::new(),
            dynamo: HashMap::new(),
        }
    }
}

impl<W> Directory<W> {
    /// Takes in an announcement. One of a member that stays is kept.
    pub fn take(&mut self, said: &Announcement, now: Instant) -> Change {
        let Some(known) = self.members.get_mut(&said.worker) else {
            return match self.places.get(&said.url) {
                _ if said.leaving => Change::Nothing,
                // Whoever is silent has left its place to the next.
                Some(other) if !self.members[other].lapsed => Change::Dropped(Dropped::TakenUrl),
                _ if self.members.len() >= MOST_MEMBERS => Change::Dropped(Dropped::TooMany),
                _ => Change::Joins,
            };
        };
        let (before, turn) = (known.said.turn, said.turn);
        // Another start is believed once this one is silent, whatever its number.
        let started = turn.incarnation > before.incarnation
            || (known.lapsed && turn.incarnation != before.incarnation);
        if turn == before {
            return Change::Nothing;
        }
        if turn < before && !started {
            return Change::Dropped(Dropped::Replayed);
        }
        if said.leaving {
            return Change::Leaves;
        }
        if said.url != known.said.url {
            return Change::Moves;
        }
        known.heard = now;
        known.lapsed = false;
        let before = std::mem::replace(&mut known.said, said.clone());
        if before.dynamo_worker_id != said.dynamo_worker_id {
            self.names(said);
        }
        if !started {
            return Change::Stays;
        }
        if let Some(known) = self.members.get_mut(&said.worker) {
            (known.loads, known.delay) = (Newest::default(), Delay::default());
        }
        Change::Restarted
    }

    /// Takes a member in, and gives what was there before, silent.
    pub fn join(&mut self, said: Announcement, worker: W, now: Instant) -> Option<W> {
        let silent = self.places.get(&said.url).cloned();
        let silent = silent.and_then(|silent| self.remove(&silent));
        self.places.insert(said.url.clone(), said.worker.clone());
        self.names(&said);
        let known = Known {
            worker,
            lapsed: false,
            loads: Newest::default(),
            dynamo: None,
            delay: Delay::default(),
            rate: Rate::default(),
            heard: now,
            said,
        };
        self.members.insert(known.said.worker.clone(), known);
        silent
    }

    fn names(&mut self, said: &Announcement) {
        let name = &said.worker;
        self.dynamo.retain(|_, named| named != name);
        if let Some(id) = said.dynamo_worker_id {
            // Of two that say the same, the first has it.
            self.dynamo.entry(id).or_insert_with(|| name.clone());
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &WorkerName) -> Option<W> {
        let known = self.members.remove(name)?;
        self.places.remove(&known.said.url);
        self.dynamo.retain(|_, named| named != name);
        Some(known.worker)
    }

    /// A member that has said its load: it is heard.
    pub fn heard(&mut self, name: &WorkerName, now: Instant) {
        if let Some(known) = self.members.get_mut(name) {
            known.heard = now;
            known.lapsed = false;
        }
    }

    /// A member.
    pub fn get(&mut self, name: &WorkerName) -> Option<&mut Known<W>> {
        self.members.get_mut(name)
    }

    /// The member that Dynamo calls so.
    pub fn by_dynamo(&mut self, id: u64) -> Option<&mut Known<W>> {
        self.members.get_mut(self.dynamo.get(&id)?)
    }

    /// Who is silent for too long, and has lapsed just now.
    pub fn lapse(&mut self, now: Instant) -> Vec<WorkerName> {
        let mut lapsed = Vec::new();
        for (name, known) in &mut self.members {
            let ttl = Duration::from_millis(known.said.ttl_ms);
            if !known.lapsed && now.saturating_duration_since(known.heard) > ttl {
                known.lapsed = true;
                lapsed.push(name.clone());
            }
        }
        lapsed
    }

    /// Nobody could be heard until now: everybody's time begins anew.
    pub fn begin_anew(&mut self, now: Instant) {
        for known in self.members.values_mut() {
            known.heard = now;
        }
    }

    /// Those that have lapsed and of which `gone` is true.
    pub fn lapsed(&self, gone: impl Fn(&W) -> bool) -> Vec<WorkerName> {
        let lapsed = self.members.values().filter(|known| known.lapsed);
        let gone = lapsed.filter(|known| gone(&known.worker));
        gone.map(|known| known.said.worker.clone()).collect()
    }

    /// How many are heard, and how many have lapsed.
    pub fn count(&self) -> (usize, usize) {
        let lapsed = self.members.values().filter(|known| known.lapsed).count();
        (self.members.len() - lapsed, lapsed)
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
