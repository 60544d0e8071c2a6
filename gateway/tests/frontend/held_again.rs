//! Requests that a policy let in and that the workers refuse after all, and what all
//! the counts amount to then.

use std::time::Duration;

use tidegate_gateway::frontend::FrontendConfig;

use super::queue::{Queue, decided, refused};
use super::support::*;

/// The sum of all decisions of this kind.
pub async fn all(front: &Front, decision: &str) -> f64 {
    let (_, page) = front.get("/metrics").await;
    let of_kind = format!("decision=\"{decision}\"");
    let lines = page.lines().filter(|line| {
        line.starts_with("dynamo_frontend_policy_decision_total") && line.contains(&of_kind)
    });
    lines
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
        .sum()
}

fn short_marks(config: &mut FrontendConfig) {
    config.mark_time = Duration::from_millis(300);
}

/// One that was let in and refused keeps its place, and one goes first afterwards.
#[tokio::test]
async fn whom_the_worker_refuses_is_held_again_in_its_place() {
    let mut queue = Queue::with(|config| {
        config.monitor.thresholds.active_prefill_tokens = None;
        short_marks(config);
    })
    .await;
    let mut a = queue.post("silver", "a").await;
    queue.worker.answer(&refusal("worker", "")).await;
    queue.holds("silver", 1).await;
    let _b = queue.held("silver", "b", 2).await;
    let _c = queue.held("silver", "c", 3).await;
    let mut call = queue.worker.call().await;
    assert_eq!(call.header("x-who"), Some("a"), "its place is kept");
    call.body().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(queue.worker.called().is_none(), "one at a time at first");
    call.write(refusal("worker", "")).await;
    queue.holds("silver", 3).await;
    for who in ["a", "b", "c"] {
        assert_eq!(queue.serves().await, who);
    }
    assert_eq!(a.head().await, 200);
    assert_eq!(decided(&queue.front, "silver", "returned", "").await, 2.0);
    assert_eq!(decided(&queue.front, "silver", "admitted", "").await, 5.0);
}

#[tokio::test]
async fn who_is_held_again_has_the_rest_of_its_time_and_who_is_not_held_none() {
    let mut queue = Queue::with(|config| config.mark_time = Duration::from_secs(3600)).await;
    let mut bronze = queue.post("bronze", "bronze").await;
    queue.worker.answer(&refusal("worker", "")).await;
    assert_eq!(refused(&mut bronze).await["reason"], "queue_timeout");

    let mut queue = Queue::with(|config| config.mark_time = Duration::from_secs(3600)).await;
    let mut edge = queue.post("edge", "edge").await;
    queue.worker.answer(&refusal("worker", "")).await;
    assert_eq!(refused(&mut edge).await["reason"], "concurrency_limit");
}

/// While somebody else may have room, a refusal is retried there, and told as ever.
#[tokio::test]
async fn a_refusal_of_a_rank_is_no_reason_to_wait() {
    let mut queue = Queue::start().await;
    let mut client = queue.post("silver", "a").await;
    queue.worker.answer(&refusal("rank", "")).await;
    assert_overloaded(&mut client, 529).await;
    assert_eq!(client.header("x-admission-scope"), None);
    assert!(queue.worker.called().is_none());
    let mut client = queue.post("silver", "b").await;
    assert_eq!(queue.serves().await, "b");
    assert_eq!(client.head().await, 200);
}

/// Every request is admitted, refused, or left, once; what comes back is admitted anew.
#[tokio::test]
async fn nothing_is_lost_in_the_counts() {
    let mut queue = Queue::with(short_marks).await;
    let mut clients = Vec::new();
    for at in 0..40 {
        let class = ["gold", "silver", "copper", "bronze", "edge"][at % 5];
        let client = queue.post(class, class).await;
        match at % 8 {
            7 => drop(client),
            _ => clients.push(client),
        }
    }
    let mut calls = 0;
    until("all are over", async || {
        if let Some(mut call) = queue.worker.called() {
            calls += 1;
            let refuses = calls % 4 == 0;
            let answer = if refuses {
                refusal("worker", "")
            } else {
                JSON.to_owned()
            };
            let _ = call.try_write(answer).await;
        }
        queue
            .front
            .metric("dynamo_frontend_inflight_requests")
            .await
            == Some(0.0)
    })
    .await;
    let front = &queue.front;
    let (mut sum, mut admitted) = (0.0, 0.0);
    for kind in ["admitted", "refused", "left"] {
        let count = all(front, kind).await;
        sum += count;
        admitted += if kind == "admitted" { count } else { 0.0 };
    }
    let returned = all(front, "returned").await;
    let tallies = front.frontend.tallies();
    let ended = tallies.all();
    assert!(
        returned > 0.0 && admitted > returned,
        "{returned} {admitted}"
    );
    assert!(ended >= 35, "{ended}");
    // Who left before its body was read never arrived at the policy.
    let unread = ended as f64 - (sum - returned);
    assert!((0.0..=5.0).contains(&unread), "{ended} {sum} {returned}");
    for class in ["gold", "silver", "copper", "bronze", "edge"] {
        queue.holds(class, 0).await;
    }
    front
        .measures("dynamo_frontend_policy_inside_count{model=\"m\"}", 0.0)
        .await;
}
