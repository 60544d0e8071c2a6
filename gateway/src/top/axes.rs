//! The three axes of a snapshot, as names and values. Pure.

use super::say::{of, percent, rate, seconds};
use crate::page::Snapshot;
use crate::page::snapshot::Counts;

/// One of the three.
pub(super) struct Axis {
    pub title: &'static str,
    /// Names, and what is known of each.
    pub pairs: Vec<(String, String)>,
    /// Why there are none.
    pub unknown: Option<&'static str>,
}

/// GPU saturation, concurrency saturation, quality of service.
pub(super) fn axes(shown: &Snapshot) -> [Axis; 3] {
    let known = |title, pairs| Axis {
        title,
        pairs,
        unknown: None,
    };
    [
        Axis {
            unknown: shown.gpu.unknown,
            ..known("GPU saturation", gpu(shown))
        },
        known("Concurrency saturation", concurrency(shown)),
        known("Quality of service", quality(shown)),
    ]
}

type Pairs = Vec<(String, String)>;

fn gpu(shown: &Snapshot) -> Pairs {
    let shares = shown.gpu.shares.iter();
    shares
        .map(|(of, share)| (of.replace('_', " "), percent(Some(*share))))
        .collect()
}

fn concurrency(shown: &Snapshot) -> Pairs {
    let now = &shown.concurrency;
    let mut pairs = vec![];
    if !shown.reading.gates.is_empty() {
        pairs.push(("running".to_owned(), of(now.running, now.running_limit)));
        pairs.push(("waiting".to_owned(), of(now.waiting, now.waiting_limit)));
        pairs.push(("queued".to_owned(), of(now.queued, now.queue_limit)));
        pairs.push(("held by the policy".to_owned(), now.held.to_string()));
    }
    if let Some(front) = &shown.reading.front {
        pairs.push(("in flight".to_owned(), front.in_flight.to_string()));
    }
    pairs.push(("received".to_owned(), rate(now.received_per_second)));
    pairs.push(("refused".to_owned(), rate(now.refused_per_second)));
    pairs
}

fn quality(shown: &Snapshot) -> Pairs {
    let quality = &shown.quality;
    let counted = match quality.counts {
        Counts::Admitted => "admitted",
        Counts::Answered => "answered",
        Counts::Promise => "kept the promise",
    };
    let mut pairs = vec![
        ("goodput".to_owned(), rate(quality.goodput)),
        (counted.to_owned(), percent(quality.attainment)),
    ];
    for (name, told, shown) in [
        ("first token", quality.first_token, 3),
        ("queue wait", quality.queue_wait, 2),
    ] {
        let each = ["p50", "p99", "p99.9"].into_iter().enumerate();
        pairs.extend(
            each.take(shown)
                .map(|(at, q)| (format!("{name} {q}"), seconds(told.map(|told| told[at])))),
        );
    }
    pairs
}
