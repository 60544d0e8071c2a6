//! The pages of real servers: a simulated engine, and the worker before it.

use std::time::Duration;

use tidegate_gateway::engine::Engine;
use tidegate_gateway::load::{Client, Planned};
use tidegate_gateway::monitor::Thresholds;
use tokio::time::Instant;

use crate::scraping::{blocks, joining, often, until};
use crate::stack::{Stack, simulated, soon};

/// A request that does not end by itself within a test.
fn long(prompt_tokens: u32) -> Planned {
    Planned {
        at: Duration::ZERO,
        prompt_tokens,
        output_tokens: 4_000,
        rank: None,
        leaves_after: None,
    }
}

#[tokio::test]
async fn an_engine_tells_its_ranks_and_blocks() {
    let engine = Engine::start(simulated(2, 8, 1.0)).await.unwrap();
    let total = engine.stats()[0].kv_blocks_total;
    let monitor = often(blocks(0.0));
    let member = monitor.add(joining(&engine.url())).unwrap();
    until("two ranks", || member.load().ranks.len() == 2).await;
    assert_eq!(member.load().ranks[1].kv_total_blocks, Some(total.into()));
    assert!(monitor.without_source("sim", &blocks(0.0)).is_empty());
    assert!(!member.busy("sim").worker);
    let target = engine.url().parse().unwrap();
    let busy = tokio::spawn(async move {
        let client = Client::new("sim");
        let (first, second) = (long(64), long(64));
        let sent = Instant::now();
        tokio::join!(
            client.send(&target, &first, sent),
            client.send(&target, &second, sent)
        );
    });
    // Each rank has one, and more than no block is in use.
    until("busy", || member.busy("sim").worker).await;
    until("two running", || member.load().running == 2).await;
    busy.abort();
    until("free", || member.busy("sim").ranks.is_empty()).await;
}

#[tokio::test]
async fn a_worker_tells_its_requests_and_whether_it_has_room() {
    let stack = Stack::small(1, 1, 1).await;
    let monitor = often(Thresholds::default());
    let url = stack.worker.url();
    let member = monitor.add(joining(&url)).unwrap();
    until("room", || member.last_free().is_some()).await;
    let target: tidegate_gateway::load::Target = url.parse().unwrap();
    let send = |prompt| {
        let target = target.clone();
        tokio::spawn(async move {
            let client = Client::new("sim");
            client.send(&target, &long(prompt), Instant::now()).await
        })
    };
    let first = send(16);
    stack.holds(1, 0, 0).await;
    let second = send(16);
    stack.holds(1, 0, 1).await;
    until("both", || member.load().running == 2).await;
    let full = Instant::now();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(member.last_free() < Some(full), "it is full, queue and all");
    second.abort();
    until("room in the queue", || member.last_free() > Some(full)).await;
    first.abort();
    until("nothing", || member.load().running == 0).await;
    soon("idle", stack.idle()).await;
}
