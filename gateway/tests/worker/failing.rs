//! Engines that fail, and what it costs: the slot comes back, the client is told,
//! and it is never called an overload.

use std::time::Duration;

use super::support::*;

#[tokio::test]
async fn an_engine_that_is_not_there_is_a_bad_gateway() {
    let engine = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = engine.local_addr().unwrap();
    drop(engine);
    let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
        config.engine_url = format!("http://{nobody}").parse().unwrap();
    })
    .await;
    for _ in 0..3 {
        let mut client = bench.post().await;
        assert_eq!(client.head().await, 502);
        assert_eq!(client.header("x-admission-scope"), None);
        let body: serde_json::Value = serde_json::from_slice(&client.body().await).unwrap();
        assert_eq!(body["code"], 502);
        assert_eq!(body["type"], "Bad Gateway");
    }
    bench.holds(0, 0, 0).await;
    assert_eq!(bench.total(|lane| lane.admitted_direct), 3);
    assert!(bench.engine.is_idle());
}

#[tokio::test]
async fn engines_that_close_reset_or_babble_are_a_bad_gateway() {
    let mut bench = Bench::start(1, 1, 0).await;
    for how in ["close", "reset", "babble"] {
        let mut client = bench.post().await;
        let mut call = bench.engine.call().await;
        call.body().await;
        match how {
            "close" => drop(call),
            "reset" => call.reset(),
            _ => call.write("this is no HTTP\r\n\r\n").await,
        }
        assert_eq!(client.head().await, 502, "{how}");
        let told = String::from_utf8(client.body().await).unwrap();
        let says = match how {
            "babble" => "is not HTTP",
            _ => "closed the connection",
        };
        assert!(told.contains(says), "{how}: {told}");
        bench.holds(0, 0, 0).await;
    }
    bench.idle().await;
}

