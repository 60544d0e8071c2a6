//! A schedule played against some servers.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::client::{Client, Target};
use super::planned::Planned;
use super::tally::Tally;

/// A load under way. Clones look at the same one.
#[derive(Debug, Clone, Default)]
pub struct Load {
    tally: Arc<Mutex<Tally>>,
}

impl Load {
    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.with(|tally| tally.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Tally) -> T) -> T {
        // A tally is counters: one left by a panicking task is as good as any.
        act(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sends a schedule to the targets in turn, each request at its time, and waits
/// for the answers.
///
/// Ends when the schedule has and every request was answered. When `stop` is
/// cancelled, no more requests start and those in flight are dropped, which
/// their servers see as clients that leave.
pub async fn play(
    schedule: impl Iterator<Item = Planned>,
    targets: &[Target],
    client: &Client,
    load: &Load,
    stop: &CancellationToken,
) {
    let start = Instant::now();
    let mut requests = JoinSet::new();
    for (planned, target) in schedule.zip(targets.iter().cycle()) {
        // A time beyond what the clock can count never comes.
        let Some(intended) = start.checked_add(planned.at) else {
            break;
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep_until(intended) => {}
        }
        while requests.try_join_next().is_some() {}
        load.with(Tally::start);
        let (client, target, load) = (client.clone(), target.clone(), load.clone());
        requests.spawn(async move {
            let (outcome, first_token) = client.send(&target, &planned, intended).await;
            load.with(|tally| tally.end(outcome, first_token));
        });
    }
    let answered = async { while requests.join_next().await.is_some() {} };
    tokio::select! {
        () = stop.cancelled() => {}
        () = answered => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn planned(at: Duration) -> Planned {
        Planned {
            at,
            prompt_tokens: 1,
            output_tokens: 1,
            rank: None,
            leaves_after: None,
        }
    }

    fn nobody() -> Target {
        "http://127.0.0.1:1".parse().expect("a target")
    }

    async fn played(schedule: impl Iterator<Item = Planned>, stop: &CancellationToken) -> Tally {
        let load = Load::default();
        play(schedule, &[nobody()], &Client::new("sim"), &load, stop).await;
        load.tally()
    }

    #[tokio::test]
    async fn every_request_of_a_schedule_ends() {
        let schedule = (0..20).map(|_| planned(Duration::ZERO));
        let tally = played(schedule, &CancellationToken::new()).await;
        assert_eq!(
            (tally.sent, tally.failures(), tally.in_flight()),
            (20, 20, 0)
        );
    }

    #[tokio::test]
    async fn a_stop_ends_a_schedule_that_never_would() {
        let stop = CancellationToken::new();
        stop.cancel();
        let endless = std::iter::repeat_with(|| planned(Duration::from_secs(3600)));
        assert_eq!(played(endless, &stop).await.sent, 0);
    }

    #[tokio::test]
    async fn a_time_beyond_the_clock_ends_the_schedule() {
        let schedule = std::iter::once(planned(Duration::MAX));
        let tally = played(schedule, &CancellationToken::new()).await;
        assert_eq!(tally.sent, 0);
    }
}
