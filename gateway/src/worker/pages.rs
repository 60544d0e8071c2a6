//! The pages on which engines tell their ranks and their size.

use serde_json::Value;
use tidegate::EngineReport;

/// One kind of engine: where it tells its size, and how to read that.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) read: fn(&Value) -> Option<EngineReport>,
}

/// The engines that tell their size.
pub(super) const KINDS: [Kind; 5] = [
    Kind {
        name: "SGLang",
        path: "/get_server_info",
        read: sglang,
    },
    Kind {
        name: "llama.cpp",
        path: "/props",
        read: |page| one_rank(&page["total_slots"]),
    },
    Kind {
        name: "TGI",
        path: "/info",
        read: |page| one_rank(&page["max_concurrent_requests"]),
    },
    Kind {
        // Where its later versions have the same page.
        name: "SGLang",
        path: "/server_info",
        read: sglang,
    },
    Kind {
        name: "vLLM",
        path: "/server_info?config_format=json",
        read: vllm,
    },
];

/// vLLM tells in its development mode. One server stands before all its ranks.
fn vllm(page: &Value) -> Option<EngineReport> {
    let config = &page["vllm_config"];
    let ranks = match &config["parallel_config"]["data_parallel_size"] {
        Value::Null => 1,
        size => number(size).filter(|&size| size as usize <= tidegate::limits::MAX_RANKS)?,
    };
    Some(EngineReport {
        ranks: (0..ranks).collect(),
        max_num_seqs: Some(count(&config["scheduler_config"]["max_num_seqs"])?),
    })
}

/// SGLang counts `max_running_requests` over all ranks with data-parallel
/// attention, and per rank without. Its ranks start at 0; whoever answers in
/// its place may say where else, by the name of vLLM's setting.
fn sglang(page: &Value) -> Option<EngineReport> {
    let ranks = match page.get("dp_size") {
        None | Some(Value::Null) => 1,
        Some(size) => number(size).filter(|&size| size as usize <= tidegate::limits::MAX_RANKS)?,
    };
    let shared = page["enable_dp_attention"] == Value::Bool(true);
    let measured = &page["internal_states"][0]["effective_max_running_requests_per_dp"];
    let configured = count(&page["max_running_requests"]);
    let per_rank = |all: u32| match shared {
        true if all > 0 => (all / ranks).max(1),
        _ => all,
    };
    let max_num_seqs = number(measured).or_else(|| configured.map(per_rank))?;
    let first = match page.get("data_parallel_start_rank") {
        None | Some(Value::Null) => 0,
        Some(first) => u32::try_from(first.as_u64()?).ok()?,
    };
    let last = first.checked_add(ranks - 1)?;
    Some(EngineReport {
        ranks: (first..=last).collect(),
        max_num_seqs: Some(max_num_seqs),
    })
}

fn one_rank(max_num_seqs: &Value) -> Option<EngineReport> {
    Some(EngineReport {
        ranks: vec![0],
        max_num_seqs: Some(count(max_num_seqs)?),
    })
}

/// A number that fits.
fn count(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// A positive number that fits.
fn number(value: &Value) -> Option<u32> {
    count(value).filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sglang_tells_ranks_and_size() {
        let read =
            |page: Value| sglang(&page).map(|report| (report.ranks.len(), report.max_num_seqs));
        assert_eq!(
            read(json!({"max_running_requests": 64})),
            Some((1, Some(64)))
        );
        assert_eq!(
            read(json!({"dp_size": 8, "max_running_requests": 64})),
            Some((8, Some(64)))
        );
        assert_eq!(
            read(json!({"dp_size": 8, "max_running_requests": 64, "enable_dp_attention": true})),
            Some((8, Some(8)))
        );
        assert_eq!(
            read(json!({
                "dp_size": 2,
                "max_running_requests": null,
                "internal_states": [{"effective_max_running_requests_per_dp": 48}]
            })),
            Some((2, Some(48)))
        );
    }

    #[test]
    fn vllm_tells_in_its_development_mode() {
        let read = |page: Value| vllm(&page).map(|told| (told.ranks.len(), told.max_num_seqs));
        let page = |parallel: Value, most: Value| {
            json!({"vllm_config": {
                "parallel_config": {"data_parallel_size": parallel},
                "scheduler_config": {"max_num_seqs": most},
            }})
        };
        assert_eq!(read(page(json!(null), json!(256))), Some((1, Some(256))));
        assert_eq!(read(page(json!(8), json!(64))), Some((8, Some(64))));
        assert_eq!(read(page(json!(100_000), json!(64))), None);
        assert_eq!(read(page(json!(1), json!("many"))), None);
        // What it says unless asked for JSON.
        assert_eq!(read(json!({"vllm_config": "VllmConfig(...)"})), None);
    }

    #[test]
    fn ranks_need_not_start_at_0() {
        let read = |first: Value| {
            let page =
                json!({"dp_size": 2, "max_running_requests": 8, "data_parallel_start_rank": first});
            sglang(&page).map(|report| report.ranks)
        };
        assert_eq!(read(json!(4)), Some(vec![4, 5]));
        assert_eq!(read(json!(null)), Some(vec![0, 1]));
        let last = u32::MAX - 1;
        assert_eq!(read(json!(last)), Some(vec![last, u32::MAX]));
        for unusable in [json!(u32::MAX), json!(-1), json!("4"), json!(1u64 << 32)] {
            assert_eq!(read(unusable.clone()), None, "{unusable}");
        }
    }

    #[test]
    fn a_size_of_0_is_read_as_told() {
        let read = |page: Value| sglang(&page).and_then(|report| report.max_num_seqs);
        assert_eq!(read(json!({"max_running_requests": 0})), Some(0));
        assert_eq!(
            read(json!({"dp_size": 2, "max_running_requests": 0, "enable_dp_attention": true})),
            Some(0)
        );
        let told = one_rank(&json!(0)).and_then(|report| report.max_num_seqs);
        assert_eq!(told, Some(0));
    }

    #[test]
    fn pages_that_tell_nothing_usable_are_no_report() {
        for page in [
            json!({}),
            json!([]),
            json!("x"),
            json!({"max_running_requests": null}),
            json!({"max_running_requests": -1}),
            json!({"max_running_requests": 1e30}),
            json!({"dp_size": 100_000, "max_running_requests": 8}),
            json!({"dp_size": "two", "max_running_requests": 8}),
        ] {
            assert!(sglang(&page).is_none(), "{page}");
        }
        assert!(one_rank(&json!(null)).is_none());
        assert!(one_rank(&json!(-1)).is_none());
        assert_eq!(
            one_rank(&json!(4)).and_then(|report| report.max_num_seqs),
            Some(4)
        );
    }
}
