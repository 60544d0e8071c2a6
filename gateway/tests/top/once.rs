//! One frame of a running worker and of a frontend.

use super::program;
use super::stack::{Stack, simulated};
use tidegate_gateway::frontend::{Frontend, FrontendConfig};

async fn top(arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
    let run = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        program::output(&arguments)
    });
    let output = run.await.unwrap();
    (
        output.status.code(),
        program::text(&output.stdout),
        program::text(&output.stderr),
    )
}

#[tokio::test]
async fn one_frame_of_a_worker_tells_its_counts() {
    let stack = Stack::start(simulated(2, 4, 20.0), |_| {}).await;
    let gate = stack.worker.gate();
    let held = [
        gate.try_admit(Some(0)).unwrap(),
        gate.try_admit(Some(0)).unwrap(),
    ];
    let url = stack.worker.url();
    let (code, text, said) = top(&["top", "--url", &url, "--once", "--interval", "0.1"]).await;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let line = text
        .lines()
        .find(|line| line.starts_with("0 "))
        .expect("rank 0");
    assert!(line.contains("2/4") && line.contains("0/8"), "{line}");
    let spread: Vec<&str> = text
        .lines()
        .find(|line| line.contains("  running  "))
        .unwrap()
        .split_whitespace()
        .collect();
    assert!(
        spread.iter().any(|word| word.starts_with("2/8")),
        "{spread:?}"
    );
    drop(held);

    // A frontend with its worker, each by its own page.
    let front = Frontend::start(FrontendConfig::new(vec![url.parse().unwrap()])).unwrap();
    while !front.workers()[0].is_well() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let page = format!("{}/metrics", front.url());
    let (code, text, said) = top(&[
        "top",
        "--url",
        &page,
        "--url",
        &url,
        "--once",
        "--interval",
        "0.1",
    ])
    .await;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(text.contains("Workers") && text.contains("free"), "{text}");
    let rank = format!("{} 1 ", url.trim_start_matches("http://"));
    assert!(text.contains(&rank), "{rank}: {text}");
}

#[tokio::test]
async fn who_is_not_there_or_something_else_is_said() {
    let stack = Stack::start(simulated(1, 4, 20.0), |_| {}).await;
    let engine = stack.engine.url();
    let (code, _, said) = top(&["top", "--url", &engine, "--once", "--interval", "0.1"]).await;
    assert_eq!(code, Some(1));
    assert!(
        said.contains("neither a worker's page nor a frontend's"),
        "{said}"
    );
    let (code, _, said) = top(&[
        "top",
        "--url",
        "http://127.0.0.1:1",
        "--once",
        "--interval",
        "0.1",
    ])
    .await;
    assert_eq!(code, Some(1));
    assert!(
        said.contains("http://127.0.0.1:1/metrics: no connection"),
        "{said}"
    );
    let (code, _, said) = top(&["top", "--url", "nowhere"]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("http://127.0.0.1:8100/metrics"), "{said}");
    let (code, _, said) = top(&["top", "--url", &engine]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("--once"), "{said}");
}
