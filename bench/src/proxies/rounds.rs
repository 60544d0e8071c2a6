//! Who is read when, and what a reading is.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::client::Client;
use super::kind::Kind;
use super::proxy::{Make, Proxy};

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds; in each, everyone is read once, in turn, then in the reverse order.
    pub rounds: u32,
    /// How long one reading takes.
    pub span: Duration,
    /// Connections that ask at once, for the processor time.
    pub connections: usize,
}

/// What one proxy gave in one round.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Requests that ended, per second.
    pub rate: f64,
    /// Requests that ended, per second of the proxy's processor time; infinite for
    /// no proxy.
    pub per_processor_second: f64,
    /// Microseconds to the answer's first byte, and to its end, at the median of
    /// requests sent one after the other.
    pub latency: Latency,
}

/// Medians, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// To the first byte of the answer's body.
    pub first: f64,
    /// To its end.
    pub whole: f64,
}

/// All readings of one proxy for one kind of request, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Series {
    /// Which proxy.
    pub make: Make,
    /// What was asked for.
    pub kind: Kind,
    /// One each round.
    pub readings: Vec<Reading>,
}

/// Reads everyone, `plan.rounds` times. `progress` hears of each reading.
///
/// # Errors
/// A request fails: then no figure means anything.
pub async fn run(proxies: &[Proxy], plan: Plan, mut progress: impl FnMut()) -> Result<Vec<Series>> {
    let mut all: Vec<Series> = Vec::new();
    for kind in Kind::ALL {
        let series = proxies.iter().map(|proxy| Series {
            make: proxy.make.clone(),
            kind,
            readings: Vec::new(),
        });
        let mut series: Vec<Series> = series.collect();
        // Connections, caches and branch predictors are warm before it counts.
        for proxy in proxies {
            busy(proxy, kind, plan, plan.span / 4).await?;
        }
        for round in 0..plan.rounds {
            let mut order: Vec<usize> = (0..proxies.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let proxy = &proxies[at];
                let latency = latency(proxy, kind, plan.span).await?;
                let (rate, per_processor_second) = busy(proxy, kind, plan, plan.span).await?;
                series[at].readings.push(Reading {
                    rate,
                    per_processor_second,
                    latency,
                });
                progress();
            }
        }
        all.append(&mut series);
    }
    Ok(all)
}

/// As many requests at once as there are connections, for `span`: their rate, and how
/// many the proxy serves with a second of processor time.
async fn busy(proxy: &Proxy, kind: Kind, plan: Plan, span: Duration) -> Result<(f64, f64)> {
    let before = proxy.processor_time()?;
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..plan.connections {
        let mut client = Client::new(proxy.address);
        clients.spawn(async move {
            let mut ended = 0_u64;
            while start.elapsed() < span {
                client.ask(kind).await?;
                ended += 1;
            }
            anyhow::Ok((ended, client.connections))
        });
    }
    let mut ended = 0;
    while let Some(client) = clients.join_next().await {
        let (requests, connections) = client??;
        ended += requests;
        ensure!(
            connections <= 1 + requests / 1000,
            "{} closes connections: {connections} for {requests} requests",
            proxy.make.name()
        );
    }
    let seconds = start.elapsed().as_secs_f64();
    let taken = proxy.processor_time()?.saturating_sub(before);
    Ok((ended as f64 / seconds, ended as f64 / taken.as_secs_f64()))
}

/// One request after the other on one connection, for `span`.
async fn latency(proxy: &Proxy, kind: Kind, span: Duration) -> Result<Latency> {
    // Nanoseconds up to a minute.
    let histogram = || Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3);
    let (mut first, mut whole) = (histogram()?, histogram()?);
    let mut client = Client::new(proxy.address);
    client.ask(kind).await?;
    let start = Instant::now();
    while start.elapsed() < span {
        let seen = client.ask(kind).await?;
        first.saturating_record(nanoseconds(seen.first));
        whole.saturating_record(nanoseconds(seen.whole));
    }
    let median = |histogram: &Histogram<u64>| histogram.value_at_quantile(0.5) as f64 / 1e3;
    Ok(Latency {
        first: median(&first),
        whole: median(&whole),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}
