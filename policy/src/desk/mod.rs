//! The desk: where requests are held before the gate, and decided anew until
//! each has gone in, or away.
//!
//! With a policy on, the gate's own queue stays empty: the desk says who is next
//! ([`fairness`](crate::fairness)) and asks the gate to let it in if there is
//! room. It is told of everything that may change its mind, with the time, and
//! says through [`Moves`] what became of whom:
//!
//! | told | it decides about |
//! | --- | --- |
//! | a request [arrives](Desk::arrives) | that one, then who is next |
//! | a first token, an end, [room](Desk::settle) | who is next, until one has to wait |
//! | a new [state](Desk::observe) | who is next, then [all](Desk::decide_anew) that are held |
//! | the [time](Desk::next_timeout) is up | whose class holds it no longer |
//!
//! Nobody overtakes: as soon as the one whose turn it is has to wait, all do. Only a
//! request that waits for a rank of its own holds back its class alone, and one whose
//! class has its share, and waits because room is [kept](crate::kept) for others, holds
//! back its class and those of lower priority.
//!
//! Without a fresh state, and in [`Mode::Observe`], everything is left to the
//! gate, which then queues by itself; what was held is handed over to it, and leaves
//! when its class says ([`Alone::leaves`]).

mod before_many;
mod moves;
mod queues;
mod watching;

use std::time::Duration;

pub use moves::{Alone, Entry, Move, Moves, Outcome};
pub use queues::Place;

use crate::class::ClassId;
use crate::decision::Decision;
use crate::fairness::Fairness;
use crate::judge::{EngineSize, Judge};
use crate::profile::Profile;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::shadow::{Mode, Tally};
use crate::throughput::Throughput;
use queues::{Held, Queues};

/// Holds requests of type `T`.
#[derive(Debug)]
pub struct Desk<T> {
    judge: Judge,
    mode: Mode,
    tally: Tally,
    queues: Queues<T>,
    fairness: Fairness,
    throughput: Throughput,
}

impl<T> Desk<T> {
    /// Nobody is held, and nothing is known of the engine but its size.
    #[must_use]
    pub fn new(now: Duration, settings: Settings, size: EngineSize, mode: Mode) -> Self {
        let classes = settings.classes.all().len();
        Desk {
            mode,
            tally: Tally::new(classes),
            queues: Queues::new(classes),
            fairness: Fairness::new(settings.classes.all(), settings.floor, settings.credit),
            throughput: Throughput::new(now),
            judge: Judge::new(settings, size),
        }
    }

    /// A request arrives. What becomes of it is among the moves, unless it is held:
    /// then this is its place.
    pub fn arrives<P>(
        &mut self,
        now: Duration,
        profile: Profile,
        who: T,
        gate: &mut impl FnMut(&T) -> Entry<P>,
        moves: &mut Moves<T, P>,
    ) -> Option<Place> {
        let class = profile.class;
        let ahead = self.ahead(class, self.queues.len(class));
        let concurrency = self.judge.concurrency(ahead);
        let decision = self.first_decision(now, &profile, ahead);
        let decision = self.limited(class, ahead, decision);
        let held = Held {
            who,
            profile,
            arrived: now,
            concurrency,
            paid: false,
        };
        match self.mode.carried_out(decision) {
            Decision::Refuse(reason) => {
                self.tally.count(class, decision);
                if reason.wants_room() {
                    self.judge.misses(&held.profile);
                }
                moves.push((held.who, Outcome::Refused(reason)));
                None
            }
            Decision::GateAlone => {
                self.tally.count(class, decision);
                moves.push(alone(held, None));
                None
            }
            Decision::Admit | Decision::Wait(_) => {
                let place = self.queues.push(held);
                self.mark(class);
                self.let_in_who_is_next(now, gate, moves);
                let place = self.stays(now, place, decision, moves);
                self.holds(now);
                place
            }
        }
    }

    fn first_decision(&mut self, now: Duration, profile: &Profile, ahead: u64) -> Decision {
        match self.judge.arrives(now, profile.class) {
            Ok(()) => self.judge.decide(now, profile, 0.0, ahead),
            Err(reason) => Decision::Refuse(reason),
        }
    }

    /// Lets in who is next, until one has to wait; then sends away whose time is up.
    pub fn settle<P>(
        &mut self,
        now: Duration,
        gate: &mut impl FnMut(&T) -> Entry<P>,
        moves: &mut Moves<T, P>,
    ) {
        self.let_in_who_is_next(now, gate, moves);
        self.time_out(now, moves);
        self.holds(now);
    }

