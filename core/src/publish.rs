//! A value that appears once and stays: readers take it without waiting.

use std::{ptr, slice};

use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

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

/// Empty, then for ever one slice, which readers reach in one step.
pub(crate) struct PublishedSlice<T> {
    len: AtomicUsize,
    data: AtomicPtr<T>,
}

impl<T> PublishedSlice<T> {
    pub(crate) fn empty() -> Self {
        PublishedSlice {
            len: AtomicUsize::new(0),
            data: AtomicPtr::new(ptr::NonNull::dangling().as_ptr()),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> &[T] {
        // PUBLISH, Acquire: pairs with the Release below; where there is a length,
        // there are a pointer and whole items.
        let len = self.len.load(Ordering::Acquire);
        // Relaxed: written before the length that was just seen.
        let data = self.data.load(Ordering::Relaxed);
        debug_assert!(
            len == 0 || data != ptr::NonNull::dangling().as_ptr(),
            "a length comes with its pointer"
        );
        // SAFETY: a length other than 0 came with a pointer to so many items from the
        // box below; they are never replaced, and freed only when `self` goes. The
        // pointer of an empty slice is aligned, and need be no more.
        unsafe { slice::from_raw_parts(data, len) }
    }

    /// Puts the items there. One caller, once.
    pub(crate) fn publish(&self, items: Box<[T]>) {
        debug_assert!(self.get().is_empty(), "published once");
        let len = items.len();
        let data = Box::into_raw(items).cast();
        // Relaxed: seen by whoever sees the length.
        self.data.store(data, Ordering::Relaxed);
        // PUBLISH, Release: items and pointer are written before they can be seen.
        self.len.store(len, Ordering::Release);
    }
}

impl<T> Drop for PublishedSlice<T> {
    fn drop(&mut self) {
        // Acquire: the last handle's drop ordered everything before this.
        let len = self.len.load(Ordering::Acquire);
        let data = self.data.load(Ordering::Relaxed);
        if len > 0 {
            // SAFETY: from `Box::into_raw`, and nobody else is left.
            drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(data, len)) });
        }
    }
}

// SAFETY: whoever has the slice hands out references to its items, and lets them go
// where it is dropped: as a box of them does.
unsafe impl<T: Send> Send for PublishedSlice<T> {}
// SAFETY: as above; shared, it gives out shared references alone.
unsafe impl<T: Send + Sync> Sync for PublishedSlice<T> {}

impl<T: std::fmt::Debug> std::fmt::Debug for PublishedSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
