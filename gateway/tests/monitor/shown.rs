//! What metrics show of the workers.

use std::time::Duration;

use tidegate_gateway::monitor::{
    Joining, Monitor, MonitorSettings, Reading, Sample, Source, Totals,
};
use tokio::time::{Instant, advance};

fn reading(used: u64) -> Reading {
    let sample = Sample {
        kv_used_blocks: Some(used),
        totals: Totals {
            kv_total_blocks: Some(100),
            ..Totals::default()
        },
        ..Sample::default()
    };
    Reading {
        ranks: [(Some(0), sample), (Some(9), sample)].into(),
        ..Reading::default()
    }
}

fn joining(id: u64, worker_type: &'static str) -> Joining {
    Joining {
        ranks: Some(vec![0, 1]),
        worker_type,
        ..Joining::new(id)
    }
}

#[tokio::test(start_paused = true)]
async fn series_say_load_age_and_staleness_and_go_with_their_worker() {
    let monitor = Monitor::new(MonitorSettings::default());
    let first = monitor.add(joining(7, "decode")).unwrap();
    let _second = monitor.add(joining(8, "prefill")).unwrap();
    first.observe(Source::Scrape, &reading(42), Instant::now());
    let _held = first.started(Some(1), "m", 400);
    advance(Duration::from_millis(2500)).await;
    let page = monitor.render();
    let own = "worker_id=\"7\",worker_type=\"decode\"}";
    let w = "dynamo_frontend_worker_";
    for line in [
        format!("{w}active_decode_blocks{{dp_rank=\"0\",{own} 42"),
        format!("{w}active_decode_blocks{{dp_rank=\"1\",{own} 7"),
        format!("{w}active_prefill_tokens{{dp_rank=\"1\",{own} 100"),
        format!("{w}load_age_seconds{{source=\"scrape\",{own} 2.5"),
        format!("{w}load_stale{{{own} 0"),
        format!("{w}load_dropped_total{{{own} 1"),
        format!("{w}scrape_failures_total{{{own} 0"),
        format!(
            "{w}active_decode_blocks{{dp_rank=\"1\",worker_id=\"8\",worker_type=\"prefill\"}} 0"
        ),
        format!("# TYPE {w}active_decode_blocks gauge"),
        format!("# TYPE {w}load_dropped_total counter"),
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    assert!(
        !page.contains("source=\"events\""),
        "nothing was heard: {page}"
    );
    assert!(
        !page.contains("dp_rank=\"9\""),
        "a rank that it does not have: {page}"
    );

    advance(Duration::from_secs(10)).await;
    let page = monitor.render();
    assert!(
        page.contains(&format!("{w}load_stale{{{own} 1\n")),
        "{page}"
    );
    assert!(page.contains(&format!(
        "{w}load_age_seconds{{source=\"scrape\",{own} 12.5\n"
    )));
    assert!(page.contains(&format!("{w}active_decode_blocks{{dp_rank=\"0\",{own} 0\n")));
    let never = "worker_id=\"8\",worker_type=\"prefill\"} 0\n";
    assert!(
        page.contains(&format!("{w}load_stale{{{never}")),
        "not stale, unknown: {page}"
    );

    assert!(monitor.remove(7));
    let page = monitor.render();
    assert!(
        !page.contains("worker_id=\"7\"") && page.contains("worker_id=\"8\""),
        "{page}"
    );
}

#[test]
fn a_page_of_nobody_is_still_a_page() {
    let page = Monitor::new(MonitorSettings::default()).render();
    assert!(page.lines().all(|line| line.starts_with("# ")), "{page}");
}
