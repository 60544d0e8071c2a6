//! The pages on which engines tell their ranks and their size.

use serde_json::Value;
use thiserror::Error;
use tidegate::EngineReport;
use tidegate::limits::MAX_RANKS;

/// One kind of engine: where it tells its size, and how to read that.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) read: fn(&Value) -> Told,
}

/// What a page tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing: it is of another kind.
    Nothing,
    /// Ranks and size.
    All(EngineReport),
    /// The ranks alone, and why not the size.
    Ranks(EngineReport, Unusable),
    /// Something that cannot be.
    Unusable(Unusable),
}

/// A member of a page that tells nothing usable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{member} is {found}, and not a number from {least} to {most}")]
pub(super) struct Unusable {
    member: &'static str,
    /// What is there, cut short.
    found: String,
    least: u32,
    most: u32,
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
        read: |page| one_rank(page, "total_slots"),
    },
    Kind {
        name: "TGI",
        path: "/info",
        read: |page| one_rank(page, "max_concurrent_requests"),
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
fn vllm(page: &Value) -> Told {
    let config = &page["vllm_config"];
    if !config.is_object() {
        return Told::Nothing;
    }
    let ranks = ranks("data_parallel_size", &config["parallel_config"], None);
    let size = size("max_num_seqs", &config["scheduler_config"]);
    told(ranks, size)
}

/// SGLang counts `max_running_requests` over all ranks with data-parallel
/// attention, and per rank without. Its ranks start at 0; whoever answers in
/// its place may say where else, by the name of vLLM's setting.
fn sglang(page: &Value) -> Told {
    const SIZE: &str = "max_running_requests";
    let measured = measured(page);
    let size = measured.map_or_else(|| size(SIZE, page), Ok);
    if page.get("dp_size").is_none() && page.get(SIZE).is_none() && size.is_err() {
        return Told::Nothing;
    }
    let ranks = ranks("dp_size", page, Some("data_parallel_start_rank"));
    let shared = measured.is_none() && page["enable_dp_attention"] == Value::Bool(true);
    let among = match &ranks {
        Ok(ranks) if shared => ranks.told.len() as u32,
        _ => 1,
    };
    told(ranks, size.map(|size| (size / among).max(1)))
}

/// What SGLang's ranks have made of their settings: the least of them.
fn measured(page: &Value) -> Option<u32> {
    let states = page["internal_states"].as_array()?.iter();
    let sizes = states.filter_map(|state| count(&state["effective_max_running_requests_per_dp"]));
    sizes.filter(|&size| size > 0).min()
}

fn one_rank(page: &Value, member: &'static str) -> Told {
    if page.get(member).is_none() {
        return Told::Nothing;
    }
    let ranks = Ranks {
        told: vec![0],
        said: false,
    };
    told(Ok(ranks), size(member, page))
}

/// What the parts come to. A size that is not there leaves the ranks, if the page
/// names some; one that cannot be leaves nothing.
fn told(ranks: Result<Ranks, Unusable>, size: Result<u32, Size>) -> Told {
    let report = |ranks, max_num_seqs| EngineReport {
        ranks,
        max_num_seqs,
    };
    match (ranks, size) {
        (Ok(ranks), Ok(size)) => Told::All(report(ranks.told, Some(size))),
        (Ok(ranks), Err(Size::Missing(why))) if ranks.said => {
            Told::Ranks(report(ranks.told, None), why)
        }
        (Err(why), _) | (_, Err(Size::Missing(why) | Size::Unusable(why))) => Told::Unusable(why),
    }
}

/// The ranks, and whether the page names them or leaves them to be one.
struct Ranks {
    told: Vec<u32>,
    said: bool,
}

/// As many as `member` says, from the one that `first` names, or 0.
fn ranks(
    member: &'static str,
    page: &Value,
    first: Option<&'static str>,
) -> Result<Ranks, Unusable> {
    let most = MAX_RANKS as u32;
    let said = !page[member].is_null();
    let count = match said {
        true => within(member, &page[member], 1, most)?,
        false => 1,
    };
    let first = match first {
        Some(name) if !page[name].is_null() => {
            within(name, &page[name], 0, u32::MAX - (count - 1))?
        }
        _ => 0,
    };
    Ok(Ranks {
        told: (first..=first + (count - 1)).collect(),
        said,
    })
}

/// Why a size is none.
enum Size {
    /// Nothing is there, or `null`.
    Missing(Unusable),
    /// Something else is.
    Unusable(Unusable),
}

fn size(member: &'static str, page: &Value) -> Result<u32, Size> {
    let value = page.get(member).unwrap_or(&Value::Null);
    within(member, value, 1, u32::MAX).map_err(|mut why| match page.get(member) {
        None => {
            why.found = "missing".to_owned();
            Size::Missing(why)
        }
        Some(Value::Null) => Size::Missing(why),
        Some(_) => Size::Unusable(why),
    })
}

/// A number in this range.
fn within(member: &'static str, value: &Value, least: u32, most: u32) -> Result<u32, Unusable> {
    let range = least..=most;
    count(value)
        .filter(|number| range.contains(number))
        .ok_or_else(|| Unusable {
            member,
            found: value.to_string().chars().take(40).collect(),
            least,
            most,
        })
}

/// A number that fits.
fn count(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// How many ranks, and the size of one.
    fn all(told: Told) -> Option<(usize, u32)> {
        match told {
            Told::All(report) => Some((report.ranks.len(), report.max_num_seqs?)),
            _ => None,
        }
    }

    fn unusable(told: Told) -> String {
        match told {
            Told::Unusable(why) => why.to_string(),
            other => panic!("it should be unusable: {other:?}"),
        }
    }

    #[test]
    fn sglang_tells_ranks_and_size() {
        let read = |page: Value| all(sglang(&page));
        assert_eq!(read(json!({"max_running_requests": 64})), Some((1, 64)));
        assert_eq!(
            read(json!({"dp_size": 8, "max_running_requests": 64})),
            Some((8, 64))
        );
        assert_eq!(
            read(json!({"dp_size": 8, "max_running_requests": 64, "enable_dp_attention": true})),
            Some((8, 8))
        );
        assert_eq!(
            read(json!({
                "dp_size": 2,
                "max_running_requests": null,
                "enable_dp_attention": true,
                "internal_states": [{"effective_max_running_requests_per_dp": 48}]
            })),
            Some((2, 48))
        );
    }

    #[test]
    fn vllm_tells_in_its_development_mode() {
        let page = |parallel: Value, most: Value| {
            vllm(&json!({"vllm_config": {
                "parallel_config": {"data_parallel_size": parallel},
                "scheduler_config": {"max_num_seqs": most},
            }}))
        };
        assert_eq!(all(page(json!(null), json!(256))), Some((1, 256)));
        assert_eq!(all(page(json!(8), json!(64))), Some((8, 64)));
        assert_eq!(
            unusable(page(json!(100_000), json!(64))),
            "data_parallel_size is 100000, and not a number from 1 to 1024"
        );
        assert!(unusable(page(json!(1), json!("many"))).starts_with("max_num_seqs is \"many\""));
        // What it says unless asked for JSON.
        let text = json!({"vllm_config": "VllmConfig(...)"});
        assert_eq!(vllm(&text), Told::Nothing);
    }

    #[test]
    fn ranks_need_not_start_at_0() {
        let read = |first: Value| {
            sglang(
                &json!({"dp_size": 2, "max_running_requests": 8, "data_parallel_start_rank": first}),
            )
        };
        for (first, ranks) in [
            (json!(4), vec![4, 5]),
            (json!(null), vec![0, 1]),
            (json!(u32::MAX - 1), vec![u32::MAX - 1, u32::MAX]),
        ] {
            let Told::All(report) = read(first) else {
                panic!("they should be usable");
            };
            assert_eq!(report.ranks, ranks);
        }
        for bad in [json!(u32::MAX), json!(-1), json!("4"), json!(1u64 << 32)] {
            let why = unusable(read(bad.clone()));
            assert!(
                why.starts_with(&format!("data_parallel_start_rank is {bad}")),
                "{why}"
            );
        }
    }

    #[test]
    fn a_page_without_a_size_still_tells_its_ranks() {
        for (page, found) in [
            (json!({"dp_size": 2, "max_running_requests": null}), "null"),
            (json!({"dp_size": 2}), "missing"),
        ] {
            let Told::Ranks(report, why) = sglang(&page) else {
                panic!("{page}");
            };
            assert_eq!((report.ranks, report.max_num_seqs), (vec![0, 1], None));
            let why = why.to_string();
            assert!(
                why.starts_with(&format!("max_running_requests is {found}")),
                "{why}"
            );
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (page, member, found) in [
            (
                json!({"max_running_requests": null}),
                "max_running_requests",
                "null",
            ),
            (
                json!({"max_running_requests": 0}),
                "max_running_requests",
                "0",
            ),
            (
                json!({"dp_size": 2, "max_running_requests": -1}),
                "max_running_requests",
                "-1",
            ),
            (
                json!({"max_running_requests": 1e30}),
                "max_running_requests",
                "1e",
            ),
            (
                json!({"dp_size": 100_000, "max_running_requests": 8}),
                "dp_size",
                "100000",
            ),
            (
                json!({"dp_size": 0, "max_running_requests": 8}),
                "dp_size",
                "0",
            ),
            (json!({"dp_size": -1}), "dp_size", "-1"),
            (
                json!({"dp_size": "2", "max_running_requests": 8}),
                "dp_size",
                "\"2\"",
            ),
        ] {
            let why = unusable(sglang(&page));
            assert!(why.starts_with(&format!("{member} is {found}")), "{why}");
        }
        for value in [json!(null), json!(-1), json!(0), json!([4])] {
            let why = unusable(one_rank(&json!({"total_slots": value}), "total_slots"));
            assert!(why.contains("from 1"), "{why}");
        }
    }

    #[test]
    fn pages_of_another_kind_tell_nothing() {
        for page in [json!({}), json!([]), json!("x"), json!({"status": "ok"})] {
            assert_eq!(sglang(&page), Told::Nothing, "{page}");
            assert_eq!(vllm(&page), Told::Nothing, "{page}");
            assert_eq!(one_rank(&page, "total_slots"), Told::Nothing, "{page}");
        }
        assert_eq!(
            all(one_rank(&json!({"total_slots": 4}), "total_slots")),
            Some((1, 4))
        );
    }
}
