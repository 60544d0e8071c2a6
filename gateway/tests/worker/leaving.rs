//! Clients that go away, at every point of a request's life.

use super::support::*;

#[tokio::test]
async fn a_client_that_leaves_mid_stream_frees_its_slot_and_the_engine() {
    let mut bench = Bench::start(1, 1, 0).await;
    let (client, mut call) = bench.streaming().await;
    call.write(token()).await;
    assert_eq!(bench.counts(), (1, 0, 0));
    drop(client);
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_resets_mid_stream_does_as_well() {
    let mut bench = Bench::start(1, 1, 0).await;
    let (client, mut call) = bench.streaming().await;
    client.reset();
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_frees_its_slot_and_the_engine() {
    let mut bench = Bench::start(1, 1, 0).await;
    let client = bench.post().await;
    let mut call = bench.engine.call().await;
    call.body().await;
    assert_eq!(bench.counts(), (1, 1, 0));
    drop(client);
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_during_a_plain_answer_frees_its_slot() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.post().await;
    let mut call = bench.engine.call().await;
    call.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        .await;
    assert_eq!(client.head().await, 200);
    // A first byte is no first token here.
    client.expect("{").await;
    assert_eq!(bench.counts(), (1, 1, 0));
    drop(client);
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_while_queued_frees_its_place_at_once() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    for _ in 0..3 {
        let queued = bench.post().await;
        bench.holds(1, 0, 1).await;
        drop(queued);
        bench.holds(1, 0, 0).await;
    }
    assert_eq!(bench.total(|lane| lane.cancelled), 3);
    assert_eq!(bench.total(|lane| lane.rejected()), 0);
    assert!(bench.engine.is_idle());
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_with_its_body_half_sent_frees_its_place_too() {
    let mut bench = Bench::start(1, 1, 2).await;
    let (streaming, _call) = bench.streaming().await;
    let mut fixed = bench.connect().await;
    fixed
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        .await;
    let mut chunked = bench.connect().await;
    chunked
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab")
        .await;
    bench.holds(1, 0, 2).await;
    drop(fixed);
    bench.holds(1, 0, 1).await;
    chunked.reset();
    bench.holds(1, 0, 0).await;
    assert_eq!(bench.total(|lane| lane.cancelled), 2);
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn a_body_that_makes_no_sense_frees_its_place_and_is_answered() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    let mut client = bench.connect().await;
    client
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
        .await;
    assert_eq!(client.head().await, 400);
    bench.holds(1, 0, 0).await;
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn a_queued_request_is_served_when_the_one_before_it_leaves() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (first, _call) = bench.streaming().await;
    let mut second = bench.post().await;
    bench.holds(1, 0, 1).await;
    drop(first);
    bench.engine.answer(JSON).await;
    assert_eq!(second.head().await, 200);
    second.body().await;
    assert_eq!(bench.total(|lane| lane.admitted_queue), 1);
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_mid_upload_frees_its_slot_and_the_engine() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.connect().await;
    client
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        .await;
    let mut call = bench.engine.call().await;
    call.expect("{").await;
    drop(client);
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn many_leave_at_every_point_and_nothing_is_left_behind() {
    let mut bench = Bench::start(2, 1, 2).await;
    for round in 0..60 {
        let first = bench.post().await;
        let second = bench.post().await;
        let third = bench.post().await;
        if round % 3 == 0 {
            bench
                .until("all have arrived", |seen| {
                    seen.total(|lane| lane.received) >= 3 * (round + 1)
                })
                .await;
        }
        match round % 4 {
            0 => drop((first, second, third)),
            1 => drop((third, second, first)),
            2 => {
                first.reset();
                drop((second, third));
            }
            _ => {
                drop(second);
                third.reset();
                drop(first);
            }
        }
        bench.holds(0, 0, 0).await;
    }
    // Calls to the engine by clients that have left are of no more interest.
    while !bench.engine.is_idle() {}
    bench.idle().await;
}
