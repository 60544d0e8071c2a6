//! Busy workers, by their metrics pages.

use std::time::Duration;

use super::codes::used;
use super::support::*;

async fn saying(metrics: &str) -> Scripted {
    Scripted::with(Pages {
        metrics: Some(metrics.to_owned()),
        ..Pages::default()
    })
    .await
}

pub async fn busy(front: &Front, id: u64) -> bool {
    let member = front.frontend.monitor().member(id).unwrap();
    member.busy("m").worker
}

/// CASES 34, by thresholds.
#[tokio::test]
async fn with_three_of_four_busy_every_request_goes_to_the_fourth() {
    let mut workers = Vec::new();
    for blocks in [95, 95, 10, 95] {
        workers.push(saying(&used(blocks)).await);
    }
    let all: Vec<&Scripted> = workers.iter().collect();
    let front = Front::with(&all, |config| {
        config.monitor.thresholds.active_decode_blocks = Some(0.9);
    })
    .await;
    until("three are busy", async || {
        busy(&front, 0).await && busy(&front, 1).await && busy(&front, 3).await
    })
    .await;
    for _ in 0..12 {
        let mut client = front.post().await;
        workers[2].answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    workers[2].set(|pages| pages.metrics = Some(used(95)));
    until("all are busy", async || busy(&front, 2).await).await;
    let mut client = front.post().await;
    assert_overloaded(&mut client, 529).await;
    // And back.
    workers[0].set(|pages| pages.metrics = Some(used(5)));
    until("one is free", async || !busy(&front, 0).await).await;
    let mut client = front.post().await;
    workers[0].answer(JSON).await;
    assert_eq!(client.head().await, 200);
    assert!(workers.iter_mut().all(|worker| worker.called().is_none()));
}

/// CASES 27: the page is gone, and with it the load that it told.
#[tokio::test]
async fn silence_stops_no_traffic() {
    let mut worker = saying(&used(95)).await;
    let front = Front::with(&[&worker], |config| {
        config.monitor.thresholds.active_decode_blocks = Some(0.9);
        config.monitor.load_ttl = Duration::from_millis(500);
    })
    .await;
    until("it refuses", async || {
        let mut client = front.post().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        match worker.called() {
            Some(mut call) => {
                call.body().await;
                call.write(JSON).await;
                false
            }
            None => client.head().await == 529,
        }
    })
    .await;
    worker.set(|pages| pages.metrics = None);
    until("it is free", async || !busy(&front, 0).await).await;
    for _ in 0..3 {
        let mut client = front.post().await;
        worker.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
}

/// CASES 19: without thresholds, whatever the load, the frontend refuses nobody.
#[tokio::test]
async fn without_thresholds_nobody_is_refused() {
    let mut worker = saying(&used(100)).await;
    let front = Front::start(&[&worker]).await;
    front.measures(BLOCKS, 100.0).await;
    let mut clients = Vec::new();
    for _ in 0..50 {
        clients.push(front.post().await);
    }
    for _ in 0..50 {
        worker.answer(JSON).await;
    }
    for client in &mut clients {
        assert_eq!(client.head().await, 200);
    }
}

#[tokio::test]
async fn garbage_in_a_page_refuses_nobody_and_breaks_nothing() {
    let garbage = [
        "vllm:kv_cache_usage_perc NaN\nvllm:cache_config_info{num_gpu_blocks=\"100\"} 1\n",
        "vllm:kv_cache_usage_perc -5\nvllm:cache_config_info{num_gpu_blocks=\"-100\"} 1\n",
        "vllm:kv_cache_usage_perc 1e300\nvllm:cache_config_info{num_gpu_blocks=\"1e300\"} 1\n",
        "vllm:kv_cache_usage_perc +Inf\nvllm:cache_config_info{num_gpu_blocks=\"100\"} 1\n",
        "vllm:num_requests_running 1\nvllm:num_requests_running 99999999999999999999999\n",
        "\u{0}\u{1}{{{{}}}} 1 1 1\nvllm:kv_cache_usage_perc{engine=\"\n",
    ];
    let mut worker = saying("").await;
    let front = Front::with(&[&worker], |config| {
        config.monitor.thresholds.active_decode_blocks = Some(0.5);
        config.monitor.thresholds.active_prefill_tokens = Some(1_000_000);
    })
    .await;
    let lines: String = (0..5000)
        .map(|rank| format!("vllm:kv_cache_usage_perc{{engine=\"{rank}\"}} 1\n"))
        .collect();
    for page in garbage.into_iter().chain([lines.as_str()]) {
        worker.set(|pages| pages.metrics = Some(page.to_owned()));
        // It has been read by then.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let mut client = front.post().await;
        worker.answer(JSON).await;
        assert_eq!(client.head().await, 200, "{}", &page[..page.len().min(80)]);
        let (status, page) = front.get("/metrics").await;
        assert_eq!(status, 200);
        assert!(page.len() < 100_000, "{}", page.len());
        let values = page.lines().filter(|line| !line.starts_with('#'));
        let mut values = values.filter_map(|line| line.rsplit_once(' '));
        assert!(
            values.all(|(_, value)| value.parse::<f64>().is_ok_and(|value| value >= 0.0)),
            "{page}"
        );
    }
}

/// The frontend's own accounting, where no page tells anything.
#[tokio::test]
async fn prompts_that_are_still_read_count_by_themselves() {
    let mut worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| {
        config.monitor.thresholds.active_prefill_tokens = Some(100);
    })
    .await;
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(4000));
    let mut first = front.send(post_of(&long, "")).await;
    let mut call = worker.call().await;
    call.body().await;
    let mut client = front.post().await;
    assert_overloaded(&mut client, 529).await;
    // Its first token has come: the prompt is read.
    call.write(EVENTS).await;
    call.write(token()).await;
    assert_eq!(first.head().await, 200);
    first.expect(token()).await;
    let mut client = front.post().await;
    worker.answer(JSON).await;
    assert_eq!(client.head().await, 200);
    // A client that leaves takes its share along.
    let second = front.send(post_of(&long, "")).await;
    let mut call = worker.call().await;
    let mut client = front.post().await;
    assert_overloaded(&mut client, 529).await;
    drop(second);
    call.closed().await;
    until("there is room", async || !busy(&front, 0).await).await;
}
