use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap as Headers;
use axum::response::IntoResponse;
use axum::routing::post;
use futures_util::stream;

use super::*;

fn planned() -> Planned {
    Planned {
        at: Duration::ZERO,
        prompt_tokens: 7,
        output_tokens: 3,
        rank: Some(4),
        leaves_after: None,
    }
}

/// A server that answers every chat with what `answer` makes of its headers.
async fn server<R: IntoResponse + 'static>(answer: fn(Headers) -> R) -> Target {
    let app = Router::new().route(
        "/v1/chat/completions",
        post(move |headers: Headers| async move { answer(headers) }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}").parse().expect("a target")
}

async fn outcome(target: &Target, planned: Planned) -> (Outcome, Option<Duration>) {
    Client::new("sim")
        .send(target, &planned, Instant::now())
        .await
}

const TOKEN: &str = r#"data: {"choices":[{"delta":{"content":"a"}}]}"#;

#[tokio::test]
async fn a_stream_to_its_end_is_ok_and_has_a_first_token() {
    let target = server(|headers| {
        assert_eq!(headers["x-sim-prompt-tokens"], "7");
        assert_eq!(headers["x-sim-output-tokens"], "3");
        assert_eq!(headers["x-data-parallel-rank"], "4");
        format!("{TOKEN}\n\ndata: [DONE]\n\n")
    })
    .await;
    let (outcome, first_token) = outcome(&target, planned()).await;
    assert_eq!(outcome, Outcome::Ok);
    assert!(first_token.is_some());
}

#[tokio::test]
async fn refusals_are_told_apart_by_scope() {
    let refuse = |scope: &'static str| move |code: u16| (StatusCode::from_u16(code), scope);
    for (answer, by) in [
        (refuse("worker")(529), RefusedBy::Worker),
        (refuse("rank")(503), RefusedBy::Rank),
        (refuse("class")(529), RefusedBy::Class),
        (refuse("")(529), RefusedBy::Unscoped),
    ] {
        let (status, scope) = (answer.0.expect("a status"), answer.1);
        let mut headers = Headers::new();
        headers.insert("x-admission-scope", scope.parse().expect("a header"));
        assert_eq!(not_ok(status, &headers), Outcome::Refused(by));
    }
    let plain = not_ok(StatusCode::BAD_GATEWAY, &Headers::new());
    assert_eq!(plain, Outcome::Failed("status 502".into()));
}

#[tokio::test]
async fn a_refusal_over_http_has_no_first_token() {
    let target = server(|_| {
        let status = StatusCode::from_u16(529).expect("a status");
        (status, [("x-admission-scope", "worker")], "{}")
    })
    .await;
    assert_eq!(
        outcome(&target, planned()).await,
        (Outcome::Refused(RefusedBy::Worker), None)
    );
}

#[tokio::test]
async fn a_stream_that_stops_short_is_a_failure() {
    let target = server(|_| format!("{TOKEN}\n\n")).await;
    let (outcome, first_token) = outcome(&target, planned()).await;
    assert_eq!(
        outcome,
        Outcome::Failed("stream ended without [DONE]".into())
    );
    assert!(first_token.is_some());
}

#[tokio::test]
async fn a_client_without_patience_leaves() {
    let target =
        server(|_| Body::from_stream(stream::pending::<Result<Bytes, Infallible>>())).await;
    let hasty = Planned {
        leaves_after: Some(Duration::from_millis(5)),
        ..planned()
    };
    assert_eq!(outcome(&target, hasty).await, (Outcome::Left, None));
}

#[tokio::test]
async fn nobody_listening_is_a_failure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let target = format!("http://{address}").parse().expect("a target");
    assert_eq!(
        outcome(&target, planned()).await.0,
        Outcome::Failed("no connection".into())
    );
}

#[test]
fn only_generated_text_counts() {
    assert!(has_text(r#"{"choices":[{"delta":{"content":"a"}}]}"#));
    assert!(has_text(
        r#"{"choices":[{"delta":{"reasoning_content":"a"}}]}"#
    ));
    assert!(has_text(r#"{"choices":[{"text":"a"}]}"#));
    for other in [
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[],"usage":{"total_tokens":3}}"#,
        "{}",
        "not JSON",
    ] {
        assert!(!has_text(other), "{other}");
    }
}

#[test]
fn targets_are_plain_http() {
    assert_eq!(
        "http://127.0.0.1:8100/"
            .parse::<Target>()
            .map(|t| t.to_string()),
        Ok("http://127.0.0.1:8100".into())
    );
    for bad in [
        "",
        "127.0.0.1:8100",
        "https://host",
        "http://",
        "http://host/?q=1",
        "ftp://host",
    ] {
        let error = bad.parse::<Target>().expect_err(bad).to_string();
        assert!(error.contains("http://127.0.0.1:8100"), "{error}");
    }
}
