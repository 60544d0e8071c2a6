//! A value that appears once and stays: readers take it without waiting.

use std::ptr;

use crate::sync::{AtomicPtr, Ordering};

/// Empty, then for ever one value.
pub(crate) struct Published<T>(AtomicPtr<T>);

impl<T> Published<T> {
    pub(crate) fn empty() -> Self {
        Published(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // PUBLISH, Acquire: pairs with the Release below; the value is whole.
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: a pointer that is not null came from `Box::into_raw` below,
        // is never replaced, and is freed only when `self` goes.
        unsafe { value.as_ref() }
    }

    /// Puts `value` there unless one is there already; the one that is there.
    pub(crate) fn get_or_publish(&self, value: Box<T>) -> &T {
        let new = Box::into_raw(value);
        // PUBLISH, Release: the value is written before it can be seen.
        // Acquire on failure: then another's value is used.
        let won =
            self.0
                .compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Acquire);
        if won.is_err() {
            // SAFETY: `new` came from `Box::into_raw` above and was not shared.
            drop(unsafe { Box::from_raw(new) });
        }
        self.get().expect("published just now")
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // Acquire: the last handle's drop ordered everything before this.
        let value = self.0.load(Ordering::Acquire);
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and nobody else is left.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
