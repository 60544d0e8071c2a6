//! Room that is kept for classes that lately needed it.
//!
//! An order is not enough. Nobody who runs is taken out, so that a class which stays
//! within its share finds an engine that another has filled: it is next, and still waits
//! until enough of what runs has ended. So from a class that has its share, room is kept
//! for each of those that have less, as much as they lately needed:
//!
//! ```text
//! share  = weight / sum of weights × all there is
//! kept   = sum of max(0, min(most, share) - inside)     over the others
//! enters = inside < share, or it fits beside what is kept
//! ```
//!
//! `most` is the greatest of what a class had inside and held at once over the last
//! period, 30 to 40 s, and nothing once it has asked for nothing for 10 to 20 s. Only
//! classes that lately needed room have a share, and only those whose priority is at least
//! that of the one that asks: nothing is kept for lower ones.
//! While a class holds requests nothing is kept for it: who gets the next room is a
//! matter of [order](crate::fairness), by which it goes first or has had its turns. All
//! of this holds for places under the limit and for tokens of memory, each by itself.
//!
//! So nobody waits for this who has less than its share, an engine that one class alone
//! needs is all its own, and what is kept is room that was used a moment ago. It is a
//! shield and no wall: a third class that comes back to its own share takes what is free,
//! whoever it was kept for. This is virtual partitioning: nominal shares, and trunk
//! reservation against those who are beyond theirs (Borst, Mitra, *Virtual partitioning
//! for robust resource sharing*, 1998).

use std::time::Duration;

use crate::class::{Class, ClassId};
use crate::turns::Turns;

/// The period unless set otherwise.
pub const PERIOD: Duration = Duration::from_secs(40);

/// The parts that a period is looked at in.
const PARTS: usize = 4;

/// A class that asked for nothing for so many parts, or one less, needs nothing.
const SILENT: usize = 2;

/// Room in an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Places under the limit.
    pub requests: u64,
    /// Tokens of memory.
    pub tokens: u64,
}

impl Room {
    /// What one request takes that needs so many tokens.
    #[must_use]
    pub fn of_one(tokens: u64) -> Self {
        Room {
            requests: 1,
            tokens,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Room) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// What is left of it, at least nothing.
    #[must_use]
    pub fn minus(self, other: Room) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn with(self, other: Room, of: impl Fn(u64, u64) -> u64) -> Self {
        Room {
            requests: of(self.requests, other.requests),
            tokens: of(self.tokens, other.tokens),
        }
    }
}

/// What a request takes inside. Give it back when it ends.
#[derive(Debug)]
#[must_use = "what it takes is free only once it is given back"]
pub struct Taken {
    class: ClassId,
    room: Room,
    /// Of which set of classes that class is.
    set: u64,
}

/// Knows what each class has, and how much it lately needed.
#[derive(Debug)]
pub struct Kept {
    turns: Turns,
    set: u64,
    flows: Vec<Flow>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    inside: Room,
    held: Room,
    /// The most of both together in each part of the period, the newest first.
    most: [Room; PARTS],
    /// The most of these, unless it has been silent.
    lately: Room,
    /// Parts that are over since it asked for room.
    silent: usize,
}

impl Flow {
    fn look(&mut self) {
        self.needs(Room::default());
    }

    /// What it has, and so much more, was needed.
    fn needs(&mut self, more: Room) {
        let all = self.inside.plus(self.held).plus(more);
        self.most[0] = self.most[0].with(all, u64::max);
        self.lately = self.lately.with(all, u64::max);
    }

    fn turn(&mut self) {
        self.most.rotate_right(1);
        self.most[0] = Room::default();
        self.silent += 1;
        let all = self.most.into_iter().filter(|_| self.silent < SILENT);
        self.lately = all.fold(Room::default(), |a, b| a.with(b, u64::max));
        self.look();
    }
}

impl Kept {
    /// Nobody needed any yet. With a period of 0 none is ever kept.
    #[must_use]
    pub fn new(classes: usize, period: Duration) -> Self {
        Kept {
            turns: Turns::new(period / PARTS as u32, Duration::ZERO),
            set: 0,
            flows: vec![Flow::default(); classes],
        }
    }