/// Clients that send all of their body before they read, as most libraries' do, however
/// early the answer is. Another answer than the engine's reaches them as well.
#[tokio::test]
async fn a_client_that_is_still_sending_reads_why_there_is_no_answer() {
    let mut bench = Bench::start(1, 1, 0).await;
    let absent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = Bench::with(limits(1, 1, 0), &[0], |config| {
        config.engine_url = format!("http://{}", absent.local_addr().unwrap())
            .parse()
            .unwrap();
    })
    .await;
    drop(absent);
    let head = "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 700000\r\n";
    for (addr, more, status) in [
        (nobody.worker.addr(), "", 502),
        (nobody.worker.addr(), "expect: nothing\r\n", 417),
        (bench.worker.addr(), "", 413),
    ] {
        let mut client = Wire::connect(addr).await;
        client.write(format!("{head}{more}\r\n")).await;
        if status == 413 {
            // What the engine itself says before it has read all, and closes.
            let mut call = bench.engine.call().await;
            call.write("HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
        for _ in 0..70 {
            assert!(client.try_write([b'x'; 10_000]).await, "{status}");
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(client.head().await, status);
        client.body().await;
        client.closed().await;
    }
    bench.idle().await;
}

/// As long as the head has not been passed on, the client can be told.
#[tokio::test]
async fn a_body_that_makes_no_sense_right_behind_its_head_is_a_bad_gateway() {
    let mut bench = Bench::start(1, 1, 0).await;
    for kind in ["application/json", "text/event-stream"] {
        let mut client = bench.post().await;
        bench
            .engine
            .answer(&format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc"
            ))
            .await;
        assert_eq!(client.head().await, 502, "{kind}");
        let body: serde_json::Value = serde_json::from_slice(&client.body().await).unwrap();
        assert_eq!(body["code"], 502);
        bench.holds(0, 0, 0).await;
    }
    bench.idle().await;
}

/// Whatever came in one piece with the head is passed on with it.
#[tokio::test]
async fn a_body_right_behind_its_head_passes_as_it_is() {
    let mut bench = Bench::start(1, 1, 0).await;
    let whole = token() + LAST;
    for (head, body) in [
        (EVENTS, whole.as_str()),
        (EVENTS, LAST),
        (JSON, ""),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", "hello"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
    ] {
        let mut client = bench.post().await;
        bench.engine.answer(&format!("{head}{body}")).await;
        assert_eq!(client.head().await.to_string(), head[9..12]);
        let expected = match (head, body) {
            (EVENTS, LAST) => "",
            (EVENTS, _) => "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            (JSON, _) => "{}",
            _ => body,
        };
        assert_eq!(client.body().await, expected.as_bytes(), "{head}{body}");
        assert!(client.has_nothing_left());
        bench.holds(0, 0, 0).await;
    }
    bench.idle().await;
}

#[tokio::test]
async fn an_upgrade_that_nobody_asked_for_is_a_bad_gateway() {
    let mut bench = Bench::start(1, 1, 0).await;
    for _ in 0..2 {
        let mut client = bench
            .post_with("connection: upgrade\r\nupgrade: websocket\r\n")
            .await;
        let mut call = bench.engine.call().await;
        assert_eq!(call.header("upgrade"), None);
        call.body().await;
        call.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nraw")
            .await;
        assert_eq!(client.head().await, 502);
        client.body().await;
        call.closed().await;
        bench.holds(0, 0, 0).await;
    }
    bench.idle().await;
}

#[tokio::test]
async fn an_engines_own_error_passes_through() {
    let mut bench = Bench::start(1, 1, 0).await;
    for status in [400, 429, 500, 503, 529] {
        let mut client = bench.post_with("accept: text/event-stream\r\n").await;
        let body = r#"{"error":{"message":"mine"}}"#;
        bench
            .engine
            .answer(&format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 x-admission-scope: worker\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ))
            .await;
        assert_eq!(client.head().await, status);
        assert_eq!(client.header("x-admission-scope"), None);
        assert_eq!(client.body().await, body.as_bytes());
        bench.holds(0, 0, 0).await;
    }
    bench.idle().await;
}

#[tokio::test]
async fn an_engine_that_dies_mid_stream_ends_the_clients_stream_unfinished() {
    for how in ["close", "reset", "babble"] {
        let mut bench = Bench::start(1, 1, 0).await;
        let (mut client, mut call) = bench.streaming().await;
        match how {
            "close" => drop(call),
            "reset" => call.reset(),
            _ => call.write("zz\r\n").await,
        }
        bench.holds(0, 0, 0).await;
        client.closed().await;
        // Cut, not ended: a last chunk would say that this was all.
        assert!(client.has_nothing_left(), "{how}");
        bench.idle().await;
    }
}

#[tokio::test]
async fn a_stream_that_has_said_all_frees_its_slot_and_does_not_leave_the_client_hanging() {
    for last in [
        "data: [DONE]\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        "data: {\"error\":{\"message\":\"out of memory\"}}\n\n",
    ] {
        let mut bench = Bench::start(1, 1, 0).await;
        let (mut client, mut call) = bench.streaming().await;
        call.write(chunk(last)).await;
        client.expect(chunk(last)).await;
        bench.holds(0, 0, 0).await;
        // The engine keeps its side open: what it still says passes, then we end.
        call.write(chunk(": bye\n\n")).await;
        client.expect(chunk(": bye\n\n")).await;
        client.expect(LAST).await;
        call.closed().await;
        bench.idle().await;
    }
}

#[tokio::test]
async fn an_error_before_any_token_frees_everything() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.post().await;
    let mut call = bench.engine.call().await;
    call.write(EVENTS).await;
    assert_eq!(client.head().await, 200);
    assert_eq!(bench.counts(), (1, 1, 0));
    call.write(chunk("event: error\ndata: {}\n\n")).await;
    bench.idle().await;
}

#[tokio::test]
async fn an_engine_that_is_silent_holds_its_slot_until_the_idle_timeout() {
    let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
        config.engine_idle_timeout = Some(Duration::from_millis(300));
    })
    .await;
    // Before the answer.
    let mut client = bench.post().await;
    let mut call = bench.engine.call().await;
    assert_eq!(client.head().await, 504);
    bench.holds(0, 0, 0).await;
    call.closed().await;

    // Within it.
    let (mut client, mut call) = bench.streaming().await;
    client.closed().await;
    assert!(client.has_nothing_left());
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn without_an_idle_timeout_a_quiet_stream_is_a_live_one() {
    let mut bench = Bench::start(1, 1, 0).await;
    let (mut client, mut call) = bench.streaming().await;
    assert!(client.is_silent().await);
    assert_eq!(bench.counts(), (1, 0, 0));
    call.write(token()).await;
    client.expect(token()).await;
    call.write(LAST).await;
    client.expect(LAST).await;
    bench.idle().await;
}

