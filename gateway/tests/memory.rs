//! What a client costs the worker in memory: queued, told of it, and streaming. The worker is
//! a process of its own, so that only its memory is counted.
//!
//! `cargo test --release -p tidegate-gateway --test memory -- --nocapture` prints
//! the figures.

mod program;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use program::Running;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// What the documentation says at most, in KiB.
const QUEUED_KIB: f64 = 32.0;
const STREAM_KIB: f64 = 96.0;

/// Clients that are queued at once.
const QUEUED: usize = 20_000;
/// Streams that run at once.
const STREAMS: usize = 2_000;

/// Files that either process takes beside its clients.
const OTHERS: u64 = 400;

/// An engine that begins a stream and says nothing more.
async fn engine() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut read = [0; 4096];
                let _ = stream.read(&mut read).await;
                let said = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                            transfer-encoding: chunked\r\n\r\n7\r\ndata: a\r\n2\r\n\n\n\r\n";
                let _ = stream.write_all(said.as_bytes()).await;
                // Until the worker closes.
                while stream.read(&mut read).await.is_ok_and(|len| len > 0) {}
            });
        }
    });
    addr
}

fn worker(engine: SocketAddr, running: usize) -> (Running, SocketAddr) {
    let worker = Running::start(&[
        "worker",
        "--engine-url",
        &format!("http://{engine}"),
        "--listen",
        "127.0.0.1:0",
        "--max-num-seqs",
        "1",
        "--engine-request-limit",
        &running.to_string(),
        "--engine-request-waiting-limit",
        &running.to_string(),
        "--request-queue-limit",
        &QUEUED.to_string(),
        "--log-format",
        "json",
    ]);
    let line: serde_json::Value = serde_json::from_str(&worker.wait_for("worker listens")).unwrap();
    let addr = line["addr"].as_str().unwrap().parse().unwrap();
    (worker, addr)
}

/// Sends a chat of an ordinary size.
async fn ask(addr: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let body = format!("{:1000}", "{}");
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {:40}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        "k",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn gauge(addr: SocketAddr, name: &str) -> usize {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let start = format!("dynamo_backend_admission_{name}{{");
    let series = text.lines().filter(|line| line.starts_with(&start));
    series
        .map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
        .sum()
}

async fn until(addr: SocketAddr, name: &str, count: usize) {
    let start = Instant::now();
    loop {
        let seen = gauge(addr, name).await;
        if seen == count {
            return;
        }
        let late = start.elapsed() > Duration::from_secs(60);
        assert!(!late, "{name} is {seen} and never {count}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Resident memory in KiB. Only Linux tells.
fn resident(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn each(what: &str, count: usize, before: Option<f64>, after: Option<f64>, most: f64) {
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
    let each = (after - before) / count as f64;
    println!("{what}: {each:.1} KiB each ({count} of them, {before} then {after} KiB)");
    assert!(each < most, "{what}: {each:.1} KiB each, {most} are stated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_costs_what_is_stated() {
    let files = rlimit::increase_nofile_limit(rlimit::INFINITY).unwrap();
    let most = files.saturating_sub(OTHERS) as usize;
    queued_on_connections_of_their_own(most.min(QUEUED)).await;
    queued_on_shared_connections(false).await;
    queued_on_shared_connections(true).await;
    streams(most.min(2 * STREAMS) / 2).await;
    streams_on_shared_connections(most.min(STREAMS)).await;
}

/// Over HTTP/1.1: as many as there may be open files here.
async fn queued_on_connections_of_their_own(count: usize) {
    let (worker, addr) = worker(engine().await, 1);
    let first = ask(addr).await;
    until(addr, "engine_request_count", 1).await;
    let before = resident(worker.id());
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(ask(addr).await);
    }
    until(addr, "request_queue_count", count).await;
    let after = resident(worker.id());
    each("queued, HTTP/1.1", count, before, after, QUEUED_KIB);
    // All leave at once.
    drop(clients);
    settled(addr, count, first).await;
}

/// Clients on shared HTTP/2 connections, a thousand on each, as a proxy would have
/// them. They stay until this is dropped.
async fn on_shared_connections(addr: SocketAddr, count: usize, told: bool) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    let mut sender = None;
    for client in 0..count {
        if client % 1000 == 0 {
            let stream = TokioIo::new(TcpStream::connect(addr).await.unwrap());
            let (new, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
            clients.spawn(async {
                let _ = connection.await;
            });
            sender = Some(new);
        }
        let mut request = http::Request::post("http://worker/v1/chat/completions")
            .header("authorization", format!("Bearer {:40}", "k"));
        if told {
            request = request.header("x-admission-progress", "1");
        }
        let body = format!("{:1000}", "{\"stream\":true}");
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let mut sender = sender.clone().unwrap();
        clients.spawn(async move {
            let answer = sender.send_request(request).await;
            if let Ok(mut answer) = answer {
                while let Some(Ok(_)) = answer.frame().await {}
            }
        });
    }
    clients
}

/// Over HTTP/2, with news of their position or without.
async fn queued_on_shared_connections(told: bool) {
    let (worker, addr) = worker(engine().await, 1);
    let first = ask(addr).await;
    until(addr, "engine_request_count", 1).await;
    let before = resident(worker.id());
    let mut clients = on_shared_connections(addr, QUEUED, told).await;
    until(addr, "request_queue_count", QUEUED).await;
    if told {
        // Each has been told more than once by then.
        sleep(Duration::from_secs(3)).await;
    }
    let after = resident(worker.id());
    let what = ["queued, HTTP/2", "queued and told, HTTP/2"][usize::from(told)];
    each(what, QUEUED, before, after, QUEUED_KIB);
    clients.abort_all();
    settled(addr, QUEUED, first).await;
}

/// All have left but the first, which then leaves too.
async fn settled(addr: SocketAddr, left: usize, first: TcpStream) {
    until(addr, "request_queue_count", 0).await;
    assert_eq!(gauge(addr, "cancellation_total").await, left);
    assert_eq!(gauge(addr, "engine_request_count").await, 1);
    drop(first);
    until(addr, "engine_request_count", 0).await;
}

/// Streams that have begun, each with a connection to the engine.
async fn streams(count: usize) {
    let (worker, addr) = worker(engine().await, count);
    let before = resident(worker.id());
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = ask(addr).await;
        let mut read = [0; 16];
        client.read_exact(&mut read).await.unwrap();
        clients.push(client);
    }
    until(addr, "engine_request_waiting_count", 0).await;
    let after = resident(worker.id());
    each("streaming, HTTP/1.1", count, before, after, STREAM_KIB);
    drop(clients);
    until(addr, "engine_request_count", 0).await;
}

/// The same over HTTP/2.
async fn streams_on_shared_connections(count: usize) {
    let (worker, addr) = worker(engine().await, count);
    let before = resident(worker.id());
    let mut clients = on_shared_connections(addr, count, false).await;
    until(addr, "engine_request_count", count).await;
    until(addr, "engine_request_waiting_count", 0).await;
    let after = resident(worker.id());
    each("streaming, HTTP/2", count, before, after, STREAM_KIB);
    clients.abort_all();
    until(addr, "engine_request_count", 0).await;
}
