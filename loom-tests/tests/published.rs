//! Values that appear once: chunks of slots, reported ranks.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use tidegate::model::{Published, PublishedSlice};
use tidegate_loom_tests::check;

struct Value(UnsafeCell<u32>);

// SAFETY: never written once it is published: what the models check.
unsafe impl Sync for Value {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Value {}

impl Value {
    fn new(value: u32) -> Value {
        let cell = UnsafeCell::new(0);
        // SAFETY: nobody else knows of it yet.
        cell.with_mut(|inner| unsafe { *inner = value });
        Value(cell)
    }

    fn read(&self) -> u32 {
        // SAFETY: nobody writes any more.
        self.0.with(|inner| unsafe { *inner })
    }
}

#[test]
fn who_sees_a_value_sees_all_of_it() {
    check(5, "publish against get", || {
        let place = Arc::new(Published::empty());
        let other = Arc::clone(&place);
        let reader = thread::spawn(move || other.get().map(Value::read));
        place.get_or_publish(Value::new(1));
        assert!(matches!(reader.join().unwrap(), None | Some(1)));
    });
}

#[test]
fn who_sees_a_length_sees_its_items() {
    check(5, "publish a slice against get", || {
        let place = Arc::new(PublishedSlice::empty());
        let other = Arc::clone(&place);
        let reader = thread::spawn(move || -> Vec<u32> {
            let items: &[Value] = other.get();
            items.iter().map(Value::read).collect()
        });
        place.publish(Box::new([Value::new(1), Value::new(2)]));
        let seen = reader.join().unwrap();
        assert!(seen.is_empty() || seen == [1, 2]);
    });
}

#[test]
fn of_two_values_both_get_the_same() {
    check(5, "publish against publish", || {
        let place = Arc::new(Published::empty());
        let other = Arc::clone(&place);
        let thread = thread::spawn(move || other.get_or_publish(Value::new(1)).read());
        let mine = place.get_or_publish(Value::new(2)).read();
        assert_eq!(mine, thread.join().unwrap());
    });
}
