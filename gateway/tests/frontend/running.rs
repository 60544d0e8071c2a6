//! `tidegate frontend` as a process of its own: its flags and environment, what it
//! logs, and how it ends.

use std::net::SocketAddr;

use super::program::{Running, output, text, tidegate};
use super::queue::POLICY;
use super::support::*;

/// A frontend before this worker, on a free port.
fn start(worker: &Scripted, flags: &[&str], environment: &[(&str, &str)]) -> (Running, SocketAddr) {
    let url = worker.url();
    let mut arguments = vec!["frontend", "--worker", &url, "--listen", "127.0.0.1:0"];
    arguments.extend(["--log-format", "json", "--health-interval", "0.05"]);
    arguments.extend(flags);
    let mut command = tidegate(&arguments);
    command.envs(environment.iter().copied());
    let running = Running::spawn(command);
    let line = running.wait_for("frontend listens");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let addr = line["addr"].as_str().unwrap().parse().unwrap();
    running.wait_for("a worker answers");
    (running, addr)
}

async fn send(addr: SocketAddr, bytes: String) -> Wire {
    let mut client = Wire::connect(addr).await;
    client.write(bytes).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_logs_no_secrets_and_ends_cleanly() {
    let mut worker = Scripted::start().await;
    let (mut running, addr) = start(&worker, &[], &[("RUST_LOG", "trace")]);
    let secrets = "authorization: Bearer open-sesame\r\ncookie: open-sesame\r\n\
                   x-api-key: open-sesame\r\nx-request-id: request-7\r\n\
                   traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    let mut client = send(addr, post(secrets)).await;
    let mut call = worker.call().await;
    assert_eq!(call.header("authorization"), Some("bearer open-sesame"));
    call.body().await;
    call.write("no http\r\n\r\n").await;
    assert_eq!(client.head().await, 502);
    let line = running.wait_for("no answer from a worker");
    assert!(line.contains("request-7"), "{line}");
    running.wait_for("0af7651916cd43dd");
    assert_eq!(running.stop("-TERM"), Some(0));
    let all = running.all();
    assert!(!all.contains("sesame"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_environment_sets_status_thresholds_and_routes() {
    let mut worker = Scripted::start().await;
    let (running, addr) = start(
        &worker,
        &["--router-mode", "kv"],
        &[
            ("DYN_HTTP_OVERLOAD_STATUS_CODE", " 555 "),
            ("DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD", "10"),
            ("DYN_ADMISSION_CONTROL", "token-capacity"),
            ("DYN_DISABLE_FRONTEND_ADMIN_API", "1"),
        ],
    );
    let warning = running.wait_for("DYN_ADMISSION_CONTROL");
    assert!(warning.contains("WARN"), "{warning}");
    assert_eq!(get(addr, "/busy_threshold").await.0, 404);
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(1000));
    let _first = send(addr, post_of(&long, "")).await;
    let _call = worker.call().await;
    let mut client = send(addr, post("")).await;
    assert_overloaded(&mut client, 555).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_that_has_no_source_is_warned_of() {
    let worker = Scripted::start().await;
    let flags = ["--active-decode-blocks-threshold", "0.9"];
    let (running, _) = start(&worker, &flags, &[]);
    let line = running.wait_for("so it refuses nobody");
    assert!(line.contains("WARN") && line.contains(flags[0]), "{line}");
    assert!(line.contains("--kv-total-blocks"), "{line}");
}

#[test]
fn what_is_not_understood_is_exit_2_and_says_what_is_accepted() {
    let worker = ["frontend", "--worker", "http://127.0.0.1:1"];
    for (flags, expected) in [
        (
            &["--router-mode", "best"][..],
            "round-robin, random, least-loaded, kv",
        ),
        (&["--active-decode-blocks-threshold", "1.5"], "0.0"),
        (&["--active-prefill-tokens-threshold", "-1"], "integer"),
        (&["--active-prefill-tokens-threshold-frac", "nan"], "finite"),
        (&["--worker", "127.0.0.1:8100"], "such as http://"),
        (&["--worker", "http://a:b@c"], "password"),
        (&["--worker", "http://127.0.0.1:1/"], "given twice"),
        (&["--route", "v1/x"], "begins with a slash"),
        (&["--health-interval", "0"], "seconds above 0"),
        (&["--max-body", "0"], "1..="),
        (
            &["--max-body", "100", "--buffer-budget", "50"],
            "--buffer-budget",
        ),
        (&["--scrape-interval", "20"], "--load-ttl"),
        (&["--listen", "8080"], "IP address and a port"),
    ] {
        let output = output(&[&worker[..], flags].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
    let output = output(&["frontend"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--worker"));
}

#[test]
fn a_port_in_use_is_named_with_its_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--admin-listen"] {
        let mut arguments = vec!["frontend", "--worker", "http://127.0.0.1:1"];
        if flag == "--admin-listen" {
            arguments.extend(["--listen", "127.0.0.1:0"]);
        }
        arguments.extend([flag, &addr]);
        let output = output(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&addr) && said.contains(flag), "{said}");
    }
}

fn hang_up(running: &Running) {
    let mut kill = std::process::Command::new("kill");
    kill.args(["-HUP", &running.id().to_string()]);
    assert!(kill.status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn its_policy_is_read_again_on_sighup_and_a_wrong_one_changes_nothing() {
    let file = std::env::temp_dir().join(format!("tidegate-queue-{}.toml", std::process::id()));
    std::fs::write(&file, POLICY).unwrap();
    let name = file.to_str().unwrap();
    let mut worker = Scripted::start().await;
    let flags = ["--policy", name, "--active-prefill-tokens-threshold", "100"];
    let (mut running, addr) = start(&worker, &flags, &[]);
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(4000));
    let class = |class| post_of(&long, &format!("x-slo-class: {class}\r\n"));
    let mut first = send(addr, class("gold")).await;
    let mut call = worker.call().await;
    call.body().await;
    let mut held = send(addr, class("gold")).await;
    let held_count = "dynamo_frontend_policy_held_count{class=\"gold\",model=\"m\"}";
    until("one is held", async || {
        value(&get(addr, "/metrics").await.1, held_count) == Some(1.0)
    })
    .await;
    std::fs::write(&file, "\nfloor = 1").unwrap();
    hang_up(&running);
    let line = running.wait_for("the policy stays as it was");
    assert!(line.contains("line 2, floor"), "{line}");
    // Now edge is held, and gold still is.
    let new = POLICY.replace("queue_timeout_ms = 0", "queue_timeout_ms = 1");
    std::fs::write(&file, new).unwrap();
    hang_up(&running);
    running.wait_for("the policy was read again");
    let mut edge = send(addr, class("edge")).await;
    let (status, body) = answer(&mut edge).await;
    assert_eq!(
        (status, body["details"]["reason"].as_str()),
        (529, Some("queue_timeout"))
    );
    call.write(JSON).await;
    assert_eq!(first.head().await, 200);
    worker.answer(JSON).await;
    assert_eq!(held.head().await, 200);
    assert_eq!(running.stop("-TERM"), Some(0));
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_policy_that_is_wrong_is_no_start() {
    let file = std::env::temp_dir().join(format!("tidegate-noqueue-{}.toml", std::process::id()));
    std::fs::write(&file, "floor = 1").unwrap();
    let name = file.to_str().unwrap();
    for (flags, says) in [
        (["--policy", name], "line 1, floor: unknown field"),
        (
            ["--policy", "/nowhere.toml"],
            "/nowhere.toml cannot be read",
        ),
        (["--policy-mode", "observe"], "--policy <FILE>"),
    ] {
        let all = [&["frontend", "--worker", "http://127.0.0.1:9"], &flags[..]].concat();
        let told = output(&all);
        assert_eq!(told.status.code(), Some(2), "{flags:?}");
        let told = text(&told.stderr);
        assert!(told.contains(says), "{flags:?}: {told}");
    }
    std::fs::remove_file(&file).unwrap();
}
