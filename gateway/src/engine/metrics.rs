//! The engine's `/metrics` page, under vLLM's names.
//!
//! Each engine has a recorder of its own, so that several engines in one process
//! keep apart. Gauges are read from the ranks when the page is asked for.
//! Times are those that a client sees: wall-clock seconds, whatever the speed.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, counter, describe_gauge, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::config::EngineConfig;
use super::counts::RankCounts;

const TTFT: &str = "vllm:time_to_first_token_seconds";
const E2E: &str = "vllm:e2e_request_latency_seconds";
const TTFT_BUCKETS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.5, 5.0, 10.0, 40.0,
];
const E2E_BUCKETS: [f64; 14] = [
    0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0,
];

/// What a rank counts as things happen.
pub(super) struct RankMetrics {
    pub prompt_tokens: Counter,
    pub generation_tokens: Counter,
    pub preemptions: Counter,
    pub success: Counter,
    pub first_token: Histogram,
    pub e2e: Histogram,
    running: Gauge,
    waiting: Gauge,
    /// The newer name, then the older.
    kv_usage: [Gauge; 2],
}

impl RankMetrics {
    fn register(model: &str, rank: u32) -> Self {
        let labels = [
            ("model_name", model.to_owned()),
            ("engine", rank.to_string()),
        ];
        Self {
            prompt_tokens: counter!("vllm:prompt_tokens_total", &labels),
            generation_tokens: counter!("vllm:generation_tokens_total", &labels),
            preemptions: counter!("vllm:num_preemptions_total", &labels),
            success: counter!("vllm:request_success_total", &labels),
            first_token: histogram!(TTFT, &labels),
            e2e: histogram!(E2E, &labels),
            running: gauge!("vllm:num_requests_running", &labels),
            waiting: gauge!("vllm:num_requests_waiting", &labels),
            kv_usage: [
                gauge!("vllm:kv_cache_usage_perc", &labels),
                gauge!("vllm:gpu_cache_usage_perc", &labels),
            ],
        }
    }
}

/// The page of one engine.
pub(super) struct Metrics {
    handle: PrometheusHandle,
    pub ranks: Vec<Arc<RankMetrics>>,
}

impl Metrics {
    pub fn new(config: &EngineConfig) -> Self {
        let builder = [(TTFT, TTFT_BUCKETS), (E2E, E2E_BUCKETS)].into_iter().fold(
            PrometheusBuilder::new(),
            |builder, (name, buckets)| {
                let matcher = Matcher::Full(name.to_owned());
                builder
                    .set_buckets_for_metric(matcher, &buckets)
                    .unwrap_or_else(|_| PrometheusBuilder::new())
            },
        );
        let recorder = builder.build_recorder();
        let ranks = metrics::with_local_recorder(&recorder, || {
            describe_gauge!(
                "vllm:kv_cache_usage_perc",
                "KV blocks in use, as a fraction from 0 to 1"
            );
            config
                .rank_ids()
                .map(|rank| {
                    let info = [
                        ("model_name", config.model.clone()),
                        ("engine", rank.to_string()),
                        ("block_size", config.batch.block_size.to_string()),
                        ("num_gpu_blocks", config.batch.kv_blocks.to_string()),
                    ];
                    gauge!("vllm:cache_config_info", &info).set(1.0);
                    Arc::new(RankMetrics::register(&config.model, rank))
                })
                .collect()
        });
        Self {
            handle: recorder.handle(),
            ranks,
        }
    }

    /// The page, with gauges as `counts` (one per rank, in order) says.
    pub fn render(&self, counts: &[RankCounts]) -> String {
        for (metrics, now) in self.ranks.iter().zip(counts) {
            metrics.running.set(now.running as f64);
            metrics.waiting.set(now.waiting as f64);
            let usage = f64::from(now.kv_blocks_used) / f64::from(now.kv_blocks_total.max(1));
            metrics.kv_usage.iter().for_each(|gauge| gauge.set(usage));
        }
        self.handle.render()
    }
}
