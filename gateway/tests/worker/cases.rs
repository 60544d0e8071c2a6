//! What has broken other gateways, over both versions of HTTP.

use std::time::Duration;

use super::asking::*;
use super::support::*;

const CHAT: &str = "/v1/chat/completions";
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";

/// A stream that has sent its first token.
async fn streaming(bench: &mut Bench, client: &Client) -> (Asked, Wire) {
    let mut asked = client.ask(CHAT, &[]).await;
    let mut call = bench.engine.call().await;
    call.body().await;
    call.write(EVENTS).await;
    call.write(chunk(TOKEN)).await;
    assert_eq!(asked.status().await, 200);
    asked.until(TOKEN).await;
    (asked, call)
}

#[tokio::test]
async fn a_stream_cut_after_two_chunks_lets_the_next_request_in() {
    for http in Http::BOTH {
        let mut bench = Bench::start(1, 1, 0).await;
        let client = http.client(bench.worker.addr()).await;
        for _ in 0..3 {
            let (mut asked, mut call) = streaming(&mut bench, &client).await;
            call.write(chunk("data: 2\n\n")).await;
            asked.until("data: 2").await;
            drop(asked);
            call.closed().await;
            bench.holds(0, 0, 0).await;
        }
        bench.idle().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_at_any_phase_is_a_cancellation_and_no_rejection() {
    for http in Http::BOTH {
        let mut bench = Bench::start(1, 1, 1).await;
        let client = http.client(bench.worker.addr()).await;
        // Before the answer.
        let asked = client.ask(CHAT, &[]).await;
        let mut call = bench.engine.call().await;
        bench.holds(1, 1, 0).await;
        // Queued behind it.
        let queued = client.ask(CHAT, &[]).await;
        bench.holds(1, 1, 1).await;
        drop(queued);
        bench.holds(1, 1, 0).await;
        drop(asked);
        call.closed().await;
        bench.holds(0, 0, 0).await;
        // During an answer that does not stream.
        let mut asked = client.ask(CHAT, &[]).await;
        let mut call = bench.engine.call().await;
        call.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{")
            .await;
        assert_eq!(asked.status().await, 200);
        asked.until("{").await;
        drop(asked);
        call.closed().await;
        bench.holds(0, 0, 0).await;
        assert_eq!(bench.total(|lane| lane.cancelled), 1);
        assert_eq!(bench.total(|lane| lane.rejected()), 0);
        bench.idle().await;
    }
}

#[tokio::test]
async fn an_engine_that_fails_gives_its_slot_back_and_is_no_overload() {
    for http in Http::BOTH {
        let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
            config.engine_idle_timeout = Some(Duration::from_millis(300));
        })
        .await;
        let client = http.client(bench.worker.addr()).await;
        for (how, status) in [
            ("close", 502),
            ("reset", 502),
            ("babble", 502),
            ("silence", 504),
            ("500", 500),
            ("400", 400),
            ("bad json", 200),
        ] {
            let mut asked = client.ask_with(CHAT, &[], r#"{"stream":true}"#).await;
            let mut call = bench.engine.call().await;
            call.body().await;
            let said = |status: &str, body: &str| {
                format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                )
            };
            let kept = match how {
                "close" => {
                    drop(call);
                    None
                }
                "reset" => {
                    call.reset();
                    None
                }
                "babble" => {
                    call.write("no HTTP\r\n\r\n").await;
                    Some(call)
                }
                "silence" => Some(call),
                "bad json" => {
                    call.write(said("200", "{{{")).await;
                    Some(call)
                }
                error => {
                    call.write(said(error, "{\"error\":{}}")).await;
                    Some(call)
                }
            };
            assert_eq!(asked.status().await, status, "{http:?} {how}");
            assert_eq!(asked.header("x-admission-scope"), None);
            assert!(asked.whole().await.1, "{http:?} {how}");
            bench.holds(0, 0, 0).await;
            drop(kept);
        }
        bench.idle().await;
    }
}

#[tokio::test]
async fn an_engine_that_dies_mid_stream_cuts_the_stream() {
    for http in Http::BOTH {
        for how in ["close", "reset", "babble"] {
            let mut bench = Bench::start(1, 1, 0).await;
            let client = http.client(bench.worker.addr()).await;
            let (mut asked, mut call) = streaming(&mut bench, &client).await;
            match how {
                "close" => drop(call),
                "reset" => call.reset(),
                _ => call.write("zz\r\n").await,
            }
            assert!(!asked.whole().await.1, "{http:?} {how}");
            bench.holds(0, 0, 0).await;
            bench.idle().await;
        }
    }
}

/// Of two streams one ends, and its engine then fails: the other keeps its slot.
#[tokio::test]
async fn an_end_that_itself_fails_frees_one_slot_and_not_two() {
    for http in Http::BOTH {
        let mut bench = Bench::start(2, 2, 0).await;
        let client = http.client(bench.worker.addr()).await;
        let (_other, _call) = streaming(&mut bench, &client).await;
        let (mut asked, mut call) = streaming(&mut bench, &client).await;
        bench.holds(2, 0, 0).await;
        call.write(chunk("data: [DONE]\n\n")).await;
        asked.until("[DONE]").await;
        bench.holds(1, 0, 0).await;
        call.write("this is no chunk\r\n").await;
        // After the last event there is nothing to be lost.
        assert!(asked.whole().await.1);
        bench.worker.gate().settle();
        assert_eq!(bench.counts(), (1, 0, 0));
        let (_third, _call) = streaming(&mut bench, &client).await;
        let mut refused = client.ask(CHAT, &[]).await;
        assert_eq!(refused.status().await, 529);
    }
}

#[tokio::test]
async fn a_stream_that_says_its_end_or_an_error_does_not_leave_its_client_hanging() {
    for http in Http::BOTH {
        for last in [
            "data: [DONE]\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            "data: {\"error\":{\"message\":\"out of memory\"}}\n\n",
        ] {
            let mut bench = Bench::start(1, 1, 0).await;
            let client = http.client(bench.worker.addr()).await;
            let (mut asked, mut call) = streaming(&mut bench, &client).await;
            call.write(chunk(last)).await;
            asked.until(last).await;
            bench.holds(0, 0, 0).await;
            // The engine keeps its side open.
            assert!(asked.whole().await.1);
            call.closed().await;
            bench.idle().await;
        }
    }
}

/// Counts on `/metrics` while clients leave with much of their answer unread.
#[tokio::test]
async fn gauges_stay_within_their_limits_while_clients_leave() {
    for http in Http::BOTH {
        let mut bench = Bench::start(1, 1, 1).await;
        let client = http.client(bench.worker.addr()).await;
        let addr = bench.worker.addr();
        let scraping = tokio::spawn(async move {
            let mut scrapes = 0;
            let mut wire = Wire::connect(addr).await;
            loop {
                wire.write("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
                assert_eq!(wire.head().await, 200);
                let text = String::from_utf8(wire.body().await).unwrap();
                for line in text.lines().filter(|line| line.contains("_count{dp_rank")) {
                    if line.contains("queue_wait") {
                        continue;
                    }
                    let value = line.rsplit(' ').next().unwrap();
                    assert!(["0", "1"].contains(&value), "{line}");
                }
                scrapes += 1;
                if scrapes == 200 {
                    return;
                }
            }
        });
        while !scraping.is_finished() {
            let (asked, mut call) = streaming(&mut bench, &client).await;
            let queued = client.ask(CHAT, &[]).await;
            bench.holds(1, 0, 1).await;
            call.write(chunk(TOKEN).repeat(500)).await;
            drop(queued);
            bench.holds(1, 0, 0).await;
            drop(asked);
            call.closed().await;
        }
        scraping.await.unwrap();
        bench.idle().await;
    }
}
