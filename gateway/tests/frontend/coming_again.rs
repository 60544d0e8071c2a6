//! When those may come again that a frontend refuses, as `Retry-After` says.

use std::collections::BTreeSet;

use super::queue::{Queue, refused};
use super::support::*;

/// What a request of a class that is never held is told: it is refused at once.
async fn told(queue: &Queue) -> u64 {
    let mut edge = queue.post("edge", "edge").await;
    let details = refused(&mut edge).await;
    let told = edge.header("retry-after").expect("it is told").to_owned();
    let told = told.parse().expect("whole seconds");
    assert_eq!(details["retry_after_seconds"], told);
    told
}

/// One request that was served, one that runs, and four that are held.
async fn behind_four(queue: &mut Queue) -> (Vec<Wire>, Wire) {
    let mut first = queue.post("gold", "first").await;
    assert_eq!(queue.serves().await, "first");
    assert_eq!(first.head().await, 200);
    first.body().await;
    let (running, call) = queue.running().await;
    let mut clients = vec![running];
    for count in 1..=4 {
        clients.push(queue.held("silver", "held", count).await);
    }
    (clients, call)
}

#[tokio::test]
async fn it_is_what_is_held_ahead_at_the_rate_at_which_requests_finish_with_jitter() {
    let mut queue = Queue::start().await;
    let (_clients, _call) = behind_four(&mut queue).await;
    // One has finished in a second or more: five take five seconds or more.
    until("the rate is known", async || told(&queue).await >= 5).await;
    let mut all = BTreeSet::new();
    for _ in 0..40 {
        all.insert(told(&queue).await);
    }
    assert!(
        all.first() >= Some(&5) && all.last() <= Some(&60),
        "{all:?}"
    );
    assert!(all.len() > 1, "{all:?}");
}

/// Who would go before all that are held waits for none of them.
#[tokio::test]
async fn a_higher_class_is_told_to_come_sooner() {
    let mut queue = Queue::with(|config| {
        let gold = "queue_timeout_ms = 60000\n[[class]]\nname = \"silver\"";
        let text = super::queue::POLICY.replacen(gold, &gold.replacen("60000", "0", 1), 1);
        let settings = tidegate_policy::file::parse(&text).unwrap();
        config.policy = Some(tidegate_gateway::policy::PolicyConfig::new(settings));
    })
    .await;
    let (_clients, _call) = behind_four(&mut queue).await;
    until("the rate is known", async || told(&queue).await >= 5).await;
    let mut gold = queue.post("gold", "gold").await;
    let details = refused(&mut gold).await;
    let (gold, edge) = (details["retry_after_seconds"].as_u64(), told(&queue).await);
    // A fifth of it, but for jitter of half as much again and whole seconds.
    assert!(
        gold.is_some_and(|gold| 2 * gold <= edge + 2),
        "{gold:?} {edge}"
    );
}

#[tokio::test]
async fn before_any_has_finished_it_is_a_second_and_none_if_so_configured() {
    let mut queue = Queue::start().await;
    let (_first, _call) = queue.running().await;
    let _held = queue.held("silver", "held", 1).await;
    assert_eq!(told(&queue).await, 1);

    let mut queue = Queue::with(|config| config.retry_after = false).await;
    let (_first, _call) = queue.running().await;
    let mut edge = queue.post("edge", "edge").await;
    let details = refused(&mut edge).await;
    assert_eq!(edge.header("retry-after"), None);
    assert_eq!(details.get("retry_after_seconds"), None);
}

/// A frontend that holds nobody says what the worker said, or a second.
#[tokio::test]
async fn without_a_policy_it_is_the_workers_word_or_a_second() {
    let mut queue = Queue::with(|config| config.policy = None).await;
    let mut first = queue.post("", "first").await;
    assert_eq!(queue.serves().await, "first");
    assert_eq!(first.head().await, 200);
    let (_running, _call) = queue.running().await;
    for _ in 0..3 {
        let mut client = queue.post("", "busy").await;
        assert_overloaded(&mut client, 529).await;
        assert_eq!(client.header("retry-after"), Some("1"));
    }
    let mut queue = Queue::with(|config| config.policy = None).await;
    let mut client = queue.post("", "refused").await;
    queue
        .worker
        .answer(&refusal("worker", "retry-after: 7\r\n"))
        .await;
    assert_overloaded(&mut client, 529).await;
    assert_eq!(client.header("retry-after"), Some("7"));
}
