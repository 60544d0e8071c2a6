//! What an engine's `/metrics` page says, under the names of each engine.
//!
//! | engine | in the batch | waiting | KV cache, in tokens | moves while it works |
//! | --- | --- | --- | --- | --- |
//! | vLLM | `num_requests_running` | `num_requests_waiting` | `kv_cache_usage_perc` (older: `gpu_cache_usage_perc`) × blocks × block size of `cache_config_info` | `generation_tokens_total`, `prompt_tokens_total` |
//! | SGLang | `num_running_reqs` | `num_queue_reqs` | `num_used_tokens` (or `token_usage`), `max_total_num_tokens` | the same two |
//! | TGI | `tgi_batch_current_size` | `tgi_queue_size` | `tgi_batch_current_max_tokens`; the total is not on the page | `tgi_request_count` |
//! | llama.cpp | `requests_processing` | `requests_deferred` | `kv_cache_tokens`, `kv_cache_usage_ratio` in builds that have them | `tokens_predicted_total`, `prompt_tokens_total` |
//!
//! The names are those of the engines' own documentation. A total that the page
//! does not tell can be passed in ([`Ask::kv_total`]): TGI's `/info` and
//! llama.cpp's `/props` have it. Where none is known there is no pool, and memory
//! is not judged.
//!
//! vLLM marks a data-parallel rank with the label `engine`, SGLang with
//! `dp_rank`. Values that are negative, not numbers or beyond 2⁵³ are left out.

use crate::memory::{Memory, Unit};
use crate::page::{Sample, samples};
use crate::state::EngineSample;

/// What to look for in a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask {
    /// The data-parallel rank; `None` takes all ranks together.
    pub rank: Option<u32>,
    /// The KV cache's size in tokens, all asked-for ranks together, if known otherwise.
    pub kv_total: Option<u64>,
}

/// The page has no metric of an engine that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no metric of a known engine on the page: expected names that begin with \
     vllm:, sglang:, tgi_ or llamacpp: (SGLang needs --enable-metrics, llama.cpp --metrics)"
)]
pub struct UnknownEngine;

/// Reads an engine's page. What it does not tell is `None`.
///
/// # Errors
/// No line of it is a known engine's.
pub fn read(page: &str, ask: Ask) -> Result<EngineSample, UnknownEngine> {
    let engines: [(&str, Reader); 4] = [
        ("vllm:", vllm),
        ("sglang:", sglang),
        ("tgi_", tgi),
        ("llamacpp:", llamacpp),
    ];
    for (prefix, engine) in engines {
        let found = Found::of(page, prefix, ask.rank);
        if !found.0.is_empty() {
            return Ok(engine(&found, ask));
        }
    }
    Err(UnknownEngine)
}

type Reader = fn(&Found, Ask) -> EngineSample;

/// The samples of one engine that are asked for.
struct Found<'a>(Vec<(&'a str, Sample<'a>)>);

impl<'a> Found<'a> {
    fn of(page: &'a str, prefix: &str, rank: Option<u32>) -> Self {
        let asked = |sample: &Sample| {
            let said = sample.number("engine").or_else(|| sample.number("dp_rank"));
            let other_rank = matches!((rank, said), (Some(r), Some(s)) if u64::from(r) != s);
            // Tensor-parallel ranks hold the same requests: the first speaks for all.
            !other_rank && sample.number("tp_rank").is_none_or(|rank| rank == 0)
        };
        let own = samples(page).filter_map(|s| Some((s.name.strip_prefix(prefix)?, s)));
        Found(own.filter(|(_, sample)| asked(sample)).collect())
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &Sample<'a>> {
        let named = self.0.iter().filter(move |(found, _)| *found == name);
        named.map(|(_, sample)| sample)
    }

    /// The metric over all asked-for ranks; `None` without a usable value.
    fn sum(&self, name: &str) -> Option<f64> {
        let usable = self.all(name).filter_map(|s| usable(s.value));
        usable.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.sum(name).map(|value| value.round() as u64)
    }

