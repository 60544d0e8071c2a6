//! Starting, workers that come and go, own routes, and ending.

use std::time::Duration;

use serde_json::Value;
use tidegate_gateway::frontend::{Frontend, FrontendConfig};

use super::support::*;

#[tokio::test]
async fn a_worker_that_is_down_at_start_gets_requests_once_it_is_up() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = free.local_addr().unwrap();
    drop(free);
    let front = Front::before(&[format!("http://{addr}")], |_| {});
    let mut client = front.post().await;
    assert_unavailable(&mut client).await;
    let (status, said) = front.get("/ready").await;
    assert_eq!(status, 503, "{said}");
    assert_eq!(front.get("/health").await.0, 200);
    let mut worker = Scripted::listen(addr, Pages::default()).await;
    front.well(1).await;
    let (status, said) = front.get("/ready").await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, said["healthy"].as_u64()), (200, Some(1)));
    let mut client = front.post().await;
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_worker_that_is_not_well_is_left_out_until_it_is() {
    let (mut one, mut other) = (Scripted::start().await, Scripted::start().await);
    let front = Front::start(&[&one, &other]).await;
    one.set(|pages| pages.ready = 503);
    front.well(1).await;
    let series = format!(
        "dynamo_frontend_worker_healthy{{worker_id=\"0\",url=\"{}\"}}",
        one.url()
    );
    assert_eq!(front.metric(&series).await, Some(0.0));
    for _ in 0..3 {
        let mut client = front.post().await;
        other.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    one.set(|pages| pages.ready = 200);
    front.well(2).await;
    assert_eq!(front.metric(&series).await, Some(1.0));
    let mut client = front.post().await;
    one.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn an_engine_without_such_pages_is_well_if_it_answers() {
    let mut worker = Scripted::with(Pages {
        ready: 404,
        models: None,
        metrics: None,
    })
    .await;
    let front = Front::start(&[&worker]).await;
    let mut client = front.post().await;
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_worker_that_drains_gets_nothing_new_and_loses_nothing() {
    let (mut engine, mut other) = (Scripted::start().await, Scripted::start().await);
    let worker = worker(&engine.url(), limits(4, 4, 0), &[0]);
    let front = Front::before(&[worker.url(), other.url()], |config| {
        // So that it is requests that find out.
        config.health_interval = Duration::from_secs(3600);
    });
    front.well(2).await;
    let mut client = front.post().await;
    let mut call = engine.call().await;
    call.body().await;
    call.write(EVENTS).await;
    call.write(token()).await;
    assert_eq!(client.head().await, 200);
    let shutdown = tokio::spawn(worker.shutdown());
    for _ in 0..4 {
        let mut client = front.post().await;
        other.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    call.write(LAST).await;
    drop(call);
    client.expect(token()).await;
    client.expect(LAST).await;
    soon("the end of the worker", shutdown).await.unwrap();
}

#[tokio::test]
async fn workers_come_and_go_and_their_series_with_them() {
    let mut one = Scripted::start().await;
    let front = Front::start(&[&one]).await;
    let mut other = Scripted::start().await;
    let id = front
        .frontend
        .add_worker(other.url().parse().unwrap())
        .unwrap();
    front.well(2).await;
    let mut client = front.post().await;
    let mut call = one.call().await;
    call.body().await;
    // It goes on although its worker is taken out.
    assert!(front.frontend.remove_worker(0));
    assert!(!front.frontend.remove_worker(0));
    let (_, page) = front.get("/metrics").await;
    let of = |id: u64| page.matches(&format!("worker_id=\"{id}\"")).count();
    assert_eq!(of(0), 0, "{page}");
    assert!(of(id) >= 10, "{page}");
    for _ in 0..3 {
        let mut client = front.post().await;
        other.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    assert!(one.called().is_none());
}

#[tokio::test]
async fn routes_for_operations_move_to_a_port_of_their_own() {
    let worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await;
    let admin = front.frontend.admin_addr().unwrap();
    for path in ["/metrics", "/health", "/ready", "/busy_threshold"] {
        assert_eq!(front.get(path).await.0, 404, "{path}");
        assert_eq!(get(admin, path).await.0, 200, "{path}");
    }
    assert_eq!(front.get("/v1/models").await.0, 200);
    assert_eq!(get(admin, "/v1/models").await.0, 404);
    assert_eq!(get(admin, "/v1/chat/completions").await.0, 404);
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish_and_takes_no_new_ones() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front.post().await;
    let mut call = worker.call().await;
    call.body().await;
    let addr = front.frontend.addr();
    let mut open = front.connect().await;
    open.write("GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(open.head().await, 200);
    open.body().await;
    let shutdown = tokio::spawn(front.frontend.shutdown());
    until("new ones are told", async || {
        let mut late = Wire::connect(addr).await;
        late.write(post("")).await;
        late.head().await == 503
    })
    .await;
    open.closed().await;
    assert_eq!(get(addr, "/ready").await.0, 503);
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    soon("the end", shutdown).await.unwrap();
    assert!(worker.called().is_none());
}

#[tokio::test]
async fn what_outlasts_the_time_for_it_is_cut_off() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.drain_timeout = Duration::from_millis(100);
    })
    .await;
    let mut client = front.post().await;
    let mut call = worker.call().await;
    soon("the end", front.frontend.shutdown()).await;
    client.closed().await;
    call.closed().await;
}

#[tokio::test]
async fn a_frontend_that_is_dropped_ends_everything() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front.post().await;
    let mut call = worker.call().await;
    drop(front);
    client.closed().await;
    call.closed().await;
}

#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let worker = Scripted::start().await;
    let mut config = FrontendConfig::new(vec![worker.url().parse().unwrap()]);
    config.listen = worker.addr;
    let error = Frontend::start(config).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}
