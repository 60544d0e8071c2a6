//! How well frontends agree, and what NATS costs, in a process of its own: on a quiet
//! machine by `.ci/cluster-figures`; a small one of it runs as a test.
#[path = "../cluster/nats.rs"]
#[allow(dead_code)]
mod nats;
#[path = "../cluster/support.rs"]
#[allow(dead_code, unused_imports)]
mod support;

use std::time::Duration;

use nats::Nats;
use support::{Front, engine_with, frontend_with, until, within, worker_with};
use tidegate_gateway::cluster::{NatsConfig, SubscribeConfig};
use tidegate_gateway::engine::Engine;
use tidegate_gateway::frontend::FrontendConfig;
use tidegate_gateway::load::{Client, Planned};
use tidegate_gateway::monitor::Thresholds;
use tidegate_gateway::worker::Worker;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// CPU time of a process so far, over the threads that it has.
fn cpu(id: &str) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let times = threads.filter_map(|thread| {
        let said = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        said.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}

/// How often a worker looks at its load: the default, and the least that frontends need
/// to agree.
const LOOK: Duration = Duration::from_millis(250);

struct Row {
    frontends: usize,
    workers: usize,
    /// How long the last frontend took to see each change, in order of length.
    agree: Vec<Duration>,
    /// Load events that all frontends heard, a second.
    heard: f64,
    /// CPU time a second: of this process, and of NATS.
    ours: f64,
    nats: f64,
    /// The first without NATS.
    bare: Option<f64>,
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

/// Workers, each with an engine and a client, and the frontends before them.
struct Fleet {
    all: Vec<(Engine, Worker)>,
    fronts: Vec<Front>,
    requests: Vec<JoinHandle<()>>,
}

impl Fleet {
    /// Starts them, and waits until every frontend has every worker. Without NATS they
    /// are told.
    async fn start(frontends: usize, workers: usize, nats: Option<NatsConfig>) -> Self {
        let mut all: Vec<(Engine, Worker)> = Vec::new();
        for n in 0..workers {
            let engine = engine_with(|config| config.ranks = 1).await;
            let unused = nats::at(1);
            let of = nats.clone().unwrap_or(unused);
            let worker = worker_with(&engine, of, &format!("w{n}"), |config| {
                let cluster = config.cluster.as_mut().unwrap();
                cluster.member_ttl = Duration::from_secs(15);
                cluster.load_interval = LOOK;
                config.cluster.take_if(|_| nats.is_none());
            });
            all.push((engine, worker));
        }
        let urls: Vec<_> = all.iter().map(|(_, worker)| worker.url()).collect();
        let change = |config: &mut FrontendConfig| {
            if nats.is_none() {
                let urls = urls.iter().map(|url| url.parse().unwrap());
                *config = FrontendConfig::new(urls.collect());
                config.monitor.scrape_interval = None;
            }
            config.health_interval = Duration::from_secs(1);
            config.monitor.thresholds = Thresholds {
                active_prefill_tokens: Some(500),
                ..Thresholds::default()
            };
            config.cluster = nats.clone().map(|nats| SubscribeConfig {
                allow: vec!["127.0.0.1".parse().unwrap()],
                ..SubscribeConfig::new(nats)
            });
        };
        let fronts: Vec<Front> = (0..frontends)
            .map(|_| frontend_with(nats::at(1), change))
            .collect();
        for front in &fronts {
            let what = format!("{workers} workers, all well");
            within(Duration::from_secs(20), &what, async || {
                front.well() == workers
            })
            .await;
        }
        let requests = all
            .iter()
            .map(|(_, worker)| tokio::spawn(ask(worker.url())));
        Self {
            requests: requests.collect(),
            fronts,
            all,
        }
    }

    /// CPU time of this process in each second from now on.
    async fn cpu(&self, time: Duration) -> f64 {
        let (begun, ours) = (Instant::now(), cpu("self"));
        sleep(time).await;
        cpu("self").saturating_sub(ours).as_secs_f64() / begun.elapsed().as_secs_f64()
    }

    /// One worker after the other becomes busy and free again, by what it says alone: how
    /// long the last frontend took to see it.
    async fn agree(&self, rounds: usize) -> Vec<Duration> {
        let mut took = Vec::new();
        for (_, worker) in self.all.iter().cycle().take(rounds) {
            let url = worker.url();
            // A prompt that does not come to its end.
            let mut prompt = Some(unfinished(worker).await);
            for busy in [true, false] {
                if !busy {
                    prompt = None;
                }
                let changed = Instant::now();
                let sees = |view: &Vec<(String, bool)>| view.contains(&(url.clone(), busy));
                until("all see it", async || views(&self.fronts).iter().all(sees)).await;
                took.push(changed.elapsed());
            }
            drop(prompt);
            let all = views(&self.fronts);
            assert!(
                all.iter().all(|view| *view == all[0]),
                "they disagree: {all:?}"
            );
        }
        took.sort();
        took
    }

    fn rest(&self) {
        self.requests.iter().for_each(JoinHandle::abort);
    }
}

/// What the worker has to do changes all the time, and with it what there is to say.
async fn ask(url: String) {
    let (client, target) = (Client::new("sim"), url.parse().unwrap());
    let one = Planned {
        at: Duration::ZERO,
        prompt_tokens: 64,
        output_tokens: 20,
        rank: None,
        leaves_after: None,
    };
    for at in 1_u64.. {
        let _ = client.send(&target, &one, Instant::now()).await;
        sleep(Duration::from_millis(100 + at * 37 % 300)).await;
    }
}

async fn row(frontends: usize, workers: usize, rounds: usize, time: Duration) -> Row {
    let nats = Nats::start().await;
    let fleet = Fleet::start(frontends, workers, Some(nats.config())).await;
    let pid = nats.id().to_string();
    let (before, theirs) = (heard(&fleet.fronts).await, cpu(&pid));
    let begun = Instant::now();
    let ours = fleet.cpu(time).await;
    let seconds = begun.elapsed().as_secs_f64();
    let nats = cpu(&pid).saturating_sub(theirs).as_secs_f64() / seconds;
    let heard = (heard(&fleet.fronts).await - before) / seconds;
    fleet.rest();
    Row {
        frontends,
        workers,
        agree: fleet.agree(rounds).await,
        heard,
        ours,
        nats,
        bare: None,
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

const HEAD: &str = "| frontends | workers | agree: median, longest | longest ÷ load interval \
    | events heard a second | CPU ÷ the same without NATS | CPU of NATS, an event heard |";

fn shown(row: &Row) -> String {
    let longest = row.agree.last().copied().unwrap_or_default();
    let median = row.agree[row.agree.len() / 2];
    let bare = row.bare.map(|bare| format!("{:.2}", row.ours / bare));
    format!(
        "| {} | {} | {:.2} s, {:.2} s | {:.1} | {:.0} | {} | {:.0} µs |",
        row.frontends,
        row.workers,
        median.as_secs_f64(),
        longest.as_secs_f64(),
        longest.as_secs_f64() / LOOK.as_secs_f64(),
        row.heard,
        bare.as_deref().unwrap_or("?"),
        row.nats / row.heard * 1e6,
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

/// The table of CLUSTER.md, in a minute and a half: what is done is said on standard error.
#[tokio::test(flavor = "multi_thread")]
async fn figures() {
    if std::env::var_os("TIDEGATE_CLUSTER_FIGURES").is_none() {
        println!("SKIPPED: .ci/cluster-figures measures");
        return;
    }
    let begun = Instant::now();
    let say = |what: &str| eprintln!("{:3.0} s: {what}", begun.elapsed().as_secs_f64());
    println!("{HEAD}\n{}", "| --- ".repeat(7) + "|");
    for frontends in [1, 3] {
        for workers in [5, 20] {
            let what = format!("{frontends} frontends, {workers} workers");
            say(&format!("{what}, without NATS"));
            let fleet = Fleet::start(frontends, workers, None).await;
            let bare = fleet.cpu(Duration::from_secs(5)).await;
            fleet.rest();
            drop(fleet);
            say(&format!("{what}, over NATS"));
            let row = Row {
                bare: Some(bare),
                ..row(frontends, workers, 20, Duration::from_secs(5)).await
            };
            println!("{}", shown(&row));
        }
    }
    say("done");
}
