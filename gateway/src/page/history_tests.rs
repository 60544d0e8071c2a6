//! Rates and quantiles of made-up pages.

use super::*;
use crate::page::snapshot::Counts;
use crate::scrape::exposition::read;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A gate's page after so many seconds of 10 requests each, of which 2 are refused
/// and 8 waited for a second and a half.
fn gate(seconds: u64) -> Reading {
    let (received, refused, waited) = (seconds * 10, seconds * 2, seconds * 8);
    Reading::of(&read(&format!(
        "p_engine_request_limit 4\np_request_queue_limit 8\np_engine_request_waiting_limit 2\n\
         p_engine_request_count{{dp_rank=\"0\"}} 3\np_engine_request_waiting_count{{dp_rank=\"0\"}} 1\n\
         p_request_queue_count{{dp_rank=\"0\"}} 5\n\
         p_request_receive_total{{dp_rank=\"0\"}} {received}\n\
         p_request_receive_total{{dp_rank=\"1\"}} 0\n\
         p_request_receive_total{{dp_rank=\"unspecified\"}} 0\n\
         p_request_admit_total{{dp_rank=\"0\",source=\"queue\"}} {waited}\n\
         p_rejection_total{{dp_rank=\"0\",scope=\"rank\"}} {refused}\n\
         p_queue_wait_seconds_bucket{{dp_rank=\"0\",le=\"1\"}} 0\n\
         p_queue_wait_seconds_bucket{{dp_rank=\"0\",le=\"2\"}} {waited}\n\
         p_queue_wait_seconds_bucket{{dp_rank=\"0\",le=\"+Inf\"}} {waited}\n"
    )))
}

#[test]
fn a_worker_without_a_policy_has_rates_waits_and_limits() {
    let mut history = History::default();
    let first = history.observe(at(100), gate(100), Vec::new());
    // One reading alone tells no rate.
    assert_eq!(first.concurrency.refused_per_second, 0.0);
    assert_eq!(first.quality.queue_wait, None);
    for second in 101..200 {
        history.observe(at(second), gate(second), Vec::new());
    }
    assert!(history.0.len() <= 32, "{}", history.0.len());
    let shown = history.observe(at(200), gate(200), Vec::new());
    let now = shown.concurrency;
    assert_eq!((now.running, now.running_limit), (3, 8));
    assert_eq!((now.waiting, now.waiting_limit), (1, 4));
    assert_eq!((now.queued, now.queue_limit), (5, 16));
    assert_eq!(now.received_per_second, 10.0);
    assert_eq!(
        (now.admitted_per_second, now.refused_per_second),
        (8.0, 2.0)
    );
    let quality = shown.quality;
    assert_eq!((quality.goodput, quality.attainment), (8.0, Some(0.8)));
    assert_eq!(quality.counts, Counts::Admitted);
    assert_eq!(quality.queue_wait, Some([1.5, 1.99, 1.999]));
    assert_eq!(quality.queue_waits, 240);
    assert_eq!(shown.refusals[0].reason, "rank_full");
    assert_eq!(
        (shown.refusals[0].total, shown.refusals[0].per_second),
        (400, 2.0)
    );
    assert!(shown.gpu.unknown.is_some());
}

#[test]
fn a_restart_is_no_burst_and_a_page_that_was_missed_is_none_either() {
    let mut history = History::default();
    history.observe(at(1), gate(1000), Vec::new());
    let shown = history.observe(at(5), gate(1), Vec::new());
    assert_eq!(shown.concurrency.received_per_second, 0.0);
    history.observe(at(6), Reading::default(), Vec::new());
    let shown = history.observe(at(9), gate(5000), Vec::new());
    assert_eq!(shown.concurrency.received_per_second, 0.0);
    assert_eq!(shown.refusals[0].per_second, 0.0);
}

fn policy(observes: u8, refused: u64) -> String {
    format!(
        "p_request_receive_total{{dp_rank=\"0\"}} 7\np_policy_state_fresh 1\np_policy_observes {observes}\n\
         p_policy_gpu_share{{of=\"memory\"}} 0.6\n\
         p_policy_held_count{{class=\"gold\"}} 2\np_policy_held_count{{class=\"bronze\"}} 1\n\
         p_policy_goodput{{class=\"gold\"}} 6\np_policy_attainment{{class=\"gold\"}} 1\n\
         p_policy_goodput{{class=\"bronze\"}} 2\np_policy_attainment{{class=\"bronze\"}} 0.5\n\
         p_policy_decision_total{{class=\"gold\",decision=\"refused\",reason=\"queue_full\"}} {refused}\n"
    )
}

#[test]
fn a_policy_tells_of_the_gpu_and_of_promises_kept() {
    let mut history = History::default();
    history.observe(at(0), Reading::of(&read(&policy(0, 10))), Vec::new());
    let shown = history.observe(at(3), Reading::of(&read(&policy(0, 16))), Vec::new());
    assert_eq!(shown.gpu.shares["memory"], 0.6);
    assert_eq!(shown.gpu.unknown, None);
    assert_eq!(shown.concurrency.held, 3);
    assert_eq!(shown.concurrency.refused_per_second, 2.0);
    // 8 of 10 answers a second.
    assert_eq!(
        (shown.quality.goodput, shown.quality.attainment),
        (8.0, Some(0.8))
    );
    let full = shown
        .refusals
        .iter()
        .find(|it| it.reason == "queue_full")
        .unwrap();
    assert!(full.carried_out);
    assert_eq!((full.total, full.per_second), (16, 2.0));
}

