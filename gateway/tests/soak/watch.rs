//! What can be seen of the worker from outside: its counts and its memory.

use std::fmt;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Counts over all lanes. Each lane's are of one moment, and their sum is not.
#[derive(Debug, Default)]
pub struct Scrape {
    /// The gauges of each lane: name, lane, value.
    pub gauges: Vec<(String, String, u64)>,
    pub running: u64,
    pub waiting: u64,
    pub queued: u64,
    pub received: u64,
    pub admitted: u64,
    pub rejected: u64,
    pub cancelled: u64,
}

impl Scrape {
    pub async fn of(addr: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(addr).await.expect("a connection");
        let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("an answer");
        let mut seen = Self::default();
        for line in text.lines() {
            let Some((name, rest)) = line.split_once('{') else {
                continue;
            };
            let name = name.trim_start_matches("dynamo_backend_admission_");
            let count = match name {
                "engine_request_count" => &mut seen.running,
                "engine_request_waiting_count" => &mut seen.waiting,
                "request_queue_count" => &mut seen.queued,
                "request_receive_total" => &mut seen.received,
                "request_admit_total" => &mut seen.admitted,
                "rejection_total" => &mut seen.rejected,
                "cancellation_total" => &mut seen.cancelled,
                _ => continue,
            };
            let value = rest.rsplit(' ').next().unwrap_or_default();
            let value = value.parse::<u64>().expect("a count, never negative");
            *count += value;
            if name.ends_with("_count") {
                let lane = rest.split('"').nth(1).unwrap_or_default();
                seen.gauges.push((name.to_owned(), lane.to_owned(), value));
            }
        }
        seen
    }
}

/// How much memory a process has resident, over time, in KiB.
#[derive(Debug)]
pub struct Memory {
    process: u32,
    samples: Vec<u64>,
}

/// What a worker may grow between the two halves of a soak: what an allocator
/// keeps, and no more.
const SLACK: u64 = 4 << 10;

/// Below this many samples nothing has come to rest.
const FEW: usize = 200;

impl Memory {
    pub fn of(process: u32) -> Self {
        Self {
            process,
            samples: Vec::new(),
        }
    }

    pub fn sample(&mut self) {
        // Only Linux tells.
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process));
        let resident: Option<u64> = status.ok().and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        });
        self.samples.extend(resident);
    }

    /// The median of the second and of the last quarter.
    fn quarters(&self) -> Option<(u64, u64)> {
        let quarter = self.samples.len() / 4;
        let median = |from: usize| {
            let mut part = self.samples.get(from..from + quarter)?.to_vec();
            part.sort_unstable();
            part.get(quarter / 2).copied()
        };
        Some((median(quarter)?, median(3 * quarter)?))
    }

    pub fn assert_flat(&self) {
        let (Some((early, late)), true) = (self.quarters(), self.samples.len() >= FEW) else {
            return;
        };
        let most = early + early / 20 + SLACK;
        assert!(late <= most, "memory grew: {early} KiB, then {late} KiB");
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quarters() {
            Some((early, late)) => write!(
                f,
                "  memory of the worker, medians: {early} KiB in the second quarter, {late} KiB in the last"
            ),
            None => f.write_str("  memory of the worker: too few samples"),
        }
    }
}
