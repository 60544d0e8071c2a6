//! The page's routes: what they answer, to whom, and that they hide nothing.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::worker::{Trust, Worker, WorkerConfig};

use super::stack::{LONG, Stack, simulated, soon};

async fn get(url: &str) -> Response<Incoming> {
    let request = Request::get(url).body(Full::<Bytes>::default()).unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    soon("an answer", client.request(request)).await.unwrap()
}

async fn text(answer: Response<Incoming>) -> String {
    let body = soon("a body", answer.into_body().collect()).await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

/// One short request, and its status.
pub async fn ask(url: &str) -> StatusCode {
    let body = r#"{"model":"sim","max_tokens":2,"stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let request = Request::post(format!("{url}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = soon("an answer", client.request(request)).await.unwrap();
    let status = answer.status();
    let _ = text(answer).await;
    status
}

fn header<'a>(answer: &'a Response<Incoming>, name: &str) -> &'a str {
    answer
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

/// An engine that has a page of its own at `/`, as llama.cpp has.
async fn with_a_page() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new()
        .route("/", axum::routing::get(|| async { "the engine's own" }))
        .route(
            "/tidegate-models",
            axum::routing::get(|| async { "the engine's, too" }),
        );
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere_and_is_kept_by_nobody() {
    let stack = Stack::start(simulated(1, 2, 20.0), |_| {}).await;
    let url = stack.worker.url();
    for (path, kind) in [
        ("/tidegate/", "text/html"),
        ("/tidegate/page.js", "text/javascript"),
        ("/tidegate/page.css", "text/css"),
        ("/tidegate/icon.svg", "image/svg+xml"),
        ("/tidegate/live", "text/event-stream"),
    ] {
        let answer = get(&format!("{url}{path}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert!(header(&answer, "content-type").starts_with(kind), "{path}");
        let policy = header(&answer, "content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"));
        assert_eq!(header(&answer, "cache-control"), "no-store");
        if kind == "text/event-stream" {
            continue;
        }
        let text = text(answer).await;
        for elsewhere in ["https://", "//cdn", "@import", "url("] {
            assert!(!text.contains(elsewhere), "{path}: {elsewhere}");
        }
    }
    let lost = get(&format!("{url}/tidegate/other")).await;
    assert_eq!(lost.status(), StatusCode::NOT_FOUND);
    // Without its slash, its relative addresses would lead elsewhere.
    let bare = get(&format!("{url}/tidegate")).await;
    assert_eq!(
        (bare.status().as_u16(), header(&bare, "location")),
        (307, "tidegate/")
    );
}

#[tokio::test]
async fn an_engines_own_page_stays_where_it_is() {
    let engine = with_a_page().await;
    let worker = Worker::start(WorkerConfig::new(engine.parse().unwrap())).unwrap();
    let url = worker.url();
    assert_eq!(
        text(get(&format!("{url}/")).await).await,
        "the engine's own"
    );
    let other = text(get(&format!("{url}/tidegate-models")).await).await;
    assert_eq!(other, "the engine's, too");
    assert_eq!(
        get(&format!("{url}/tidegate/")).await.status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn nobody_there_leads_to_the_page() {
    // Nobody listens on it any more.
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let worker = Worker::start(WorkerConfig::new(gone.parse().unwrap())).unwrap();
    let root = get(&format!("{}/", worker.url())).await;
    assert_eq!(
        (root.status().as_u16(), header(&root, "location")),
        (307, "tidegate/")
    );
}

#[tokio::test]
async fn it_moves_with_the_other_routes_for_operations() {
    let engine = with_a_page().await;
    let own_port = |page| WorkerConfig {
        admin_listen: Some("127.0.0.1:0".parse().unwrap()),
        page,
        ..WorkerConfig::new(engine.parse().unwrap())
    };
    let worker = Worker::start(own_port(Trust::Loopback)).unwrap();
    let admin = format!("http://{}", worker.admin_addr().unwrap());
    assert_eq!(
        get(&format!("{}/tidegate/", worker.url())).await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        get(&format!("{admin}/")).await.status(),
        StatusCode::TEMPORARY_REDIRECT
    );
    assert_eq!(
        get(&format!("{admin}/tidegate/")).await.status(),
        StatusCode::OK
    );
    let hidden = Worker::start(own_port(Trust::None)).unwrap();
    let admin = format!("http://{}", hidden.admin_addr().unwrap());
    assert_eq!(
        get(&format!("{admin}/tidegate/")).await.status(),
        StatusCode::NOT_FOUND
    );

    let mut config = FrontendConfig::new(vec![worker.url().parse().unwrap()]);
    config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
    let front = Frontend::start(config).unwrap();
    let admin = format!("http://{}", front.admin_addr().unwrap());
    assert_eq!(
        get(&format!("{}/", front.url())).await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        get(&format!("{admin}/tidegate/")).await.status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn who_may_not_look_finds_no_page() {
    let engine = with_a_page().await;
    let config = WorkerConfig {
        page: Trust::None,
        ..WorkerConfig::new(engine.parse().unwrap())
    };
    let worker = Worker::start(config).unwrap();
    for path in ["/tidegate/", "/tidegate/live"] {
        assert_eq!(
            get(&format!("{}{path}", worker.url())).await.status(),
            StatusCode::NOT_FOUND
        );
    }
    let mut config = FrontendConfig::new(vec![worker.url().parse().unwrap()]);
    config.page = Trust::None;
    let front = Frontend::start(config).unwrap();
    assert_eq!(get(&front.url()).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn viewers_are_bounded_and_hold_up_no_shutdown() {
    let stack = Stack::start(simulated(1, 2, 20.0), |config| {
        config.drain_timeout = Duration::from_secs(60);
    })
    .await;
    let live = format!("{}/tidegate/live", stack.worker.url());
    let mut viewers = Vec::new();
    for _ in 0..tidegate_gateway::page::live::MOST_VIEWERS {
        let mut answer = get(&live).await;
        assert_eq!(answer.status(), StatusCode::OK);
        // The first words are there at once.
        let frame = soon("a frame", answer.body_mut().frame())
            .await
            .unwrap()
            .unwrap();
        assert!(frame.into_data().unwrap().starts_with(b"retry: "));
        viewers.push(answer);
    }
    let refused = get(&live).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(header(&refused, "retry-after"), "10");
    drop(viewers.pop());
    let start = tokio::time::Instant::now();
    while get(&live).await.status() != StatusCode::OK {
        assert!(start.elapsed() < LONG, "the room comes back");
    }
    soon("the end", stack.worker.shutdown()).await;
    for viewer in viewers {
        let _ = text(viewer).await;
    }
}
