//! The core's pieces one by one, for models that are smaller and reach deeper
//! than those of a whole gate. There is nothing of it outside of such builds.

#![allow(missing_docs)]

use std::task::Waker;

use crate::balance;
use crate::budget::{self, Flags};
use crate::handle::Gate;
use crate::hold::Hold;
use crate::sync::{Arc, Ordering, fence};
use crate::word::step::{Relaxed, Who};
use crate::word::{Delta, I, Kind};
use crate::{chunks, holders, listeners, publish, slots, turn, waker};

/// What the thread of a gate with [`Dispatch::Thread`](crate::Dispatch) runs. Such
/// builds start none, so that what a model sets up is not part of the race.
pub fn dispatcher(gate: &Gate) -> impl FnOnce() + Send + 'static {
    let shared = Arc::clone(&gate.shared);
    move || shared.dispatch()
}

/// A request that entered although there are flags.
pub struct PastFlags(Hold);

/// As a newcomer does who has found that it passes over nobody.
pub fn enter_looking(gate: &Gate, rank: u32) -> Option<PastFlags> {
    let lane = gate.shared.lane_index(Some(rank));
    gate.shared.enter_looking(lane).ok().map(PastFlags)
}

/// As a newcomer of no rank does first: whether one step lets it in.
pub fn enters_at_once(gate: &Gate) -> bool {
    gate.shared.enter_at_once(None).is_some()
}

/// As one of no rank does who looked before anybody was queued.
pub fn enter_entitled(gate: &Gate) -> PastFlags {
    let hold = gate.shared.enter_as(0, Who::Entitled, |_| ());
    PastFlags(hold.expect("there is room"))
}

pub fn leave(gate: &Gate, entered: PastFlags) {
    gate.shared.give_back(entered.0);
}

/// Where a waiter leaves its waker.
pub struct WakerCell(waker::WakerCell);

impl WakerCell {
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        WakerCell(waker::WakerCell::new())
    }

    /// As a waiter does: true if it was told to look again at once.
    pub fn register(&self, waker: &Waker) -> bool {
        self.0.register(waker.clone()).1
    }

    pub fn take(&self) -> Option<Waker> {
        self.0.take()
    }
}

/// Who runs the turn, and the bell.
pub struct Turn(turn::Turn);

impl Turn {
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        Turn(turn::Turn::new())
    }

    pub fn ring(&self) -> bool {
        self.0.ring()
    }

    pub fn try_start(&self) -> bool {
        self.0.try_start()
    }

    pub fn try_start_unasked(&self) -> bool {
        self.0.try_start_unasked()
    }

    pub fn try_end(&self) -> bool {
        self.0.try_end()
    }

    pub fn hand_over(&self) {
        self.0.hand_over();
    }

    pub fn bell(&self) -> u32 {
        self.0.bell()
    }

    pub fn sleep(&self, seen: u32) {
        self.0.sleep(seen);
    }

    pub fn wake(&self) {
        self.0.wake();
    }

    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }
}

/// Handles and leases of one gate.
pub struct Holders(holders::Holders);

impl Holders {
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        Holders(holders::Holders::new())
    }

    pub fn add_handle(&self) {
        self.0.add_handle();
    }

    pub fn drop_handle(&self) -> bool {
        self.0.drop_handle()
    }

    pub fn lease(&self) {
        self.0.stripe().take();
    }

    pub fn give_back(&self) {
        self.0.stripe().give_back();
    }

    pub fn no_lease_is_out(&self) -> bool {
        self.0.no_lease_is_out()
    }

    pub fn are_gone(&self) -> bool {
        self.0.are_gone()
    }
}

/// The queue's slots.
pub struct Slots(chunks::Slots);

/// A queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(slots::Place);

/// How a request left its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Queued,
    /// Where its capacity is, and whether the count is its leaver's to settle.
    Offered {
        share: u32,
        settle: bool,
    },
}

impl Place {
    pub fn slot(self) -> u32 {
        self.0.slot
    }

    pub fn age(self) -> u64 {
        self.0.age
    }
}

fn offered(offer: slots::Offer) -> Left {
    Left::Offered {
        share: offer.share,
        settle: offer.settle,
    }
}

