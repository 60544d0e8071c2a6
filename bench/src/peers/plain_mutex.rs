//! Plain counters in one mutex: the cheapest lock that keeps all engine limits.
//! It has no queue, counts no events and gives no reasons.

use std::future::Pending;

use parking_lot::Mutex;

use crate::subject::{Arrival, Rules, Subject};

/// Running and waiting of each rank and of the worker, in one `parking_lot` mutex.
pub struct PlainMutex {
    used: Mutex<Vec<Used>>,
    limits: Used,
    ranks: u32,
}

/// What a lane holds. Lane 0 is the worker; rank i is lane i + 1.
#[derive(Clone, Copy, Default)]
struct Used {
    running: u32,
    waiting: u32,
}

/// What an admitted request holds.
pub struct PlainPermit<'g> {
    gate: &'g PlainMutex,
    lane: usize,
    waiting: bool,
}

impl PlainMutex {
    /// Changes the worker's counts, and the lane's if it is another.
    fn change(&self, lane: usize, change: impl Fn(&mut Used)) {
        let mut used = self.used.lock();
        change(&mut used[0]);
        if lane != 0 {
            change(&mut used[lane]);
        }
    }
}

impl Subject for PlainMutex {
    const NAME: &'static str = "mutex around counters";
    const RULES: Rules = Rules {
        queue: false,
        order: false,
        offers: false,
        ..Rules::ALL
    };
    type Permit<'g> = PlainPermit<'g>;
    type Ticket<'g> = Pending<PlainPermit<'g>>;

    fn build(ranks: u32, r: u32, w: u32, _q: u32) -> Self {
        PlainMutex {
            used: Mutex::new(vec![Used::default(); ranks as usize + 1]),
            limits: Used {
                running: r,
                waiting: w,
            },
            ranks,
        }
    }

    #[inline]
    fn try_admit(&self, rank: Option<u32>) -> Option<PlainPermit<'_>> {
        let lane = rank
            .filter(|rank| *rank < self.ranks)
            .map_or(0, |rank| rank as usize + 1);
        let mut used = self.used.lock();
        let fits = |used: Used, times: u32| {
            used.running < times * self.limits.running && used.waiting < times * self.limits.waiting
        };
        let enter = |used: &mut Used| {
            used.running += 1;
            used.waiting += 1;
        };
        if !fits(used[0], self.ranks.max(1)) || (lane != 0 && !fits(used[lane], 1)) {
            return None;
        }
        enter(&mut used[0]);
        if lane != 0 {
            enter(&mut used[lane]);
        }
        Some(PlainPermit {
            gate: self,
            lane,
            waiting: true,
        })
    }

    fn request(&self, rank: Option<u32>) -> Arrival<PlainPermit<'_>, Self::Ticket<'_>> {
        match self.try_admit(rank) {
            Some(permit) => Arrival::Admitted(permit),
            None => Arrival::Refused,
        }
    }

    #[inline]
    fn first_token(permit: &mut PlainPermit<'_>) {
        if std::mem::take(&mut permit.waiting) {
            permit.gate.change(permit.lane, |used| used.waiting -= 1);
        }
    }

    fn wait<'g>(_ticket: Self::Ticket<'g>) -> PlainPermit<'g>
    where
        Self: 'g,
    {
        unreachable!("it queues nobody")
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        let worker = self.used.lock()[0];
        Some((worker.running.into(), worker.waiting.into(), 0))
    }
}

impl Drop for PlainPermit<'_> {
    #[inline]
    fn drop(&mut self) {
        let waiting = u32::from(self.waiting);
        self.gate.change(self.lane, |used| {
            used.running -= 1;
            used.waiting -= waiting;
        });
    }
}
