//! Requests that make no sense: a clear answer, nothing lost, and the next one is
//! served.

use http::StatusCode;
use tidegate_gateway::worker::Trust;

use super::support::*;

/// The frontend still serves.
async fn serves(front: &Front, worker: &mut Scripted) {
    assert!(worker.called().is_none());
    let mut client = front.post().await;
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_the_clients_mistake() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    for (status, body) in [
        (400, &b""[..]),
        (400, b"{"),
        (400, b"[]"),
        (400, b"null"),
        (400, b"{\"model\":7}"),
        (400, b"{\"model\":\"m\",\"model\":\"m\"}"),
        (400, b"{\"model\":\"m\",\"messages\":\"\xff\xfe\"}"),
        (400, b"\x1f\x8b\x08\x00"),
        (400, deep.as_bytes()),
        (404, b"{\"model\":\"\"}"),
        (404, b"{\"model\":\"\\u0000\\n{}\\\"\"}"),
    ] {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut client = front.send([head.as_bytes(), body].concat()).await;
        let (got, said) = answer(&mut client).await;
        assert_eq!(got, status, "{said}");
        assert!(!said["message"].as_str().unwrap().is_empty());
        assert_eq!(said["error"]["type"], "invalid_request_error");
        assert_eq!(said["code"], status);
        // The connection lives on.
        client.write(post("")).await;
        worker.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    serves(&front, &mut worker).await;
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "\u{ff}",
        "",
    ] {
        let request = post("").replace("application/json", kind);
        let mut client = front.send(request).await;
        let (status, body) = answer(&mut client).await;
        assert_eq!(status, 415, "{kind}");
        assert!(
            body["message"]
                .as_str()
                .unwrap()
                .contains("application/json")
        );
    }
    let mut client = front.send(post("content-encoding: gzip\r\n")).await;
    assert_eq!(client.head().await, 415);
    serves(&front, &mut worker).await;
}

#[tokio::test]
async fn bodies_beyond_the_limit_are_413_however_they_come() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.max_body = 1000;
        config.buffer_budget = 4000;
    })
    .await;
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(1000));
    let mut client = front.send(post_of(&long, "")).await;
    let (status, body) = answer(&mut client).await;
    assert_eq!((status, body["code"].as_u64()), (413, Some(413)));
    // Without a length it is told when it is too long.
    let chunked = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{}",
        chunk(&long)
    );
    let mut client = front.send(chunked).await;
    assert_eq!(client.head().await, 413);
    // Announced and never sent: an answer all the same.
    let mut client = front
        .send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n{")
        .await;
    assert_eq!(client.head().await, 413);
    serves(&front, &mut worker).await;
}

#[tokio::test]
async fn bodies_that_do_not_come_are_not_waited_for() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.client_timeout = std::time::Duration::from_millis(200);
    })
    .await;
    let mut client = front
        .send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n{\"mod")
        .await;
    assert_eq!(client.head().await, 408);
    // One that breaks off gets no answer, and nobody else is troubled.
    let client = front
        .send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n{\"mod")
        .await;
    drop(client);
    let mut client = front
        .send(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        )
        .await;
    assert_eq!(client.head().await, 400);
    serves(&front, &mut worker).await;
}

#[tokio::test]
async fn bodies_share_one_budget_and_wait_for_each_other_no_longer_than_for_a_client() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.max_body = 600;
        config.buffer_budget = 1000;
        config.client_timeout = std::time::Duration::from_millis(300);
    })
    .await;
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(570));
    let mut first = front.send(post_of(&body, "")).await;
    let mut call = worker.call().await;
    call.body().await;
    // It may have to be sent again, so its room is taken until its answer begins.
    let mut second = front.send(post_of(&body, "")).await;
    assert_eq!(second.head().await, 503);
    call.write(JSON).await;
    assert_eq!(first.head().await, 200);
    let mut third = front.send(post_of(&body, "")).await;
    worker.answer(JSON).await;
    assert_eq!(third.head().await, 200);
}

/// Only what has come takes room.
#[tokio::test]
async fn clients_that_announce_much_and_send_a_byte_hold_nobody_up() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.max_body = 1000;
        config.buffer_budget = 1000;
    })
    .await;
    let announced = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{";
    let mut announcers = Vec::new();
    for _ in 0..3 {
        announcers.push(front.send(announced).await);
    }
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(900));
    let mut client = front.send(post_of(&body, "")).await;
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
    for announcer in &mut announcers {
        assert!(announcer.is_silent().await);
    }
}

#[tokio::test]
async fn hostile_headers_reach_nobody() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| config.trust = Trust::All).await;
    for (status, headers) in [
        (400, "x-data-parallel-rank: -1\r\n".to_owned()),
        (
            400,
            "x-data-parallel-rank: 1\r\nx-dynamo-dp-rank: 2\r\n".to_owned(),
        ),
        (431, format!("x-long: {}\r\n", "x".repeat(70_000))),
        (400, "x y: 1\r\n".to_owned()),
        (
            400,
            "content-length: 13\r\ncontent-length: 14\r\n".to_owned(),
        ),
    ] {
        let mut client = front.send(post(&headers)).await;
        assert_eq!(client.head().await, status, "{headers:.80}");
    }
    // What is odd and allowed passes.
    let mut client = front
        .send(post("x-odd: \u{ff}\t;\r\nauthorization: \u{fe}\r\nconnection: x-odd-too\r\nx-odd-too: 1\r\n"))
        .await;
    let mut call = worker.call().await;
    assert_eq!(call.header("x-odd-too"), None);
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    serves(&front, &mut worker).await;
}

#[tokio::test]
async fn other_paths_and_methods_are_not_there() {
    let mut worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    for path in ["/v1", "/v1/files", "/props", "/get_server_info", "/v1/chat"] {
        assert_eq!(front.get(path).await.0, 404, "{path}");
    }
    for path in ["/v1/chat/completions", "//v1/./completions/"] {
        let mut client = front
            .send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .await;
        assert_eq!(client.head().await, 405);
        assert_eq!(client.header("allow"), Some("post"));
    }
    for path in ["/v1/models", "/health", "/metrics", "/ready"] {
        let mut client = front
            .send(format!("DELETE {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .await;
        assert_eq!(client.head().await, 405, "{path}");
    }
    let mut client = front
        .send("CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n")
        .await;
    assert_eq!(client.head().await, StatusCode::NOT_FOUND.as_u16());
    serves(&front, &mut worker).await;
}

#[tokio::test]
async fn a_route_can_be_added_and_its_body_may_be_a_form() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.routes = vec!["/v1/audio/{kind}".parse().unwrap()];
    })
    .await;
    let mut client = front
        .send(
            "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\n\
             content-type: multipart/form-data; boundary=b\r\ncontent-length: 3\r\n\r\n--b",
        )
        .await;
    let mut call = worker.call().await;
    assert_eq!(call.body().await, b"--b");
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    let series =
        "dynamo_frontend_requests_total{model=\"unknown\",endpoint=\"other\",outcome=\"ok\"}";
    front.measures(series, 1.0).await;
}
