//! std's atomics with a hook before each step: tests stop a thread at its k-th
//! step, count what an operation costs, and see which cache lines it writes.
//!
//! Only in builds with `--cfg tidegate_stall`. The hook is the thread's own; a
//! thread that set none runs as always.

// Every atomic has the methods of all, whether the core uses them or not.
#![allow(dead_code)]

use std::cell::RefCell;
use std::panic::Location;
use std::sync::atomic as std_atomic;

pub use std::sync::atomic::Ordering;

/// What a step does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads.
    Load,
    /// Writes without reading.
    Store,
    /// A compare-and-swap, whether it succeeds or not.
    Cas,
    /// Any other read-modify-write.
    Rmw,
    /// A fence.
    Fence,
    /// Sleeps on a word.
    Wait,
    /// Wakes whoever sleeps on a word: a system call.
    Wake,
}

/// A step that is about to be taken.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it does.
    pub kind: Kind,
    /// Where; 0 for a fence.
    pub address: usize,
    /// The line of the core that takes it.
    pub at: &'static Location<'static>,
}

impl Step {
    /// Whether the step takes its cache line away from other cores.
    pub fn writes(&self) -> bool {
        matches!(self.kind, Kind::Store | Kind::Cas | Kind::Rmw)
    }
}

type Hook = Box<dyn FnMut(Step)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Calls `hook` before each step that this thread takes within `f`. The hook
/// itself may not call the gate.
pub fn hooked<R>(hook: impl FnMut(Step) + 'static, f: impl FnOnce() -> R) -> R {
    struct Unset;
    impl Drop for Unset {
        fn drop(&mut self) {
            HOOK.set(None);
        }
    }
    HOOK.set(Some(Box::new(hook)));
    let _unset = Unset;
    f()
}

#[track_caller]
fn before(kind: Kind, address: usize) {
    let at = Location::caller();
    // A thread in its last moments has no hook left.
    let _ = HOOK.try_with(|hook| {
        if let Some(hook) = hook.borrow_mut().as_mut() {
            hook(Step { kind, address, at });
        }
    });
}

/// As [`std::sync::atomic::fence`].
#[track_caller]
pub(crate) fn fence(ordering: Ordering) {
    before(Kind::Fence, 0);
    std_atomic::fence(ordering);
}

#[track_caller]
pub(crate) fn wait(word: &AtomicU32, expected: u32) {
    before(Kind::Wait, word.address());
    atomic_wait::wait(&word.0, expected);
}

#[track_caller]
pub(crate) fn wake_one(word: &AtomicU32) {
    before(Kind::Wake, word.address());
    atomic_wait::wake_one(&word.0);
}

/// An atomic that is used as std's of the same name.
macro_rules! atomic {
    ($name:ident $(<$t:ident>)?, $value:ty, $($fetch:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct $name $(<$t>)? (std_atomic::$name $(<$t>)?);

        impl $(<$t>)? $name $(<$t>)? {
            pub(crate) const fn new(value: $value) -> Self {
                Self(std_atomic::$name::new(value))
            }

            fn address(&self) -> usize {
                (&raw const self.0).addr()
            }

            #[track_caller]
            pub(crate) fn load(&self, ordering: Ordering) -> $value {
                before(Kind::Load, self.address());
                self.0.load(ordering)
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, ordering: Ordering) -> $value {
                before(Kind::Rmw, self.address());
                self.0.swap(value, ordering)
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                before(Kind::Cas, self.address());
                self.0.compare_exchange(current, new, success, failure)
            }

            #[track_caller]
            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                before(Kind::Cas, self.address());
                self.0
                    .compare_exchange_weak(current, new, success, failure)
            }

            $(
                #[track_caller]
                pub(crate) fn $fetch(&self, value: $value, ordering: Ordering) -> $value {
                    before(Kind::Rmw, self.address());
                    self.0.$fetch(value, ordering)
                }
            )*
        }
    };
}

/// One that is also stored to.
macro_rules! stored {
    ($name:ident $(<$t:ident>)?, $value:ty, $($fetch:ident)*) => {
        atomic!($name $(<$t>)?, $value, $($fetch)*);

        impl $(<$t>)? $name $(<$t>)? {
            #[track_caller]
            pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                before(Kind::Store, self.address());
                self.0.store(value, ordering);
            }
        }
    };
}

atomic!(AtomicBool, bool,);
stored!(AtomicPtr<T>, *mut T,);
stored!(AtomicUsize, usize, fetch_add fetch_sub);
stored!(AtomicU32, u32, fetch_add fetch_or fetch_and);
stored!(AtomicU64, u64, fetch_add fetch_sub fetch_or fetch_and);

impl Default for AtomicU64 {
    fn default() -> Self {
        AtomicU64::new(0)
    }
}

impl crate::Gate {
    /// Whether some thread is inside a turn.
    pub fn turn_runs(&self) -> bool {
        self.shared.turn.is_running()
    }
}
