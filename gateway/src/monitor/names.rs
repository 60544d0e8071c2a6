//! Which metric of which server says what of a worker's load.
//!
//! | server | requests | KV cache |
//! | --- | --- | --- |
//! | vLLM | `num_requests_running`, `_waiting` | `kv_cache_usage_perc`, older `gpu_cache_usage_perc`, of the blocks of `cache_config_info` |
//! | SGLang | `num_running_reqs`, `num_queue_reqs` | `num_used_tokens`, else `token_usage`, of `max_total_num_tokens` |
//! | TGI | `tgi_batch_current_size`, `tgi_queue_size` | `tgi_batch_current_max_tokens`; no total |
//! | llama.cpp | `requests_processing`, `requests_deferred` | `kv_cache_tokens`, `kv_cache_usage_ratio`, in builds that have them |
//! | Dynamo | none | `dynamo_component_gpu_cache_usage_percent` of `dynamo_component_total_blocks`; older `kvstats_` ones |
//! | Tidegate | the gate's counts and limits, under any prefix | none |
//!
//! vLLM names a data-parallel rank in the label `engine`, the others in `dp_rank`.

/// What a metric says of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Running,
    Waiting,
    /// Of the gate: running ones whose first token has not come.
    GateWaiting,
    UsedBlocks,
    UsedTokens,
    /// A share from 0 to 1.
    UsedShare,
    /// One that is not rounded, so that the total follows from it.
    ExactShare,
    TotalBlocks,
    TotalTokens,
    /// Its labels say how many blocks there are, of how many tokens.
    CacheConfig,
    RequestLimit,
    WaitingLimit,
    QueueLimit,
}

/// How many things there are to say.
pub(super) const SAYINGS: usize = Says::QueueLimit as usize + 1;

/// A metric that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Where it stands among those that say the same: the lowest is believed.
    pub place: usize,
    pub says: Says,
    /// The label that names the rank.
    pub rank_label: &'static str,
}

/// Whole names. Of those that say the same of a rank, the first in this list counts.
const NAMES: [(&str, Says); 22] = [
    ("vllm:num_requests_running", Says::Running),
    ("vllm:num_requests_waiting", Says::Waiting),
    ("vllm:kv_cache_usage_perc", Says::UsedShare),
    ("vllm:gpu_cache_usage_perc", Says::UsedShare),
    ("vllm:cache_config_info", Says::CacheConfig),
    ("sglang:num_running_reqs", Says::Running),
    ("sglang:num_queue_reqs", Says::Waiting),
    ("sglang:num_used_tokens", Says::UsedTokens),
    ("sglang:token_usage", Says::UsedShare),
    ("sglang:max_total_num_tokens", Says::TotalTokens),
    ("tgi_batch_current_size", Says::Running),
    ("tgi_queue_size", Says::Waiting),
    ("tgi_batch_current_max_tokens", Says::UsedTokens),
    ("llamacpp:requests_processing", Says::Running),
    ("llamacpp:requests_deferred", Says::Waiting),
    ("llamacpp:kv_cache_tokens", Says::UsedTokens),
    ("llamacpp:kv_cache_usage_ratio", Says::ExactShare),
    ("dynamo_component_total_blocks", Says::TotalBlocks),
    ("dynamo_component_gpu_cache_usage_percent", Says::UsedShare),
    ("dynamo_component_kvstats_active_blocks", Says::UsedBlocks),
    ("dynamo_component_kvstats_total_blocks", Says::TotalBlocks),
    (
        "dynamo_component_kvstats_gpu_cache_usage_percent",
        Says::UsedShare,
    ),
];

/// How Tidegate's names end; what goes before is a setting of the worker.
const ENDINGS: [(&str, Says); 6] = [
    ("engine_request_count", Says::Running),
    ("engine_request_waiting_count", Says::GateWaiting),
    ("request_queue_count", Says::Waiting),
    ("engine_request_limit", Says::RequestLimit),
    ("engine_request_waiting_limit", Says::WaitingLimit),
    ("request_queue_limit", Says::QueueLimit),
];

/// What the metric of this name says, if it is one that is looked for.
pub(super) fn known(name: &str) -> Option<Known> {
    let whole = NAMES.iter().position(|(known, _)| *known == name);
    let ending = || ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
    let (place, says) = match whole {
        Some(place) => (place, NAMES[place].1),
        None => (NAMES.len(), ending()?.1),
    };
    let rank_label = if name.starts_with("vllm:") {
        "engine"
    } else {
        "dp_rank"
    };
    Some(Known {
        place,
        says,
        rank_label,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(name: &str) -> Option<Says> {
        known(name).map(|known| known.says)
    }

    #[test]
    fn names_are_known_whole_and_tidegates_by_their_end() {
        assert_eq!(says("vllm:num_requests_running"), Some(Says::Running));
        assert_eq!(says("vllm:num_requests_running_total"), None);
        assert_eq!(
            says("dynamo_backend_admission_request_queue_count"),
            Some(Says::Waiting)
        );
        assert_eq!(
            says("mine_engine_request_waiting_count"),
            Some(Says::GateWaiting)
        );
        assert_eq!(
            says("mine_engine_request_waiting_limit"),
            Some(Says::WaitingLimit)
        );
        let newer = known("vllm:kv_cache_usage_perc").unwrap();
        let older = known("vllm:gpu_cache_usage_perc").unwrap();
        assert!(newer.place < older.place);
        assert_eq!((newer.rank_label, newer.says), ("engine", older.says));
    }
}
