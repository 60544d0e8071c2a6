//! The ways to pick a worker, over HTTP. What they pick is in their own tests.

use tidegate::Lane;
use tidegate_gateway::engine::{Engine, EngineConfig};
use tidegate_gateway::frontend::RouterMode;

use super::support::*;

/// A page of an engine of two ranks with these shares of 100 blocks in use.
fn ranks(shares: [u32; 2]) -> Pages {
    let of = |(rank, blocks): (usize, u32)| {
        format!(
            "vllm:cache_config_info{{engine=\"{rank}\",num_gpu_blocks=\"100\"}} 1\n\
             vllm:kv_cache_usage_perc{{engine=\"{rank}\"}} {}\n",
            f64::from(blocks) / 100.0
        )
    };
    Pages {
        metrics: Some(shares.into_iter().enumerate().map(of).collect()),
        ..Pages::default()
    }
}

/// Waits until so many ranks are known of each worker.
async fn known(front: &Front, workers: u64, ranks: usize) {
    until("the ranks are known", async || {
        (0..workers).all(|id| {
            let load = front.frontend.monitor().member(id).unwrap().load();
            load.ranks.len() == ranks
        })
    })
    .await;
}

#[tokio::test]
async fn kv_sends_to_the_rank_with_the_least_and_tells_it() {
    let mut one = Scripted::with(ranks([90, 10])).await;
    let mut other = Scripted::with(ranks([50, 60])).await;
    let front = Front::with(&[&one, &other], |config| {
        config.router_mode = RouterMode::Kv;
    })
    .await;
    known(&front, 2, 2).await;
    let mut client = front.post().await;
    let mut call = one.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), Some("1"));
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);

    // A rank that its client names is looked at and passed on as it is.
    let mut client = front.send(post("x-dynamo-dp-rank: 0\r\n")).await;
    let mut call = other.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), None);
    assert_eq!(call.header("x-dynamo-dp-rank"), Some("0"));
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);

    // The own accounting counts before any page does.
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(100_000));
    let _long = front.send(post_of(&long, "")).await;
    let call = one.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), Some("1"));
    let _next = front.post().await;
    let call = other.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), Some("0"));
}

#[tokio::test]
async fn kv_leaves_busy_ranks_and_those_that_refused_alone() {
    let mut worker = Scripted::with(ranks([20, 10])).await;
    let front = Front::with(&[&worker], |config| {
        config.router_mode = RouterMode::Kv;
        config.mark_time = std::time::Duration::from_secs(3600);
    })
    .await;
    known(&front, 1, 2).await;
    let mut client = front.post().await;
    let mut call = worker.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), Some("1"));
    call.body().await;
    call.write(refusal("rank", "x-admission-rank: 1\r\n")).await;
    assert_overloaded(&mut client, 529).await;
    let mut client = front.post().await;
    let mut call = worker.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), Some("0"));
    call.body().await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
}

/// Two real workers of two ranks: four requests that go on take one rank each.
#[tokio::test]
async fn kv_spreads_requests_over_all_ranks_of_all_workers() {
    let mut engines = Vec::new();
    let mut workers = Vec::new();
    for _ in 0..2 {
        let engine = Engine::start(EngineConfig {
            ranks: 2,
            ..EngineConfig::default()
        });
        let engine = engine.await.unwrap();
        workers.push(worker(&engine.url(), limits(4, 4, 0), &[0, 1]));
        engines.push(engine);
    }
    let urls: Vec<String> = workers.iter().map(|worker| worker.url()).collect();
    let front = Front::before(&urls, |config| config.router_mode = RouterMode::Kv);
    front.well(2).await;
    known(&front, 2, 2).await;
    let body = r#"{"model":"sim","stream":true,"max_tokens":10000,"ignore_eos":true,"messages":[{"role":"user","content":"a b c d"}]}"#;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = front.send(post_of(body, "")).await;
        assert_eq!(client.head().await, 200);
        clients.push(client);
    }
    for worker in &workers {
        let seen = worker.gate().snapshot();
        for rank in 0..2 {
            let lane = seen.lane(Lane::Rank(rank)).unwrap();
            assert_eq!(lane.running, 1, "{seen:?}");
        }
    }
}

#[tokio::test]
async fn least_loaded_goes_where_the_fewest_are() {
    let mut one = Scripted::start().await;
    let mut other = Scripted::start().await;
    let front = Front::with(&[&one, &other], |config| {
        config.router_mode = RouterMode::LeastLoaded;
    })
    .await;
    let _held = front.post().await;
    let _call = one.call().await;
    for _ in 0..4 {
        let mut client = front.post().await;
        other.answer(JSON).await;
        assert_eq!(client.head().await, 200);
        client.body().await;
        until("it is done", async || {
            front.frontend.monitor().member(1).unwrap().load().running == 0
        })
        .await;
    }
    assert!(one.called().is_none());
}

#[tokio::test]
async fn random_is_random_and_its_seed_repeats_it() {
    let mut drawn = Vec::new();
    for _ in 0..2 {
        let mut workers = [Scripted::start().await, Scripted::start().await];
        let front = Front::with(&[&workers[0], &workers[1]], |config| {
            config.router_mode = RouterMode::Random;
            config.seed = 11;
        })
        .await;
        let mut order = Vec::new();
        for _ in 0..16 {
            let mut client = front.post().await;
            until("somebody has it", async || {
                for (at, worker) in workers.iter_mut().enumerate() {
                    if let Some(mut call) = worker.called() {
                        order.push(at);
                        call.body().await;
                        call.write(JSON).await;
                        return true;
                    }
                }
                false
            })
            .await;
            assert_eq!(client.head().await, 200);
        }
        assert!(order.contains(&0) && order.contains(&1), "{order:?}");
        drawn.push(order);
    }
    assert_eq!(drawn[0], drawn[1]);
}
