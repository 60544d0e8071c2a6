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
dynamo_frontend_policy_observes{model="sim"} 0
dynamo_frontend_policy_held_count{model="sim",class="gold"} 31
dynamo_frontend_policy_decision_total{model="sim",class="gold",decision="refused",reason="queue_timeout"} 2
"#;

fn shown(page: &str) -> Snapshot {
    let reading = Reading::of(&read(page));
    History::default().observe(Duration::ZERO, reading, Vec::new())
}

fn view(shown: Option<Snapshot>, trouble: Option<&str>) -> View {
    View {
        of: "h:1".to_owned(),
        interval: Duration::from_secs(1),
        shown,
        age: None,
        trouble: trouble.map(str::to_owned),
    }
}

fn frame(width: u16, height: u16, view: &View) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    terminal.backend().to_string()
}

/// The line that contains `part`.
fn line<'t>(text: &'t str, part: &str) -> &'t str {
    let found = text.lines().find(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no line with {part}: {text}"))
}

#[test]
fn a_worker_has_its_ranks_against_their_limits() {
    let text = frame(110, 30, &view(Some(shown(WORKER)), None));
    for said in [
        "tidegate top  h:1",
        "q leaves",
        "GPU saturation",
        "not known",
        "Concurrency saturation",
        "Quality of service",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let rank = line(&text, "##### 4/4");
    for said in ["7", "###.. 1/2", "##... 2/8", "11", "12", "5"] {
        assert!(rank.contains(said), "{said}: {rank}");
    }
    assert!(text.contains("rank full"), "{text}");
    assert!(
        !text.contains("Workers") && !text.contains("Classes"),
        "{text}"
    );
}

#[test]
fn a_frontend_has_its_workers_and_why_they_are_busy() {
    let text = frame(130, 30, &view(Some(shown(FRONTEND)), None));
    let worker = line(&text, "2 h:1 ");
    assert!(worker.contains("busy (active"), "{worker}");
    let held: Vec<&str> = line(&text, "sim gold").split_whitespace().collect();
    assert_eq!(held[1..5], ["gold", "31", "2", "?"], "{held:?}");
    assert!(line(&text, "queue timeout").contains("2"), "{text}");
    assert!(
        text.contains("in flight") && text.contains("every worker overloaded"),
        "{text}"
    );
}

#[test]
fn in_little_room_the_axes_are_text_and_columns_go_whole() {
    let text = frame(40, 8, &view(Some(shown(WORKER)), None));
    assert!(text.contains("running 4/4  waiting 1/2"), "{text}");
    let rank = line(&text, "7  ");
    assert!(rank.contains("1/2") && rank.contains("2/8"), "{rank}");
    assert!(!text.contains('#') && !text.contains("at once"), "{text}");
    assert!(text.contains("Ranks, 1 of 2"), "{text}");
}

#[test]
fn trouble_is_said_with_how_old_the_rest_is_and_what_to_do_where_there_is_none() {
    let of_nobody = view(None, Some("http://h:1/metrics: no connection"));
    let text = frame(80, 24, &of_nobody);
    for said in ["h:1/metrics: no connection", "again", "--url", "8100"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let mut of_the_past = view(Some(shown(WORKER)), Some("no connection"));
    of_the_past.age = Some(Duration::from_millis(7900));
    let text = frame(80, 24, &of_the_past);
    assert!(text.contains("this is 7 s old: no connection"), "{text}");
    assert!(text.contains("4/4"), "{text}");
}

#[test]
fn any_size_of_terminal_is_taken() {
    let views = [
        view(Some(shown(WORKER)), Some("no answer from anybody")),
        view(Some(shown(FRONTEND)), None),
        view(None, Some("no answer from anybody")),
        view(None, None),
    ];
    for (width, height) in [(1, 1), (2, 3), (20, 5), (66, 3), (10, 60), (300, 100)] {
        for view in &views {
            frame(width, height, view);
        }
    }
}
