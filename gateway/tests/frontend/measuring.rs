//! What the frontend's metrics say.

use std::collections::BTreeSet;

use serde_json::json;

use super::support::*;

fn requests(endpoint: &str, outcome: &str) -> String {
    format!(
        "dynamo_frontend_requests_total{{model=\"m\",endpoint=\"{endpoint}\",outcome=\"{outcome}\"}}"
    )
}

/// The names of all series of a page.
async fn series(front: &Front) -> BTreeSet<String> {
    let (_, page) = front.get("/metrics").await;
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}

#[tokio::test]
async fn requests_are_counted_by_how_they_ended() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.mark_time = std::time::Duration::ZERO;
    })
    .await;
    let plain = |status: u16| {
        format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx")
    };
    let answers = [
        (JSON.to_owned(), "ok"),
        (format!("{EVENTS}{}{LAST}", token()), "ok"),
        (plain(400), "client_error"),
        (plain(500), "worker_error"),
        (plain(503), "unavailable"),
        (refusal("worker", ""), "rejected"),
    ];
    for (said, _) in &answers {
        let mut client = front.post().await;
        worker.answer(said).await;
        client.head().await;
        client.body().await;
    }
    for (outcome, count) in [
        ("ok", 2.0),
        ("client_error", 1.0),
        ("worker_error", 1.0),
        ("unavailable", 1.0),
        ("rejected", 1.0),
    ] {
        front
            .measures(&requests("chat_completions", outcome), count)
            .await;
        let seconds = format!(
            "dynamo_frontend_request_duration_seconds_count{{model=\"m\",outcome=\"{outcome}\"}}"
        );
        front.measures(&seconds, count).await;
    }
    let rejections =
        "dynamo_frontend_model_rejection_total{model=\"m\",endpoint=\"chat_completions\"}";
    front.measures(rejections, 1.0).await;
    // Only one of them streamed.
    let first = "dynamo_frontend_time_to_first_token_seconds_count{model=\"m\"}";
    front.measures(first, 1.0).await;
    front
        .measures("dynamo_frontend_inflight_requests", 0.0)
        .await;
}

#[tokio::test]
async fn requests_in_flight_are_seen_and_endpoints_told_apart() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut clients = Vec::new();
    for (path, endpoint) in [
        ("/v1/completions", "completions"),
        ("/v1/embeddings", "embeddings"),
        ("/v1/responses", "responses"),
        ("/v1/messages", "messages"),
    ] {
        let request = post("").replace("/v1/chat/completions", path);
        clients.push((front.send(request).await, endpoint));
    }
    front
        .measures("dynamo_frontend_inflight_requests", 4.0)
        .await;
    let load = "dynamo_frontend_worker_active_prefill_tokens{dp_rank=\"0\",worker_id=\"0\",worker_type=\"aggregated\"}";
    assert!(front.metric(load).await.is_some());
    for (mut client, endpoint) in clients {
        worker.answer(JSON).await;
        let _ = client.head().await;
        let _ = endpoint;
    }
    for endpoint in ["completions", "embeddings", "responses", "messages"] {
        front.measures(&requests(endpoint, "ok"), 1.0).await;
    }
}

#[tokio::test]
async fn what_clients_make_up_makes_no_series() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    for number in 0..2 {
        for round in 0..100 {
            let body = json!({ "model": format!("{number}-{round}\"\n{{}}\\") });
            let mut client = front.send(post_of(&body.to_string(), "")).await;
            assert_eq!(client.head().await, 404);
        }
        let mut client = front
            .send(post("x-data-parallel-rank: 4294967295\r\n"))
            .await;
        worker.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    let counted = "dynamo_frontend_requests_total{model=\"unknown\",endpoint=\"chat_completions\",outcome=\"client_error\"}";
    front.measures(counted, 200.0).await;
    let names = series(&front).await;
    assert!(names.len() < 80, "{names:#?}");
    assert!(
        !names.iter().any(|name| name.contains("4294967295")),
        "{names:#?}"
    );
}

/// The page is one that Prometheus reads: each name is introduced once.
#[tokio::test]
async fn each_metric_is_described_once() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front.post().await;
    worker.answer(&format!("{EVENTS}{}{LAST}", token())).await;
    client.head().await;
    client.body().await;
    front
        .measures(&requests("chat_completions", "ok"), 1.0)
        .await;
    let (_, page) = front.get("/metrics").await;
    let kinds: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let once: BTreeSet<&str> = kinds.iter().copied().collect();
    assert_eq!(kinds.len(), once.len(), "{kinds:?}");
    for name in [
        "dynamo_frontend_model_rejection_total",
        "dynamo_frontend_requests_total",
        "dynamo_frontend_request_duration_seconds",
        "dynamo_frontend_time_to_first_token_seconds",
        "dynamo_frontend_inflight_requests",
        "dynamo_frontend_worker_healthy",
        "dynamo_frontend_worker_requests_total",
        "dynamo_frontend_worker_active_decode_blocks",
        "dynamo_frontend_worker_active_prefill_tokens",
    ] {
        assert!(once.contains(name), "{name} is not in {page}");
    }
}
