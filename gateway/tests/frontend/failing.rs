//! Workers that fail: nothing that could be served is lost, and nothing is sent
//! again once the client has a byte of an answer.

use std::time::Duration;

use super::support::*;

async fn two() -> (Front, Scripted, Scripted) {
    two_with(|_| {}).await
}

async fn two_with(
    change: impl FnOnce(&mut tidegate_gateway::frontend::FrontendConfig),
) -> (Front, Scripted, Scripted) {
    let (one, other) = (Scripted::start().await, Scripted::start().await);
    let front = Front::with(&[&one, &other], change).await;
    (front, one, other)
}

/// An answer of this status without a scope.
fn plain(status: u16) -> String {
    format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nmine")
}

#[tokio::test]
async fn a_worker_that_is_gone_costs_nobody_a_request() {
    let (front, one, mut other) = two_with(|config| {
        // So that it is a request that finds out.
        config.health_interval = Duration::from_secs(3600);
    })
    .await;
    one.kill();
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..4 {
        let mut client = front.post().await;
        other.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    front.well(1).await;
    front
        .measures(
            "dynamo_frontend_worker_requests_total{worker_id=\"0\",result=\"unreachable\"}",
            1.0,
        )
        .await;
}

#[tokio::test]
async fn a_worker_that_dies_before_its_first_byte_is_replaced() {
    let (front, mut one, mut other) = two().await;
    // Without an answer; within its head; with a head and nothing behind it.
    for said in ["", "HTTP/1.1 200 OK\r\ncont", EVENTS] {
        let mut client = front.post().await;
        let mut call = one.call().await;
        call.body().await;
        call.write(said).await;
        // Whatever has come, the client has not heard of it.
        assert!(client.is_silent().await);
        drop(call);
        let mut call = other.call().await;
        assert_eq!(call.body().await, br#"{"model":"m"}"#);
        call.write(JSON).await;
        assert_eq!(client.head().await, 200, "{said:?}");
        assert_eq!(client.body().await, b"{}");
    }
    assert!(one.called().is_none());
}

#[tokio::test]
async fn a_stream_that_has_begun_is_cut_and_not_begun_again() {
    let (front, mut one, mut other) = two().await;
    let mut client = front.post().await;
    let mut call = one.call().await;
    call.body().await;
    call.write(EVENTS).await;
    call.write(token()).await;
    assert_eq!(client.head().await, 200);
    client.expect(token()).await;
    drop(call);
    client.closed().await;
    assert!(client.has_nothing_left());
    assert!(other.called().is_none());
    front
        .measures(
            "dynamo_frontend_requests_total{model=\"m\",endpoint=\"chat_completions\",outcome=\"worker_error\"}",
            1.0,
        )
        .await;
}

#[tokio::test]
async fn two_that_fail_are_enough_and_the_client_is_told() {
    let mut workers = [
        Scripted::start().await,
        Scripted::start().await,
        Scripted::start().await,
    ];
    let front = Front::start(&[&workers[0], &workers[1], &workers[2]]).await;
    let mut client = front.post().await;
    for worker in &mut workers[..2] {
        let mut call = worker.call().await;
        call.body().await;
        call.write("no http\r\n\r\n").await;
    }
    let (status, body) = answer(&mut client).await;
    assert_eq!((status, body["type"].as_str()), (502, Some("Bad Gateway")));
    assert!(workers[2].called().is_none());
}

#[tokio::test]
async fn what_says_that_it_cannot_is_asked_elsewhere_and_passed_on_if_nobody_can() {
    for status in [502, 503] {
        let (front, mut one, mut other) = two().await;
        let mut client = front.post().await;
        one.answer(&plain(status)).await;
        other.answer(JSON).await;
        assert_eq!(client.head().await, 200);
        let mut client = front.post().await;
        one.answer(&plain(status)).await;
        other.answer(&plain(status)).await;
        assert_eq!(client.head().await, status);
        assert_eq!(client.body().await, b"mine");
    }
}

#[tokio::test]
async fn other_errors_are_the_engines_own_and_passed_on() {
    let (front, mut one, mut other) = two().await;
    for (status, by_one) in [(500, true), (504, false), (400, true), (429, false)] {
        let mut client = front.post().await;
        let worker = if by_one { &mut one } else { &mut other };
        worker.answer(&plain(status)).await;
        assert_eq!(client.head().await, status);
    }
    assert!(one.called().is_none() && other.called().is_none());
}

#[tokio::test]
async fn a_connection_that_was_kept_too_long_costs_nothing() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        // Nobody else uses connections.
        config.health_interval = Duration::from_secs(3600);
        config.monitor.scrape_interval = None;
    })
    .await;
    let mut client = front.connect().await;
    client.write(post("")).await;
    let mut call = worker.call().await;
    // Requests come on the connection of the one before, once it is known to be free.
    let kept = loop {
        call.body().await;
        call.write(KEPT).await;
        assert_eq!(client.head().await, 200);
        client.body().await;
        client.write(post("")).await;
        tokio::select! {
            head = call.try_head() => {
                head.expect("a head, not the end");
                break call;
            }
            next = worker.call() => call = next,
        }
    };
    // It closes without a word, as engines do that have enough of a connection.
    drop(kept);
    let mut call = worker.call().await;
    assert_eq!(call.header("connection"), Some("close"));
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);

    // One that closes each time has failed.
    let mut client = front.post().await;
    drop(worker.call().await);
    drop(worker.call().await);
    assert_eq!(client.head().await, 502);
    assert!(worker.called().is_none());
}

#[tokio::test]
async fn a_worker_that_says_nothing_is_given_up_and_not_asked_again() {
    let (front, mut one, mut other) = two_with(|config| {
        config.worker_idle_timeout = Some(Duration::from_millis(100));
    })
    .await;
    // Before its head, and behind it.
    for (said, by_one) in [("", true), (EVENTS, false)] {
        let worker = if by_one { &mut one } else { &mut other };
        let mut client = front.post().await;
        let mut call = worker.call().await;
        call.body().await;
        call.write(said).await;
        assert_eq!(client.head().await, 504);
        call.closed().await;
    }
    assert!(one.called().is_none() && other.called().is_none());
}
