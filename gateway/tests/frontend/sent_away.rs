//! Who is not held by a frontend's policy, or no longer.

use std::time::Duration;

use serde_json::Value;
use tidegate_gateway::frontend::Outcome;
use tokio::time::Instant;

use super::queue::{Queue, decided, refused};
use super::support::*;

#[tokio::test]
async fn a_timeout_comes_on_time_and_marks_nobody() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let begun = Instant::now();
    let mut bronze = queue.post("bronze", "bronze").await;
    let details = refused(&mut bronze).await;
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(details["reason"], "queue_timeout");
    assert_eq!(details["class"], "bronze");
    assert_eq!(bronze.header("retry-after"), Some("1"));
    assert!(queue.worker.called().is_none());
    call.write(JSON).await;
    let mut next = queue.post("edge", "next").await;
    assert_eq!(queue.serves().await, "next", "the worker is not marked");
    assert_eq!(next.head().await, 200);
}

#[tokio::test]
async fn a_class_that_is_not_held_is_refused_at_once() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let mut edge = queue.post("edge", "edge").await;
    assert_eq!(refused(&mut edge).await["reason"], "concurrency_limit");
    let tallies = queue.front.frontend.tallies();
    until("it is counted", async || {
        tallies.ended(Outcome::Rejected) == 1
    })
    .await;
    // And so it is behind others, who were there before.
    let _held = queue.held("silver", "held", 1).await;
    let mut edge = queue.post("edge", "edge").await;
    assert_eq!(refused(&mut edge).await["reason"], "concurrency_limit");
    call.write(JSON).await;
    assert_eq!(queue.serves().await, "held");
}

#[tokio::test]
async fn who_leaves_while_held_is_forgotten() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let leaver = queue.held("gold", "leaver", 1).await;
    let _stays = queue.held("silver", "stays", 1).await;
    drop(leaver);
    queue.holds("gold", 0).await;
    assert_eq!(decided(&queue.front, "gold", "left", "").await, 1.0);
    call.write(JSON).await;
    assert_eq!(queue.serves().await, "stays");
    let tallies = queue.front.frontend.tallies();
    until("it is counted", async || tallies.ended(Outcome::Left) == 1).await;
}

/// Ten seconds of what ends at most: of a worker that ends nothing, one.
#[tokio::test]
async fn no_more_are_held_than_drain_in_ten_seconds() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let _held = queue.held("silver", "held", 1).await;
    let mut told = Value::Null;
    until("the queue is full", async || {
        let mut more = queue.post("silver", "more").await;
        let answer = tokio::time::timeout(Duration::from_millis(200), refused(&mut more)).await;
        told = answer.unwrap_or_default();
        told["reason"] == "queue_full"
    })
    .await;
    assert_eq!(told["retryable"], true);
    // No class fills the room of a higher one.
    let _gold = queue.held("gold", "gold", 1).await;
    call.write(JSON).await;
    assert_eq!(queue.serves().await, "gold");
    assert_eq!(queue.serves().await, "held");
}

#[tokio::test]
async fn held_requests_are_told_when_the_frontend_stops() {
    let mut queue = Queue::start().await;
    let (mut first, mut call) = queue.running().await;
    let mut held = queue.held("gold", "held", 1).await;
    let stopping = tokio::spawn(queue.front.frontend.shutdown());
    assert_unavailable(&mut held).await;
    call.write(JSON).await;
    assert_eq!(first.head().await, 200, "what runs goes on");
    soon("the end", stopping).await.unwrap();
    assert!(queue.worker.called().is_none());
}

/// 529 is for those that are busy: once nobody is there, nobody is waited for.
#[tokio::test]
async fn who_is_held_when_the_last_worker_goes_is_told_that_nobody_is_there() {
    let mut queue = Queue::start().await;
    let _running = queue.running().await;
    let mut held = queue.held("silver", "held", 1).await;
    queue.worker.set(|pages| pages.ready = 503);
    assert_unavailable(&mut held).await;
    let mut late = queue.post("edge", "late").await;
    assert_unavailable(&mut late).await;
    // And it waits for nobody who comes back, but is served.
    queue.worker.set(|pages| pages.ready = 200);
    queue.front.well(1).await;
}

#[tokio::test]
async fn bodies_of_held_requests_are_within_the_budget() {
    let mut queue = Queue::with(|config| {
        config.buffer_budget = 10_000;
        config.max_body = 10_000;
        config.client_timeout = Duration::from_millis(500);
    })
    .await;
    let _running = queue.running().await;
    let _held = queue.held("silver", "held", 1).await;
    let mut third = queue.post("silver", "third").await;
    assert_eq!(third.head().await, 503, "there is no room for its body");
    queue.holds("silver", 1).await;
}
