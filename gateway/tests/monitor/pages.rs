//! What metrics pages say.

use proptest::prelude::*;
use tidegate_gateway::monitor::page::read;
use tidegate_gateway::monitor::{Reading, Sample, Totals};

const VLLM: &str = include_str!("../../../policy/tests/pages/vllm.txt");
const VLLM_OLDER: &str = include_str!("../../../policy/tests/pages/vllm_older.txt");
const SGLANG: &str = include_str!("../../../policy/tests/pages/sglang.txt");
const SGLANG_DP: &str = include_str!("pages/sglang_dp.txt");
const TGI: &str = include_str!("../../../policy/tests/pages/tgi.txt");
const LLAMACPP: &str = include_str!("../../../policy/tests/pages/llamacpp.txt");
const DCGM: &str = include_str!("../../../policy/tests/pages/dcgm.txt");
const DYNAMO: &str = include_str!("pages/dynamo.txt");
const DYNAMO_OLDER: &str = include_str!("pages/dynamo_older.txt");
const GARBAGE: &str = include_str!("pages/garbage.txt");

const BLOCK: u32 = 16;

fn sample(requests: [Option<u64>; 2], blocks: [Option<u64>; 2], size: Option<u32>) -> Sample {
    let [running, waiting] = requests;
    let [used, total] = blocks;
    Sample {
        running,
        waiting,
        kv_used_blocks: used,
        totals: Totals {
            kv_total_blocks: total,
            block_size: size,
            max_num_batched_tokens: None,
        },
        ..Sample::default()
    }
}

/// The page's ranks; nothing on it was dropped.
#[track_caller]
fn says(page: &str, ranks: &[(Option<u32>, Sample)]) {
    let reading = read(page, BLOCK);
    let said: Vec<_> = reading.ranks.into_iter().collect();
    assert_eq!(said, ranks);
    assert_eq!(reading.dropped, 0);
}

#[test]
fn vllm() {
    let rank = |running, waiting, used, total| {
        let requests = [Some(running), Some(waiting)];
        sample(requests, [Some(used), Some(total)], Some(16))
    };
    let (first, second) = (rank(8, 2, 500, 1000), rank(5, 0, 750, 3000));
    says(VLLM, &[(Some(0), first), (Some(1), second)]);
    says(VLLM_OLDER, &[(None, rank(3, 1, 670, 6700))]);
}

#[test]
fn sglang() {
    // In blocks of 16 tokens, the last of them partly filled.
    let blocks = [Some(7_742), Some(27_648)];
    let whole = sample([Some(162), Some(2_826)], blocks, None);
    says(SGLANG, &[(None, whole)]);
    let rank = |running, waiting, used| {
        sample(
            [Some(running), Some(waiting)],
            [Some(used), Some(4_000)],
            None,
        )
    };
    let ranks = [(Some(0), rank(12, 4, 3_000)), (Some(1), rank(7, 0, 1_000))];
    says(SGLANG_DP, &ranks);
}

#[test]
fn tgi_and_llamacpp() {
    says(
        TGI,
        &[(None, sample([Some(8), Some(3)], [Some(1_280), None], None))],
    );
    let blocks = [Some(128), Some(512)];
    says(
        LLAMACPP,
        &[(None, sample([Some(4), Some(1)], blocks, None))],
    );
    let newer: String = LLAMACPP
        .lines()
        .filter(|line| !line.contains("kv_cache"))
        .map(|line| format!("{line}\n"))
        .collect();
    says(
        &newer,
        &[(None, sample([Some(4), Some(1)], [None, None], None))],
    );
}

#[test]
fn dynamo_under_its_names_and_the_older_ones() {
    let first = sample([Some(3), Some(0)], [Some(5_713), Some(11_426)], None);
    let second = sample([Some(8), Some(6)], [Some(5_000), Some(5_000)], None);
    says(DYNAMO, &[(Some(0), first), (Some(1), second)]);
    let older = sample([None, None], [Some(24), Some(128)], None);
    says(DYNAMO_OLDER, &[(None, older)]);
}

