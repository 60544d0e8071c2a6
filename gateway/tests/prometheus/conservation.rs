//! Every request is accounted for, per lane, in what Prometheus has read.
//!
//! Plays a minute of generated load in six seconds. The whole of the Azure trace, in four
//! minutes, a fifth of whose clients leave at random:
//!
//! `TIDEGATE_TRACES=FOLDER cargo test -p tidegate-gateway --test prometheus every_request -- --nocapture`
//!
//! where `FOLDER/azure/AzureLLMInferenceTrace_conv.csv` is what Azure has published.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tidegate::LaneSnapshot;
use tidegate_gateway::load::{Arrivals, Client, Load, Mix, Planned, play, read_trace};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::server::Prometheus;
use super::stack::{LONG, Stack, limits, simulated};

/// The load is played this much faster, on an engine that is as much faster.
const SPEED: f64 = 10.0;

/// The same for the trace, which lasts an hour.
const TRACE_SPEED: f64 = 15.0;

/// Where the trace is, if it is to be played.
fn traces() -> Option<OsString> {
    std::env::var_os("TIDEGATE_TRACES")
}

fn speed() -> f64 {
    traces().map_or(SPEED, |_| TRACE_SPEED)
}

/// A recorded or generated load, of which a part leaves.
fn load(seed: u64) -> Vec<Planned> {
    let mix = Mix {
        rate: 5.5,
        ranks: vec![0, 1],
        ranked: 0.5,
        leave: 0.2,
        ..Mix::default()
    };
    let drawn = Arrivals::new(mix, seed);
    let hurried = |planned: Planned| Planned {
        leaves_after: planned
            .leaves_after
            .map(|patience| patience.div_f64(speed())),
        ..planned
    };
    match traces() {
        Some(folder) => {
            let file = Path::new(&folder).join("azure/AzureLLMInferenceTrace_conv.csv");
            let rows = read_trace(&file, TRACE_SPEED).expect("the trace");
            let rows = rows.into_iter().zip(drawn);
            let merged = rows.map(|(row, drawn)| {
                hurried(Planned {
                    rank: drawn.rank,
                    leaves_after: drawn.leaves_after,
                    ..row
                })
            });
            merged.collect()
        }
        None => drawn
            .take_while(|planned| planned.at < Duration::from_secs(60))
            .map(|planned| {
                hurried(Planned {
                    at: planned.at.div_f64(speed()),
                    ..planned
                })
            })
            .collect(),
    }
}

async fn played(stack: &Stack, seed: u64) {
    let (load, requests) = (Load::default(), load(seed));
    let count = requests.len() as u64;
    let targets = [stack.worker.url().parse().expect("a target")];
    let client = Client::new("sim");
    play(
        requests.into_iter(),
        &targets,
        &client,
        &load,
        &CancellationToken::new(),
    )
    .await;
    stack.holds(0, 0, 0).await;
    assert_eq!((load.tally().sent, load.tally().in_flight()), (count, 0));
}

/// A metric of one worker, summed over what its lanes have further labels for.
fn by_lane(name: &str, worker: &Stack) -> String {
    let instance = worker.worker.addr();
    format!("sum by (dp_rank) (dynamo_backend_admission_{name}{{instance=\"{instance}\"}})")
}

/// Checks one worker against its gate. `Err` says what does not agree yet.
async fn agrees(prometheus: &Prometheus, stack: &Stack) -> Result<(), String> {
    let gate = stack.snapshot();
    for (name, count) in [
        (
            "request_receive_total",
            (|lane| lane.received) as fn(&LaneSnapshot) -> u64,
        ),
        ("request_admit_total", LaneSnapshot::admitted),
        ("rejection_total", LaneSnapshot::rejected),
        ("cancellation_total", |lane| lane.cancelled),
        ("engine_request_count", |_| 0),
        ("engine_request_waiting_count", |_| 0),
        ("request_queue_count", |_| 0),
    ] {
        let read = prometheus.query(&by_lane(name, stack)).await;
        if read.len() != gate.lanes.len() {
            return Err(format!("{name}: {read:?}"));
        }
        for lane in &gate.lanes {
            let label = lane.lane.to_string();
            let read = read
                .iter()
                .find(|(labels, _)| labels["dp_rank"] == label.as_str());
            if read.map(|(_, value)| *value) != Some(count(lane) as f64) {
                return Err(format!(
                    "{name} of {label}: {read:?}, the gate has {lane:?}"
                ));
            }
        }
    }
    Ok(())
}

async fn conserves(prometheus: &Prometheus, stack: &Stack) {
    let start = Instant::now();
    while let Err(why) = agrees(prometheus, stack).await {
        assert!(start.elapsed() < LONG, "{why}");
        sleep(Duration::from_millis(50)).await;
    }
    let left = [
        "request_admit_total",
        "rejection_total",
        "cancellation_total",
    ];
    let left = left.map(|name| by_lane(name, stack)).join(" + ");
    let received = by_lane("request_receive_total", stack);
    let lost = prometheus.query(&format!("{received} - ({left})")).await;
    assert_eq!(lost.len(), stack.snapshot().lanes.len());
    assert!(lost.iter().all(|(_, lost)| *lost == 0.0), "{lost:?}");
}

/// Two workers in one process, each with a load of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_accounted_for_in_each_of_two_workers() {
    // The trace is more than a minute's load, and most of it is to get in too.
    let (slots, queue) = traces().map_or((4, 2), |_| (16, 16));
    let start = || {
        Stack::start(simulated(2, slots, speed()), |config| {
            config.settings = limits(slots, slots / 2, queue)
        })
    };
    let (one, two) = (start().await, start().await);
    let prometheus = Prometheus::start(&[one.worker.addr(), two.worker.addr()]).await;
    tokio::join!(played(&one, 1), played(&two, 2));
    for stack in [&one, &two] {
        conserves(&prometheus, stack).await;
        let seen = stack.snapshot();
        let total = |count: fn(&LaneSnapshot) -> u64| seen.total(count);
        eprintln!(
            "received {} = admitted {} + refused {} + left {}",
            total(|lane| lane.received),
            total(LaneSnapshot::admitted),
            total(LaneSnapshot::rejected),
            total(|lane| lane.cancelled),
        );
        assert!(total(LaneSnapshot::admitted) > 0 && total(LaneSnapshot::rejected) > 0);
    }
}
