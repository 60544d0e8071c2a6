//! Recorded pages of engines and of a DCGM exporter. They were written down from
//! the programs' own documentation and kept to the lines that matter.

use proptest::prelude::*;
use tidegate_policy::device_page;
use tidegate_policy::engine_page::{Ask, UnknownEngine, read};
use tidegate_policy::memory::{Memory, Unit};
use tidegate_policy::state::EngineSample;

const VLLM: &str = include_str!("pages/vllm.txt");
const VLLM_OLDER: &str = include_str!("pages/vllm_older.txt");
const SGLANG: &str = include_str!("pages/sglang.txt");
const TGI: &str = include_str!("pages/tgi.txt");
const LLAMACPP: &str = include_str!("pages/llamacpp.txt");
const DCGM: &str = include_str!("pages/dcgm.txt");

fn pool(used: u64, total: u64) -> Option<Memory> {
    Memory::new(used, total, Unit::KvTokens)
}

fn sample(running: u64, waiting: u64, pool: Option<Memory>, tokens: [f64; 2]) -> EngineSample {
    EngineSample {
        running: Some(running),
        waiting: Some(waiting),
        pool,
        progress: Some(tokens[0] + tokens[1]),
        generated: Some(tokens[1]),
    }
}

fn all(page: &str) -> EngineSample {
    read(page, Ask::default()).expect("a known engine")
}

fn rank(page: &str, rank: u32) -> EngineSample {
    let rank = Some(rank);
    read(
        page,
        Ask {
            rank,
            ..Ask::default()
        },
    )
    .expect("a known engine")
}

fn sized(page: &str, kv_total: u64) -> EngineSample {
    let kv_total = Some(kv_total);
    read(
        page,
        Ask {
            kv_total,
            ..Ask::default()
        },
    )
    .expect("a known engine")
}

#[test]
fn vllm_by_rank_and_in_all() {
    assert_eq!(
        rank(VLLM, 0),
        sample(8, 2, pool(8_000, 16_000), [1_000.0, 300.0])
    );
    assert_eq!(
        rank(VLLM, 1),
        sample(5, 0, pool(12_000, 48_000), [500.0, 200.0])
    );
    assert_eq!(
        all(VLLM),
        sample(13, 2, pool(20_000, 64_000), [1_500.0, 500.0])
    );
}

#[test]
fn vllm_under_its_older_names() {
    let older = all(VLLM_OLDER);
    assert_eq!((older.running, older.waiting), (Some(3), Some(1)));
    assert_eq!((older.pool, older.progress), (pool(10_720, 107_200), None));
}

#[test]
fn sglang() {
    let tokens = [8_128_902.0, 7_557_572.0];
    assert_eq!(
        all(SGLANG),
        sample(162, 2_826, pool(123_859, 442_353), tokens)
    );
    let without: String = SGLANG
        .lines()
        .filter(|line| !line.starts_with("sglang:num_used_tokens"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        all(&without).pool,
        pool(123_859, 442_353),
        "28 % of the pool"
    );
}

#[test]
fn tgi_has_a_pool_once_its_size_is_known() {
    let requests_alone = EngineSample {
        generated: None,
        ..sample(8, 3, None, [41.0, 0.0])
    };
    assert_eq!(all(TGI), requests_alone);
    assert_eq!(sized(TGI, 32_768).pool, pool(20_480, 32_768));
}

#[test]
fn llamacpp_with_and_without_its_cache() {
    assert_eq!(
        all(LLAMACPP),
        sample(4, 1, pool(2_048, 8_192), [1_200.0, 640.0])
    );
    let newer: String = LLAMACPP
        .lines()
        .filter(|line| !line.contains("kv_cache"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(all(&newer), sample(4, 1, None, [1_200.0, 640.0]));
}

#[test]
fn another_page_is_no_engine() {
    assert_eq!(read(DCGM, Ask::default()), Err(UnknownEngine));
    assert_eq!(read("", Ask::default()), Err(UnknownEngine));
    let html = "<html><body>404 page not found</body></html>";
    assert_eq!(read(html, Ask::default()), Err(UnknownEngine));
    assert!(UnknownEngine.to_string().contains("vllm:"));
}

#[test]
fn values_that_are_none_are_left_out() {
    for value in ["NaN", "-1", "+Inf", "1e300"] {
        let page = format!("vllm:num_requests_running {value}\nvllm:num_requests_waiting 4\n");
        let sample = all(&page);
        assert_eq!((sample.running, sample.waiting), (None, Some(4)), "{value}");
    }
}

#[test]
fn dcgm_by_gpu() {
    let gpus = device_page::read(DCGM);
    assert_eq!(gpus.keys().copied().collect::<Vec<_>>(), [0, 1]);
    let mib = |mib: u64| mib * 1_048_576;
    let busy = gpus[&0];
    assert_eq!(busy.utilisation, Some(0.87));
    assert_eq!(busy.sm_utilisation, Some(0.99563));
    assert_eq!(busy.memory_bandwidth, Some(0.690789));
    let memory = Memory::new(mib(73_559), mib(81_559), Unit::DeviceBytes);
    assert_eq!(busy.memory, memory, "what is reserved is in use");
    let idle = gpus[&1];
    assert_eq!((idle.utilisation, idle.sm_utilisation), (Some(0.0), None));
    assert_eq!(idle.memory_bandwidth, Some(0.12), "the coarser field");
    assert!(device_page::read(VLLM).is_empty());
}

proptest! {
    #[test]
    fn any_page_is_answered(page in any::<String>(), rank: Option<u32>, kv_total: Option<u64>) {
        let _ = read(&page, Ask { rank, kv_total });
        let _ = device_page::read(&page);
    }

    #[test]
    fn a_recorded_page_with_odd_values_is_answered(
        page in prop::sample::select(vec![VLLM, VLLM_OLDER, SGLANG, TGI, LLAMACPP, DCGM]),
        value in prop::num::f64::ANY,
        line in 0_usize..40,
        kv_total: Option<u64>,
    ) {
        let odd: Vec<_> = page
            .lines()
            .enumerate()
            .map(|(at, text)| match text.rsplit_once(' ') {
                Some((start, _)) if at == line => format!("{start} {value}"),
                _ => text.to_owned(),
            })
            .collect();
        let page = odd.join("\n");
        if let Ok(sample) = read(&page, Ask { rank: None, kv_total }) {
            prop_assert!(sample.pool.is_none_or(|pool| pool.used <= pool.total));
        }
        for gpu in device_page::read(&page).values() {
            for share in [gpu.utilisation, gpu.sm_utilisation, gpu.memory_bandwidth] {
                prop_assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}
