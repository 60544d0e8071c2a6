//! First tokens in every dialect that engines stream in, over both versions of
//! HTTP, on the route that speaks it.

use super::asking::*;
use super::support::*;

/// A route, what its engine sends before it generates, a first token, and the
/// last event if there is one.
struct Dialect {
    route: &'static str,
    nothing_yet: &'static [&'static str],
    token: &'static str,
    end: Option<&'static str>,
}

const DIALECTS: [Dialect; 7] = [
    Dialect {
        route: "/v1/chat/completions",
        nothing_yet: &[
            ": keep-alive\n\n",
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
        ],
        token: "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
        end: Some("data: [DONE]\n\n"),
    },
    Dialect {
        route: "/v1/completions",
        nothing_yet: &["data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n"],
        token: "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\n",
        end: Some("data: [DONE]\n\n"),
    },
    Dialect {
        route: "/v1/responses",
        nothing_yet: &[
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n",
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"\"}\n\n",
        ],
        token: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
        end: Some(
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        ),
    },
    Dialect {
        route: "/v1/messages",
        nothing_yet: &[
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n",
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        ],
        token: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
        end: Some("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
    },
    // llama.cpp
    Dialect {
        route: "/completion",
        nothing_yet: &["data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":false}\n\n"],
        token: "data: {\"index\":0,\"content\":\"a\",\"tokens\":[5],\"stop\":false}\n\n",
        end: None,
    },
    // TGI
    Dialect {
        route: "/generate_stream",
        nothing_yet: &[":\n\n"],
        token: "data:{\"index\":1,\"token\":{\"id\":42,\"text\":\" a\",\"special\":false},\"generated_text\":null}\n\n",
        end: Some("data:{\"error\":\"out of memory\",\"error_type\":\"generation\"}\n\n"),
    },
    // SGLang
    Dialect {
        route: "/generate",
        nothing_yet: &[
            "data: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"finish_reason\":null}}\n\n",
        ],
        token: "data: {\"text\":\"a\",\"meta_info\":{\"finish_reason\":null}}\n\n",
        end: Some("data: [DONE]\n\n"),
    },
];

#[tokio::test]
async fn waiting_ends_with_the_first_token_and_running_with_the_last_event() {
    for http in Http::BOTH {
        for dialect in DIALECTS {
            let mut bench = Bench::start(1, 1, 0).await;
            let client = http.client(bench.worker.addr()).await;
            let mut asked = client.ask(dialect.route, &[]).await;
            let mut call = bench.engine.call().await;
            call.write(EVENTS).await;
            assert_eq!(asked.status().await, 200);
            for event in dialect.nothing_yet {
                call.write(chunk(event)).await;
                asked.until(event).await;
            }
            let (start, last) = dialect.token.split_at(dialect.token.len() - 1);
            call.write(chunk(start)).await;
            asked.until(start).await;
            assert_eq!(bench.counts(), (1, 1, 0), "{http:?} {}", dialect.route);
            call.write(chunk(last)).await;
            bench.holds(1, 0, 0).await;
            match dialect.end {
                Some(end) => call.write(chunk(end)).await,
                None => call.write(LAST).await,
            }
            bench.holds(0, 0, 0).await;
            assert!(asked.whole().await.1, "{http:?} {}", dialect.route);
            bench.idle().await;
        }
    }
}

/// KServe and Triton answer whole, some in binary: the end is the first token.
#[tokio::test]
async fn an_inference_is_waited_for_to_its_end() {
    for http in Http::BOTH {
        for route in ["/v2/models/m/infer", "/v2/models/m/versions/3/infer"] {
            let mut bench = Bench::start(1, 1, 0).await;
            let client = http.client(bench.worker.addr()).await;
            let mut asked = client.ask(route, &[]).await;
            let mut call = bench.engine.call().await;
            call.write(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/octet-stream\r\n\
                 inference-header-content-length: 2\r\ncontent-length: 8\r\n\r\n{}data",
            )
            .await;
            assert_eq!(asked.status().await, 200);
            asked.until("{}data").await;
            assert_eq!(bench.counts(), (1, 1, 0));
            call.write("\0\n").await;
            assert_eq!(asked.whole().await, ("{}data\0\n".to_owned(), true));
            bench.idle().await;
        }
    }
}

/// Asked not to compress, an engine that does it all the same is passed on as it
/// is, and its first bytes are its first token.
#[tokio::test]
async fn a_stream_that_comes_compressed_all_the_same_passes() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.post_with("accept-encoding: gzip\r\n").await;
    let mut call = bench.engine.call().await;
    assert_eq!(call.header("accept-encoding"), None);
    call.write(EVENTS.replace("\r\n\r\n", "\r\ncontent-encoding: gzip\r\n\r\n"))
        .await;
    assert_eq!(client.head().await, 200);
    assert_eq!(client.header("content-encoding"), Some("gzip"));
    assert_eq!(bench.counts(), (1, 1, 0));
    call.write(b"4\r\n\x1f\x8b\n\n\r\n").await;
    client.expect(b"4\r\n\x1f\x8b\n\n\r\n").await;
    assert_eq!(bench.counts(), (1, 0, 0));
    call.write(LAST).await;
    client.expect(LAST).await;
    bench.idle().await;
}
