//! How well frontends agree, and what NATS costs, in a process of its own: on a quiet
//! machine by `.ci/cluster-figures`; a small one of it runs as a test.
#[path = "../cluster/nats.rs"]
#[allow(dead_code)]
mod nats;
#[path = "../cluster/support.rs"]
#[allow(dead_code)]
mod support;

use std::time::Duration;

use nats::Nats;
use support::{Front, engine_with, frontend_with, until, within, worker_with};
use tidegate_gateway::cluster::SubscribeConfig;
use tidegate_gateway::engine::Engine;
use tidegate_gateway::frontend::FrontendConfig;
use tidegate_gateway::load::{Client, Planned};
use tidegate_gateway::monitor::Thresholds;
use tidegate_gateway::worker::Worker;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// CPU time of this process so far.
fn cpu(id: &str) -> Duration {
    let said = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = said
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

struct Row {
    frontends: usize,
    workers: usize,
    /// The longest that a frontend took to see what had changed.
    agree: Duration,
    heard: f64,
    ours: f64,
    nats: f64,
}

async fn heard(fronts: &[Front]) -> f64 {
    let mut sum = 0.0;
    for front in fronts {
        sum += front.counts("received_total{kind=\"load\"}").await;
    }
    sum
}

/// What each frontend says of who is busy, in order of the workers' addresses.
fn views(fronts: &[Front]) -> Vec<Vec<(String, bool)>> {
    let view = |front: &Front| {
        let workers = front.0.workers();
        let mut view: Vec<(String, bool)> = workers
            .iter()
            .filter_map(|worker| {
                let watched = front.0.monitor().member(worker.id)?;
                Some((worker.url().to_string(), watched.busy("sim").worker))
            })
            .collect();
        view.sort();
        view
    };
    fronts.iter().map(view).collect()
}

async fn row(frontends: usize, workers: usize, rounds: usize, time: Duration) -> Row {
    let nats = Nats::start().await;
    let mut all: Vec<(Engine, Worker)> = Vec::new();
    for n in 0..workers {
        let engine = engine_with(|config| config.ranks = 1).await;
        let worker = worker_with(&engine, nats.config(), &format!("w{n}"), |config| {
            let cluster = config.cluster.as_mut().unwrap();
            cluster.member_ttl = Duration::from_secs(15);
            // The default.
            cluster.load_interval = Duration::from_millis(250);
        });
        all.push((engine, worker));
    }
    let change = |config: &mut FrontendConfig| {
        config.health_interval = Duration::from_secs(1);
        config.monitor.thresholds = Thresholds {
            active_prefill_tokens: Some(500),
            ..Thresholds::default()
        };
        config.cluster = Some(SubscribeConfig {
            allow: vec!["127.0.0.1".parse().unwrap()],
            ..SubscribeConfig::new(nats.config())
        });
    };
    let fronts: Vec<Front> = (0..frontends)
        .map(|_| frontend_with(nats.config(), change))
        .collect();
    for front in &fronts {
        let what = format!("{workers} workers, all well");
        within(Duration::from_secs(20), &what, async || {
            front.well() == workers
        })
        .await;
    }
    // What each has to do changes all the time, and with it what there is to say.
    let requests = all.iter().map(|(_, worker)| {
        let target = worker.url().parse().unwrap();
        tokio::spawn(async move {
            let client = Client::new("sim");
            let mut at = 0_u64;
            loop {
                let one = Planned {
                    at: Duration::ZERO,
                    prompt_tokens: 64,
                    output_tokens: 20,
                    rank: None,
                    leaves_after: None,
                };
                let _ = client.send(&target, &one, Instant::now()).await;
                at += 1;
                sleep(Duration::from_millis(100 + at * 37 % 300)).await;
            }
        })
    });
    let requests: Vec<_> = requests.collect();
    let pid = nats.id().to_string();
    let (begun, before) = (Instant::now(), heard(&fronts).await);
    let (ours, theirs) = (cpu("self"), cpu(&pid));
    sleep(time).await;
    let seconds = begun.elapsed().as_secs_f64();
    let heard = (heard(&fronts).await - before) / seconds;
    let ours = (cpu("self") - ours).as_secs_f64() / seconds;
    let theirs = (cpu(&pid) - theirs).as_secs_f64() / seconds;
    for one in &requests {
        one.abort();
    }
    // A prompt that does not come to its end makes its worker busy by what it says alone.
    let mut agree = Duration::ZERO;
    for round in 0..rounds {
        let worker = &all[round % workers].1;
        let url = worker.url();
        let mut prompt = Some(unfinished(worker).await);
        for busy in [true, false] {
            if !busy {
                prompt = None;
            }
            let changed = Instant::now();
            let sees = |view: &Vec<(String, bool)>| view.contains(&(url.clone(), busy));
            until("all see it", async || views(&fronts).iter().all(sees)).await;
            agree = agree.max(changed.elapsed());
        }
        drop(prompt);
        let all = views(&fronts);
        assert!(
            all.iter().all(|view| *view == all[0]),
            "they disagree: {all:?}"
        );
    }
    Row {
        frontends,
        workers,
        agree,
        heard,
        ours,
        nats: theirs,
    }
}

/// A request of 10,000 tokens, the last of which are not sent.
async fn unfinished(worker: &Worker) -> TcpStream {
    let mut stream = TcpStream::connect(worker.addr()).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n\
                content-type: application/json\r\ncontent-length: 40000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

fn shown(row: &Row) -> String {
    format!(
        "| {} | {} | {:.2} s | {:.0} | {:.1} % | {:.1} % |",
        row.frontends,
        row.workers,
        row.agree.as_secs_f64(),
        row.heard,
        row.ours * 100.0,
        row.nats * 100.0
    )
}

/// Frontends agree who is busy, by what they hear alone. The bar is a second; a test on a
/// machine that does something else gets five.
#[tokio::test(flavor = "multi_thread")]
async fn frontends_agree_who_is_busy() {
    let row = row(3, 4, 4, Duration::from_secs(1)).await;
    println!("{}", shown(&row));
    assert!(row.heard > 3.0 * 4.0, "{}", row.heard);
}

/// The table of CLUSTER.md.
#[tokio::test(flavor = "multi_thread")]
async fn figures() {
    if std::env::var_os("TIDEGATE_CLUSTER_FIGURES").is_none() {
        println!("SKIPPED: .ci/cluster-figures measures");
        return;
    }
    let head = "frontends | workers | agree within | events heard a second | CPU, this process | CPU, NATS";
    println!("| {head} |\n| --- | --- | --- | --- | --- | --- |");
    for frontends in [1, 3] {
        for workers in [5, 10, 20] {
            let row = row(frontends, workers, 40, Duration::from_secs(10)).await;
            println!("{}", shown(&row));
        }
    }
}
