//! Many tasks in a closed loop through few places.

use std::time::Instant;

use tokio::runtime::Runtime;

use crate::subject::{Arrival, Subject};

/// Nanoseconds a request when `tasks` tasks each make `each` of them, one after
/// the other: enter or wait, yield as an engine would between two steps, first
/// token, release.
///
/// # Panics
/// A request is refused: the queue must have room for every task.
pub fn closed_loop<S: Subject>(
    runtime: &Runtime,
    gate: &'static S,
    tasks: usize,
    each: usize,
) -> f64 {
    let start = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            runtime.spawn(async move {
                for _ in 0..each {
                    let mut permit = match gate.request(None) {
                        Arrival::Admitted(permit) => permit,
                        Arrival::Queued(ticket) => ticket.await,
                        Arrival::Refused => panic!("the queue has room for all"),
                    };
                    tokio::task::yield_now().await;
                    S::first_token(&mut permit);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in running {
            task.await.expect("it does not panic");
        }
    });
    start.elapsed().as_nanos() as f64 / (tasks * each) as f64
}
