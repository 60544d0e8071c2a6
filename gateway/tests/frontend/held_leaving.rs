//! What happens around requests that are held: clients that leave, workers that die, and
//! the end. Afterwards nothing is left of any of it.

use std::time::Duration;

use tidegate_gateway::frontend::Outcome;

use super::held_again::all;
use super::queue::{Queue, refused};
use super::support::*;

/// Nobody is anywhere, each that arrived is counted once, and one more is served.
async fn idle(queue: &mut Queue, arrived: u64) {
    let front = &queue.front;
    front
        .measures("dynamo_frontend_inflight_requests", 0.0)
        .await;
    front
        .measures("dynamo_frontend_policy_inside_count{model=\"m\"}", 0.0)
        .await;
    for class in ["gold", "silver", "copper", "bronze", "edge"] {
        queue.holds(class, 0).await;
    }
    assert_eq!(front.frontend.tallies().all(), arrived);
    let mut sum = -all(front, "returned").await;
    for kind in ["admitted", "refused", "left"] {
        sum += all(front, kind).await;
    }
    assert_eq!(sum, arrived as f64);
    for member in front.frontend.workers() {
        let load = front.frontend.monitor().member(member.id).unwrap().load();
        assert_eq!(load.running, 0, "worker {}", member.id);
    }
    let mut next = queue.post("edge", "next").await;
    assert_eq!(queue.serves().await, "next");
    assert_eq!(next.head().await, 200);
}

#[tokio::test]
async fn clients_that_leave_while_held_leave_nothing_behind() {
    let mut queue = Queue::start().await;
    let (mut first, mut call) = queue.running().await;
    let mut leavers = Vec::new();
    for count in 1..=20 {
        leavers.push(queue.held("silver", "leaver", count).await);
    }
    // From the middle, from the end, and the rest at once.
    drop(leavers.remove(10));
    drop(leavers.pop());
    queue.holds("silver", 18).await;
    drop(leavers);
    queue.holds("silver", 0).await;
    assert_eq!(all(&queue.front, "left").await, 20.0);
    assert!(queue.worker.called().is_none());
    call.write(JSON).await;
    assert_eq!(first.head().await, 200);
    first.body().await;
    let tallies = queue.front.frontend.tallies();
    until("all are counted", async || {
        tallies.ended(Outcome::Left) == 20
    })
    .await;
    assert_eq!(tallies.ended(Outcome::Rejected), 0, "no refusals");
    idle(&mut queue, 21).await;
}

/// It leaves while it is held again, after the worker refused it.
#[tokio::test]
async fn a_client_that_leaves_when_it_is_held_again_leaves_nothing_behind() {
    let mut queue = Queue::with(|config| config.mark_time = Duration::from_millis(300)).await;
    let client = queue.post("silver", "leaver").await;
    queue.worker.answer(&refusal("worker", "")).await;
    queue.holds("silver", 1).await;
    drop(client);
    queue.holds("silver", 0).await;
    assert_eq!(all(&queue.front, "returned").await, 1.0);
    let free = "dynamo_frontend_worker_state{worker_id=\"0\",state=\"free\"}";
    queue.front.measures(free, 1.0).await;
    idle(&mut queue, 1).await;
}

/// The worker that all are held for dies: whoever it served hears so, and those that are
/// held are not refused, but told that nobody is there.
#[tokio::test]
async fn a_worker_that_dies_while_requests_are_held_takes_nothing_with_it() {
    let mut queue = Queue::start().await;
    let (mut first, call) = queue.running().await;
    let mut held = Vec::new();
    for count in 1..=3 {
        held.push(queue.held("silver", "held", count).await);
    }
    queue.worker.kill();
    drop(call);
    for client in &mut held {
        assert_unavailable(client).await;
    }
    assert_eq!(first.head().await, 502);
    let addr = queue.worker.addr;
    queue.front.well(0).await;
    queue.worker = Scripted::listen(addr, Pages::default()).await;
    queue.front.well(1).await;
    idle(&mut queue, 4).await;
}

/// While another worker is there, though busy, those that are held stay so, and whom the
/// dead one had not answered is held with them.
#[tokio::test]
async fn who_is_held_when_one_of_two_workers_dies_waits_for_the_other() {
    let mut queue = Queue::start().await;
    let mut other = Scripted::start().await;
    let url = other.url().parse().unwrap();
    queue.front.frontend.add_worker(url).unwrap();
    queue.front.well(2).await;
    let mut clients = [queue.post("gold", "a").await, queue.post("gold", "b").await];
    let (mut here, mut there) = (queue.worker.call().await, other.call().await);
    here.body().await;
    there.body().await;
    let had = there.header("x-who").unwrap().to_owned();
    let mut held = queue.held("silver", "held", 1).await;
    other.kill();
    drop(there);
    queue.front.well(1).await;
    queue.holds("gold", 1).await;
    queue.holds("silver", 1).await;
    here.write(JSON).await;
    assert_eq!(queue.serves().await, had);
    assert_eq!(queue.serves().await, "held");
    for client in clients.iter_mut().chain([&mut held]) {
        assert_eq!(client.head().await, 200);
        client.body().await;
    }
    idle(&mut queue, 3).await;
}

/// A drain ends what is held at once and lets what runs finish, for as long as it may.
#[tokio::test]
async fn a_drain_with_requests_held_ends_when_what_runs_is_cut_off() {
    let mut queue = Queue::with(|config| {
        config.drain_timeout = Duration::from_millis(300);
    })
    .await;
    let (mut first, mut call) = queue.running().await;
    let mut held = Vec::new();
    for count in 1..=3 {
        held.push(queue.held("gold", "held", count).await);
    }
    let tallies = queue.front.frontend.tallies();
    let stopping = tokio::spawn(queue.front.frontend.shutdown());
    for client in &mut held {
        assert_unavailable(client).await;
    }
    soon("the end", stopping).await.unwrap();
    first.closed().await;
    call.closed().await;
    until("each is counted", async || tallies.all() == 4).await;
    assert_eq!(tallies.ended(Outcome::Unavailable), 3);
    assert!(queue.worker.called().is_none());
}

/// A frontend reads bodies first: leave to send one is no admission.
#[tokio::test]
async fn leave_to_send_a_body_comes_before_a_refusal_and_before_it_is_held() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let expects = |class: &str| {
        format!(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\nx-slo-class: {class}\r\nx-who: {class}\r\n\
             expect: 100-continue\r\ncontent-length: 13\r\n\r\n"
        )
    };
    let mut edge = queue.front.send(expects("edge")).await;
    assert_eq!(edge.head().await, 100);
    edge.write(r#"{"model":"m"}"#).await;
    assert_eq!(refused(&mut edge).await["reason"], "concurrency_limit");
    let mut silver = queue.front.send(expects("silver")).await;
    assert_eq!(silver.head().await, 100);
    silver.write(r#"{"model":"m"}"#).await;
    queue.holds("silver", 1).await;
    call.write(JSON).await;
    assert_eq!(queue.serves().await, "silver");
    assert_eq!(silver.head().await, 200);
}