impl Slots {
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        Slots(chunks::Slots::new())
    }

    pub fn acquire(&self) -> u32 {
        self.0.acquire()
    }

    pub fn release(&self, slot: u32) {
        self.0.release(slot);
    }

    /// How often slots were made.
    pub fn chunks(&self) -> usize {
        self.0.entries_from(0).count()
    }

    pub fn occupy(&self, slot: u32, lane: u32) -> Place {
        Place(self.0.occupy(slot, lane))
    }

    pub fn next_age(&self) -> u64 {
        self.0.next_age()
    }

    /// Age and lane of everyone who came since the last time.
    pub fn drain(&self) -> Vec<(u64, u32)> {
        let mut seen = Vec::new();
        self.0.drain_fresh(|_, age, lane| seen.push((age, lane)));
        seen
    }

    pub fn any_fresh(&self) -> bool {
        self.0.any_fresh()
    }

    pub fn offer(&self, place: Place, share: u32) -> bool {
        self.0.offer(place.0.slot, place.0.age, share)
    }

    pub fn let_go(&self, place: Place) -> bool {
        self.0.let_go(place.0.slot)
    }

    pub fn take(&self, place: Place) -> Option<Left> {
        self.0.take(place.0).map(offered)
    }

    pub fn leave(&self, place: Place) -> Left {
        match self.0.leave(place.0) {
            slots::Left::Queued => Left::Queued,
            slots::Left::Offered(offer) => offered(offer),
        }
    }

    pub fn register(&self, place: Place, waker: &Waker) -> bool {
        let cell = &self.0.slot(place.0.slot).waker;
        cell.register(waker.clone()).1
    }

    pub fn take_waker(&self, place: Place) -> Option<Waker> {
        self.0.slot(place.0.slot).waker.take()
    }
}

/// Those who listen for room.
pub struct Listeners(listeners::Listeners);

impl Listeners {
    #[expect(clippy::new_without_default)]
    pub fn new() -> Self {
        Listeners(listeners::Listeners::new())
    }

    pub fn events(&self) -> u64 {
        self.0.events()
    }

    pub fn add(&self, waker: &Waker) {
        self.0.add(waker.clone());
    }

    pub fn fire(&self) {
        self.0.fire();
    }
}

/// A value that appears once and stays.
pub struct Published<T>(publish::Published<T>);

impl<T> Published<T> {
    pub fn empty() -> Self {
        Published(publish::Published::empty())
    }

    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub fn get_or_publish(&self, value: T) -> &T {
        self.0.get_or_publish(Box::new(value))
    }
}

/// A slice that appears once and stays.
pub struct PublishedSlice<T>(publish::PublishedSlice<T>);

impl<T> PublishedSlice<T> {
    pub fn empty() -> Self {
        PublishedSlice(publish::PublishedSlice::empty())
    }

    pub fn get(&self) -> &[T] {
        self.0.get()
    }

    pub fn publish(&self, items: Box<[T]>) {
        self.0.publish(items);
    }
}

/// The worker's capacity over its shares.
pub struct Budget(budget::Budget);

impl Budget {
    /// Of so many ranks, with these limits each.
    pub fn new(ranks: usize, running: u32, waiting: u32) -> Self {
        let budget = budget::Budget::new(running, waiting);
        if ranks > 1 {
            let others = balance::new_shares(ranks - 1, running, waiting);
            budget.split(others, running, waiting);
            budget.clear_everywhere(I);
        }
        Budget(budget)
    }

    pub fn enter_ranked(&self, home: usize) -> bool {
        let told = &mut |_: Flags| ();
        self.0.share(home).enter(Who::Newcomer).is_ok()
            || self.0.enter_ranked(home, Who::Newcomer, told).is_ok()
    }

    /// The share where it should give back.
    pub fn enter_unranked(&self, hint: usize) -> Option<usize> {
        let told = &mut |_: Flags| ();
        self.0.enter_unranked(hint, Who::Newcomer, told).ok()
    }

    /// A ranked request that still waits ends.
    pub fn leave_ranked(&self, home: usize) {
        let both = Delta::ranked(Kind::Running).and(Delta::ranked(Kind::Waiting));
        self.0.share(home).add(both);
    }

    /// An unranked request gets its first token.
    pub fn first_token(&self, hint: usize) {
        self.0.put(Kind::Waiting, hint);
    }

    /// An unranked request that does not wait any more ends.
    pub fn leave_unranked(&self, hint: usize) {
        self.0.put(Kind::Running, hint);
    }

    pub fn none_running_free(&self) -> bool {
        self.0.empty() == Some(Kind::Running)
    }

    /// The worker's room, running and waiting; negative while more runs than may.
    pub fn room(&self) -> (i64, i64) {
        (self.0.room(Kind::Running), self.0.room(Kind::Waiting))
    }

    /// As the turn does: whether nothing is owed.
    pub fn balance(&self) -> bool {
        self.0.balance().is_none()
    }

    /// As an arrival does once it is marked: whether there was room already.
    pub fn announce(&self) -> bool {
        self.0.announce(None).is_none()
    }

    /// As the turn does before it looks at the marks.
    pub fn before_look(&self) {
        fence(Ordering::SeqCst);
    }

    /// As the turn does after it: true if it must look again.
    pub fn relax(&self, somebody_waits: bool) -> bool {
        let wanted = if somebody_waits { I } else { 0 };
        let mut again = false;
        for share in self.0.shares() {
            again |= matches!(share.relax(wanted), Relaxed::Touched(_));
        }
        again
    }

    /// As the turn does.
    pub fn resize(&self, running: u32, waiting: u32) {
        self.0.resize(running, waiting);
    }
}
