//! What passes between client and worker, and what does not.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use super::support::*;

#[tokio::test]
async fn a_request_arrives_as_it_was_sent_and_its_answer_too() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let body = r#" {"model" : "m", "messages":[ "x" ] } "#;
    let mut client = front
        .send(post_of(
            body,
            "authorization: Bearer k\r\nx-request-id: mine\r\ntraceparent: 00-a-b-01\r\n\
             x-other: 1\r\nconnection: keep-alive, x-mine\r\nx-mine: 1\r\nte: trailers\r\n\
             accept-encoding: gzip\r\nx-admission-scope: worker\r\nx-admission-progress: 1\r\n",
        ))
        .await;
    let mut call = worker.call().await;
    assert!(
        call.head
            .starts_with("post /v1/chat/completions http/1.1\r\n")
    );
    for (name, value) in [
        ("authorization", Some("bearer k")),
        ("x-request-id", Some("mine")),
        ("traceparent", Some("00-a-b-01")),
        ("x-other", Some("1")),
        ("content-type", Some("application/json")),
        ("host", Some(worker.addr.to_string().as_str())),
        ("x-mine", None),
        ("te", None),
        ("accept-encoding", None),
        ("x-admission-scope", None),
    ] {
        assert_eq!(call.header(name), value, "{name}");
    }
    assert_eq!(call.body().await, body.as_bytes());
    call.write(
        "HTTP/1.1 418 x\r\nx-own: 2\r\nx-admission-else: 1\r\nconnection: x-hop\r\nx-hop: 1\r\n\
         content-length: 3\r\n\r\nabc",
    )
    .await;
    assert_eq!(client.head().await, 418);
    assert_eq!(client.header("x-own"), Some("2"));
    assert_eq!(client.header("x-request-id"), Some("mine"));
    assert_eq!(client.header("x-admission-else"), None);
    assert_eq!(client.header("x-hop"), None);
    assert_eq!(client.body().await, b"abc");
}

#[tokio::test]
async fn a_stream_passes_byte_for_byte_as_it_comes() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front.post().await;
    let mut call = worker.call().await;
    call.body().await;
    call.write(EVENTS).await;
    // Nothing is said before there is something to say.
    assert!(client.is_silent().await);
    let first = chunk(": here\n\n");
    call.write(&first).await;
    assert_eq!(client.head().await, 200);
    client.expect(&first).await;
    for piece in [token(), chunk("data: {\"cho"), chunk("ices\":[]}\n\n")] {
        call.write(&piece).await;
        client.expect(&piece).await;
    }
    call.write(LAST).await;
    client.expect(LAST).await;
    front
        .measures(
            "dynamo_frontend_worker_requests_total{worker_id=\"0\",result=\"answered\"}",
            1.0,
        )
        .await;
}

#[tokio::test]
async fn workers_take_turns() {
    let mut workers = [Scripted::start().await, Scripted::start().await];
    let front = Front::start(&[&workers[0], &workers[1]]).await;
    let mut client = front.connect().await;
    for round in 0..6 {
        client.write(post("")).await;
        workers[round % 2].answer(JSON).await;
        assert_eq!(client.head().await, 200);
        client.body().await;
    }
    assert!(workers.iter_mut().all(|worker| worker.called().is_none()));
}

#[tokio::test]
async fn a_body_without_a_length_gets_one() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front
        .send(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
             9\r\n{\"model\":\r\n4\r\n\"m\"}\r\n0\r\n\r\n",
        )
        .await;
    let mut call = worker.call().await;
    assert_eq!(call.header("content-length"), Some("13"));
    assert_eq!(call.header("transfer-encoding"), None);
    assert_eq!(call.body().await, br#"{"model":"m"}"#);
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_client_that_waits_for_leave_to_send_gets_it() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let mut client = front
        .send(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\
             content-length: 13\r\n\r\n",
        )
        .await;
    assert_eq!(client.head().await, 100);
    client.write(r#"{"model":"m"}"#).await;
    let mut call = worker.call().await;
    assert_eq!(call.header("expect"), None);
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn clients_may_speak_http_2() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Full<Bytes>>();
    let request = |body: &'static str| {
        Request::post(format!("{}/v1/chat/completions", front.frontend.url()))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(body.as_bytes())))
            .unwrap()
    };
    let sent = tokio::spawn(client.request(request(r#"{"model":"m"}"#)));
    let mut call = worker.call().await;
    call.body().await;
    call.write(EVENTS).await;
    call.write(token()).await;
    call.write(LAST).await;
    let answer = soon("an answer", sent).await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let body = soon("a body", answer.into_body().collect()).await.unwrap();
    assert!(body.to_bytes().starts_with(b"data: {"));

    // A refusal is one here too.
    let sent = tokio::spawn(client.request(request(r#"{"model":"m"}"#)));
    worker.answer(&refusal("worker", "")).await;
    let answer = soon("an answer", sent).await.unwrap().unwrap();
    assert_eq!(answer.status().as_u16(), 529);
    assert_eq!(answer.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn what_strangers_claim_is_taken_out() {
    let mut worker = Scripted::start().await;
    for (trust, rank) in [
        (tidegate_gateway::worker::Trust::None, None),
        (tidegate_gateway::worker::Trust::All, Some("3")),
    ] {
        let front = Front::with(&[&worker], |config| config.trust = trust).await;
        let _client = front
            .send(post(
                "x-data-parallel-rank: 3\r\nx-slo-class: gold\r\nx-admission-progress: 1\r\n",
            ))
            .await;
        let mut call = worker.call().await;
        assert_eq!(call.header("x-data-parallel-rank"), rank);
        assert_eq!(call.header("x-slo-class"), rank.map(|_| "gold"));
        // There is nobody else: this hop is not tried again if it is refused.
        assert_eq!(call.header("x-admission-progress"), rank.map(|_| "1"));
        call.body().await;
        call.write(JSON).await;
    }
}

#[tokio::test]
async fn progress_is_asked_for_only_where_no_other_try_follows() {
    let mut workers = [Scripted::start().await, Scripted::start().await];
    let front = Front::start(&[&workers[0], &workers[1]]).await;
    let mut client = front.send(post("x-admission-progress: 1\r\n")).await;
    let mut call = workers[0].call().await;
    assert_eq!(call.header("x-admission-progress"), None);
    call.body().await;
    call.write(refusal("worker", "")).await;
    let mut call = workers[1].call().await;
    assert_eq!(call.header("x-admission-progress"), Some("1"));
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
}
