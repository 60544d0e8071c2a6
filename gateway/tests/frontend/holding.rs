//! A frontend with a policy: requests wait there while every worker is busy.

use tidegate_gateway::frontend::Outcome;
use tidegate_gateway::policy::PolicyConfig;
use tidegate_policy::file;
use tidegate_policy::shadow::Mode;

use super::busy::busy;
use super::codes::used;
use super::queue::{POLICY, Queue, decided, holds_of, policy};
use super::support::*;

#[tokio::test]
async fn a_request_is_held_while_all_are_busy_and_served_when_one_frees() {
    let mut queue = Queue::start().await;
    let (mut first, mut call) = queue.running().await;
    let mut second = queue.held("silver", "second", 1).await;
    assert!(queue.worker.called().is_none());
    assert_eq!(queue.front.frontend.tallies().ended(Outcome::Rejected), 0);
    call.write(EVENTS).await;
    call.write(token()).await;
    assert_eq!(first.head().await, 200);
    // Its prompt is read: there is room, though it still streams.
    assert_eq!(queue.serves().await, "second");
    assert_eq!(second.head().await, 200);
    second.body().await;
    call.write(LAST).await;
    first.body().await;
    queue.holds("silver", 0).await;
    let inside = "dynamo_frontend_policy_inside_count{model=\"m\"}";
    queue.front.measures(inside, 0.0).await;
    let held = decided(&queue.front, "silver", "held", "concurrency_limit").await;
    assert_eq!(held, 1.0);
    assert_eq!(decided(&queue.front, "silver", "admitted", "").await, 1.0);
    let waits = |class| {
        format!("dynamo_frontend_policy_wait_seconds_count{{model=\"m\",class=\"{class}\"}}")
    };
    queue.front.measures(&waits("silver"), 1.0).await;
    queue.front.measures(&waits("gold"), 1.0).await;
}

#[tokio::test]
async fn a_metrics_page_that_says_free_lets_in_who_is_held() {
    let metrics = Some(used(95));
    let mut worker = Scripted::with(Pages {
        metrics,
        ..Pages::default()
    })
    .await;
    let front = Front::with(&[&worker], |config| {
        config.monitor.thresholds.active_decode_blocks = Some(0.9);
        config.policy = policy();
    })
    .await;
    until("it is busy", async || busy(&front, 0).await).await;
    let mut client = front.post().await;
    holds_of(&front, "silver", 1).await;
    worker.set(|pages| pages.metrics = Some(used(5)));
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_threshold_that_is_lifted_lets_in_who_is_held() {
    let mut queue = Queue::start().await;
    let _running = queue.running().await;
    let mut held = queue.held("silver", "held", 1).await;
    let body = r#"{"model":"m","active_prefill_tokens_threshold":null}"#;
    let head = format!(
        "POST /busy_threshold HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut admin = queue.front.send(head).await;
    assert_eq!(admin.head().await, 200);
    assert_eq!(queue.serves().await, "held");
    assert_eq!(held.head().await, 200);
}

#[tokio::test]
async fn the_higher_priority_goes_first_and_order_within_a_class_is_kept() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let _a = queue.held("silver", "a", 1).await;
    let _b = queue.held("silver", "b", 2).await;
    let _c = queue.held("gold", "c", 1).await;
    let key = "authorization: Bearer sk-gold\r\nx-slo-class: edge\r\nx-who: d\r\n";
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(4000));
    let _d = queue.front.send(post_of(&body, key)).await;
    queue.holds("gold", 2).await;
    call.write(JSON).await;
    for who in ["c", "d", "a", "b"] {
        assert_eq!(queue.serves().await, who);
    }
}

#[tokio::test]
async fn classes_of_one_priority_share_by_their_weights() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let mut clients = Vec::new();
    for count in 1..=12 {
        clients.push(queue.held("silver", "silver", count).await);
        clients.push(queue.held("copper", "copper", count).await);
    }
    call.write(JSON).await;
    let mut silver = 0;
    for _ in 0..12 {
        silver += u32::from(queue.serves().await == "silver");
    }
    assert_eq!(silver, 9, "3 to 1 while both wait");
}

