//! Starting, learning the engine's size, being watched, and ending.

use std::time::Duration;

use tidegate::Settings;
use tidegate_gateway::worker::{KnownEngine, Worker};

use super::asking::*;
use super::support::*;

/// Reads one of the worker's own routes.
async fn get(bench: &Bench, path: &str) -> (u16, String) {
    let mut client = bench.connect().await;
    client
        .write(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
        .await;
    let status = client.head().await;
    (status, String::from_utf8(client.body().await).unwrap())
}

#[tokio::test]
async fn metrics_show_every_count_by_rank() {
    let mut bench = Bench::with(limits(1, 1, 1), &[4], |_| {}).await;
    let (_, text) = get(&bench, "/metrics").await;
    for line in [
        "engine_request_count{dp_rank=\"4\"} 0",
        "engine_request_waiting_count{dp_rank=\"unspecified\"} 0",
        "request_admit_total{dp_rank=\"4\",source=\"queue\"} 0",
        "rejection_total{dp_rank=\"4\",scope=\"rank\"} 0",
        "cancellation_total{dp_rank=\"unspecified\"} 0",
        "queue_wait_seconds_count{dp_rank=\"4\"} 0",
        "engine_request_limit 1",
        "request_queue_limit 1",
        "engine_reported 1",
    ] {
        let line = format!("\ndynamo_backend_admission_{line}\n");
        assert!(text.contains(&line), "{line} is not in {text}");
    }
    let first = bench.post_with("x-data-parallel-rank: 4\r\n").await;
    let mut call = bench.engine.call().await;
    let second = bench.post_with("x-data-parallel-rank: 4\r\n").await;
    bench.holds(1, 1, 1).await;
    let mut third = bench.post_with("x-data-parallel-rank: 77\r\n").await;
    assert_eq!(third.head().await, 529);
    call.write(JSON).await;
    bench.engine.answer(JSON).await;
    bench.holds(0, 0, 0).await;
    let (status, text) = get(&bench, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "request_receive_total{dp_rank=\"4\"} 2",
        "request_admit_total{dp_rank=\"4\",source=\"direct\"} 1",
        "request_admit_total{dp_rank=\"4\",source=\"queue\"} 1",
        "rejection_total{dp_rank=\"unspecified\",scope=\"worker\"} 1",
        "queue_wait_seconds_count{dp_rank=\"4\"} 1",
    ] {
        let line = format!("\ndynamo_backend_admission_{line}\n");
        assert!(text.contains(&line), "{line} is not in {text}");
    }
    assert!(
        !text.contains("\"77\""),
        "a rank that a client made up is a label"
    );
    drop((first, second));
    bench.idle().await;
}

#[tokio::test]
async fn health_is_the_workers_and_ready_the_engines() {
    let mut bench = Bench::start(1, 1, 0).await;
    let _streaming = bench.streaming().await;
    assert_eq!(get(&bench, "/health").await.0, 200);
    for (engine_says, ready) in [
        ("200 OK", 200),
        ("404 Not Found", 200),
        ("503 Loading", 503),
    ] {
        let mut client = bench.connect().await;
        client.write("GET /ready HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut call = bench.engine.call().await;
        assert!(call.head.starts_with("get /health "), "{}", call.head);
        let answer =
            format!("HTTP/1.1 {engine_says}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        call.write(answer).await;
        assert_eq!(client.head().await, ready, "{engine_says}");
    }
}

/// Explicit limits would be in range all the same; the size is no more believed.
#[tokio::test]
async fn an_engine_of_size_0_is_not_believed() {
    let engine = Engine::start().await;
    let mut config = config(engine.addr);
    config.settings = limits(1, 1, 1);
    config.known_engine = KnownEngine {
        ranks: Some(vec![4, 5]),
        max_num_seqs: Some(0),
    };
    let worker = Worker::start(config).unwrap();
    let mut bench = Bench { engine, worker };
    let mut told = [0, 3].into_iter();
    while bench.snapshot().lanes.len() == 1 {
        let mut call = bench.engine.call().await;
        let (_, text) = get(&bench, "/metrics").await;
        assert!(text.contains("engine_reported 0\n"), "{text}");
        if !call.head.starts_with("get /get_server_info ") {
            call.write("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .await;
            continue;
        }
        let told = told.next().unwrap();
        let page = format!(r#"{{"max_running_requests": {told}}}"#);
        call.write(format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        ))
        .await;
        if told > 0 {
            break;
        }
    }
    bench
        .until("the ranks are known", |seen| seen.lanes.len() == 3)
        .await;
    assert_eq!(bench.snapshot().limits.engine_request_limit, 1);
}

#[tokio::test]
async fn the_engine_is_asked_until_it_tells_its_size() {
    let engine = Engine::start().await;
    let mut bench = Bench {
        worker: Worker::start(config(engine.addr)).unwrap(),
        engine,
    };
    assert_eq!(bench.snapshot().limits.engine_request_limit, 10_000);
    // At first it only knows nothing; then it turns out to be llama.cpp.
    for round in 0..2 {
        for path in [
            "/get_server_info",
            "/props",
            "/info",
            "/server_info",
            "/server_info?config_format=json",
        ] {
            let mut call = bench.engine.call().await;
            assert!(
                call.head.starts_with(&format!("get {path} ")),
                "{}",
                call.head
            );
            if round == 1 && path == "/props" {
                let page = r#"{"total_slots": 3}"#;
                call.write(format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
                    page.len()
                ))
                .await;
                break;
            }
            call.write("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
    }
    bench
        .until("the limits follow", |seen| {
            seen.limits.engine_request_limit == 3
        })
        .await;
    assert_eq!(bench.snapshot().limits.request_queue_limit, 6);
    assert!(
        get(&bench, "/metrics")
            .await
            .1
            .contains("engine_reported 1\n")
    );
    bench.idle().await;
}

#[tokio::test]
async fn a_port_in_use_and_a_limit_out_of_range_are_errors() {
    let bench = Bench::start(1, 1, 0).await;
    let mut taken = config(bench.engine.addr);
    taken.listen = bench.worker.addr();
    let error = Worker::start(taken).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(
        error.to_string().contains(&bench.worker.addr().to_string()),
        "{error}"
    );

    let mut zero = config(bench.engine.addr);
    zero.settings = Settings {
        engine_request_limit: Some(0),
        ..Settings::default()
    };
    let error = Worker::start(zero).unwrap_err();
    assert!(
        error.to_string().contains("engine_request_limit"),
        "{error}"
    );
}

#[tokio::test]
async fn a_shutdown_lets_streams_finish_and_turns_new_requests_away() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (mut client, mut call) = bench.streaming().await;
    let mut queued = bench.post().await;
    bench.holds(1, 0, 1).await;
    let addr = bench.worker.addr();
    let gate = bench.worker.gate().clone();
    let shutdown = tokio::spawn(bench.worker.shutdown());

    soon("new requests are turned away", async {
        loop {
            let mut late = Wire::connect(addr).await;
            late.write(post("")).await;
            if late.head().await == 503 {
                break;
            }
        }
    })
    .await;
    let mut late = Wire::connect(addr).await;
    late.write("GET /ready HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(late.head().await, 503);

    call.write(token()).await;
    client.expect(token()).await;
    call.write(LAST).await;
    client.expect(LAST).await;
    bench.engine.answer(JSON).await;
    assert_eq!(queued.head().await, 200);
    queued.body().await;
    soon("the shutdown", shutdown).await.unwrap();
    let seen = gate.snapshot().worker;
    assert_eq!((seen.running, seen.waiting, seen.queued), (0, 0, 0));
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn a_shutdown_cuts_off_what_outlasts_its_time() {
    let mut bench = Bench::with(limits(1, 1, 2), &[0], |config| {
        config.drain_timeout = Duration::from_millis(100);
    })
    .await;
    let (mut client, mut call) = bench.streaming().await;
    let queued = bench.post().await;
    bench.holds(1, 0, 1).await;
    let gate = bench.worker.gate().clone();
    let mut expecting = bench.connect().await;
    expecting
        .write("POST /generate HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        .await;
    bench.holds(1, 0, 2).await;
    soon("the shutdown", bench.worker.shutdown()).await;
    client.closed().await;
    // Those that never ran are told so.
    for mut queued in [queued, expecting] {
        assert_eq!(queued.head().await, 503);
        let body: serde_json::Value = serde_json::from_slice(&queued.body().await).unwrap();
        assert_eq!(body["code"], 503);
        queued.closed().await;
    }
    call.closed().await;
    let seen = gate.snapshot().worker;
    assert_eq!((seen.running, seen.waiting, seen.queued), (0, 0, 0));
}

/// Admitted, and the engine has said nothing; read before the gate is asked; not
/// gated at all: none of them has been answered when the time is up.
#[tokio::test]
async fn a_shutdown_answers_whatever_has_no_answer() {
    for http in Http::BOTH {
        let mut bench = Bench::with(limits(2, 2, 2), &[0], |config| {
            config.drain_timeout = Duration::from_millis(100);
            config.rank_from_body = true;
        })
        .await;
        let client = http.client(bench.worker.addr()).await;
        let mut asked = Vec::new();
        let mut calls = Vec::new();
        for path in ["/generate", "/generate", "/open"] {
            asked.push(client.ask(path, &[]).await);
            calls.push(bench.engine.call().await);
        }
        let mut reading = bench.connect().await;
        reading
            .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{")
            .await;
        bench.holds(2, 2, 0).await;
        let gate = bench.worker.gate().clone();
        let shutdown = tokio::spawn(bench.worker.shutdown());
        for mut asked in asked {
            assert_eq!(asked.status().await, 503, "{http:?}");
            let (said, whole) = asked.whole().await;
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert!(whole && said["code"] == 503 && said["type"] == "Service Unavailable");
        }
        assert_eq!(reading.head().await, 503);
        for mut call in calls {
            call.closed().await;
        }
        soon("the shutdown", shutdown).await.unwrap();
        let seen = gate.snapshot().worker;
        assert_eq!((seen.running, seen.waiting, seen.queued), (0, 0, 0));
    }
}

#[tokio::test]
async fn a_worker_is_not_its_own_engine() {
    for apart in [false, true] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = free.local_addr().unwrap();
        drop(free);
        let mut config = config(addr);
        match apart {
            false => config.listen = addr,
            true => config.admin_listen = Some(addr),
        }
        let error = Worker::start(config).unwrap_err().to_string();
        let flag = if apart { "--admin-listen" } else { "--listen" };
        let said = format!("http://{addr} would be this worker itself ({flag} {addr})");
        assert!(error.contains(&said), "{error}");
    }
}

#[tokio::test]
async fn dropping_a_worker_ends_it() {
    let bench = Bench::start(1, 1, 0).await;
    let mut client = bench.connect().await;
    drop(bench.worker);
    client.closed().await;
}
