//! The metric that engines are scaled by: PromQL itself computes it from a worker's page.

use std::fmt::Write as _;
use std::process::Command;

use tidegate_gateway::scrape::page::Fetch;

use super::caller::{Caller, ENDLESS, chat};
use super::checked::shipped;
use super::objects::threshold;
use super::pods::{list, named};
use super::prometheus::program;
use super::stack::{LONG, Stack, limits, simulated};

/// The adapter's query, as it asks for one pod.
fn query() -> String {
    let rule = &list(&shipped().adapter["rules"]["custom"])[0];
    let query = rule["metricsQuery"].as_str().expect("a query");
    query.replace("<<.GroupBy>>", "pod").replace(
        "<<.LabelMatchers>>",
        "namespace=\"tidegate\",pod=~\"engine-0|engine-1\"",
    )
}

/// The query with another name of a metric, wherever it stands.
fn misspelt(query: &str, name: &str) -> String {
    let named = |end| (format!("{name}{end}"), format!("{name}s{end}"));
    let (alone, among) = (named("{"), named("|"));
    let other = query.replace(&alone.0, &alone.1);
    let other = other.replace(&among.0, &among.1);
    assert_ne!(other, query, "{name}");
    other
}

/// What `promtool` says to a query on what these pods' pages say. Empty if it is `expected`:
/// a value for each pod that has one.
fn evaluate(pages: &[(&str, &str)], query: &str, expected: &[(&str, f64)]) -> String {
    let mut text =
        String::from("evaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n");
    for (pod, page) in pages {
        for line in page
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let labels = format!("namespace=\"tidegate\",pod=\"{pod}\"");
            let series = match series.split_once('{') {
                Some((name, rest)) => format!("{name}{{{labels},{rest}"),
                None => format!("{series}{{{labels}}}"),
            };
            let _ = writeln!(
                text,
                "  - {{series: '{series}', values: '{value} {value}'}}"
            );
        }
    }
    let samples: Vec<String> = expected
        .iter()
        .map(|(pod, value)| format!("{{labels: '{{pod=\"{pod}\"}}', value: {value}}}"))
        .collect();
    let query = query.replace('\n', " ").replace('\'', "''");
    let _ = writeln!(
        text,
        "  promql_expr_test:\n  - expr: '{query}'\n    eval_time: 1m\n    exp_samples: [{}]",
        samples.join(", ")
    );
    let name = format!(
        "deploy-pressure-{}-{:?}.yml",
        std::process::id(),
        std::thread::current().id()
    );
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).expect("a file");
    let output = Command::new(program("promtool"))
        .args(["test", "rules"])
        .arg(&file)
        .output();
    std::fs::remove_file(file).expect("a file");
    let output = output.expect("promtool runs");
    match output.status.success() {
        true => String::new(),
        false => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    }
}

async fn page(stack: &Stack) -> String {
    let url = format!("{}/metrics", stack.worker.url())
        .parse()
        .expect("a URL");
    Fetch::new(url)
        .expect("no certificates")
        .text(LONG)
        .await
        .expect("a page")
}

/// A stream that goes on, and requests that queue behind it; the first that is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_are_added_before_anybody_waits_and_long_before_anybody_is_refused() {
    let scaler = named(&shipped().base, "HorizontalPodAutoscaler", "engine").expect("a scaler");
    let begins = threshold(scaler) * 1.1;
    // Queues hold twice the limit, as they do by default.
    let stack = Stack::small(2, 2, 4).await;
    let caller = Caller::new(&stack);
    let query = query();
    let is = async |value: f64| {
        let said = evaluate(
            &[("engine-0", &page(&stack).await)],
            &query,
            &[("engine-0", value)],
        );
        assert_eq!(said, "", "not {value}");
    };
    is(0.0).await;
    let first = caller.stream().await;
    is(0.5).await;
    let second = caller.stream().await;
    is(1.0).await;
    assert!(begins < 1.0, "nobody waits yet when an engine is added");
    let mut queued = Vec::new();
    for waiting in 1..=4 {
        queued.push(tokio::spawn(caller.clone().send_owned(chat(true, ENDLESS))));
        stack.holds(2, 0, waiting).await;
        is(1.0 + waiting as f64 / 2.0).await;
    }
    // Only now is somebody refused, at 3.
    assert_eq!(caller.send(&[], chat(true, ENDLESS)).await.status(), 529);
    assert!(begins * 2.0 < 3.0);
    // It can fail: names that no worker has.
    let page = page(&stack).await;
    for name in [
        "engine_request",
        "engine_request_count",
        "request_queue",
        "engine_request_limit",
    ] {
        let query = misspelt(&query, name);
        let said = evaluate(&[("engine-0", &page)], &query, &[("engine-0", 3.0)]);
        assert!(!said.is_empty(), "{name}");
    }
    for task in queued {
        task.abort();
    }
    drop((first, second));
    stack.idle().await;
}

/// The limit of those without a first token may be the one that is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_waiting_limit_is_pressure_too_and_ranks_and_pods_count_each() {
    // Prefill that takes seconds.
    let mut slow = simulated(2, 256, 1.0);
    slow.batch.cost.floor_us = 60_000_000.0;
    let stack = Stack::start(slow, |config| config.settings = limits(100, 1, 2)).await;
    let caller = Caller::new(&stack);
    let tasks: Vec<_> = (0..4)
        .map(|_| tokio::spawn(caller.clone().send_owned(chat(true, 9))))
        .collect();
    // Two ranks, of which each takes one; unranked requests share what both have.
    stack.holds(2, 2, 2).await;
    let idle = Stack::small(2, 2, 4).await;
    let pages = [
        ("engine-0", &*page(&stack).await),
        ("engine-1", &*page(&idle).await),
    ];
    // (2 waiting + 2 queued) of 2, and not (2 running + 2 queued) of 200.
    let expected = [("engine-0", 2.0), ("engine-1", 0.0)];
    assert_eq!(evaluate(&pages, &query(), &expected), "");
    // It can fail: other values, and names that no worker has.
    assert!(!evaluate(&pages, &query(), &[("engine-0", 0.02), ("engine-1", 0.0)]).is_empty());
    for name in [
        "engine_request_waiting",
        "request_queue",
        "engine_request_waiting_limit",
    ] {
        let said = evaluate(&pages, &misspelt(&query(), name), &expected);
        assert!(!said.is_empty(), "{name}");
    }
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}