#[test]
fn other_pages_say_nothing() {
    for page in ["", DCGM, "<html><body>404 page not found</body></html>"] {
        assert_eq!(read(page, BLOCK), Reading::default());
    }
}

#[test]
fn garbage_costs_itself_and_is_counted() {
    let reading = read(GARBAGE, BLOCK);
    let said: Vec<_> = reading.ranks.into_iter().collect();
    let first = sample([Some(2), None], [Some(500), Some(1000)], Some(16));
    assert_eq!(said, [(Some(0), first), (Some(1), Sample::default())]);
    // Two more for a series that is there, NaN, -4, 42, +Inf, 1e300, four bad ranks.
    assert_eq!(reading.dropped, 11);
}

#[test]
fn a_page_of_thousands_of_ranks_is_not_believed() {
    let page = |ranks: u32| -> String {
        let line = |rank| format!("vllm:num_requests_running{{engine=\"{rank}\"}} 1\n");
        (0..ranks).map(line).collect()
    };
    assert_eq!(read(&page(1024), BLOCK).ranks.len(), 1024);
    let reading = read(&page(100_000), BLOCK);
    assert_eq!((reading.ranks.len(), reading.dropped), (0, 1));
}

#[test]
fn a_gate_says_whether_it_has_room() {
    let page = |running: [u32; 2], waiting: [u32; 2], queued: [u32; 2]| {
        let lanes = |name: &str, [ranked, unranked]: [u32; 2]| {
            format!(
                "x_{name}{{dp_rank=\"4\"}} {ranked}\nx_{name}{{dp_rank=\"unspecified\"}} {unranked}\n"
            )
        };
        lanes("engine_request_count", running)
            + &lanes("engine_request_waiting_count", waiting)
            + &lanes("request_queue_count", queued)
            + "x_engine_request_limit 8\nx_engine_request_waiting_limit 2\nx_request_queue_limit 4\n"
    };
    let room = |running, waiting, queued| read(&page(running, waiting, queued), BLOCK).room;
    assert_eq!(room([3, 4], [1, 0], [0, 0]), Some(true));
    assert_eq!(room([4, 4], [1, 0], [3, 0]), Some(true), "it queues");
    assert_eq!(room([4, 4], [1, 0], [1, 3]), Some(false));
    assert_eq!(room([3, 4], [1, 1], [4, 0]), Some(false));
    let reading = read(&page([3, 4], [1, 1], [2, 1]), BLOCK);
    assert_eq!(reading.dropped, 0);
    let of = |rank| reading.ranks[&rank];
    assert_eq!(
        (of(Some(4)).running, of(Some(4)).waiting),
        (Some(3), Some(2))
    );
    assert_eq!((of(None).running, of(None).waiting), (Some(4), Some(1)));
    assert_eq!(read(VLLM, BLOCK).room, None, "an engine has no gate");
}

proptest! {
    #[test]
    fn any_page_is_answered(page in any::<String>(), block: u32) {
        let _ = read(&page, block);
    }

    #[test]
    fn odd_values_on_known_pages_are_answered(
        page in prop::sample::select(vec![
            VLLM, VLLM_OLDER, SGLANG, SGLANG_DP, TGI, LLAMACPP, DYNAMO, DYNAMO_OLDER, GARBAGE,
        ]),
        value in prop::num::f64::ANY,
        line in 0_usize..40,
        block: u32,
    ) {
        let odd = page.lines().enumerate().map(|(at, text)| match text.rsplit_once(' ') {
            Some((start, _)) if at == line => format!("{start} {value}\n"),
            _ => format!("{text}\n"),
        });
        let reading = read(&odd.collect::<String>(), block);
        for said in reading.ranks.values() {
            let counts = [said.running, said.waiting, said.kv_used_blocks, said.totals.kv_total_blocks];
            prop_assert!(counts.into_iter().flatten().all(|count| count <= 1 << 53));
        }
    }
}
