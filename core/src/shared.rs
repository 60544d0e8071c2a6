//! What the handles of one gate share.

use crossbeam_utils::CachePadded;

use crate::budget::Budget;
use crate::chunks::Slots;
use crate::counters::Counters;
use crate::error::Lane;
use crate::holders::Holders;
use crate::limits::{LimitError, Limits, Settings};
use crate::listeners::Listeners;
use crate::lists::Lists;
use crate::publish::Published;
use crate::queue::{QueueWord, TotalWord};
use crate::share::LaneState;
use crate::sync::{AtomicBool, Mutex, Ordering, Tally, UnsafeCell};
use crate::turn::Turn;

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
pub struct Shared {
    pub(crate) budget: Budget,
    pub(crate) unspecified: CachePadded<LaneState>,
    pub(crate) ranks: Published<Ranks>,
    pub(crate) total: CachePadded<TotalWord>,
    pub(crate) slots: CachePadded<Slots>,
    pub(crate) turn: CachePadded<Turn>,
    pub(crate) dispatch: Dispatch,
    /// Whether it counts what happens, for the metrics.
    pub(crate) counting: bool,
    pub(crate) lists: UnsafeCell<Lists>,
    pub(crate) config: Mutex<Config>,
    pub(crate) stopped: AtomicBool,
    pub(crate) listeners: CachePadded<Listeners>,
    pub(crate) holders: Holders,
}

// SAFETY: `lists` is the turn's alone; everything else is Sync.
unsafe impl Sync for Shared {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Shared {}

/// The reported ranks, in ascending order, and their lanes.
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) ids: Vec<u32>,
    first: u32,
    /// Every id between the first and the last was reported: nearly always.
    gapless: bool,
    lanes: Vec<LaneState>,
}

/// What was set and what was reported; the turn applies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    pub(crate) max_num_seqs: Option<u32>,
    pub(crate) limits: Limits,
}

pub(crate) fn lane_state(name: Lane, queue_limit: u32, counting: bool) -> LaneState {
    let queue = QueueWord::new(queue_limit);
    LaneState {
        name,
        queue,
        turns: Tally::new(0),
        counters: Counters::new(counting),
    }
}

impl Ranks {
    /// Of one rank at least, in ascending order.
    pub(crate) fn new(ids: Vec<u32>, queue_limit: u32, counting: bool) -> Self {
        let lanes = ids
            .iter()
            .map(|id| lane_state(Lane::Rank(*id), queue_limit, counting))
            .collect();
        let (first, last) = (ids[0], ids[ids.len() - 1]);
        Ranks {
            first,
            gapless: (last - first) as usize == ids.len() - 1,
            ids,
            lanes,
        }
    }

    /// The place of a rank among all, if it was reported.
    #[inline]
    fn place(&self, id: u32) -> Option<u32> {
        if !self.gapless {
            return self.search(id);
        }
        let place = id.wrapping_sub(self.first);
        ((place as usize) < self.lanes.len()).then_some(place)
    }

    #[cold]
    fn search(&self, id: u32) -> Option<u32> {
        let place = self.ids.binary_search(&id);
        place.ok().map(|place| place as u32)
    }
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        dispatch: Dispatch,
        counting: bool,
    ) -> Result<Self, LimitError> {
        let limits = settings.resolve(None)?;
        let queue = limits.request_queue_limit;
        Ok(Shared {
            budget: Budget::new(
                limits.engine_request_limit,
                limits.engine_request_waiting_limit,
            ),
            unspecified: CachePadded::new(lane_state(Lane::Unspecified, 0, counting)),
            ranks: Published::empty(),
            total: CachePadded::new(TotalWord::new(queue.into())),
            slots: CachePadded::new(Slots::new()),
            turn: CachePadded::new(Turn::new()),
            dispatch,
            counting,
            lists: UnsafeCell::new(Lists::new(1)),
            config: Mutex::new(Config {
                settings,
                max_num_seqs: None,
                limits,
            }),
            stopped: AtomicBool::new(false),
            listeners: CachePadded::new(Listeners::new()),
            holders: Holders::new(),
        })
    }

    /// The index of the lane that a request for this rank is accounted in.
    pub(crate) fn lane_index(&self, rank: Option<u32>) -> u32 {
        self.ranked_lane(rank).map_or(0, |(home, _)| home + 1)
    }

    /// The place among the ranks, and the lane, of a request whose rank was reported.
    #[inline]
    pub(crate) fn ranked_lane(&self, rank: Option<u32>) -> Option<(u32, &LaneState)> {
        let ranks = self.ranks.get()?;
        let home = ranks.place(rank?)?;
        Some((home, &ranks.lanes[home as usize]))
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

    pub(crate) fn is_stopped(&self) -> bool {
        // STOP, Acquire: who was woken for it sees it.
        self.stopped.load(Ordering::Acquire)
    }
}
