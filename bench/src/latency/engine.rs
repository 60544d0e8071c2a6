//! The engine behind the gate: one thread that ends each request when its time
//! is over, so that a caller is free for its next arrival as soon as it is in.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::subject::Subject;

use super::schedule::{sleep_exactly, sleep_until};

/// Runs what it is handed, with the moment of its admission: first token after
/// half of `service`, end after all of it. Returns when all callers have gone
/// and nothing runs.
pub(super) fn serve<'g, S: Subject>(
    admitted: Receiver<(Instant, S::Permit<'g>)>,
    service: Duration,
) {
    sleep_exactly();
    // All run equally long, so each queue is in order of what is due.
    let mut prompts: VecDeque<(Instant, S::Permit<'g>)> = VecDeque::new();
    let mut streams: VecDeque<(Instant, S::Permit<'g>)> = VecDeque::new();
    let mut open = true;
    while open || !prompts.is_empty() || !streams.is_empty() {
        let now = Instant::now();
        while prompts.front().is_some_and(|(due, _)| *due <= now) {
            let (due, mut permit) = prompts.pop_front().expect("looked at");
            S::first_token(&mut permit);
            streams.push_back((due + service / 2, permit));
        }
        while streams.front().is_some_and(|(due, _)| *due <= now) {
            streams.pop_front();
        }
        let dues = [prompts.front().map(|p| p.0), streams.front().map(|s| s.0)];
        let next = dues.into_iter().flatten().min();
        let wait = next.map_or(service, |next| next.saturating_duration_since(now));
        match admitted.recv_timeout(wait) {
            Ok((at, permit)) => prompts.push_back((at + service / 2, permit)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                if let Some(next) = next {
                    sleep_until(next);
                }
            }
        }
    }
}
