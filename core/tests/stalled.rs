//! A thread that stops for ever, before any atomic step of any operation, keeps
//! no other thread from anything: built with `--cfg tidegate_stall`, run by
//! `.ci/test stalled`.
//!
//! Each scene is played once for every step k of its operation: thread A stops
//! before its k-th step, the others do everything that a gate is there for
//! (`stall::others`), and A goes on: then nothing may be lost.
#![cfg(tidegate_stall)]

mod common;
mod stall;

use stall::{Mode, play, scenes};

fn play_all(mode: Mode) {
    let mut broken = Vec::new();
    for (name, scene) in scenes::CALLS.iter().chain(mode.more()) {
        let steps = play(mode, name, *scene, &mut broken);
        println!("{mode:?}: {name}: stopped at each of {steps} steps");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn with_a_dispatcher_thread() {
    play_all(Mode::Thread);
}

#[test]
fn with_assistants_who_may_stop_inside_their_turn() {
    play_all(Mode::Assisted);
}

#[test]
fn with_a_dispatcher_that_stops_inside_its_turn() {
    play_all(Mode::Manual);
}
