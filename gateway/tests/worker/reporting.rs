//! What engines tell of themselves, and what the worker makes of it.

use tidegate::Lane;
use tidegate_gateway::worker::{KnownEngine, Worker};

use super::support::*;

/// Where each kind of engine tells its size, in the order of asking.
const PAGES: [&str; 5] = [
    "/get_server_info",
    "/props",
    "/info",
    "/server_info",
    "/server_info?config_format=json",
];

const SGLANG: &str = PAGES[0];
const LLAMA_CPP: &str = PAGES[1];
const TGI: &str = PAGES[2];
const SGLANG_LATER: &str = PAGES[3];
const VLLM: &str = PAGES[4];

/// A page of this text.
fn page(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{text}",
        text.len()
    )
}

/// What an engine says that has no such page.
const NO_PAGE: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A worker that knows nothing yet.
async fn unknowing(settings: tidegate::Settings, known: KnownEngine) -> Bench {
    let engine = Engine::start().await;
    let mut config = config(engine.addr);
    config.settings = settings;
    config.known_engine = known;
    let worker = Worker::start(config).unwrap();
    Bench { engine, worker }
}

fn ranks(bench: &Bench) -> Vec<u32> {
    let lanes = bench.snapshot().lanes;
    let ranks = lanes.iter().filter_map(|lane| match lane.lane {
        Lane::Rank(id) => Some(id),
        Lane::Unspecified => None,
    });
    ranks.collect()
}

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../engine_pages/", $name, ".json"))
    };
}

/// Recorded answers from which ranks and size follow.
#[tokio::test]
async fn each_kind_and_version_of_engine_is_understood() {
    for (at, text, size, count) in [
        (SGLANG, recorded!("sglang-0.4-set"), 48, 2),
        (SGLANG, recorded!("sglang-0.5"), 128, 1),
        (SGLANG_LATER, recorded!("sglang-0.5"), 128, 1),
        (SGLANG, recorded!("sglang-0.5-dp-attention"), 64, 4),
        // Its state caches let in fewer than it was set to, and one rank fewer still.
        (SGLANG, recorded!("sglang-0.5.19-hybrid"), 9, 2),
        (LLAMA_CPP, recorded!("llamacpp-b3000"), 4, 1),
        (LLAMA_CPP, recorded!("llamacpp-b6000"), 1, 1),
        (LLAMA_CPP, recorded!("llamacpp-b11434"), 2, 1),
        (TGI, recorded!("tgi-1.4"), 128, 1),
        (TGI, recorded!("tgi-3.3"), 64, 1),
        (TGI, recorded!("tei-1.5"), 512, 1),
        (TGI, recorded!("mindie-1.0"), 200, 1),
        (VLLM, recorded!("vllm-0.11-json"), 256, 2),
        (VLLM, recorded!("vllm-0.14-json"), 64, 1),
    ] {
        let mut bench = unknowing(Default::default(), KnownEngine::default()).await;
        for path in PAGES {
            let mut call = bench.engine.call().await;
            assert!(
                call.head.starts_with(&format!("get {path} ")),
                "{}",
                call.head
            );
            if path == at {
                call.write(page(text)).await;
                break;
            }
            call.write(NO_PAGE).await;
        }
        bench
            .until(text, |seen| seen.lanes.len() == count as usize + 1)
            .await;
        let limits = bench.snapshot().limits;
        assert_eq!(limits.engine_request_limit, size, "{text}");
        assert_eq!(limits.engine_request_waiting_limit, size, "{text}");
        assert_eq!(limits.request_queue_limit, 2 * size, "{text}");
        assert_eq!(ranks(&bench), (0..count).collect::<Vec<u32>>(), "{text}");
    }
}

/// Answers from which nothing follows: the rest is asked, then all of it again.
#[tokio::test]
async fn what_says_nothing_usable_changes_nothing_and_is_asked_again() {
    for (at, text) in [
        (LLAMA_CPP, recorded!("llamacpp-router")),
        (TGI, recorded!("other-gateway")),
        (VLLM, recorded!("vllm-0.9-text")),
        (SGLANG, "{\"dp_size\": 0, \"max_running_requests\": 8}"),
        (SGLANG, "{\"dp_size\": -1, \"max_running_requests\": 8}"),
        (SGLANG, "{\"dp_size\": 2, \"max_running_requests\": 0}"),
        (SGLANG, "{\"max_running_requests\": null}"),
        (SGLANG, "no JSON"),
        (LLAMA_CPP, "[]"),
        (LLAMA_CPP, "{\"total_slots\": null}"),
    ] {
        let mut bench = unknowing(Default::default(), KnownEngine::default()).await;
        // A whole round goes by, and the next one begins.
        for path in PAGES.into_iter().chain([SGLANG]) {
            let mut call = bench.engine.call().await;
            assert!(
                call.head.starts_with(&format!("get {path} ")),
                "{text}: {}",
                call.head
            );
            call.write(if path == at {
                page(text)
            } else {
                NO_PAGE.to_owned()
            })
            .await;
        }
        assert_eq!(ranks(&bench), [0u32; 0]);
        assert_eq!(bench.snapshot().limits.engine_request_limit, 10_000);
    }
}

