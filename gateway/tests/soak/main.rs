//! A worker under clients that leave, stall and reset at every phase, before an
//! engine that misbehaves, freezes and is killed. At the end nothing may be left:
//! gauges at 0, every request accounted for, memory where it was.
//!
//! `TIDEGATE_SOAK` is for how many seconds, 3 if not set.

mod engine;
#[path = "../program/mod.rs"]
mod program;
mod tally;
mod visit;
mod watch;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use program::Running;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tally::Tally;
use watch::{Memory, Scrape};

/// Clients at once: more than the gate lets in and queues.
const CLIENTS: u64 = 48;

/// Limits per rank, of two.
const RUNNING: u64 = 8;
const WAITING: u64 = 4;
const QUEUED: u64 = 8;
const RANKS: u64 = 2;

#[test]
fn nothing_is_left_behind() {
    let seconds = std::env::var("TIDEGATE_SOAK").map_or(3, |text| {
        text.parse().expect("TIDEGATE_SOAK is a number of seconds")
    });
    let time = Duration::from_secs(seconds);
    let engine = free();
    let worker = worker(engine);
    let addr = address(&worker);
    let keeper = engine::keep(engine, time);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let tally = Arc::new(Tally::default());
    let memory = runtime.block_on(soak(addr, worker.id(), time, &tally));
    let (_engine, kills) = keeper.join().expect("no panics");
    let last = runtime.block_on(settled(addr));
    println!("{tally}  engine killed or frozen  {kills}\n{memory}");
    println!(
        "  received {}, admitted {}, rejected {}, left while queued {}",
        last.received, last.admitted, last.rejected, last.cancelled
    );
    assert_eq!(
        last.received,
        last.admitted + last.rejected + last.cancelled,
        "counts conserve"
    );
    assert!(tally.refused() <= last.rejected);
    memory.assert_flat();
    runtime.block_on(async {
        let status = visit::plain(addr).await;
        assert_eq!(status, Some(200), "one more request is served");
    });
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

fn worker(engine: SocketAddr) -> Running {
    let url = format!("http://{engine}");
    let numbers = [RUNNING, WAITING, QUEUED].map(|number| number.to_string());
    Running::start(&[
        "worker",
        "--engine-url",
        &url,
        "--listen",
        "127.0.0.1:0",
        "--dp-ranks",
        "0-1",
        "--max-num-seqs",
        "8",
        "--engine-request-limit",
        &numbers[0],
        "--engine-request-waiting-limit",
        &numbers[1],
        "--request-queue-limit",
        &numbers[2],
        "--client-timeout",
        "1",
        "--engine-idle-timeout",
        "1",
        "--log-format",
        "json",
    ])
}

fn address(worker: &Running) -> SocketAddr {
    let line = worker.wait_for("worker listens");
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let addr = line["addr"].as_str().expect("an address");
    addr.parse().expect("an address")
}

/// Clients come and go until the time is over; the gauges never pass their limits.
async fn soak(addr: SocketAddr, worker: u32, time: Duration, tally: &Arc<Tally>) -> Memory {
    let end = Instant::now() + time;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|seed| {
            let tally = Arc::clone(tally);
            tokio::spawn(async move {
                let mut rng = StdRng::seed_from_u64(seed);
                while Instant::now() < end {
                    visit::random(addr, &mut rng, &tally).await;
                    let pause = Duration::from_millis(rng.random_range(0..50));
                    tokio::time::sleep(pause).await;
                }
            })
        })
        .collect();
    let mut memory = Memory::of(worker);
    while Instant::now() < end {
        memory.sample();
        let seen = Scrape::of(addr).await;
        for (name, lane, value) in &seen.gauges {
            let each = match name.as_str() {
                "engine_request_count" => RUNNING,
                "engine_request_waiting_count" => WAITING,
                _ => QUEUED,
            };
            let ranks = if lane == "unspecified" { RANKS } else { 1 };
            assert!(*value <= ranks * each, "{name} of {lane} is {value}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for client in clients {
        client.await.expect("no panics");
    }
    memory
}

/// The counts once everyone has gone.
async fn settled(addr: SocketAddr) -> Scrape {
    let start = Instant::now();
    loop {
        let seen = Scrape::of(addr).await;
        if (seen.running, seen.waiting, seen.queued) == (0, 0, 0) {
            return seen;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "left: {seen:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
