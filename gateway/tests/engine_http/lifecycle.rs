//! Starting, and what an engine tells of itself.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_gateway::engine::{Engine, EngineConfig};

use super::support::*;

#[tokio::test]
async fn settings_out_of_range_and_taken_ports_are_errors() {
    for config in [
        EngineConfig {
            ranks: 0,
            ..EngineConfig::default()
        },
        EngineConfig {
            ranks: 2,
            first_rank: u32::MAX,
            ..EngineConfig::default()
        },
        EngineConfig {
            speed: f64::NAN,
            ..EngineConfig::default()
        },
        EngineConfig {
            misbehave_rate: 1.5,
            ..EngineConfig::default()
        },
    ] {
        let error = Engine::start(config).await.err().expect("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    let first = engine(EngineConfig::default()).await;
    let listen = first.addr();
    let second = Engine::start(EngineConfig {
        listen,
        ..EngineConfig::default()
    })
    .await;
    assert_eq!(
        second.err().expect("taken").kind(),
        std::io::ErrorKind::AddrInUse
    );
}

#[tokio::test]
async fn a_loading_engine_answers_503_but_serves_its_metrics() {
    let startup_delay = Duration::from_secs(3600);
    let engine = engine(EngineConfig {
        startup_delay,
        ..EngineConfig::default()
    })
    .await;
    let (status, _) = ask(&engine, "/v1/chat/completions", &[], chat(true, 3)).await;
    assert_eq!(status, 503);
    assert!(page(&engine, "/health").await.contains("loading"));
    assert!(page(&engine, "/metrics").await.contains("vllm:"));
}

#[tokio::test]
async fn ranks_models_and_metrics_are_told() {
    let config = EngineConfig {
        ranks: 2,
        first_rank: 4,
        ..EngineConfig::default()
    };
    let engine = engine(config).await;
    let info: Value = serde_json::from_str(&page(&engine, "/get_server_info").await).unwrap();
    assert_eq!(
        (&info["dp_size"], &info["max_running_requests"]),
        (&json!(2), &json!(256))
    );
    let models: Value = serde_json::from_str(&page(&engine, "/v1/models").await).unwrap();
    assert_eq!(models["data"][0]["id"], "sim");

    let headers = [("x-dynamo-dp-rank", "5"), ("x-sim-prompt-tokens", "9")];
    ask(&engine, "/v1/chat/completions", &headers, chat(false, 3)).await;
    let stats = engine.stats();
    assert_eq!(
        (stats[0].received, stats[1].received, stats[1].finished),
        (0, 1, 1)
    );
    let metrics = page(&engine, "/metrics").await;
    for line in [
        "vllm:num_requests_running{model_name=\"sim\",engine=\"4\"} 0",
        "vllm:num_requests_waiting{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:kv_cache_usage_perc{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:gpu_cache_usage_perc{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:num_preemptions_total{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:prompt_tokens_total{model_name=\"sim\",engine=\"5\"} 9",
        "vllm:generation_tokens_total{model_name=\"sim\",engine=\"5\"} 3",
        "vllm:time_to_first_token_seconds_count{model_name=\"sim\",engine=\"5\"} 1",
        "vllm:e2e_request_latency_seconds_bucket{model_name=\"sim\",engine=\"5\",le=\"+Inf\"} 1",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
}
