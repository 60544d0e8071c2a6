//! Frames, as text.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::page::{History, Reading};
use crate::scrape::exposition::read;

const WORKER: &str = r#"
p_engine_request_limit 4
p_engine_request_waiting_limit 2
p_request_queue_limit 8
p_request_receive_total{dp_rank="unspecified"} 1
p_request_receive_total{dp_rank="7"} 30
p_engine_request_count{dp_rank="7"} 4
p_engine_request_waiting_count{dp_rank="7"} 1
p_request_queue_count{dp_rank="7"} 2
p_request_admit_total{dp_rank="7",source="direct"} 11
p_request_admit_total{dp_rank="7",source="queue"} 12
p_rejection_total{dp_rank="7",scope="rank"} 5
"#;

const FRONTEND: &str = r#"
dynamo_frontend_inflight_requests 9
dynamo_frontend_requests_total{outcome="ok"} 4
dynamo_frontend_requests_total{outcome="rejected"} 3
dynamo_frontend_worker_healthy{worker_id="2",url="http://h:1/"} 1
dynamo_frontend_worker_state{worker_id="2",state="busy"} 1
dynamo_frontend_worker_ranks_over_threshold{worker_id="2",threshold="active_decode_blocks_threshold"} 1
"#;

fn shown(page: &str) -> Snapshot {
    let reading = Reading::of(&read(page));
    History::default().observe(Duration::ZERO, reading, Vec::new())
}

fn frame(width: u16, height: u16, shown: Option<&Snapshot>, trouble: Option<&str>) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(frame, "http://h:1", shown, trouble))
        .unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_worker_has_its_ranks_against_their_limits() {
    let text = frame(110, 30, Some(&shown(WORKER)), None);
    for said in [
        "tidegate top  http://h:1",
        "GPU saturation",
        "not known",
        "Concurrency saturation",
        "Quality of service",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let line = text
        .lines()
        .find(|line| line.contains("##### 4/4"))
        .expect("the rank");
    for said in ["7", "###.. 1/2", "##... 2/8", "11", "12", "5"] {
        assert!(line.contains(said), "{said}: {line}");
    }
    assert!(text.contains("rank full"), "{text}");
    assert!(
        !text.contains("Workers") && !text.contains("Classes"),
        "{text}"
    );
}

#[test]
fn a_frontend_has_its_workers_and_why_they_are_busy() {
    let text = frame(130, 30, Some(&shown(FRONTEND)), None);
    let line = text
        .lines()
        .find(|line| line.contains("2 http://h:1/"))
        .expect("the worker");
    assert!(line.contains("busy (active"), "{line}");
    assert!(
        text.contains("in flight") && text.contains("every worker overloaded"),
        "{text}"
    );
}

#[test]
fn trouble_is_said_and_any_size_of_terminal_is_taken() {
    let text = frame(60, 3, None, Some("no answer"));
    assert!(text.contains("no answer"), "{text}");
    for (width, height) in [(1, 1), (20, 5), (300, 100)] {
        frame(width, height, Some(&shown(WORKER)), Some("no answer"));
    }
}