    /// Other classes, of which none is known to need any: who is inside already counts
    /// for none of them.
    pub fn reset(&mut self, classes: usize, period: Duration) {
        self.turns = Turns::new(period / PARTS as u32, Duration::ZERO);
        self.set += 1;
        self.flows = vec![Flow::default(); classes];
    }

    /// It is that late now. What was needed a period ago is forgotten.
    pub fn turn(&mut self, now: Duration) {
        for _ in 0..self.turns.over(now).min(PARTS) {
            self.flows.iter_mut().for_each(Flow::turn);
        }
    }

    /// A class holds so much from now on.
    pub fn holds(&mut self, class: ClassId, held: Room) {
        if let Some(flow) = self.flows.get_mut(class.0) {
            if held.requests > flow.held.requests {
                flow.silent = 0;
            }
            flow.held = held;
            flow.look();
        }
    }

    /// A request of a class found no room, and is not held.
    pub fn misses(&mut self, class: ClassId, room: Room) {
        if let Some(flow) = self.flows.get_mut(class.0) {
            flow.silent = 0;
            flow.needs(room);
        }
    }

    /// A request of a class entered, and takes this much.
    pub fn enters(&mut self, class: ClassId, room: Room) -> Taken {
        if let Some(flow) = self.flows.get_mut(class.0) {
            flow.silent = 0;
            flow.inside = flow.inside.plus(room);
            flow.look();
        }
        let set = self.set;
        Taken { class, room, set }
    }

    /// It is not inside any more.
    pub fn leaves(&mut self, taken: Taken) {
        let of_this = taken.set == self.set;
        if let Some(flow) = self.flows.get_mut(taken.class.0).filter(|_| of_this) {
            flow.inside = flow.inside.minus(taken.room);
        }
    }

    /// Whether a class holds requests.
    #[must_use]
    pub fn is_held(&self, class: ClassId) -> bool {
        let flow = self.flows.get(class.0);
        flow.is_some_and(|flow| flow.held.requests > 0)
    }

    /// Whether any other class lately needed room; if none did, nothing is withheld.
    #[must_use]
    pub fn is_needed_beside(&self, class: ClassId) -> bool {
        let mut others = self.flows.iter().enumerate();
        !self.turns.period().is_zero()
            && others.any(|(at, flow)| at != class.0 && flow.lately.requests > 0)
    }

    /// What is withheld from a class, of `all` that there is.
    #[must_use]
    pub fn withheld_from(&self, class: ClassId, classes: &[Class], all: Room) -> Room {
        if !self.is_needed_beside(class) {
            return Room::default();
        }
        Room {
            requests: self.withheld(class, classes, all.requests, |room| room.requests),
            tokens: self.withheld(class, classes, all.tokens, |room| room.tokens),
        }
    }

    /// The same of one of the two.
    fn withheld(&self, asks: ClassId, classes: &[Class], all: u64, what: fn(Room) -> u64) -> u64 {
        let Some((own, of_own)) = self.flows.get(asks.0).zip(classes.get(asks.0)) else {
            return 0;
        };
        let others = || {
            let each = self.flows.iter().zip(classes).enumerate();
            each.filter(|(at, (flow, class))| {
                *at != asks.0 && class.priority >= of_own.priority && what(flow.lately) > 0
            })
        };
        let weights = of_own.weight + others().map(|(_, (_, of))| of.weight).sum::<f64>();
        let share = |of: &Class| (all as f64 * of.weight / weights) as u64;
        // One that has nothing has less than its share, however small that is.
        if what(own.inside) < share(of_own).max(1) {
            return 0;
        }
        let keeps = others().filter(|(_, (flow, _))| flow.held.requests == 0);
        keeps
            .map(|(_, (flow, of))| {
                let needs = what(flow.lately).min(share(of));
                needs.saturating_sub(what(flow.inside))
            })
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