#[tokio::test]
async fn requests_that_came_before_the_report_keep_their_place() {
    let explicit = limits(1, 1, 2);
    let mut bench = unknowing(explicit, KnownEngine::default()).await;
    // The engine thinks about what it was asked.
    let mut asked = bench.engine.call().await;
    let (mut running, mut call) = bench.streaming().await;
    let mut first = bench.post().await;
    bench.holds(1, 0, 1).await;
    asked
        .write(page(r#"{"dp_size": 1, "max_running_requests": 64}"#))
        .await;
    bench
        .until("the rank is known", |seen| seen.lanes.len() == 2)
        .await;
    assert_eq!(ranks(&bench), [0]);
    // What someone set stays, and so does everyone where they were.
    assert_eq!(bench.snapshot().limits.engine_request_limit, 1);
    assert_eq!(bench.snapshot().limits.request_queue_limit, 2);
    bench.holds(1, 0, 1).await;
    let second = bench.post_with("x-data-parallel-rank: 0\r\n").await;
    bench.holds(1, 0, 2).await;
    call.write(LAST).await;
    running.expect(LAST).await;
    bench.engine.answer(JSON).await;
    assert_eq!(first.head().await, 200);
    bench.engine.answer(JSON).await;
    bench.holds(0, 0, 0).await;
    drop(second);
    bench.idle().await;
}

#[tokio::test]
async fn ranks_of_flags_stay_when_the_engine_tells_others() {
    let known = KnownEngine {
        ranks: Some(vec![4, 5]),
        max_num_seqs: None,
    };
    let mut bench = unknowing(Default::default(), known).await;
    bench
        .until("the flags' ranks", |seen| seen.lanes.len() == 3)
        .await;
    let mut call = bench.engine.call().await;
    call.write(page(r#"{"dp_size": 8, "max_running_requests": 64}"#))
        .await;
    bench
        .until("the size", |seen| seen.limits.engine_request_limit == 64)
        .await;
    assert_eq!(ranks(&bench), [4, 5]);
    bench.idle().await;
}

/// Its ranks are known, its size is asked for again, and then it is known too.
#[tokio::test]
async fn a_page_without_a_size_keeps_its_ranks() {
    let mut bench = unknowing(Default::default(), KnownEngine::default()).await;
    for path in PAGES {
        let mut call = bench.engine.call().await;
        let said = match path {
            SGLANG => page(recorded!("sglang-0.4-unset")),
            _ => NO_PAGE.to_owned(),
        };
        call.write(said).await;
    }
    bench
        .until("the rank is known", |seen| seen.lanes.len() == 2)
        .await;
    assert_eq!(ranks(&bench), [0]);
    assert_eq!(bench.snapshot().limits.engine_request_limit, 10_000);
    let sized = recorded!("sglang-0.4-unset").replace("null", "24");
    bench.engine.call().await.write(page(&sized)).await;
    bench
        .until("the size", |seen| seen.limits.engine_request_limit == 24)
        .await;
    assert_eq!(ranks(&bench), [0]);
    bench.idle().await;
}

/// What a later report changes: the defaults, and never the ranks.
#[tokio::test]
async fn an_engine_that_was_started_anew_is_asked_again() {
    // All of this test's tasks run on its thread.
    let log = Log::default();
    let lines = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || lines.clone())
        .finish();
    let _log = tracing::subscriber::set_default(subscriber);
    let engine = Engine::start().await;
    let mut config = config(engine.addr);
    config.ask_again = std::time::Duration::from_millis(20);
    config.settings.request_queue_limit = Some(5);
    let worker = Worker::start(config).unwrap();
    let mut bench = Bench { engine, worker };
    let limits = |bench: &Bench| {
        let limits = bench.snapshot().limits;
        (limits.engine_request_limit, limits.request_queue_limit)
    };
    // The size; the same again; another; other ranks; one that cannot be, twice; and
    // one more.
    for (told, size) in [
        (r#"{"dp_size": 2, "max_running_requests": 64}"#, 64),
        (r#"{"dp_size": 2, "max_running_requests": 64}"#, 64),
        (r#"{"dp_size": 2, "max_running_requests": 32}"#, 32),
        (r#"{"dp_size": 4, "max_running_requests": 16}"#, 32),
        (r#"{"dp_size": 2, "max_running_requests": 128}"#, 128),
    ] {
        bench.engine.call().await.write(page(told)).await;
        // It has been read once the next question comes.
        let mut next = bench.engine.call().await;
        assert_eq!(limits(&bench), (size, 5), "{told}");
        assert_eq!(ranks(&bench), [0, 1], "{told}");
        next.write(page(told)).await;
    }
    for _ in 0..2 {
        for path in PAGES {
            let mut call = bench.engine.call().await;
            let said = match path {
                SGLANG => page(r#"{"dp_size": 2, "max_running_requests": -1}"#),
                _ => NO_PAGE.to_owned(),
            };
            call.write(said).await;
        }
    }
    // Away.
    drop(bench.engine.call().await);
    bench.engine.call().await;
    assert_eq!(limits(&bench), (128, 5));
    let text = log.text();
    let count = |said: &str| text.matches(said).count();
    assert_eq!(count("the engine told its size"), 3, "{text}");
    assert_eq!(count("restart to change them"), 1, "{text}");
    assert_eq!(count("max_running_requests is -1"), 1, "{text}");
    assert_eq!(count("WARN"), 2, "{text}");
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
