//! SIGTERM, and an engine that comes, goes and comes again.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use tokio::time::sleep;

use super::program::Running;
use super::{ask, worker};

/// A simulated engine on this address.
fn engine(listen: &str, flags: &[&str]) -> (Running, String) {
    let mut arguments = vec!["engine", "--listen", listen, "--max-num-seqs", "4"];
    arguments.extend(["--log-format", "json"]);
    arguments.extend(flags);
    let engine = Running::start(&arguments);
    let line: serde_json::Value =
        serde_json::from_str(&engine.wait_for("listening")).expect("JSON");
    let url = line["url"].as_str().expect("a URL").to_owned();
    (engine, url)
}

/// `None` if the connection ends without an answer, as one may that was accepted just
/// before the worker began to shut down.
async fn chat(
    addr: std::net::SocketAddr,
    tokens: u32,
) -> Option<http::Response<hyper::body::Incoming>> {
    use bytes::Bytes;
    use http_body_util::Full;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    let body = serde_json::json!({"stream": true, "max_tokens": tokens, "ignore_eos": true,
        "messages": [{"role": "user", "content": "hello"}]});
    let request = http::Request::post(format!("http://{addr}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    client.request(request).await.ok()
}

async fn until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !reached().await {
        assert!(start.elapsed() < Duration::from_secs(10), "never: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sigterm_what_runs_ends_well_and_the_exit_is_clean() {
    let (_engine, url) = engine("127.0.0.1:0", &["--speed", "10"]);
    let (mut worker, addr) = worker(&url, &[], |_| {});
    worker.wait_for("limits in force");
    // Two seconds at this speed: it still runs when the worker turns others away.
    let mut answer = chat(addr, 2_000).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.frame().await.unwrap().unwrap();
    let id = worker.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status();
    assert!(sent.unwrap().success());
    until("new requests are turned away", async || {
        let answer = chat(addr, 1).await;
        answer.is_some_and(|answer| answer.status() == 503)
    })
    .await;
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(text.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(worker.ended(), Some(0));
    assert!(worker.line("worker stopped").is_some());
}

/// The engine is slow to start, serves, dies under load, and comes back: requests
/// fail with 502 while it is away, and nothing is left of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_may_come_late_and_come_again() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let (worker, addr) = worker(&format!("http://{listen}"), &[], |_| {});
    worker.wait_for("SIZE IS NOT KNOWN");
    assert_eq!(ask(addr, &[]).await.status(), 502);
    assert_eq!(get(addr, "/ready").await.0, 503);

    let (mut first, _) = engine(&listen, &["--startup-delay", "1"]);
    worker.wait_for("limits in force");
    until("it is ready", async || get(addr, "/ready").await.0 == 200).await;
    let load: Vec<_> = (0..12).map(|_| tokio::spawn(chat(addr, 50_000))).collect();
    until("all have come", async || {
        metric(addr, "request_receive_total").await >= 13
    })
    .await;
    first.stop("-KILL");
    for asked in load {
        // Those in the engine are cut, the queued ones get no answer from it.
        let answer = asked.await.unwrap().expect("an answer");
        let status = answer.status();
        let cut = answer.into_body().collect().await.is_err();
        assert!(status == 502 || (status == 200 && cut), "{status}");
    }
    assert_eq!(metric(addr, "engine_request_count").await, 0);
    assert_eq!(metric(addr, "rejection_total").await, 0);

    let (_second, _) = engine(&listen, &["--speed", "100"]);
    until("it serves again", async || {
        let answer = chat(addr, 3).await.expect("an answer");
        answer.status() == 200 && answer.into_body().collect().await.is_ok()
    })
    .await;
    assert_eq!(metric(addr, "engine_request_count").await, 0);
}

async fn get(addr: std::net::SocketAddr, path: &str) -> (u16, String) {
    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let url = format!("http://{addr}{path}").parse().unwrap();
    let answer = client.get(url).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// A metric, over all its series.
async fn metric(addr: std::net::SocketAddr, name: &str) -> u64 {
    let start = format!("dynamo_backend_admission_{name}{{");
    let (_, text) = get(addr, "/metrics").await;
    let series = text.lines().filter(|line| line.starts_with(&start));
    let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}
