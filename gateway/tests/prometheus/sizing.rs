//! `tidegate size` on what Prometheus has stored.

use std::time::Duration;

use tidegate_gateway::load::{Client, Planned};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::program;
use super::server::Prometheus;
use super::stack::{Stack, simulated};

/// Sends one request each 20 ms, for two seconds.
async fn load(stack: &Stack) {
    let target = stack.worker.url().parse().expect("a target");
    let mut under_way = JoinSet::new();
    let mut clock = interval(Duration::from_millis(20));
    for _ in 0..100 {
        clock.tick().await;
        let planned = Planned {
            at: Duration::ZERO,
            prompt_tokens: 1,
            output_tokens: 2,
            rank: None,
            leaves_after: None,
        };
        let target: tidegate_gateway::load::Target = Clone::clone(&target);
        under_way.spawn(async move {
            Client::new("sim")
                .send(&target, &planned, Instant::now())
                .await
        });
    }
    under_way.join_all().await;
}

fn size(flags: Vec<String>) -> (Option<i32>, serde_json::Value, String) {
    let mut arguments = vec!["size", "--json"];
    arguments.extend(flags.iter().map(String::as_str));
    let output = program::output(&arguments);
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), answer, program::text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_samples_of_the_worker_chosen_are_sized() {
    let mut engine = simulated(1, 256, 1.0);
    engine.batch.cost.floor_us = 100_000.0;
    let (busy, idle) = (
        Stack::start(engine, |_| {}).await,
        Stack::small(1, 1, 1).await,
    );
    let prometheus = Prometheus::start(&[busy.worker.addr(), idle.worker.addr()]).await;
    load(&busy).await;
    let ask = |more: &[String]| {
        let flags = [
            &["--prometheus-url".to_owned(), prometheus.url.clone()],
            more,
        ]
        .concat();
        tokio::task::spawn_blocking(move || size(flags))
    };
    let only = |stack: &Stack| {
        [
            "--match".to_owned(),
            format!("instance=\"{}\"", stack.worker.addr()),
        ]
    };
    let (code, answer, said) = ask(&only(&busy)).await.unwrap();
    assert_eq!(code, Some(0), "{said}");
    // How long it took is the machine's affair; that it is Little's law is not.
    let number = |name: &str| answer[name].as_f64().expect("a number");
    let wait = number("mean_waiting") / number("admissions_per_second");
    assert!(
        (wait - number("mean_wait_seconds")).abs() < 1e-9 && wait > 0.05,
        "{answer}"
    );
    assert!(
        number("admitted") >= 20.0 && number("readings") >= 2.0,
        "{answer}"
    );

    let (code, answer, said) = ask(&only(&idle)).await.unwrap();
    assert_eq!(
        (code, &answer["reason"]),
        (Some(1), &"too_few_samples".into()),
        "{said}"
    );
    let (code, _, said) = ask(&[]).await.unwrap();
    assert!(
        code == Some(1) && said.contains("several workers"),
        "{said}"
    );
    let wrong = ["--match".to_owned(), "no matcher".to_owned()];
    let (code, _, said) = ask(&wrong).await.unwrap();
    assert!(code == Some(1) && said.contains("400"), "{said}");
}
