//! What strangers, and workers gone wrong, say on NATS: dropped, counted, and harmless.

use std::time::Duration;

use serde_json::json;
use tidegate_gateway::load::Outcome;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use super::nats::Nats;
use super::support::{
    Front, announcement, engine, frontend, load, say, until, worker, worker_with,
};

const MEMBERS: &str = "$KV.tidegate_members";
const LOADS: &str = "tidegate.v1.load";

/// Waits until so many were dropped for this reason.
async fn dropped(front: &Front, reason: &str, count: f64) {
    until(&format!("{count} dropped: {reason}"), async || {
        front.drops(reason).await == count
    })
    .await;
}

/// Members outside `--allow-workers` get nothing, not even a connection.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_outside_the_allowed_places() {
    let nats = Nats::start().await;
    let front = frontend(nats.config());
    until("NATS is reached", async || {
        front.counts("connected").await == 1.0
    })
    .await;
    let stranger = TcpListener::bind("[::1]:0").await.unwrap();
    let url = format!("http://{}", stranger.local_addr().unwrap());
    let client = nats.client().await;
    // Of a server that the frontend could reach, by address and by name.
    let port = stranger.local_addr().unwrap().port();
    let urls = [url, format!("http://localhost:{port}")];
    until("both are dropped", async || {
        for (at, url) in urls.iter().enumerate() {
            let name = format!("w{at}");
            let member = announcement(&name, url, 1, 1);
            say(&client, &format!("{MEMBERS}.{name}"), member).await;
        }
        front.drops("not_allowed").await >= 2.0
    })
    .await;
    for url in [
        "http://127.0.0.1@evil",
        "file:///etc/passwd",
        "",
        "http://127.0.0.1/?x",
    ] {
        say(
            &client,
            &format!("{MEMBERS}.w"),
            announcement("w", url, 1, 1),
        )
        .await;
    }
    dropped(&front, "unusable", 4.0).await;
    assert_eq!(front.0.workers().len(), 0);
    let asked = tokio::time::timeout(Duration::from_millis(300), stranger.accept()).await;
    assert!(asked.is_err(), "somebody asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_ranks_replays_and_garbage_change_nothing() {
    let nats = Nats::start().await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    // Served by a worker that says nothing of its own.
    let one = worker_with(&engine, nats.config(), "silent", |config| {
        config.cluster = None
    });
    let client = nats.client().await;
    let member = announcement("w", &one.url(), 5, 1);
    front.hears(&client, "w", member).await;
    let subject = format!("{LOADS}.w");
    say(&client, &subject, load("w", 5, 1000, 7)).await;
    until("its load is known", async || front.running() == Some(7)).await;

    say(
        &client,
        &format!("{LOADS}.stranger"),
        load("stranger", 5, 11, 9),
    )
    .await;
    dropped(&front, "unknown_worker", 1.0).await;
    // A start that nobody announced.
    say(&client, &subject, load("w", 6, 1, 9)).await;
    dropped(&front, "unknown_worker", 2.0).await;
    // The same again, an older one, and one of an earlier start.
    for (incarnation, sequence) in [(5, 1000), (5, 9), (4, 9999)] {
        say(&client, &subject, load("w", incarnation, sequence, 9)).await;
    }
    dropped(&front, "replayed", 3.0).await;
    say(&client, &subject, load("other", 5, 1001, 9)).await;
    dropped(&front, "other_name", 1.0).await;
    for garbage in ["", "{", "\u{0}", "[1,2]", "{\"v\":1}", "null"] {
        say(&client, &subject, garbage).await;
    }
    say(&client, &format!("{MEMBERS}.w"), "{}").await;
    say(&client, &subject, "x".repeat(900_000)).await;
    dropped(&front, "unusable", 8.0).await;
    // Another worker where one is already.
    say(
        &client,
        &format!("{MEMBERS}.thief"),
        announcement("thief", &one.url(), 9, 1),
    )
    .await;
    dropped(&front, "taken_url", 1.0).await;
    assert_eq!(front.running(), Some(7));

    // A rank that it does not have is counted, and those that it has still count.
    let mut said = load("w", 5, 1002, 3);
    said["ranks"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "rank": 77, "running": 50 }));
    say(&client, &subject, said).await;
    until("its load is known", async || front.running() == Some(3)).await;
    let page = front.page().await;
    let series =
        "dynamo_frontend_worker_load_dropped_total{worker_id=\"0\",worker_type=\"aggregated\"} 1";
    assert!(page.contains(series), "{page}");
    assert_eq!(front.send(3).await, Outcome::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_cut_short_and_others_are_heard_all_the_while() {
    let nats = Nats::start().await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    let quiet = worker(&engine, nats.config(), "quiet");
    front.has(1).await;
    let client = nats.client().await;
    let loud = worker_with(&engine, nats.config(), "loud", |config| {
        config.cluster = None
    });
    say(
        &client,
        &format!("{MEMBERS}.loud"),
        announcement("loud", &loud.url(), 5, 1),
    )
    .await;
    front.has(2).await;
    let flood = tokio::spawn(async move {
        let begun = Instant::now();
        let mut sequence = 2;
        while begun.elapsed() < Duration::from_secs(2) {
            for (name, incarnation) in [("loud", 5), ("stranger", 1)] {
                let said = load(name, incarnation, sequence, sequence).to_string();
                let subject = format!("{LOADS}.{name}");
                client
                    .publish(subject, said.into_bytes().into())
                    .await
                    .unwrap();
            }
            sequence += 1;
        }
        client.flush().await.unwrap();
    });
    sleep(Duration::from_millis(300)).await;
    let held = quiet.gate().try_admit_owned(None).unwrap();
    until("the quiet one is heard", async || {
        front.running() == Some(1)
    })
    .await;
    assert_eq!(front.send(3).await, Outcome::Ok);
    flood.await.unwrap();
    assert!(front.drops("flood").await > 100.0);
    assert!(front.drops("unknown_worker").await > 100.0);
    drop(held);
    until("the quiet one is heard", async || {
        front.running() == Some(0)
    })
    .await;
}

/// A worker of this version beside one of a later minor one and one of another major one.
#[tokio::test(flavor = "multi_thread")]
async fn versions_stand_side_by_side() {
    let nats = Nats::start().await;
    let (engine, front) = (engine().await, frontend(nats.config()));
    let own = worker(&engine, nats.config(), "own");
    front.has(1).await;
    let client = nats.client().await;
    let later = worker_with(&engine, nats.config(), "later", |config| {
        config.cluster = None
    });
    let mut said = announcement("later", &later.url(), 5, 1);
    said["colour"] = json!({ "of": ["what", "nobody", "knows"] });
    say(&client, &format!("{MEMBERS}.later"), &said).await;
    front.has(2).await;
    let mut event = load("later", 5, 2, 4);
    event["ranks"][0]["gpu_temperature"] = 71.into();
    say(&client, &format!("{LOADS}.later"), event).await;
    until("the later one's load is known", async || {
        front.0.monitor().members()[1].load().running == 4
    })
    .await;
    let other = json!({ "v": 2, "worker": "other", "somewhere": "else" });
    say(&client, &format!("{MEMBERS}.other"), &other).await;
    say(
        &client,
        &format!("{LOADS}.later"),
        json!({ "v": 2, "load": "much" }),
    )
    .await;
    dropped(&front, "version", 2.0).await;
    assert_eq!(front.ids(), [0, 1]);
    for _ in 0..4 {
        assert_eq!(front.send(3).await, Outcome::Ok);
    }
    drop((own, later));
}
