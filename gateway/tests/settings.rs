//! Every row of the limits' settings, and every metric, through the program.

mod program;

use program::{Running, tidegate};
use serde_json::Value;
use tidegate_gateway::scrape::exposition::read;
use tidegate_gateway::scrape::page::Fetch;

/// Key, flag, variable, older variable, and the fallback.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    u64,
);

const ROWS: [Row; 3] = [
    (
        "engine_request_limit",
        "--engine-request-limit",
        "DYN_BACKEND_ADMISSION_ENGINE_REQUEST_LIMIT",
        Some("DYN_ENGINE_REQUEST_LIMIT"),
        10_000,
    ),
    (
        "engine_request_waiting_limit",
        "--engine-request-waiting-limit",
        "DYN_BACKEND_ADMISSION_ENGINE_REQUEST_WAITING_LIMIT",
        None,
        10_000,
    ),
    (
        "request_queue_limit",
        "--request-queue-limit",
        "DYN_BACKEND_ADMISSION_REQUEST_QUEUE_LIMIT",
        Some("DYN_DYNAMO_REQUEST_QUEUE_LIMIT"),
        20_000,
    ),
];

/// What `tidegate config` makes of flags and environment.
fn config(flags: &[&str], environment: &[(&str, &str)]) -> Value {
    let arguments = [&["config", "--json"], flags].concat();
    let mut command = tidegate(&arguments);
    let output = command.envs(environment.iter().copied()).output();
    let output = output.expect("the program runs");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        program::text(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn each_setting_follows_its_sources_in_order() {
    for (key, flag, variable, older, fallback) in ROWS {
        let expect =
            |flags: &[&str], environment: &[(&str, &str)], value: u64, source: &str, warnings| {
                let all = config(flags, environment);
                let found = &all["settings"][key];
                assert_eq!(found["per_rank"], value, "{key}: {all}");
                assert_eq!(found["source"]["kind"], source, "{key}: {all}");
                assert_eq!(
                    all["warnings"].as_array().map(Vec::len),
                    Some(warnings),
                    "{all}"
                );
                // Each setting is independent of the others.
                for (other, .., fallback) in ROWS.into_iter().filter(|row| row.0 != key) {
                    let reported = if other == "request_queue_limit" {
                        16
                    } else {
                        8
                    };
                    let default = if flags.contains(&"--max-num-seqs") {
                        reported
                    } else {
                        fallback
                    };
                    assert_eq!(
                        all["settings"][other]["per_rank"], default,
                        "{other}: {all}"
                    );
                }
            };
        expect(&[], &[], fallback, "fallback", 0);
        let reported = if key == "request_queue_limit" { 16 } else { 8 };
        expect(&["--max-num-seqs", "8"], &[], reported, "reported", 0);
        expect(&["--max-num-seqs", "8", flag, "5"], &[], 5, "flag", 0);
        expect(&[flag, " 5 "], &[(variable, "x")], 5, "flag", 0);
        expect(&[], &[(variable, " 6 ")], 6, "environment", 0);
        for bad in ["", "-1", "six", "99999999999999999999"] {
            expect(&[], &[(variable, bad)], fallback, "fallback", 1);
        }
        if let Some(older) = older {
            expect(&[], &[(older, "7")], 7, "older_name", 0);
            expect(&[], &[(variable, "bad"), (older, "7")], 7, "older_name", 1);
            // What a valid one shadows is not read, and so not warned about.
            expect(&[], &[(variable, "6"), (older, "bad")], 6, "environment", 0);
        }
        // Only a queue may have no room at all.
        match key {
            "request_queue_limit" => expect(&[flag, "0"], &[], 0, "flag", 0),
            _ => expect(&[], &[(variable, "0")], fallback, "fallback", 1),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_metric_is_there_under_the_prefix_chosen_and_the_older_names_if_asked() {
    for (prefix, legacy) in [("dynamo_backend_admission_", false), ("mine_", true)] {
        let mut flags = vec![
            "worker",
            "--engine-url",
            "http://127.0.0.1:1",
            "--listen",
            "127.0.0.1:0",
        ];
        flags.extend([
            "--log-format",
            "json",
            "--dp-ranks",
            "4",
            "--max-num-seqs",
            "3",
        ]);
        flags.extend(["--metrics-prefix", prefix]);
        flags.extend(legacy.then_some("--legacy-metrics"));
        let worker = Running::start(&flags);
        let line: Value = serde_json::from_str(&worker.wait_for("worker listens")).unwrap();
        let url = format!(
            "http://{}/metrics",
            line["addr"].as_str().expect("an address")
        );
        let page = Fetch::new(url.parse().unwrap()).unwrap();
        let samples = loop {
            let text = page.text(std::time::Duration::from_secs(5)).await.unwrap();
            let samples = read(&text).samples;
            // The report comes an instant after the worker listens.
            if samples
                .iter()
                .any(|sample| sample.labels.get("dp_rank").is_some_and(|rank| rank == "4"))
            {
                break samples;
            }
        };
        let value = |name: &str, labels: &[(&str, &str)]| {
            let of = samples.iter().find(|sample| {
                let same = |(label, value): &(&str, &str)| {
                    sample.labels.get(*label).is_some_and(|is| is == value)
                };
                sample.name == name
                    && sample.labels.len() == labels.len()
                    && labels.iter().all(same)
            });
            of.map(|sample| sample.value)
        };
        let own = |name: &str, labels: &[(&str, &str)]| value(&format!("{prefix}{name}"), labels);
        for rank in ["4", "unspecified"] {
            let rank = ("dp_rank", rank);
            for name in [
                "engine_request_count",
                "engine_request_waiting_count",
                "request_queue_count",
                "request_receive_total",
                "cancellation_total",
                "queue_wait_seconds_count",
            ] {
                assert_eq!(own(name, &[rank]), Some(0.0), "{name}");
            }
            for source in ["direct", "queue"] {
                assert_eq!(
                    own("request_admit_total", &[rank, ("source", source)]),
                    Some(0.0)
                );
            }
            for scope in ["rank", "worker"] {
                assert_eq!(own("rejection_total", &[rank, ("scope", scope)]), Some(0.0));
            }
        }
        assert_eq!(own("engine_request_limit", &[]), Some(3.0));
        assert_eq!(own("engine_request_waiting_limit", &[]), Some(3.0));
        assert_eq!(own("request_queue_limit", &[]), Some(6.0));
        for older in [
            "dynamo_engine_request",
            "dynamo_request_queue",
            "dynamo_rejection_request_total",
        ] {
            assert_eq!(value(older, &[]), legacy.then_some(0.0), "{older}");
        }
    }
}
