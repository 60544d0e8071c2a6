//! What the log says of limits, decisions, refusals, and an engine that is down.

use std::net::TcpListener;

use http_body_util::BodyExt;
use serde_json::Value;
use tidegate_gateway::engine::{Engine, EngineConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Running, ask, worker};

const OTHER_RANKS: &str = "the engine has other ranks than --dp-ranks says, which stay";

/// The lines so far with this message.
fn lines(worker: &Running, message: &str) -> Vec<Value> {
    let all = worker.all();
    let events = all
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    events
        .filter(|event: &Value| event["message"] == message)
        .collect()
}

/// Waits for the decision on a request, the `count`th one.
fn decision(worker: &Running, id: &str, count: usize) -> Value {
    let start = std::time::Instant::now();
    loop {
        let mut of = lines(worker, "decided");
        of.retain(|event| event["id"] == id);
        if of.len() >= count {
            return of.swap_remove(count - 1);
        }
        assert!(
            start.elapsed().as_secs() < 5,
            "no decision {count} on {id}: {of:?}"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_decision_is_logged_and_a_refusal_says_the_same_to_its_client() {
    // It accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let limits = [
        "--dp-ranks",
        "3-4",
        "--engine-request-limit",
        "1",
        "--request-queue-limit",
        "1",
    ];
    let flags = [&limits[..], &["--max-num-seqs", "8"]].concat();
    let (worker, addr) = worker(&url, &flags, |command| {
        command.env("RUST_LOG", "info,tidegate_gateway::worker::decision=debug");
    });
    let ask_as = |id: &'static str| {
        tokio::spawn(async move {
            ask(addr, &[("x-request-id", id), ("x-data-parallel-rank", "4")]).await
        })
    };
    let first = ask_as("first");
    let said = decision(&worker, "first", 1);
    assert_eq!(
        (&said["outcome"], &said["lane"], &said["level"]),
        (&"admitted".into(), &"4".into(), &"DEBUG".into())
    );
    let second = ask_as("second");
    let said = decision(&worker, "second", 1);
    assert_eq!(
        (&said["outcome"], &said["position"], &said["lane"]),
        (&"queued".into(), &1.into(), &"4".into())
    );

    let refused = ask_as("third").await.unwrap();
    assert_eq!(refused.status(), 529);
    let said = decision(&worker, "third", 1);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    let details = serde_json::from_slice::<Value>(&body).unwrap()["details"].take();
    assert_eq!(
        (&said["outcome"], &said["reason"]),
        (&"refused".into(), &details["limit"])
    );
    assert_eq!(said["scope"], "rank 4");
    for same in [
        "value",
        "limit_of",
        "running",
        "waiting",
        "queued",
        "retryable",
        "retry_after_seconds",
    ] {
        assert_eq!(said[same], details[same], "{same}: {said} {details}");
    }
    assert_eq!(
        (&details["value"], &details["retryable"]),
        (&1.into(), &true.into())
    );

    // Who leaves the queue, and who does in the engine and lets the next one in.
    second.abort();
    let said = decision(&worker, "second", 2);
    assert_eq!(
        (&said["outcome"], &said["reason"]),
        (&"cancelled".into(), &"the client left".into())
    );
    let fourth = ask_as("fourth");
    decision(&worker, "fourth", 1);
    first.abort();
    let said = decision(&worker, "fourth", 2);
    assert_eq!(
        (&said["outcome"], &said["reason"]),
        (&"admitted".into(), &"its turn came".into())
    );
    fourth.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_their_sources_are_logged_once_and_a_storm_of_failures_as_one() {
    let flags = ["--max-num-seqs", "8", "--engine-request-limit", "4"];
    let (mut worker, addr) = worker("http://127.0.0.1:1", &flags, |command| {
        command.env("DYN_DYNAMO_REQUEST_QUEUE_LIMIT", "7");
    });
    for _ in 0..30 {
        assert_eq!(ask(addr, &[]).await.status(), 502);
    }
    worker.stop("-TERM");
    let failures = lines(&worker, "no answer from the engine");
    // One each 5 s, however slow this machine is.
    assert!((1..=10).contains(&failures.len()), "{failures:#?}");
    let all = worker.all();
    let limits: Vec<&str> = all
        .lines()
        .filter(|line| line.contains("limits in force"))
        .collect();
    assert_eq!(limits.len(), 1, "{all}");
    let limits: Value = serde_json::from_str(limits[0]).unwrap();
    for (setting, value, source) in [
        ("engine_request_limit", 4, "flag"),
        (
            "engine_request_waiting_limit",
            8,
            "the engine's max_num_seqs",
        ),
        (
            "request_queue_limit",
            7,
            "environment DYN_DYNAMO_REQUEST_QUEUE_LIMIT (older name)",
        ),
    ] {
        assert_eq!(
            (&limits[setting], &limits[format!("{setting}_source")]),
            (&value.into(), &source.into())
        );
    }
}

/// Of an engine that tells other ranks than flags do, and of one whose size is
/// more than anybody can count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_conflict_or_cannot_be_used_are_warned_about() {
    let engine = Engine::start(EngineConfig {
        ranks: 2,
        ..EngineConfig::default()
    })
    .await
    .unwrap();
    let (conflicting, _) = worker(&engine.url(), &["--dp-ranks", "4-5"], |_| {});
    conflicting.wait_for("the engine told its size");
    let warned = &lines(&conflicting, OTHER_RANKS)[0];
    assert_eq!(
        (&warned["level"], &warned["told"], &warned["kept"]),
        (&"WARN".into(), &"0-1".into(), &"4-5".into())
    );

    let url = telling(r#"{"max_running_requests": 4000000000}"#).await;
    let (unusable, _) = worker(&url, &[], |_| {});
    let line = unusable.wait_for("the engine's report was not usable");
    assert!(
        line.contains("WARN") && line.contains("engine_request_limit"),
        "{line}"
    );
    let line = unusable.wait_for("THE ENGINE'S SIZE IS NOT KNOWN");
    assert!(
        line.contains("\"limit\":10000") && line.contains("--max-num-seqs"),
        "{line}"
    );
}

/// A page with ranks and no size, and one with something that cannot be: both are
/// named, and the first keeps its ranks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_engine_tells_and_nobody_can_use_is_named() {
    for (page, named) in [
        (
            r#"{"dp_size": 2, "max_running_requests": null}"#,
            "SGLang /get_server_info: max_running_requests is null, and not a number from 1 to",
        ),
        (
            r#"{"dp_size": "2", "max_running_requests": 8}"#,
            r#"SGLang /get_server_info: dp_size is "2", and not a number from 1 to 1024"#,
        ),
        (
            r#"{"total_slots": 0}"#,
            "llama.cpp /props: total_slots is 0, and not a number from 1 to",
        ),
    ] {
        let url = telling(page).await;
        let (worker, _) = worker(&url, &["--engine-request-limit", "4"], |_| {});
        let known = "the engine's size is not known; explicit limits hold";
        let line: Value = serde_json::from_str(&worker.wait_for(known)).unwrap();
        let why = line["why"].as_str().unwrap();
        assert!(why.starts_with(named), "{why}");
        let told = lines(&worker, "the engine told its ranks and no size");
        let kept = told.first().map(|line| &line["ranks"]);
        assert_eq!(
            kept,
            page.contains("null").then_some(&"0-1".into()),
            "{page}"
        );
    }
}

/// An engine that answers everything with this page.
async fn telling(page: &str) -> String {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
        page.len()
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}