    fn let_in_who_is_next<P>(
        &mut self,
        now: Duration,
        gate: &mut impl FnMut(&T) -> Entry<P>,
        moves: &mut Moves<T, P>,
    ) {
        let mut blocked = Vec::new();
        while let Some((place, class)) = self.next(&blocked) {
            let Some(held) = self.queues.get(place) else {
                break;
            };
            match self
                .judge
                .decide(now, &held.profile, held.waited_ms(now), 0)
            {
                Decision::Refuse(reason) => self.refuse(now, place, reason, moves),
                Decision::Wait(_) if self.judge.has_its_share(class) => {
                    self.wait_for_others(class, &mut blocked);
                }
                Decision::Wait(_) => break,
                Decision::GateAlone => self.leave_to_gate(place, moves),
                Decision::Admit => match gate(&held.who) {
                    Entry::In(permit) => self.let_in(now, place, permit, moves),
                    Entry::Full => break,
                    Entry::RankFull => blocked.push(class),
                },
            }
        }
    }

    /// A class that has its share waits, and holds up nobody but those of lower priority.
    fn wait_for_others(&self, class: ClassId, blocked: &mut Vec<ClassId>) {
        let classes = self.judge.settings().classes.all();
        let priority = classes.get(class.0).map_or(0, |class| class.priority);
        let lower = classes.iter().enumerate();
        let lower = lower.filter(|(_, of)| of.priority < priority);
        blocked.extend(lower.map(|(at, _)| ClassId(at)));
        blocked.push(class);
    }

    /// The client of a held request left. `false` if it is not held any more.
    pub fn leaves(&mut self, now: Duration, place: Place) -> bool {
        let Some(held) = self.take(place) else {
            return false;
        };
        let (class, waited) = (held.profile.class, held.waited_ms(now));
        self.tally.left(class);
        self.judge.gives_up(class, waited, held.concurrency);
        self.holds(now);
        true
    }

    /// Whoever waits for the request that is held here.
    #[must_use]
    pub fn who_mut(&mut self, place: Place) -> Option<&mut T> {
        self.queues.who_mut(place)
    }

    /// The position of a held request among all, from 1, approximately: others come
    /// and go. `None` if it is not held any more.
    #[must_use]
    pub fn position(&self, place: Place) -> Option<u64> {
        let (class, before) = self.queues.before(place)?;
        Some(self.ahead(class, before) + 1)
    }

    /// Hands everyone who is held over to the gate, and says how many those are.
    pub fn leave_all_to_gate<P>(&mut self, moves: &mut Moves<T, P>) -> u64 {
        let all = self.queues.total();
        for class in self.queues.classes() {
            while let Some((place, _)) = self.queues.front(class) {
                self.leave_to_gate(place, moves);
            }
        }
        all
    }

