//! Clients that leave, at each point of their requests' way.

use super::support::*;

/// What the worker's tries came to.
async fn left(front: &Front, count: f64) {
    let series = "dynamo_frontend_worker_requests_total{worker_id=\"0\",result=\"left\"}";
    front.measures(series, count).await;
    front
        .measures("dynamo_frontend_inflight_requests", 0.0)
        .await;
    until("nothing is accounted for", async || {
        let load = front.frontend.monitor().member(0).unwrap().load();
        load.running == 0
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_closes_the_workers_connection_at_every_point() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    // Before the head, behind it, and in mid-stream.
    let begun = [
        String::new(),
        EVENTS.to_owned(),
        format!("{EVENTS}{}", token()),
    ];
    for (count, begun) in (1..).zip(&begun) {
        let mut client = front.post().await;
        let mut call = worker.call().await;
        call.body().await;
        call.write(begun).await;
        if begun.len() > EVENTS.len() {
            assert_eq!(client.head().await, 200);
        }
        drop(client);
        call.closed().await;
        left(&front, f64::from(count)).await;
    }
    // And with bytes behind its request that nobody reads.
    let mut client = front.post().await;
    let mut call = worker.call().await;
    client.write(post("")).await;
    drop(client);
    call.closed().await;
    left(&front, 4.0).await;
}

#[tokio::test]
async fn a_client_that_leaves_is_not_tried_elsewhere() {
    let mut workers = [Scripted::start().await, Scripted::start().await];
    let front = Front::start(&[&workers[0], &workers[1]]).await;
    let client = front.post().await;
    let mut call = workers[0].call().await;
    drop(client);
    call.closed().await;
    left(&front, 1.0).await;
    assert!(workers[1].called().is_none());
}

#[tokio::test]
async fn a_client_that_leaves_during_its_retry_leaves_that_one_too() {
    let mut workers = [Scripted::start().await, Scripted::start().await];
    let front = Front::start(&[&workers[0], &workers[1]]).await;
    let client = front.post().await;
    workers[0].answer(&refusal("rank", "")).await;
    let mut call = workers[1].call().await;
    drop(client);
    call.closed().await;
    let series = "dynamo_frontend_worker_requests_total{worker_id=\"1\",result=\"left\"}";
    front.measures(series, 1.0).await;
    let series = "dynamo_frontend_requests_total{model=\"m\",endpoint=\"chat_completions\",outcome=\"left\"}";
    front.measures(series, 1.0).await;
}

#[tokio::test]
async fn a_queued_client_that_leaves_gives_its_place_at_the_worker_back() {
    let mut engine = Scripted::start().await;
    let worker = worker(&engine.url(), limits(1, 1, 1), &[0]);
    let front = Front::before(&[worker.url()], |_| {});
    front.well(1).await;
    let first = front.post().await;
    let mut call = engine.call().await;
    holds(worker.gate(), 1, 1, 0).await;
    let queued = front.post().await;
    holds(worker.gate(), 1, 1, 1).await;
    drop(queued);
    holds(worker.gate(), 1, 1, 0).await;
    drop(first);
    call.closed().await;
    holds(worker.gate(), 0, 0, 0).await;
    let seen = worker.gate().snapshot();
    assert_eq!(seen.total(|lane| lane.cancelled), 1);
    assert_eq!(seen.total(|lane| lane.rejected()), 0);
    left(&front, 2.0).await;
}
