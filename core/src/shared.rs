//! What the handles of one gate share, and the steps of a request through it.

use std::task::{Poll, Waker};

use crossbeam_utils::CachePadded;

use crate::budget::{Budget, Flags, Lack};
use crate::counters::{Counters, Event, stripe};
use crate::error::{Lane, Rejection, Stopped};
use crate::hold::{Hold, Source};
use crate::limits::{LimitError, Limits, Settings};
use crate::listeners::Listeners;
use crate::lists::Lists;
use crate::publish::Published;
use crate::queue::{QueueWord, TotalWord};
use crate::reached::Reached;
use crate::share::LaneState;
use crate::slots::{Left, Offer, Place, Slots};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, UnsafeCell};
use crate::turn::Turn;
use crate::word::step::Who;
use crate::word::{Delta, I, Kind, L, N};

/// Who drains the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dispatch {
    /// The dispatcher thread alone.
    Thread,
    /// A thread that frees capacity runs a bounded turn itself when nobody else
    /// does; the dispatcher thread does what is left.
    #[default]
    Assisted,
    /// Nobody but [`Gate::settle`](crate::Gate::settle): for tests that choose when.
    #[doc(hidden)]
    Manual,
}

impl Dispatch {
    pub(crate) fn has_thread(self) -> bool {
        match self {
            // Under loom, models start the thread when the race may begin, and
            // assistants leave nothing to one.
            Dispatch::Thread | Dispatch::Assisted => !cfg!(tidegate_loom),
            Dispatch::Manual => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) budget: Budget,
    pub(crate) unspecified: CachePadded<LaneState>,
    pub(crate) ranks: Published<Ranks>,
    pub(crate) total: CachePadded<TotalWord>,
    pub(crate) slots: CachePadded<Slots>,
    pub(crate) turn: CachePadded<Turn>,
    pub(crate) dispatch: Dispatch,
    pub(crate) lists: UnsafeCell<Lists>,
    pub(crate) config: Mutex<Config>,
    pub(crate) stopped: AtomicBool,
    pub(crate) listeners: CachePadded<Listeners>,
    /// Gates that are left; the dispatcher thread is none of them.
    pub(crate) handles: CachePadded<AtomicUsize>,
}

// SAFETY: `lists` is the turn's alone; everything else is Sync.
unsafe impl Sync for Shared {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Shared {}

/// The reported ranks, in ascending order, and their lanes.
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) ids: Vec<u32>,
    lanes: Vec<LaneState>,
}

/// What was set and what was reported; the turn applies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    pub(crate) max_num_seqs: Option<u32>,
    pub(crate) limits: Limits,
}

/// What becomes of a request that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Admitted(Hold),
    Queued(Place),
}

pub(crate) fn lane_state(name: Lane, queue_limit: u32) -> LaneState {
    let queue = QueueWord::new(queue_limit);
    LaneState {
        name,
        queue,
        counters: Counters::new(),
    }
}

impl Ranks {
    pub(crate) fn new(ids: Vec<u32>, queue_limit: u32) -> Self {
        let lanes = ids
            .iter()
            .map(|id| lane_state(Lane::Rank(*id), queue_limit))
            .collect();
        Ranks { ids, lanes }
    }
}

impl Shared {
    pub(crate) fn new(settings: Settings, dispatch: Dispatch) -> Result<Self, LimitError> {
        let limits = settings.resolve(None)?;
        let queue = limits.request_queue_limit;
        Ok(Shared {
            budget: Budget::new(
                limits.engine_request_limit,
                limits.engine_request_waiting_limit,
            ),
            unspecified: CachePadded::new(lane_state(Lane::Unspecified, 0)),
            ranks: Published::empty(),
            total: CachePadded::new(TotalWord::new(queue.into())),
            slots: CachePadded::new(Slots::new()),
            turn: CachePadded::new(Turn::new()),
            dispatch,
            lists: UnsafeCell::new(Lists::new(1)),
            config: Mutex::new(Config {
                settings,
                max_num_seqs: None,
                limits,
            }),
            stopped: AtomicBool::new(false),
            listeners: CachePadded::new(Listeners::new()),
            handles: CachePadded::new(AtomicUsize::new(1)),
        })
    }

