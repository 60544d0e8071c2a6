//! Workers come, go, die and come back.

use std::time::Duration;

use tidegate_gateway::cluster::SubscribeConfig;
use tidegate_gateway::load::Outcome;
use tidegate_gateway::proxy::engine::EngineUrl;

use super::nats::{Nats, at, free_port};
use super::support::{LONG, engine, frontend, frontend_with, until, within, worker, worker_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_joins_serves_and_leaves() {
    let nats = Nats::start().await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    let one = worker(&engine, nats.config(), "one");
    front.has(1).await;
    until("its ranks are known", async || {
        let members = front.0.monitor().members();
        members[0].load().ranks.len() == 2
    })
    .await;
    assert_eq!(front.send(3).await, Outcome::Ok);
    let two = worker(&engine, nats.config(), "two");
    front.has(2).await;
    assert_eq!(front.counts("members{state=\"live\"}").await, 2.0);
    one.shutdown().await;
    // It said so itself: nobody has to find out.
    front.has(1).await;
    assert_eq!(front.ids(), [1]);
    assert_eq!(front.send(3).await, Outcome::Ok);
    drop(two);
}

/// Frontends that come later find those who are there, from the bucket.
#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_that_comes_later_finds_who_is_there() {
    let nats = Nats::start().await;
    let engine = engine().await;
    let one = worker_with(&engine, nats.config(), "one", |config| {
        // It says nothing more within the test.
        config.cluster.as_mut().unwrap().member_ttl = Duration::from_secs(60);
    });
    let first = frontend(nats.config());
    first.has(1).await;
    let second = frontend(nats.config());
    second.has(1).await;
    one.shutdown().await;
    first.has(0).await;
    second.has(0).await;
    let third = frontend(nats.config());
    until("NATS is reached", async || {
        third.counts("connected").await == 1.0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(third.0.workers().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_jetstream_announcements_are_heard_as_they_come() {
    let nats = Nats::with("", false).await;
    let engine = engine().await;
    let one = worker(&engine, nats.config(), "one");
    let front = frontend(nats.config());
    front.has(1).await;
    assert_eq!(front.send(3).await, Outcome::Ok);
    one.shutdown().await;
    front.has(0).await;
}

/// A worker that dies says nothing: it is left out at once since it does not answer, and
/// gone when its time is up.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_is_gone_when_its_time_is_up() {
    let nats = Nats::start().await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    let one = worker(&engine, nats.config(), "one");
    let two = worker(&engine, nats.config(), "two");
    front.has(2).await;
    drop(one);
    front.has(1).await;
    assert_eq!(front.send(3).await, Outcome::Ok);
    drop(two);
    front.has(0).await;
    assert_eq!(front.counts("members{state=\"live\"}").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_starts_again_under_its_name_elsewhere_and_where_it_was() {
    let nats = Nats::start().await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    let one = worker(&engine, nats.config(), "one");
    let addr = one.addr();
    front.has(1).await;
    assert_eq!(front.ids(), [0]);
    drop(one);
    until("its port is free", async || {
        std::net::TcpListener::bind(addr).is_ok()
    })
    .await;
    // Where it was: the same worker to the frontend, with loads that count anew.
    let again = worker_with(&engine, nats.config(), "one", |config| config.listen = addr);
    until("its new loads count", async || {
        front.running() == Some(0) && front.well() == 1
    })
    .await;
    let held = again.gate().try_admit_owned(None).unwrap();
    until("a load of the new start", async || {
        front.running() == Some(1)
    })
    .await;
    assert_eq!(front.ids(), [0]);
    drop((held, again));
    // Elsewhere: another worker, at once.
    let elsewhere = worker(&engine, nats.config(), "one");
    until("it moved", async || front.ids() == [1] && front.well() == 1).await;
    assert_eq!(front.0.workers()[0].url().to_string(), elsewhere.url());
}

/// Neither side needs NATS to start, and both find it later.
#[tokio::test(flavor = "multi_thread")]
async fn nats_may_come_last() {
    let port = free_port();
    let (engine, front) = (engine().await, frontend(at(port)));
    let one = worker(&engine, at(port), "one");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(front.0.workers().len(), 0);
    let mut nats = Nats::prepared("", true, port);
    nats.begin().await;
    within(2 * LONG, "it joins", async || front.well() == 1).await;
    drop(one);
}

/// A worker that `--worker` names is there with NATS and without, and its loads count.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_named_stays_when_it_leaves() {
    let nats = Nats::start().await;
    let engine = engine().await;
    let one = worker(&engine, nats.config(), "one");
    let url: EngineUrl = one.url().parse().unwrap();
    let front = frontend_with(nats.config(), |config| {
        config.workers = vec![url];
        config.cluster = Some(SubscribeConfig::new(nats.config()));
    });
    front.has(1).await;
    let held = one.gate().try_admit_owned(None).unwrap();
    until("its load is heard", async || front.running() == Some(1)).await;
    drop(held);
    // Another is nobody's.
    let two = worker(&engine, nats.config(), "two");
    until("it is dropped", async || {
        front.drops("not_allowed").await >= 1.0
    })
    .await;
    one.shutdown().await;
    until("it left", async || {
        front.counts("members{state=\"live\"}").await == 0.0
    })
    .await;
    assert_eq!(front.ids(), [0]);
    drop(two);
}