    /// When the first of the held has to be sent away, if any is held.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let classes = self.queues.classes();
        classes.filter_map(|class| self.timeout_of(class)).min()
    }

    /// Whose turn it is, of the classes that are not blocked.
    fn next(&self, blocked: &[ClassId]) -> Option<(Place, ClassId)> {
        let classes = self.judge.settings().classes.all();
        let may = |class: ClassId| !blocked.contains(&class);
        let class = self.fairness.next(classes, may)?;
        Some((self.queues.front(class)?.0, class))
    }

    fn let_in<P>(&mut self, now: Duration, place: Place, permit: P, moves: &mut Moves<T, P>) {
        let Some(held) = self.queues.get(place) else {
            return;
        };
        let settings = self.judge.settings();
        let cost = settings.fair_by.cost(held.profile.cost);
        let class = held.profile.class;
        // While it still counts as waiting: a class that has nobody left is charged, too.
        if !held.paid {
            self.fairness
                .admitted(class, settings.classes.get(class), cost);
        }
        let Some(held) = self.take(place) else {
            return;
        };
        self.tally.count(class, Decision::Admit);
        let waited = held.waited_ms(now);
        let inside = self
            .judge
            .enters(now, held.profile, waited, held.concurrency);
        moves.push((held.who, Outcome::Enters(permit, inside)));
    }

    fn refuse<P>(&mut self, now: Duration, place: Place, why: Reason, moves: &mut Moves<T, P>) {
        let Some(held) = self.take(place) else {
            return;
        };
        let class = held.profile.class;
        self.tally.count(class, Decision::Refuse(why));
        let waited = held.waited_ms(now);
        self.judge.gives_up(class, waited, held.concurrency);
        moves.push((held.who, Outcome::Refused(why)));
    }

    fn leave_to_gate<P>(&mut self, place: Place, moves: &mut Moves<T, P>) {
        if let Some(held) = self.take(place) {
            let class = held.profile.class;
            self.tally.count(class, Decision::GateAlone);
            let longest = self.judge.settings().classes.get(class).queue_timeout;
            let leaves = held.arrived.saturating_add(longest);
            moves.push(alone(held, Some(leaves)));
        }
    }

    /// Decides anew about everyone who is held, and sends the hopeless away.
    fn decide_all<P>(&mut self, now: Duration, moves: &mut Moves<T, P>) {
        for class in self.queues.classes() {
            let mut position = 0;
            let mut next = self.queues.front(class).map(|(place, _)| place);
            while let Some(place) = next {
                next = self.queues.after(place);
                let ahead = self.ahead(class, position);
                let Some(held) = self.queues.get(place) else {
                    break;
                };
                let waited = held.waited_ms(now);
                match self.judge.decide(now, &held.profile, waited, ahead) {
                    Decision::Refuse(reason) => self.refuse(now, place, reason, moves),
                    Decision::GateAlone => self.leave_to_gate(place, moves),
                    Decision::Admit | Decision::Wait(_) => position += 1,
                }
            }
        }
    }

    fn time_out<P>(&mut self, now: Duration, moves: &mut Moves<T, P>) {
        for class in self.queues.classes() {
            while self.timeout_of(class).is_some_and(|at| at <= now)
                && let Some((place, _)) = self.queues.front(class)
            {
                self.refuse(now, place, Reason::QueueTimeout, moves);
            }
        }
    }

    fn timeout_of(&self, class: ClassId) -> Option<Duration> {
        let (_, first) = self.queues.front(class)?;
        let longest = self.judge.settings().classes.get(class).queue_timeout;
        Some(first.arrived.saturating_add(longest))
    }

    /// Waiting is refused to a class that holds none, and to a request that as many
    /// go before as may be held. Who goes after it does not count: no class fills
    /// the room of another.
    fn limited(&self, class: ClassId, ahead: u64, decision: Decision) -> Decision {
        let Decision::Wait(reason) = decision else {
            return decision;
        };
        let full = self.throughput.most_held();
        if self.holds_none(class) {
            Decision::Refuse(reason)
        } else if full.is_some_and(|most| ahead >= most) {
            Decision::Refuse(Reason::QueueFull)
        } else {
            decision
        }
    }

    fn holds_none(&self, class: ClassId) -> bool {
        let class = self.judge.settings().classes.get(class);
        class.queue_timeout.is_zero()
    }

    /// The place of one that has just arrived, if it is still held. Where nothing
    /// but the gate is in the way, a class that holds none does not hold it.
    fn stays<P>(
        &mut self,
        now: Duration,
        place: Place,
        decision: Decision,
        moves: &mut Moves<T, P>,
    ) -> Option<Place> {
        let class = self.queues.get(place)?.profile.class;
        if self.holds_none(class) {
            self.refuse(now, place, Reason::ConcurrencyLimit, moves);
            return None;
        }
        self.tally.count(
            class,
            match decision {
                Decision::Wait(_) => decision,
                _ => Decision::Wait(Reason::ConcurrencyLimit),
            },
        );
        Some(place)
    }

    /// How many of those that are held go before one that has `position` of its own
    /// class before it: all of higher priorities, and of its own priority what is
    /// admitted until it is its turn, at most all.
    fn ahead(&self, class: ClassId, position: u64) -> u64 {
        let classes = &self.judge.settings().classes;
        let own = classes.get(class);
        let (mut higher, mut beside, mut weights) = (0, 0, own.weight);
        for other in self.queues.classes().filter(|other| *other != class) {
            let (held, of) = (self.queues.len(other), classes.get(other));
            if held > 0 && of.priority > own.priority {
                higher += held;
            } else if held > 0 && of.priority == own.priority {
                beside += held;
                weights += of.weight;
            }
        }
        let turns = (position as f64 * weights / own.weight) as u64;
        higher + turns.clamp(position, position + beside)
    }

    /// Whoever is held here goes. All that go do so by this, so that those who share
    /// hear of it.
    fn take(&mut self, place: Place) -> Option<Held<T>> {
        let held = self.queues.remove(place)?;
        self.mark(held.profile.class);
        Some(held)
    }

    /// A class holds requests now, or none: tells whoever shares between them. Called
    /// whenever one of it has come or gone.
    fn mark(&mut self, class: ClassId) {
        let of = self.judge.settings().classes.get(class);
        let waits = self.queues.len(class) > 0;
        self.fairness.waits(class, of, waits);
        self.judge.holds(class, self.queues.room(class));
    }

    fn holds(&mut self, now: Duration) {
        self.throughput.holds(now, self.queues.total() > 0);
    }
}

fn alone<T, P>(held: Held<T>, leaves: Option<Duration>) -> Move<T, P> {
    let alone = Alone {
        profile: held.profile,
        arrived: held.arrived,
        concurrency: held.concurrency,
        leaves,
    };
    (held.who, Outcome::GateAlone(alone))
}

#[cfg(test)]
mod tests;
