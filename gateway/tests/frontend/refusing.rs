//! Workers that refuse: what that says of them, and who gets the request then.

use std::time::Duration;

use tidegate_gateway::frontend::FrontendConfig;

use super::support::*;

/// Marks that no test outlasts.
fn long_marks(config: &mut FrontendConfig) {
    config.mark_time = Duration::from_secs(3600);
}

/// The frontend before three workers, the first of which has just refused for
/// `scope`, and the second has answered that request.
async fn refused_once(scope: &str, headers: &str) -> (Front, [Scripted; 3]) {
    let mut workers = [
        Scripted::start().await,
        Scripted::start().await,
        Scripted::start().await,
    ];
    let front = Front::with(&[&workers[0], &workers[1], &workers[2]], long_marks).await;
    let mut client = front.post().await;
    workers[0].answer(&refusal(scope, headers)).await;
    workers[1].answer(JSON).await;
    assert_eq!(client.head().await, 200);
    (front, workers)
}

/// Sends a request and says who gets it, which answers it.
async fn taken_by(front: &Front, workers: &mut [Scripted]) -> usize {
    let mut client = front.post().await;
    let mut taken = None;
    until("somebody has it", async || {
        for (at, worker) in workers.iter_mut().enumerate() {
            if let Some(mut call) = worker.called() {
                call.body().await;
                call.write(JSON).await;
                taken = Some(at);
            }
        }
        taken.is_some()
    })
    .await;
    assert_eq!(client.head().await, 200);
    taken.unwrap()
}

#[tokio::test]
async fn a_worker_that_refuses_is_out_and_the_request_goes_elsewhere() {
    let (front, mut workers) = refused_once("worker", "").await;
    for expected in [2, 1, 2, 1, 2] {
        assert_eq!(taken_by(&front, &mut workers).await, expected);
    }
}

/// A refusal's head says enough: while its body does not come, the request goes on, and
/// the worker is still marked.
#[tokio::test]
async fn a_refusal_whose_body_never_comes_holds_its_request_up_only_briefly() {
    let mut workers = [Scripted::start().await, Scripted::start().await];
    let front = Front::with(&[&workers[0], &workers[1]], long_marks).await;
    let mut client = front.post().await;
    let mut call = workers[0].call().await;
    call.body().await;
    call.write(
        "HTTP/1.1 529 x\r\ncontent-type: application/json\r\nx-admission-scope: worker\r\ncontent-length: 99\r\n\r\n{",
    )
    .await;
    workers[1].answer(JSON).await;
    assert_eq!(client.head().await, 200);
    call.closed().await;
    // The next in turn would be the first worker again.
    let mut client = front.post().await;
    workers[1].answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

/// CASES 26.
#[tokio::test]
async fn one_refusal_and_silence_keep_nobody_out_for_longer_than_a_second() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front.post().await;
    worker
        .answer(&refusal("worker", "retry-after: 7\r\n"))
        .await;
    let body = assert_overloaded(&mut client, 529).await;
    assert_eq!(client.header("retry-after"), Some("7"));
    assert_eq!(client.header("x-admission-scope"), None);
    assert_eq!(body["details"]["refused"], 1);
    assert_eq!(body["details"]["worker"]["limit"], "here");
    // No load sample comes, and none is needed.
    tokio::time::sleep(Duration::from_millis(1050)).await;
    let mut client = front.post().await;
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_load_sample_that_says_free_ends_the_mark() {
    let mut worker = Scripted::with(Pages {
        metrics: Some("vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n".to_owned()),
        ..Pages::default()
    })
    .await;
    let front = Front::with(&[&worker], long_marks).await;
    let mut client = front.post().await;
    worker.answer(&refusal("worker", "")).await;
    assert_overloaded(&mut client, 529).await;
    until("it is asked again", async || {
        let _client = front.post().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        worker.called().is_some()
    })
    .await;
}

#[tokio::test]
async fn a_rank_and_a_class_that_are_full_keep_their_worker_in() {
    for scope in ["rank", "class"] {
        let (front, mut workers) = refused_once(scope, "x-admission-rank: 4\r\n").await;
        let taken = [
            taken_by(&front, &mut workers).await,
            taken_by(&front, &mut workers).await,
        ];
        assert_eq!(taken, [2, 0], "{scope}");
    }
}

#[tokio::test]
async fn a_request_is_tried_once_more_and_never_by_the_same_worker() {
    let (front, mut workers) = refused_once("rank", "").await;
    let mut client = front.post().await;
    workers[2].answer(&refusal("rank", "")).await;
    workers[0]
        .answer(&refusal("class", "retry-after: 3\r\n"))
        .await;
    assert_overloaded(&mut client, 529).await;
    assert_eq!(client.header("retry-after"), Some("3"));
    assert!(workers.iter_mut().all(|worker| worker.called().is_none()));

    // One alone is asked once.
    let mut alone = Scripted::start().await;
    let front = Front::start(&[&alone]).await;
    let mut client = front.post().await;
    alone.answer(&refusal("rank", "")).await;
    assert_overloaded(&mut client, 529).await;
    assert!(alone.called().is_none());
}

#[tokio::test]
async fn a_refusal_is_known_by_its_scope_and_not_by_its_status() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    // An engine's own 529 passes, and marks nothing.
    for _ in 0..2 {
        let mut client = front.post().await;
        worker
            .answer("HTTP/1.1 529 x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nmine")
            .await;
        assert_eq!(client.head().await, 529);
        assert_eq!(client.body().await, b"mine");
    }
    // A worker may refuse with any status, 200 included.
    let mut client = front.post().await;
    let said = refusal("worker", "").replace("HTTP/1.1 529", "HTTP/1.1 200");
    worker.answer(&said).await;
    assert_overloaded(&mut client, 529).await;
}

/// CASES 34, by refusals: three of four are full.
#[tokio::test]
async fn with_three_of_four_full_every_request_goes_to_the_fourth() {
    let mut workers = [
        Scripted::start().await,
        Scripted::start().await,
        Scripted::start().await,
        Scripted::start().await,
    ];
    let all: Vec<&Scripted> = workers.iter().collect();
    let front = Front::with(&all, long_marks).await;
    // Each of the three has refused somebody, the fourth has all of them.
    let [a, b, c, d] = &mut workers;
    let mut first = front.post().await;
    a.answer(&refusal("worker", "")).await;
    b.answer(&refusal("worker", "")).await;
    assert_overloaded(&mut first, 529).await;
    let mut second = front.post().await;
    c.answer(&refusal("worker", "")).await;
    d.answer(JSON).await;
    assert_eq!(second.head().await, 200);
    for _ in 0..10 {
        let mut client = front.post().await;
        d.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    // And when it is full too, nobody is asked.
    let mut client = front.post().await;
    d.answer(&refusal("worker", "")).await;
    assert_overloaded(&mut client, 529).await;
    let mut client = front.post().await;
    assert_overloaded(&mut client, 529).await;
    assert!(workers.iter_mut().all(|worker| worker.called().is_none()));
}