/// By tokens, what a request asks for in its body is what counts.
#[tokio::test]
async fn long_prompts_share_with_short_ones_by_their_tokens() {
    let mut queue = Queue::with(|config| {
        let text = POLICY
            .replace("by = \"requests\"", "by = \"tokens\"")
            .replace("weight = 3\n", "");
        config.policy = Some(PolicyConfig::new(file::parse(&text).unwrap()));
    })
    .await;
    let (_first, mut call) = queue.running().await;
    let post = |class: &str, bytes| {
        let prompt = "x".repeat(bytes);
        let body = format!(r#"{{"model":"m","max_tokens":1,"prompt":"{prompt}"}}"#);
        post_of(
            &body,
            &format!("x-slo-class: {class}\r\nx-who: {class}\r\n"),
        )
    };
    let mut clients = Vec::new();
    for count in 1..=8 {
        clients.push(queue.front.send(post("silver", 12_000)).await);
        clients.push(queue.front.send(post("copper", 4_000)).await);
        queue.holds("silver", count).await;
        queue.holds("copper", count).await;
    }
    call.write(JSON).await;
    let mut copper = 0;
    for _ in 0..8 {
        copper += u32::from(queue.serves().await == "copper");
    }
    assert_eq!(copper, 6, "a third as long, three times as many");
}

#[tokio::test]
async fn observing_counts_and_changes_nothing() {
    let mut queue = Queue::with(|config| {
        let mut observed = policy().unwrap();
        observed.mode = Mode::Observe;
        config.policy = Some(observed);
    })
    .await;
    let (mut first, mut call) = queue.running().await;
    for class in ["silver", "edge"] {
        let mut client = queue.post(class, class).await;
        assert_overloaded(&mut client, 529).await;
        assert_eq!(client.header("x-admission-scope"), None, "as without");
    }
    call.write(JSON).await;
    assert_eq!(first.head().await, 200);
    for (class, decision, reason) in [
        ("gold", "admitted", ""),
        ("silver", "held", "concurrency_limit"),
        ("edge", "refused", "concurrency_limit"),
    ] {
        let count = decided(&queue.front, class, decision, reason).await;
        assert_eq!(count, 1.0, "{class} {decision}");
    }
    queue.holds("silver", 0).await;
    let observes = "dynamo_frontend_policy_observes{model=\"m\"}";
    assert_eq!(queue.front.metric(observes).await, Some(1.0));
}

#[tokio::test]
async fn who_is_held_stays_so_under_a_new_policy() {
    let mut queue = Queue::start().await;
    let (_first, mut call) = queue.running().await;
    let _a = queue.held("silver", "a", 1).await;
    let _b = queue.held("gold", "b", 1).await;
    // Gold is gone; its request is in the default class now.
    let new = "[[class]]\nname = \"silver\"\nfirst_token_ms = 600000\nqueue_timeout_ms = 60000\n";
    let new = file::parse(new).unwrap();
    assert!(queue.front.frontend.follow(new));
    queue.holds("silver", 2).await;
    call.write(JSON).await;
    assert_eq!(queue.serves().await, "a");
    assert_eq!(queue.serves().await, "b");
    // Without one there is nothing to replace.
    let front = Front::start(&[&queue.worker]).await;
    assert!(!front.frontend.follow(file::parse("").unwrap()));
}

#[tokio::test]
async fn a_worker_that_comes_gets_who_is_held() {
    let mut queue = Queue::start().await;
    let _running = queue.running().await;
    let _held = queue.held("silver", "held", 1).await;
    let mut other = Scripted::start().await;
    let url = other.url().parse().unwrap();
    queue.front.frontend.add_worker(url).unwrap();
    let call = other.call().await;
    assert_eq!(call.header("x-who"), Some("held"));
}

#[tokio::test]
async fn a_model_waits_for_its_own_workers_only() {
    let mut queue = Queue::start().await;
    let models = r#"{"object":"list","data":[{"id":"n","object":"model"}]}"#.to_owned();
    let mut other = Scripted::with(Pages {
        models: Some(models),
        ..Pages::default()
    })
    .await;
    let url = other.url().parse().unwrap();
    queue.front.frontend.add_worker(url).unwrap();
    queue.front.well(2).await;
    let _running = queue.running().await;
    let _held = queue.held("silver", "held", 1).await;
    let mut client = queue.front.send(post_of(r#"{"model":"n"}"#, "")).await;
    other.answer(JSON).await;
    assert_eq!(client.head().await, 200);
    queue.holds("silver", 1).await;
}

#[tokio::test]
async fn series_begin_at_nothing_and_without_a_policy_there_are_none() {
    let queue = Queue::start().await;
    queue.holds("gold", 0).await;
    assert_eq!(decided(&queue.front, "edge", "admitted", "").await, 0.0);
    for predictor in ["regression", "average"] {
        let series = format!(
            "dynamo_frontend_policy_drain_error_seconds{{class=\"gold\",predictor=\"{predictor}\",\
             model=\"m\"}}"
        );
        let error = queue.front.metric(&series).await;
        assert!(error.is_some_and(f64::is_nan), "{series}: {error:?}");
    }
    let without = Front::start(&[&queue.worker]).await;
    let (_, page) = without.get("/metrics").await;
    assert!(!page.contains("policy"), "{page}");
}
