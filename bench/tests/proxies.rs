//! What the comparison with nginx measures with, once and short, so that none rots.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_bench::proxies::client::Client;
use tidegate_bench::proxies::kind::{Kind, Pace};
use tidegate_bench::proxies::proxy::{Make, Programs, Proxy};
use tidegate_bench::proxies::rounds::Plan;
use tidegate_bench::proxies::{backend, report, rounds};

const PACE: Pace = Pace {
    tokens: 5,
    between: Duration::from_millis(1),
};

const PLAN: Plan = Plan {
    rounds: 2,
    span: Duration::from_millis(40),
    connections: 4,
};

fn programs(nginx: PathBuf) -> Programs {
    Programs {
        nginx,
        tidegate: "no-such-tidegate".into(),
        threads: 1,
        frontend_args: Vec::new(),
        loud: false,
        folder: std::env::temp_dir().join(format!("tidegate-proxies-{}", std::process::id())),
    }
}

#[tokio::test]
async fn the_backend_answers_whole_and_in_events() {
    let backend = backend::start(PACE).await.unwrap();
    let mut client = Client::new(backend);
    let whole = client.ask(Kind::Whole).await.unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&whole.body).unwrap();
    assert_eq!(whole["usage"]["total_tokens"], 45);
    let stream = client.ask(Kind::Stream).await.unwrap();
    assert!(stream.first <= stream.whole);
    let stream = String::from_utf8(stream.body).unwrap();
    assert_eq!(stream.matches("\" token\"").count(), 5);
    assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
    assert_eq!(client.connections, 1);
}

#[tokio::test]
async fn everyone_is_read_in_every_round() {
    let backend = backend::start(PACE).await.unwrap();
    let programs = programs("nginx".into());
    let direct = Proxy::start(Make::Direct, &programs, backend)
        .await
        .unwrap();
    let mut readings = 0;
    let all = rounds::run(&[direct], PLAN, || readings += 1)
        .await
        .unwrap();
    assert_eq!((all.len(), readings), (2, 4));
    for series in &all {
        for reading in &series.readings {
            assert!(
                reading.rate > 1.0 && reading.latency.first > 1.0,
                "{reading:?}"
            );
            assert!(reading.per_processor_second.is_infinite(), "nobody worked");
        }
    }
    assert!(report::markdown(&all).contains("| streaming | no proxy |"));
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let backend = backend::start(PACE).await.unwrap();
    let programs = programs("no-such-nginx".into());
    for (make, said) in [
        (Make::Nginx, "no-such-nginx"),
        (Make::Worker, "no-such-tidegate"),
    ] {
        let error = Proxy::start(make, &programs, backend).await.unwrap_err();
        assert!(format!("{error:#}").contains(said), "{error:#}");
    }
}

/// Says so and passes where there is no nginx.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_is_set_up_as_it_should_be() {
    let fetched =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nginx/package/usr/sbin/nginx");
    let found = [PathBuf::from("/usr/sbin/nginx"), fetched];
    let Some(nginx) = found.into_iter().find(|path| path.exists()) else {
        eprintln!("SKIPPED: there is no nginx; .ci/versus-nginx fetches it");
        return;
    };
    let backend = backend::start(PACE).await.unwrap();
    let programs = programs(nginx);
    let nginx = Proxy::start(Make::Nginx, &programs, backend).await.unwrap();
    let all = rounds::run(std::slice::from_ref(&nginx), PLAN, || {})
        .await
        .unwrap();
    assert!(all.iter().all(|series| series.readings.len() == 2));
    let before = nginx.processor_time().unwrap();
    let mut client = Client::new(nginx.address);
    while nginx.processor_time().unwrap() == before {
        client.ask(Kind::Whole).await.unwrap();
    }
    drop(nginx);
    std::fs::remove_dir_all(&programs.folder).unwrap();
}