    /// The index of the lane that a request for this rank is accounted in.
    #[inline]
    pub(crate) fn lane_index(&self, rank: Option<u32>) -> u32 {
        let (Some(id), Some(ranks)) = (rank, self.ranks.get()) else {
            return 0;
        };
        // Ranks are nearly always numbered without gaps.
        let guess = id.wrapping_sub(ranks.ids[0]) as usize;
        if ranks.ids.get(guess) == Some(&id) {
            return guess as u32 + 1;
        }
        ranks
            .ids
            .binary_search(&id)
            .map_or(0, |index| index as u32 + 1)
    }

    #[inline]
    pub(crate) fn lane(&self, index: u32) -> &LaneState {
        match index.checked_sub(1) {
            None => &self.unspecified,
            Some(rank) => &self.ranks.get().expect("index of a lane").lanes[rank as usize],
        }
    }

    pub(crate) fn lanes(&self) -> u32 {
        1 + self.ranks.get().map_or(0, |ranks| ranks.ids.len() as u32)
    }

    /// Enters now, or says in which lane and which limit keeps it out.
    #[inline]
    pub(crate) fn enter_now(&self, rank: Option<u32>) -> Result<Hold, (u32, Reached)> {
        let lane = self.lane_index(rank);
        let hold = self.enter(lane).map_err(|reached| (lane, reached))?;
        self.lane(lane).counters.count(Event::AdmittedDirect);
        Ok(hold)
    }

    pub(crate) fn request(&self, rank: Option<u32>) -> Result<Arrival, Rejection> {
        match self.enter_now(rank) {
            Ok(hold) => Ok(Arrival::Admitted(hold)),
            Err((lane, reached)) => self.queue_up(lane, reached),
        }
    }

    #[cold]
    fn queue_up(&self, lane: u32, reached: Reached) -> Result<Arrival, Rejection> {
        if self.is_stopped() {
            return Err(Rejection::Stopped);
        }
        // A look first: a refusal writes nothing that others write.
        self.queue_room(lane)
            .map_err(|full| self.refuse_queue(lane, reached, full))?;
        // The slot before the reservation: it may have to be allocated.
        let slot = self.slots.acquire();
        if let Err(full) = self.reserve(lane) {
            self.slots.release(slot);
            return Err(self.refuse_queue(lane, reached, full));
        }
        let place = self.slots.occupy(slot, lane);
        self.announce(lane, reached);
        Ok(Arrival::Queued(place))
    }

    pub(crate) fn cancelled_on_arrival(&self, rank: Option<u32>) {
        self.lane(self.lane_index(rank))
            .counters
            .count(Event::Cancelled);
    }

    /// Enters, if that passes over nobody.
    #[inline]
    fn enter(&self, lane: u32) -> Result<Hold, Reached> {
        match self.enter_as(lane, Who::Newcomer, |flags| self.after_give_back(flags)) {
            Ok(hold) => Ok(hold),
            Err(Lack::Of(reached)) => Err(reached),
            Err(Lack::Shut) => self.enter_shut(lane),
        }
    }

    /// Enters, for a newcomer or on behalf of a queued request. `told` hears the
    /// flags of what it had to put back on the way.
    #[inline]
    pub(crate) fn enter_as(
        &self,
        lane: u32,
        who: Who,
        mut told: impl FnMut(Flags),
    ) -> Result<Hold, Lack> {
        let share = match lane.checked_sub(1) {
            Some(home) => {
                self.budget.enter_ranked(home as usize, who, &mut told)?;
                home
            }
            None => {
                let hint = stripe() % self.budget.len();
                self.budget.enter_unranked(hint, who, &mut told)? as u32
            }
        };
        Ok(Hold::new(lane, share, Source::Direct))
    }

    /// Which queue is full for this lane, if one is: its own first.
    fn queue_room(&self, lane: u32) -> Result<(), Full> {
        let own = self.lane(lane).queue.read();
        if lane != 0 && own.queued >= own.limit {
            return Err(Full::Own);
        }
        let (queued, limit) = self.total.read();
        if queued >= limit {
            Err(Full::Worker)
        } else {
            Ok(())
        }
    }

    fn reserve(&self, lane: u32) -> Result<(), Full> {
        // The worker's first, and on leaving last: whoever gets the worker's last
        // place finds its lane without the one who left it.
        self.total.reserve().map_err(|_| Full::Worker)?;
        self.lane(lane).queue.reserve(lane != 0).map_err(|_| {
            self.total.leave();
            Full::Own
        })
    }

    fn leave_queue(&self, lane: u32) {
        self.lane(lane).queue.leave();
        self.total.leave();
    }

