//! Tasks: each arrival is one, spawned on schedule by a thread outside the runtime.

use std::time::Instant;

use tokio::runtime::Runtime;

use crate::subject::{Arrival, Subject};

use super::schedule::{arrivals, sleep_exactly, sleep_until};
use super::{CANCELS, Shape, Tally};

/// How a task ended, and when.
enum Ended {
    Admitted(u64),
    Refused(u64),
    Cancelled(u64),
}

/// What the tasks of one schedule saw. Each ran on `runtime`, from its spawning on.
pub fn tasks<S: Subject>(runtime: &Runtime, shape: &Shape) -> Tally {
    let gate: &'static S = Box::leak(Box::new(S::build(
        1,
        shape.limit(),
        shape.limit(),
        shape.limit(),
    )));
    sleep_exactly();
    let mut random = fastrand::Rng::with_seed(shape.seed);
    let (service, start) = (shape.service, Instant::now());
    let spawned: Vec<_> = arrivals(shape.rate(), shape.span, shape.seed)
        .map(|at| {
            let intended = start + at;
            let cancels = random.u32(..CANCELS) == 0;
            sleep_until(intended);
            runtime.spawn(async move {
                let since = || intended.elapsed().as_nanos() as u64;
                let mut permit = match gate.request(None) {
                    Arrival::Refused => return Ended::Refused(since()),
                    Arrival::Queued(ticket) if cancels => {
                        drop(ticket);
                        return Ended::Cancelled(since());
                    }
                    Arrival::Queued(ticket) => ticket.await,
                    Arrival::Admitted(permit) => permit,
                };
                let ended = Ended::Admitted(since());
                // To the runtime's timer's millisecond.
                tokio::time::sleep(service / 2).await;
                S::first_token(&mut permit);
                tokio::time::sleep(service / 2).await;
                ended
            })
        })
        .collect();
    let mut tally = Tally::default();
    runtime.block_on(async {
        for task in spawned {
            let (histogram, value) = match task.await.expect("it does not panic") {
                Ended::Admitted(value) => (&mut tally.admitted, value),
                Ended::Refused(value) => (&mut tally.refused, value),
                Ended::Cancelled(value) => (&mut tally.cancelled, value),
            };
            histogram.saturating_record(value.max(1));
        }
    });
    tally
}
