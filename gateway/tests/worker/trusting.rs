//! Whose claims are followed, and where a rank may stand.

use std::time::Duration;

use tidegate::Lane;
use tidegate_gateway::worker::{Trust, WorkerConfig};

use super::asking::*;
use super::support::*;

async fn ranked(change: impl FnOnce(&mut WorkerConfig)) -> Bench {
    Bench::with(limits(4, 4, 4), &[3, 4], change).await
}

fn running(bench: &Bench, lane: Lane) -> u64 {
    bench.snapshot().lane(lane).unwrap().running
}

#[tokio::test]
async fn claims_of_clients_that_are_not_trusted_are_taken_out() {
    for http in Http::BOTH {
        for (trust, followed) in [
            (Trust::Loopback, true),
            (Trust::All, true),
            (Trust::None, false),
        ] {
            let mut bench = ranked(|config| config.trust = trust).await;
            let client = http.client(bench.worker.addr()).await;
            let claims = [("x-data-parallel-rank", "4"), ("x-slo-class", "gold")];
            // What is for the gate alone goes no further, whoever says it.
            let all = [&claims[..], &[("x-admission-progress", "1")]].concat();
            let _asked = client.ask("/generate", &all).await;
            let call = bench.engine.call().await;
            assert_eq!(call.header("x-admission-progress"), None);
            for (name, value) in claims {
                assert_eq!(call.header(name), followed.then_some(value), "{trust:?}");
            }
            assert_eq!(running(&bench, Lane::Rank(4)), u64::from(followed));
            assert_eq!(running(&bench, Lane::Unspecified), u64::from(!followed));
        }
    }
    // What is not followed cannot be malformed.
    let mut bench = ranked(|config| config.trust = Trust::None).await;
    let mut client = bench.post_with("x-data-parallel-rank: x\r\n").await;
    bench.engine.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_rank_may_stand_in_the_body_when_told_so() {
    for http in Http::BOTH {
        for (told, lane) in [(true, Lane::Rank(4)), (false, Lane::Unspecified)] {
            let mut bench = ranked(|config| config.rank_from_body = told).await;
            let client = http.client(bench.worker.addr()).await;
            let body = r#"{"text":"hello","data_parallel_rank":4}"#;
            let _asked = client.ask_with("/generate", &[], body).await;
            let mut call = bench.engine.call().await;
            assert_eq!(call.body().await, body.as_bytes());
            assert_eq!(running(&bench, lane), 1, "{http:?}");
        }
    }
}

/// The engine would follow it, whatever the gate does.
#[tokio::test]
async fn a_rank_in_the_body_of_a_client_that_may_not_name_one_is_refused() {
    for http in Http::BOTH {
        let mut bench = ranked(|config| {
            config.rank_from_body = true;
            config.trust = Trust::None;
        })
        .await;
        let client = http.client(bench.worker.addr()).await;
        for body in [
            r#"{"data_parallel_rank":4}"#,
            r#"{"data_parallel_rank":77}"#,
            r#"{"data_parallel_rank":null,"data_parallel_r\u0061nk":0}"#,
        ] {
            let mut asked = client.ask_with("/generate", &[], body).await;
            assert_eq!(asked.status().await, 403, "{http:?} {body}");
            let said = asked.whole().await.0;
            assert!(said.contains("--trust-admission-headers"), "{said}");
        }
        assert!(bench.engine.is_idle());
        assert_eq!(bench.total(|lane| lane.received), 0);
        for body in [r#"{"data_parallel_rank":null}"#, r#"{"text":"a"}"#] {
            let headers = &[("x-data-parallel-rank", "3")];
            let mut asked = client.ask_with("/generate", headers, body).await;
            bench.engine.answer(JSON).await;
            assert_eq!(asked.status().await, 200, "{http:?} {body}");
        }
        let seen = bench.snapshot();
        assert_eq!(seen.lane(Lane::Unspecified).unwrap().received, 2);
    }
}

#[tokio::test]
async fn a_rank_in_the_body_that_cannot_be_followed_is_the_clients_mistake() {
    let mut bench = ranked(|config| config.rank_from_body = true).await;
    let client = Http::One.client(bench.worker.addr()).await;
    for (headers, body) in [
        (&[][..], r#"{"data_parallel_rank":-1}"#),
        (&[], r#"{"data_parallel_rank":"4"}"#),
        (&[("x-dynamo-dp-rank", "3")], r#"{"data_parallel_rank":4}"#),
    ] {
        let mut asked = client.ask_with("/generate", headers, body).await;
        assert_eq!(asked.status().await, 400, "{body}");
    }
    assert_eq!(bench.total(|lane| lane.received), 0);
    // One that the engine did not report is none, and so is none at all.
    for body in [r#"{"data_parallel_rank":77}"#, "no JSON", ""] {
        let mut asked = client.ask_with("/generate", &[], body).await;
        bench.engine.answer(JSON).await;
        assert_eq!(asked.status().await, 200, "{body}");
    }
    let seen = bench.snapshot();
    assert_eq!(seen.lane(Lane::Unspecified).unwrap().received, 3);
}

/// Clients who keep their patience by a trickle hold the budget; whoever waits for
/// it is answered all the same.
#[tokio::test]
async fn a_body_that_finds_no_room_to_be_read_is_answered() {
    let mut bench = ranked(|config| {
        config.rank_from_body = true;
        config.buffer_budget = 1_000_000;
        config.client_timeout = Duration::from_millis(300);
    })
    .await;
    let mut slow = bench.connect().await;
    slow.write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n")
        .await;
    slow.write("x".repeat(960_000)).await;
    let client = Http::One.client(bench.worker.addr()).await;
    let trickle = async {
        loop {
            // Well above the least rate, and far from done.
            if !slow.try_write("x".repeat(16)).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let more_than_is_left = "y".repeat(50_000);
    let asked = async {
        let mut asked = client.ask_with("/generate", &[], &more_than_is_left).await;
        (asked.status().await, asked.whole().await.0)
    };
    let (status, told) = tokio::select! {
        answer = asked => answer,
        () = trickle => panic!("the slow client was cut first"),
    };
    assert_eq!(status, 503, "{told}");
    assert!(told.contains("--buffer-budget"), "{told}");
    drop(slow);
    bench.idle().await;
}

/// Bodies that are read before the gate is asked share the budget, and those that
/// are half here never wait for each other.
#[tokio::test]
async fn bodies_that_are_read_first_fit_the_budget_or_are_refused() {
    let mut bench = ranked(|config| {
        config.rank_from_body = true;
        config.buffer_budget = 1000;
    })
    .await;
    let client = Http::One.client(bench.worker.addr()).await;
    let mut asked = client.ask_with("/generate", &[], &"x".repeat(1001)).await;
    assert_eq!(asked.status().await, 413);
    let mut chunked = bench.connect().await;
    chunked
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    chunked.write(chunk(&"x".repeat(1001))).await;
    assert_eq!(chunked.head().await, 413);

    // One holds all but a byte and is not done; the next waits, and goes on when it
    // leaves.
    let mut first = bench.connect().await;
    first
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        .await;
    first.write("x".repeat(999)).await;
    let mut free = client.ask_with("/generate", &[], "1").await;
    bench.engine.answer(JSON).await;
    assert_eq!(free.status().await, 200);
    let mut next = client.ask_with("/generate", &[], "{}").await;
    let mut third = bench.post().await;
    assert!(third.is_silent().await);
    drop(first);
    for _ in 0..2 {
        bench.engine.answer(JSON).await;
    }
    assert_eq!(next.status().await, 200);
    assert_eq!(third.head().await, 200);
    bench.idle().await;
}

/// Only what has come takes room.
#[tokio::test]
async fn a_client_that_announces_much_and_sends_a_byte_holds_nobody_up() {
    let mut bench = ranked(|config| {
        config.rank_from_body = true;
        config.buffer_budget = 1_000_000;
    })
    .await;
    let mut announcer = bench.connect().await;
    announcer
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nx")
        .await;
    for http in Http::BOTH {
        let client = http.client(bench.worker.addr()).await;
        let mut asked = client
            .ask_with("/generate", &[], &"y".repeat(500_000))
            .await;
        bench.engine.answer(JSON).await;
        assert_eq!(asked.status().await, 200, "{http:?}");
    }
    assert!(announcer.is_silent().await);
    drop(announcer);
    bench.idle().await;
}