#[test]
fn what_is_only_counted_is_no_refusal() {
    let mut history = History::default();
    history.observe(at(0), Reading::of(&read(&policy(1, 10))), Vec::new());
    let shown = history.observe(at(3), Reading::of(&read(&policy(1, 16))), Vec::new());
    assert_eq!(shown.concurrency.refused_per_second, 0.0);
    let full = shown
        .refusals
        .iter()
        .find(|it| it.reason == "queue_full")
        .unwrap();
    assert!(!full.carried_out);
    assert_eq!(full.per_second, 2.0);
}

#[test]
fn a_frontend_counts_what_its_clients_got() {
    let page = |seconds: u64| {
        let text = format!(
            "dynamo_frontend_inflight_requests 9\n\
             dynamo_frontend_requests_total{{outcome=\"ok\"}} {}\n\
             dynamo_frontend_requests_total{{outcome=\"rejected\"}} {}\n\
             dynamo_frontend_requests_total{{outcome=\"left\"}} {}\n\
             dynamo_frontend_worker_active_decode_blocks{{worker_id=\"0\"}} 30\n\
             dynamo_frontend_worker_kv_total_blocks{{worker_id=\"0\"}} 40\n",
            seconds * 6,
            seconds * 2,
            seconds
        );
        Reading {
            gates: gate(seconds).gates,
            ..Reading::of(&read(&text))
        }
    };
    let mut history = History::default();
    history.observe(at(0), page(0), Vec::new());
    let shown = history.observe(at(5), page(5), Vec::new());
    assert_eq!(shown.quality.counts, Counts::Answered);
    assert_eq!(
        (shown.quality.goodput, shown.quality.attainment),
        (6.0, Some(0.75))
    );
    assert_eq!(shown.concurrency.refused_per_second, 2.0);
    assert_eq!(shown.concurrency.received_per_second, 9.0);
    assert_eq!(shown.concurrency.running, 3);
    assert_eq!(shown.gpu.shares["kv_blocks"], 0.75);
    let reasons: Vec<&str> = shown.refusals.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["every_worker_overloaded", "rank_full", "worker_full"]
    );
    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["front"]["in_flight"], 9);
    assert_eq!(json["quality"]["counts"], "answered");
}

#[test]
fn a_frontends_policy_has_its_own_reasons_and_how_long_each_class_waited() {
    let page = |refused: u64, waits: u64, observes: u8| {
        let text = format!(
            "dynamo_frontend_requests_total{{outcome=\"rejected\"}} {}\n\
             dynamo_frontend_policy_observes{{model=\"m\"}} {observes}\n\
             dynamo_frontend_policy_held_count{{model=\"m\",class=\"gold\"}} 5\n\
             dynamo_frontend_policy_decision_total{{model=\"m\",class=\"gold\",decision=\"refused\",reason=\"queue_timeout\"}} {refused}\n\
             dynamo_frontend_policy_wait_seconds_bucket{{model=\"m\",class=\"gold\",le=\"1\"}} 0\n\
             dynamo_frontend_policy_wait_seconds_bucket{{model=\"m\",class=\"gold\",le=\"2\"}} {waits}\n\
             dynamo_frontend_policy_wait_seconds_bucket{{model=\"m\",class=\"gold\",le=\"+Inf\"}} {waits}\n",
            refused + 10
        );
        Reading::of(&read(&text))
    };
    let mut history = History::default();
    history.observe(at(0), page(4, 6, 0), Vec::new());
    let shown = history.observe(at(3), page(10, 9, 0), Vec::new());
    assert_eq!(shown.concurrency.held, 5);
    assert_eq!(shown.concurrency.refused_per_second, 2.0);
    let reasons = |shown: &Snapshot| -> Vec<(String, bool, u64, f64)> {
        let told = shown.refusals.iter();
        told.map(|it| (it.reason.clone(), it.carried_out, it.total, it.per_second))
            .collect()
    };
    // What the policy refused is not told a second time as refused by the workers.
    assert_eq!(
        reasons(&shown),
        [
            ("every_worker_overloaded".to_owned(), true, 10, 0.0),
            ("queue_timeout".to_owned(), true, 10, 2.0)
        ]
    );
    let class = &shown.reading.front.as_ref().unwrap().queues[0].classes[0];
    let [p50, p99, _] = class.wait.unwrap();
    assert_eq!((p50, (p99 * 100.0).round()), (1.5, 199.0));
    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["front"]["queues"][0]["classes"][0]["held"], 5);

    let mut history = History::default();
    history.observe(at(0), page(4, 6, 1), Vec::new());
    let shown = history.observe(at(3), page(10, 9, 1), Vec::new());
    assert_eq!(
        reasons(&shown)[1],
        ("queue_timeout".to_owned(), false, 10, 2.0)
    );
    assert_eq!(reasons(&shown)[0].2, 20);
}
