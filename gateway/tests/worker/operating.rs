//! What operators see, and where.

use tidegate_gateway::worker::Worker;

use super::support::*;

async fn get(addr: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut client = Wire::connect(addr).await;
    client
        .write(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
        .await;
    let status = client.head().await;
    (status, String::from_utf8(client.body().await).unwrap())
}

fn apart(config: &mut tidegate_gateway::worker::WorkerConfig) {
    config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
}

#[tokio::test]
async fn own_routes_move_to_a_port_of_their_own_and_the_engines_pass_through() {
    let mut bench = Bench::with(limits(1, 1, 1), &[0], apart).await;
    let admin = bench.worker.admin_addr().unwrap();
    let (status, text) = get(admin, "/metrics").await;
    assert!(status == 200 && text.contains("dynamo_backend_admission_engine_request_count"));
    assert_eq!(get(admin, "/health").await.0, 200);
    for path in ["/v1/models", "/generate"] {
        let (status, text) = get(admin, path).await;
        assert!(status == 404 && text.contains("/metrics"), "{text}");
    }
    let mut client = Wire::connect(admin).await;
    client.write(post("")).await;
    assert_eq!(client.head().await, 404);
    assert_eq!(bench.total(|lane| lane.received), 0);

    for path in ["/metrics", "/health", "/ready"] {
        let addr = bench.worker.addr();
        let asked = tokio::spawn(async move { get(addr, path).await });
        let mut call = bench.engine.call().await;
        assert!(
            call.head.starts_with(&format!("get {path} ")),
            "{}",
            call.head
        );
        call.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nmine")
            .await;
        assert_eq!(asked.await.unwrap(), (200, "mine".to_owned()));
    }
    bench.idle().await;
}

#[tokio::test]
async fn the_port_for_operations_answers_while_the_worker_drains() {
    let mut bench = Bench::with(limits(1, 1, 1), &[0], apart).await;
    let admin = bench.worker.admin_addr().unwrap();
    let (mut client, mut call) = bench.streaming().await;
    let shutdown = tokio::spawn(bench.worker.shutdown());
    soon("it is no longer ready", async {
        while get(admin, "/ready").await.0 != 503 {
            // Before the shutdown begins, its engine does not answer for its health.
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (status, text) = get(admin, "/metrics").await;
    assert!(status == 200 && text.contains("engine_request_count{dp_rank=\"unspecified\"} 1\n"));
    call.write(LAST).await;
    client.expect(LAST).await;
    soon("the shutdown", shutdown).await.unwrap();
    assert!(tokio::net::TcpStream::connect(admin).await.is_err());
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let bench = Bench::start(1, 1, 0).await;
    let mut taken = config(bench.engine.addr);
    taken.admin_listen = Some(bench.worker.addr());
    let error = Worker::start(taken).unwrap_err().to_string();
    assert!(error.contains(&bench.worker.addr().to_string()), "{error}");
}

#[tokio::test]
async fn older_names_are_shown_when_asked_for() {
    for asked in [false, true] {
        let mut bench = Bench::with(limits(1, 1, 1), &[0], |config| {
            config.legacy_metrics = asked;
        })
        .await;
        let (streaming, _call) = bench.streaming().await;
        let queued = bench.post().await;
        bench.holds(1, 0, 1).await;
        assert_eq!(bench.post().await.head().await, 529);
        let (_, text) = get(bench.worker.addr(), "/metrics").await;
        for line in [
            "dynamo_engine_request 1",
            "dynamo_request_queue 1",
            "dynamo_rejection_request_total 1",
        ] {
            assert_eq!(
                text.contains(&format!("\n{line}\n")),
                asked,
                "{line}: {text}"
            );
        }
        drop((queued, streaming));
        bench.idle().await;
    }
}

/// Kept connections that have each been served and now wait.
#[tokio::test]
async fn a_thousand_kept_connections_hold_nothing() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut kept = Vec::new();
    for _ in 0..1000 {
        let mut client = bench.connect().await;
        client
            .write("GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        assert_eq!(client.head().await, 200);
        client.body().await;
        kept.push(client);
    }
    assert_eq!(bench.counts(), (0, 0, 0));
    bench.idle().await;
    // Each is still good for a request.
    let mut last = kept.pop().unwrap();
    last.write(post("")).await;
    bench.engine.answer(JSON).await;
    assert_eq!(last.head().await, 200);
}