    fn progress(&self, names: &[&str]) -> Option<f64> {
        let known = names.iter().filter_map(|name| self.sum(name));
        known.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
}

fn usable(value: f64) -> Option<f64> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    (0.0..=LARGEST).contains(&value).then_some(value)
}

fn tokens(used: f64, total: u64) -> Option<Memory> {
    Memory::new(used.round() as u64, total, Unit::KvTokens)
}

fn vllm(found: &Found, ask: Ask) -> EngineSample {
    // Each rank has a pool of its own: shares are weighted by their pools.
    let pools: Vec<_> = found
        .all("cache_config_info")
        .filter_map(|s| {
            let tokens = s
                .number("num_gpu_blocks")?
                .checked_mul(s.number("block_size")?)?;
            Some((s.label("engine"), tokens))
        })
        .collect();
    let of_rank = |usage: &Sample| {
        let own = pools
            .iter()
            .find(|(rank, _)| *rank == usage.label("engine"));
        own.or(pools.first()).map(|(_, tokens)| *tokens)
    };
    let usage = ["kv_cache_usage_perc", "gpu_cache_usage_perc"]
        .into_iter()
        .find(|name| found.all(name).next().is_some());
    let (mut used, mut total) = (0.0, 0_u64);
    for sample in usage.into_iter().flat_map(|name| found.all(name)) {
        if let (Some(share), Some(size)) = (usable(sample.value), of_rank(sample)) {
            used += share.min(1.0) * size as f64;
            total = total.saturating_add(size);
        }
    }
    let share = used / total.max(1) as f64;
    let total = ask.kv_total.unwrap_or(total);
    EngineSample {
        running: found.count("num_requests_running"),
        waiting: found.count("num_requests_waiting"),
        pool: tokens(share * total as f64, total),
        progress: found.progress(&["generation_tokens_total", "prompt_tokens_total"]),
        generated: found.sum("generation_tokens_total"),
    }
}

fn sglang(found: &Found, ask: Ask) -> EngineSample {
    let total = ask.kv_total.or(found.count("max_total_num_tokens"));
    let used = found.sum("num_used_tokens").or_else(|| {
        let shares: Vec<_> = found
            .all("token_usage")
            .filter_map(|s| usable(s.value))
            .collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        (!shares.is_empty()).then_some(mean * total? as f64)
    });
    EngineSample {
        running: found.count("num_running_reqs"),
        waiting: found.count("num_queue_reqs"),
        pool: used
            .zip(total)
            .and_then(|(used, total)| tokens(used, total)),
        progress: found.progress(&["generation_tokens_total", "prompt_tokens_total"]),
        generated: found.sum("generation_tokens_total"),
    }
}

fn tgi(found: &Found, ask: Ask) -> EngineSample {
    let used = found.sum("batch_current_max_tokens");
    EngineSample {
        running: found.count("batch_current_size"),
        waiting: found.count("queue_size"),
        pool: used
            .zip(ask.kv_total)
            .and_then(|(used, total)| tokens(used, total)),
        progress: found.progress(&["request_count"]),
        generated: None,
    }
}

fn llamacpp(found: &Found, ask: Ask) -> EngineSample {
    let ratio = found.sum("kv_cache_usage_ratio");
    let cached = found.sum("kv_cache_tokens");
    let worked_out = cached.zip(ratio).filter(|(_, ratio)| *ratio > 0.0);
    let total = ask
        .kv_total
        .or_else(|| worked_out.map(|(cached, ratio)| (cached / ratio).round() as u64));
    let used = cached.or_else(|| Some(ratio? * total? as f64));
    EngineSample {
        running: found.count("requests_processing"),
        waiting: found.count("requests_deferred"),
        pool: used
            .zip(total)
            .and_then(|(used, total)| tokens(used, total)),
        progress: found.progress(&["tokens_predicted_total", "prompt_tokens_total"]),
        generated: found.sum("tokens_predicted_total"),
    }
}