/// A client that takes its time is not an engine that is silent.
#[tokio::test]
async fn the_idle_timeout_does_not_run_while_the_client_sends() {
    let limit = Duration::from_millis(300);
    let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
        config.engine_idle_timeout = Some(limit);
    })
    .await;
    let head = "POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";

    // Before the answer: in pieces, and after a pause.
    let mut client = bench.connect().await;
    client.write(head).await;
    let mut call = bench.engine.call().await;
    for pause in [100, 100, 100, 100, 700] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        client.write(chunk("x")).await;
        call.expect(chunk("x")).await;
    }
    client.write(LAST).await;
    call.expect(LAST).await;
    tokio::time::sleep(limit / 2).await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    client.body().await;
    bench.holds(0, 0, 0).await;

    // Within it: an engine may begin to answer before it has read all.
    let mut client = bench.connect().await;
    client.write(head).await;
    let mut call = bench.engine.call().await;
    call.write(EVENTS).await;
    assert_eq!(client.head().await, 200);
    tokio::time::sleep(limit * 2).await;
    client.write(chunk("x")).await;
    call.expect(chunk("x")).await;
    client.write(LAST).await;
    call.expect(LAST).await;
    call.write(token()).await;
    client.expect(token()).await;
    // From here on the silence is the engine's own.
    client.closed().await;
    call.closed().await;
    bench.holds(0, 0, 0).await;

    let mut client = bench.connect().await;
    client.write(head).await;
    client.write(chunk("x")).await;
    client.write(LAST).await;
    assert_eq!(client.head().await, 504);
    bench.engine.call().await.closed().await;
    bench.idle().await;
}

/// The same as [`JSON`], on a connection that goes on.
const KEPT: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

#[tokio::test]
async fn connections_to_the_engine_are_used_again_only_where_told_so() {
    for keep in [false, true] {
        let mut bench = Bench::with(limits(1, 1, 1), &[0], |config| {
            config.keep_engine_connections = keep;
        })
        .await;
        let mut client = bench.post().await;
        let mut call = bench.engine.call().await;
        assert_eq!(call.header("connection"), (!keep).then_some("close"));
        call.body().await;
        call.write(KEPT).await;
        assert_eq!(client.head().await, 200);
        client.body().await;
        let mut client = bench.post().await;
        if keep {
            call.head().await;
            call.body().await;
            call.write(JSON).await;
        } else {
            bench.engine.answer(JSON).await;
        }
        assert_eq!(client.head().await, 200);
        // The engine has closed it, and said so: the next is a new one.
        bench.idle().await;
    }
}

/// An engine that closes a kept connection without a word loses the request on it,
/// which may not be sent twice.
#[tokio::test]
async fn a_kept_connection_that_ends_under_a_request_is_a_502() {
    let mut bench = Bench::with(limits(1, 1, 1), &[0], |config| {
        config.keep_engine_connections = true;
    })
    .await;
    let mut client = bench.post().await;
    let mut call = bench.engine.call().await;
    call.body().await;
    call.write(KEPT).await;
    assert_eq!(client.head().await, 200);
    client.body().await;
    let mut client = bench.post().await;
    call.head().await;
    call.body().await;
    drop(call);
    assert_eq!(client.head().await, 502);
    assert!(bench.engine.is_idle(), "it is not sent again");
    bench.idle().await;
}

/// A client that leaves in the middle of an answer closes a kept connection too.
#[tokio::test]
async fn a_leaver_closes_a_kept_connection() {
    let mut bench = Bench::with(limits(1, 1, 1), &[0], |config| {
        config.keep_engine_connections = true;
    })
    .await;
    let (client, mut call) = bench.streaming().await;
    drop(client);
    call.closed().await;
    bench.idle().await;
}