    /// After queueing: makes sure that whoever frees what this request lacks
    /// knows, and rings if that has been freed since it was found `reached`.
    fn announce(&self, lane: u32, reached: Reached) {
        let home = lane.checked_sub(1).map(|home| home as usize);
        let lacked = self.budget.announce(home);
        if lacked.is_none() || self.is_stopped() {
            self.ring();
        }
        let queue = &self.lane(lane).queue;
        queue.say_lacked(lacked.unwrap_or(reached));
    }

    #[inline]
    pub(crate) fn first_token(&self, hold: Hold) {
        let share = hold.share() as usize;
        let flags = if hold.lane() == 0 {
            self.budget.put(Kind::Waiting, share)
        } else {
            self.budget.share(share).add(Delta::ranked(Kind::Waiting))
        };
        self.after_give_back(flags);
    }

    #[inline]
    pub(crate) fn give_back(&self, hold: Hold) {
        self.after_give_back(self.put_back(hold));
    }

    /// Gives back without telling anybody; the flags say whom.
    #[inline]
    pub(crate) fn put_back(&self, hold: Hold) -> Flags {
        const RUNNING: Delta = Delta::ranked(Kind::Running);
        const BOTH: Delta = RUNNING.and(Delta::ranked(Kind::Waiting));
        let share = hold.share() as usize;
        match (hold.lane(), hold.is_waiting()) {
            (0, true) => self.budget.put_both(share),
            (0, false) => self.budget.put(Kind::Running, share),
            (_, true) => self.budget.share(share).add(BOTH),
            (_, false) => self.budget.share(share).add(RUNNING),
        }
    }

    /// Capacity was given back into a word with these flags.
    #[inline]
    pub(crate) fn after_give_back(&self, flags: Flags) {
        if flags.has(N | I | L) {
            self.tell(flags);
        }
    }

    #[cold]
    fn tell(&self, flags: Flags) {
        if flags.has(N | I) {
            self.ring();
        }
        if flags.has(L) {
            self.fire_room();
        }
    }

    pub(crate) fn fire_room(&self) {
        // Cleared before the event: who listens anew after that sets it again.
        self.budget.clear_everywhere(L);
        self.listeners.fire();
    }

    /// Takes the offer if there is one; else remembers whom to wake.
    pub(crate) fn poll_take(&self, place: Place, waker: &Waker) -> Poll<Result<Hold, Stopped>> {
        if let answer @ Poll::Ready(_) = self.look(place) {
            return answer;
        }
        let (unused, wake) = self.slots.slot(place.slot).waker.register(waker.clone());
        if let Some(unused) = unused {
            if wake { unused.wake() } else { drop(unused) }
        }
        // Only now: an offer made in between found the waker, or is found here.
        self.look(place)
    }

    fn look(&self, place: Place) -> Poll<Result<Hold, Stopped>> {
        if self.is_stopped() {
            return Poll::Ready(Err(Stopped));
        }
        self.take_offer(place)
            .map_or(Poll::Pending, |hold| Poll::Ready(Ok(hold)))
    }

    fn take_offer(&self, place: Place) -> Option<Hold> {
        let Offer { share, settle } = self.slots.take(place)?;
        let lane = self.lane(place.lane);
        lane.counters.count(Event::AdmittedQueue);
        if settle {
            lane.queue.settle_offer();
        }
        Some(Hold::new(place.lane, share, Source::Queue))
    }

    pub(crate) fn cancel(&self, place: Place) {
        let lane = self.lane(place.lane);
        let left = self.slots.leave(place);
        lane.counters.count(Event::Cancelled);
        match left {
            Left::Queued => self.leave_queue(place.lane),
            Left::Offered(Offer { share, settle }) => {
                if settle {
                    lane.queue.settle_offer();
                }
                self.give_back(Hold::new(place.lane, share, Source::Queue));
            }
        }
    }

    pub(crate) fn listen(&self) -> u64 {
        let events = self.listeners.events();
        self.budget.set_everywhere(L);
        events
    }

    /// Ready once capacity may have freed since `seen`, or the gate was stopped.
    pub(crate) fn poll_room(&self, seen: u64, waker: &Waker) -> Poll<()> {
        let came = || self.is_stopped() || self.listeners.events() != seen;
        if came() {
            return Poll::Ready(());
        }
        self.listeners.add(waker.clone());
        if came() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // STOP, Acquire: who was woken for it sees it.
        self.stopped.load(Ordering::Acquire)
    }
}

/// Which queue leaves no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Own,
    Worker,
}
