//! Who runs the dispatcher's turn, and whom it wakes once it has ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::lists::Lists;
use crate::shared::{Dispatch, Shared};
use crate::sync::Ordering;
use crate::wakers::Wakers;
use crate::word::I;

/// Batches in the turn of a thread that assists.
const ASSIST_BATCHES: usize = if cfg!(tidegate_loom) { usize::MAX } else { 16 };

fn wake(waker: Waker) {
    // A waker that panics keeps no other from being woken.
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

impl Shared {
    /// Somebody should look at the queue.
    pub(crate) fn ring(&self) {
        // Also where one was wanted already: who left word before may have been
        // stopped before it did anything about it.
        if self.turn.ring() {
            match self.dispatch {
                Dispatch::Thread => self.turn.wake(),
                Dispatch::Assisted => self.assist(),
                Dispatch::Manual => {}
            }
        }
    }

    /// Runs a bounded turn on this thread; leaves the rest to the dispatcher's.
    fn assist(&self) {
        if self.turn.try_start() && !self.run_turn(ASSIST_BATCHES) {
            self.turn.wake();
        }
    }

    /// Runs a turn to its end if one is wanted.
    pub(crate) fn run_wanted(&self) {
        while self.turn.try_start() {
            self.run_turn(usize::MAX);
        }
    }

    /// Runs `change` within a turn, waiting for the one that may be running. A
    /// turn is wanted afterwards.
    pub(crate) fn within_turn<R>(&self, change: impl FnOnce(&Self, &mut Lists) -> R) -> R {
        while !self.turn.try_start_unasked() {
            crate::sync::thread::yield_now();
        }
        let result = self.lists.with_mut(|lists| {
            // SAFETY: `try_start_unasked` made the turn ours.
            change(self, unsafe { &mut *lists })
        });
        self.turn.hand_over();
        result
    }

    /// The turn that this thread has started: at most so many batches. False if
    /// something may be left; then the turn is wanted.
    fn run_turn(&self, batches: usize) -> bool {
        let mut wakers = Wakers::new();
        for _ in 0..batches {
            let done = self.batch(&mut wakers);
            let ended = if done { self.turn.try_end() } else { false };
            if ended {
                self.wake(&mut wakers);
                return true;
            }
            // Something is left. Foreign code does not run within a turn: it is
            // given up for the wakers, and begun anew.
            if !wakers.is_empty() {
                self.turn.hand_over();
                self.wake(&mut wakers);
                if !self.turn.try_start() {
                    // Somebody else goes on with it.
                    return true;
                }
            }
        }
        self.turn.hand_over();
        false
    }

    /// After a turn, or between two.
    fn wake(&self, wakers: &mut Wakers) {
        let kept = &mut wakers.kept[..std::mem::take(&mut wakers.count)];
        kept.iter_mut().filter_map(Option::take).for_each(wake);
        if std::mem::take(&mut wakers.everybody) {
            self.slots.take_wakers().for_each(wake);
        }
        if std::mem::take(&mut wakers.listeners) {
            self.fire_room();
        }
    }

    /// One batch of offers. True if nothing is left to offer.
    fn batch(&self, wakers: &mut Wakers) -> bool {
        let pass = catch_unwind(AssertUnwindSafe(|| {
            self.lists.with_mut(|lists| {
                // SAFETY: only the holder of the turn comes here.
                self.pass(unsafe { &mut *lists }, wakers)
            })
        }));
        pass.unwrap_or_else(|_| {
            // A fault of ours. Nobody may wait for ever on a queue that nobody
            // can be trusted to drain.
            self.shut();
            wakers.everybody = true;
            wakers.listeners = true;
            true
        })
    }

    /// Nobody enters or queues any more.
    pub(crate) fn shut(&self) {
        // STOP, Release: whoever is woken for it sees it.
        self.stopped.swap(true, Ordering::AcqRel);
        self.budget.set_everywhere(I);
    }

    /// Waits until no turn is wanted or running.
    pub(crate) fn settle(&self) {
        match self.dispatch {
            Dispatch::Manual => self.run_wanted(),
            _ => {
                while !self.turn.is_idle() {
                    crate::sync::thread::yield_now();
                }
            }
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::arrive::Arrival;
    use crate::limits::Settings;

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            // Relaxed: one thread.
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_turn_that_fails_leaves_nobody_waiting() {
        let settings = Settings {
            engine_request_limit: Some(1),
            engine_request_waiting_limit: Some(1),
            request_queue_limit: Some(1),
        };
        let shared = Shared::new(settings, Dispatch::Manual, true).unwrap();
        let hold = shared.enter_at_once(None).unwrap();
        let Ok(Arrival::Queued(place, _)) = shared.request(None) else {
            panic!("it should queue");
        };
        let [waiter, listener] = [(); 2].map(|()| Arc::new(Woken(AtomicBool::new(false))));
        let seen = shared.listen();
        assert!(
            shared
                .poll_room(seen, &Arc::clone(&listener).into())
                .is_pending()
        );
        assert!(
            shared
                .poll_take(place, &Arc::clone(&waiter).into())
                .is_pending()
        );
        // The lists know no lane: the turn cannot go on.
        shared.within_turn(|_, lists| *lists = Lists::new(0));
        shared.run_wanted();
        assert!(shared.is_stopped());
        for woken in [waiter, listener] {
            assert!(woken.0.load(Ordering::Relaxed));
        }
        shared.cancel(place);
        shared.give_back(hold);
    }
}
