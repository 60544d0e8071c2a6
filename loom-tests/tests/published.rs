//! Values that appear once: chunks of slots, reported ranks.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use tidegate::model::Published;
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
fn of_two_values_both_get_the_same() {
    check(5, "publish against publish", || {
        let place = Arc::new(Published::empty());
        let other = Arc::clone(&place);
        let thread = thread::spawn(move || other.get_or_publish(Value::new(1)).read());
        let mine = place.get_or_publish(Value::new(2)).read();
        assert_eq!(mine, thread.join().unwrap());
    });
}
