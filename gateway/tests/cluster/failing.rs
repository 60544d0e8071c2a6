//! What becomes of members and loads when NATS, or the way to it, goes away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_gateway::load::Outcome;
use tidegate_gateway::monitor::Thresholds;
use tokio::time::{Instant, sleep};

use super::nats::{Nats, Way, at};
use super::support::{
    LONG, announcement, engine, engine_with, frontend, frontend_with, load, say, until, within,
    worker,
};

/// NATS is killed and started again while requests come all the time: each is answered,
/// and loads are heard again within seconds.
#[tokio::test(flavor = "multi_thread")]
async fn nats_restarts_under_load_and_nobody_is_refused() {
    let mut nats = Nats::start().await;
    let engine = engine_with(|config| config.speed = 20.0).await;
    let front = Arc::new(frontend(nats.config()));
    let (one, two) = (
        worker(&engine, nats.config(), "one"),
        worker(&engine, nats.config(), "two"),
    );
    front.has(2).await;
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let (front, stop) = (Arc::clone(&front), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(front.send(20).await, Outcome::Ok);
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    until("loads are heard", async || {
        front.counts("received_total{kind=\"load\"}").await > 4.0
    })
    .await;
    nats.kill();
    until("it is told", async || {
        front.counts("connected").await == 0.0
    })
    .await;
    // Longer than members may be silent.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(front.well(), 2);
    let heard = front.counts("received_total{kind=\"load\"}").await;
    nats.begin().await;
    let back = Instant::now();
    within(2 * LONG, "loads are heard again", async || {
        front.counts("received_total{kind=\"load\"}").await > heard + 2.0
    })
    .await;
    println!("loads were heard {:?} after NATS was back", back.elapsed());
    // The bucket went with the server, and is made again.
    let late = frontend(nats.config());
    late.has(2).await;
    stop.store(true, Ordering::Relaxed);
    let mut sent = 0;
    for sender in senders {
        sent += sender.await.unwrap();
    }
    println!("{sent} requests, all answered");
    assert!(sent > 4);
    drop((one, two));
}

/// Only the way from one worker to NATS is cut: it answers, so it stays; once it does not
/// answer either, it goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_cut_off_from_nats_stays_while_it_answers() {
    let nats = Nats::start().await;
    let way = Way::to(nats.port).await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    let one = worker(&engine, at(way.port), "one");
    front.has(1).await;
    for cut in [Way::cut, Way::freeze] {
        cut(&way);
        until("it is silent", async || {
            front.counts("members{state=\"lapsed\"}").await == 1.0
        })
        .await;
        assert_eq!(front.send(3).await, Outcome::Ok);
        assert_eq!(front.ids(), [0]);
        way.open();
        within(2 * LONG, "it is heard again", async || {
            front.counts("members{state=\"live\"}").await == 1.0
        })
        .await;
    }
    way.cut();
    drop(one);
    front.has(0).await;
}

/// Only one frontend is cut off: it goes on with those it knows, and catches up.
#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_cut_off_from_nats_goes_on_and_catches_up() {
    let nats = Nats::start().await;
    let way = Way::to(nats.port).await;
    let engine = engine().await;
    let front = frontend(at(way.port));
    let one = worker(&engine, nats.config(), "one");
    front.has(1).await;
    way.cut();
    until("it is told", async || {
        front.counts("connected").await == 0.0
    })
    .await;
    let two = worker(&engine, nats.config(), "two");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(front.send(3).await, Outcome::Ok);
    assert_eq!(front.ids(), [0]);
    way.open();
    within(2 * LONG, "it hears of the other", async || {
        front.well() == 2
    })
    .await;
    drop((one, two));
}

/// A worker that was busy when NATS went away is not busy for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_nats_went_away_grows_too_old() {
    let mut nats = Nats::start().await;
    let engine = engine().await;
    let front = frontend_with(nats.config(), |config| {
        config.monitor.load_ttl = Duration::from_secs(1);
        config.monitor.thresholds = Thresholds {
            active_prefill_tokens: Some(10),
            ..Thresholds::default()
        };
    });
    let client = nats.client().await;
    // A worker that only this test speaks for.
    let one = worker(&engine, at(super::nats::free_port()), "one");
    let member = announcement("w", &one.url(), 5, 1);
    front.hears(&client, "w", member).await;
    let mut said = load("w", 5, 2, 1);
    for rank in 0..2 {
        said["ranks"][rank]["active_prefill_tokens"] = 11.into();
    }
    said["room"] = false.into();
    say(&client, "tidegate.v1.load.w", said).await;
    until("it is busy", async || front.busy().unwrap().worker).await;
    assert!(matches!(front.send(3).await, Outcome::Refused(_)));
    nats.kill();
    until("that is too old", async || !front.busy().unwrap().worker).await;
    assert_eq!(front.send(3).await, Outcome::Ok);
}

/// A frontend that does not read for a while is dropped by NATS as a slow consumer. It
/// comes back, and what waited meanwhile does not look new.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_consumer_comes_back() {
    let nats = Nats::with(
        "write_deadline: \"200ms\"\nmax_payload: 131072\nmax_pending: 262144\n",
        true,
    )
    .await;
    let way = Way::to(nats.port).await;
    let (engine, front) = (engine().await, frontend(at(way.port)));
    let one = worker(&engine, nats.config(), "one");
    front.has(1).await;
    let lost = front.counts("disconnections_total").await;
    way.freeze();
    let client = nats.client().await;
    let much = "x".repeat(60_000);
    for _ in 0..400 {
        say(&client, "tidegate.v1.load.one", &much).await;
    }
    way.open();
    within(2 * LONG, "it was thrown out, and is back", async || {
        front.counts("disconnections_total").await > lost && front.counts("connected").await == 1.0
    })
    .await;
    let held = one.gate().try_admit_owned(None).unwrap();
    within(2 * LONG, "loads are heard again", async || {
        front.running() == Some(1)
    })
    .await;
    drop(held);
    assert_eq!(front.send(3).await, Outcome::Ok);
}
