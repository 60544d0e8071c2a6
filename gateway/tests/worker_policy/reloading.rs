//! A policy that is read again while requests are held.

use std::fs;
use std::time::{Duration, Instant};

use tidegate_policy::file;

use super::program::{Running, tidegate};
use super::support::*;
use super::{Office, POLICY, refused};

#[tokio::test]
async fn who_is_held_stays_so_under_the_new_policy() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let (_client, mut call) = office.bench.streaming().await;
    let mut silver = office.post("silver").await;
    office.held("silver", 1).await;
    let mut gold = office.post("gold").await;
    office.held("gold", 1).await;
    // Gold is gone; its request is in the default class now.
    let new = "utilisation_target = 1.0\n[state]\nstale_after_ms = 500\n[[class]]\n\
               name = \"silver\"\nfirst_token_ms = 600000\nqueue_timeout_ms = 60000\n";
    assert!(office.bench.worker.follow(file::parse(new).unwrap()));
    office.held("silver", 2).await;
    office.until("policy_held_count", "class=gold", 0.0).await;
    call.write(chunk("data: [DONE]\n\n")).await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(silver.head().await, 200, "it came first");
    silver.body().await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(gold.head().await, 200);
    gold.body().await;
    office.bench.idle().await;
    // What was counted for a class stays there, whoever comes and goes.
    let admitted = "class=silver,decision=admitted";
    let before = office.metric("policy_decision_total", admitted).await;
    assert!(before >= Some(3.0), "{before:?}");
    let held = "class=gold,decision=held,reason=concurrency_limit";
    for policy in [new, POLICY] {
        assert!(office.bench.worker.follow(file::parse(policy).unwrap()));
        office.until("policy_held_count", "class=gold", 0.0).await;
        assert_eq!(
            office.metric("policy_decision_total", held).await,
            Some(1.0)
        );
        let silver = office.metric("policy_decision_total", admitted).await;
        assert_eq!(silver, before);
    }
}

#[tokio::test]
async fn a_shorter_timeout_holds_for_who_is_held_already() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let _running = office.bench.streaming().await;
    let mut silver = office.post("silver").await;
    office.held("silver", 1).await;
    let new = POLICY.replace("queue_timeout_ms = 60000", "queue_timeout_ms = 20");
    office.bench.worker.follow(file::parse(&new).unwrap());
    assert_eq!(refused(&mut silver).await["reason"], "queue_timeout");
}

fn wait_for(worker: &Running, part: &str, count: usize) {
    let start = Instant::now();
    while worker.all().matches(part).count() < count {
        assert!(start.elapsed().as_secs() < 5, "{part:?}: {}", worker.all());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn sighup_reads_the_file_again_and_a_wrong_one_changes_nothing() {
    let file = std::env::temp_dir().join(format!("tidegate-policy-{}.toml", std::process::id()));
    fs::write(&file, POLICY).unwrap();
    let name = file.to_str().unwrap();
    let listen = [
        "--listen",
        "127.0.0.1:0",
        "--engine-url",
        "http://127.0.0.1:9",
    ];
    let flags = [&["worker", "--policy", name], &listen[..]].concat();
    let mut worker = Running::spawn(tidegate(&flags));
    worker.wait_for("worker listens");
    let hang_up = || {
        let id = worker.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-HUP", &id])
            .status();
        assert!(sent.unwrap().success());
    };
    hang_up();
    wait_for(&worker, "the policy was read again", 1);
    fs::write(&file, "\nutilisation_target = 7").unwrap();
    hang_up();
    wait_for(&worker, "the policy stays as it was", 1);
    let line = worker.line("the policy stays as it was").unwrap();
    assert!(line.contains("line 2, utilisation_target"), "{line}");
    fs::write(&file, POLICY).unwrap();
    hang_up();
    wait_for(&worker, "the policy was read again", 2);
    assert_eq!(worker.stop("-TERM"), Some(0));
    fs::remove_file(&file).unwrap();
}

#[test]
fn a_worker_does_not_start_with_a_policy_that_is_wrong() {
    let file = std::env::temp_dir().join(format!("tidegate-wrong-{}.toml", std::process::id()));
    fs::write(&file, "floor = 1").unwrap();
    let name = file.to_str().unwrap();
    let engine = ["--engine-url", "http://127.0.0.1:9"];
    for (flags, says) in [
        (vec!["--policy", name], "line 1, floor: unknown field"),
        (
            vec!["--policy", "/nowhere.toml"],
            "/nowhere.toml cannot be read",
        ),
        (vec!["--policy-mode", "observe"], "--policy <FILE>"),
        (
            vec!["--policy", name, "--policy-mode", "never"],
            "[possible values: enforce, observe]",
        ),
    ] {
        let all = [&["worker"], &engine[..], &flags].concat();
        let output = tidegate(&all).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(says), "{flags:?}: {told}");
    }
    fs::write(&file, POLICY).unwrap();
    let all = [
        &["worker", "--policy", name, "--buffer-budget", "0"],
        &engine[..],
    ]
    .concat();
    let output = tidegate(&all).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--policy needs a --buffer-budget"));
    fs::remove_file(&file).unwrap();
}
