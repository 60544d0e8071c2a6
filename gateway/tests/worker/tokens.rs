//! When waiting ends, seen through the gate.

use super::support::*;

/// What engines send before they generate.
const NOTHING_YET: [&str; 6] = [
    ": keep-alive\n\n",
    "event: metadata\n: \"request-1\"\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":null,\"tool_calls\":[]}}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
];

/// What is a first token.
const GENERATED: [&str; 6] = [
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"token_ids\":[17],\"text\":null}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: something else\n\n",
];

#[tokio::test]
async fn waiting_ends_with_the_first_generated_event_and_not_before() {
    for generated in GENERATED {
        let mut bench = Bench::start(1, 1, 0).await;
        let mut client = bench.post().await;
        let mut call = bench.engine.call().await;
        call.write(EVENTS).await;
        assert_eq!(client.head().await, 200);
        for nothing in NOTHING_YET {
            call.write(chunk(nothing)).await;
            client.expect(chunk(nothing)).await;
        }
        // All but the last byte, in two pieces that split a word.
        let (start, end) = generated.split_at(generated.len() - 1);
        for piece in [&start[..9], &start[9..]] {
            call.write(chunk(piece)).await;
            client.expect(chunk(piece)).await;
        }
        assert_eq!(bench.counts(), (1, 1, 0), "{generated}");
        call.write(chunk(end)).await;
        client.expect(chunk(end)).await;
        assert_eq!(bench.counts(), (1, 0, 0), "{generated}");
        call.write(LAST).await;
        client.expect(LAST).await;
        bench.idle().await;
    }
}

#[tokio::test]
async fn a_first_token_lets_the_next_one_in() {
    let mut bench = Bench::start(2, 1, 1).await;
    let first = bench.post().await;
    let mut call = bench.engine.call().await;
    let second = bench.post().await;
    bench.holds(1, 1, 1).await;
    call.write(EVENTS).await;
    call.write(token()).await;
    bench.holds(2, 1, 0).await;
    let mut next = bench.engine.call().await;
    drop((first, second));
    call.closed().await;
    next.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn the_end_of_a_plain_answer_is_its_first_token() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.post().await;
    let mut call = bench.engine.call().await;
    call.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n{ ")
        .await;
    assert_eq!(client.head().await, 200);
    client.expect("{ ").await;
    assert_eq!(bench.counts(), (1, 1, 0));
    call.write(" }").await;
    client.expect(" }").await;
    bench.idle().await;
}
