//! The gate's metrics at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use thiserror::Error;
use tidegate::Lane;

use crate::scrape::exposition::Sample;

/// One lane's gauges and counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneReading {
    /// Requests inside the engine whose first token has not come.
    pub waiting: u64,
    /// Requests held at the gate.
    pub queued: u64,
    /// Requests that have come.
    pub received: u64,
    /// Those admitted at once.
    pub admitted_direct: u64,
    /// Those admitted after they had queued.
    pub admitted_queue: u64,
    /// Those refused.
    pub rejected: u64,
    /// Those that left before admission.
    pub cancelled: u64,
}

/// Every lane at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// When, on any clock.
    pub at: Duration,
    /// The lanes that were there.
    pub lanes: BTreeMap<Lane, LaneReading>,
}

/// Why samples are no reading.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadingError {
    /// None of them is the gate's.
    #[error(
        "no metric of a gate is there ({0}engine_request_waiting_count and others). Is this a \
         Tidegate worker's /metrics? Another prefix is chosen with --metrics-prefix"
    )]
    Nothing(String),
    /// Some of a lane's are missing.
    #[error("{0} has no sample for dp_rank {1:?}")]
    Missing(&'static str, String),
    /// A value that cannot be a count.
    #[error("{name}{{dp_rank={lane:?}}} is {value}, which is no count")]
    NoCount {
        /// The metric.
        name: String,
        /// Its `dp_rank`.
        lane: String,
        /// The value, as text.
        value: String,
    },
    /// A label that is no lane's.
    #[error("dp_rank {0:?} is neither a rank's id nor \"unspecified\"")]
    NoLane(String),
    /// More than one worker.
    #[error(
        "there are several workers: {0}. Choose one with --match, a label and its value such as --match 'instance=\"127.0.0.1:8100\"'"
    )]
    SeveralWorkers(String),
}

type Field = fn(&mut LaneReading) -> &mut u64;

/// The counts that are read: name, a further label that tells two apart, and where it goes.
const COUNTS: [(&str, Option<&str>, Field); 7] = [
    ("engine_request_waiting_count", None, |lane| {
        &mut lane.waiting
    }),
    ("request_queue_count", None, |lane| &mut lane.queued),
    ("request_receive_total", None, |lane| &mut lane.received),
    ("request_admit_total", Some("direct"), |lane| {
        &mut lane.admitted_direct
    }),
    ("request_admit_total", Some("queue"), |lane| {
        &mut lane.admitted_queue
    }),
    ("rejection_total", None, |lane| &mut lane.rejected),
    ("cancellation_total", None, |lane| &mut lane.cancelled),
];

/// The names that are read, without prefix.
pub fn names() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<&str> = COUNTS.iter().map(|(name, ..)| *name).collect();
    names.into_iter()
}

/// Takes a reading from samples of one moment; others among them do not matter.
///
/// # Errors
/// No metric with this prefix, an incomplete lane, a value that is no count, or
/// samples of several workers.
pub fn reading(at: Duration, samples: &[Sample], prefix: &str) -> Result<Reading, ReadingError> {
    let mut lanes: BTreeMap<Lane, (LaneReading, [bool; COUNTS.len()])> = BTreeMap::new();
    let mut workers = BTreeSet::new();
    for sample in samples {
        let Some(name) = sample.name.strip_prefix(prefix) else {
            continue;
        };
        let source = sample.labels.get("source").map(String::as_str);
        let found = COUNTS
            .iter()
            .position(|(count, by, _)| *count == name && (by.is_none() || *by == source));
        let (Some(index), Some(label)) = (found, sample.labels.get("dp_rank")) else {
            continue;
        };
        let value = count(sample.value).ok_or_else(|| ReadingError::NoCount {
            name: sample.name.clone(),
            lane: label.clone(),
            value: sample.value.to_string(),
        })?;
        workers.insert(worker(sample));
        let (lane, seen) = lanes.entry(lane(label)?).or_default();
        // Refusals have a series a scope.
        let total = COUNTS[index].2(lane);
        *total = total.saturating_add(value);
        seen[index] = true;
    }
    if workers.len() > 1 {
        let shown: Vec<String> = workers.into_iter().take(4).collect();
        return Err(ReadingError::SeveralWorkers(shown.join(" and ")));
    }
    if lanes.is_empty() {
        return Err(ReadingError::Nothing(prefix.to_owned()));
    }
    for (lane, (_, seen)) in &lanes {
        if let Some(missing) = seen.iter().position(|seen| !seen) {
            return Err(ReadingError::Missing(COUNTS[missing].0, lane.to_string()));
        }
    }
    Ok(Reading {
        at,
        lanes: lanes
            .into_iter()
            .map(|(lane, (counts, _))| (lane, counts))
            .collect(),
    })
}

/// What tells this sample's worker from others: its labels that are the same in
/// all series of one.
fn worker(sample: &Sample) -> String {
    let labels = sample.labels.iter();
    let own = labels.filter(|(name, _)| !["dp_rank", "source", "scope"].contains(&name.as_str()));
    let own: Vec<String> = own
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    own.join(",")
}

fn lane(label: &str) -> Result<Lane, ReadingError> {
    match label {
        "unspecified" => Ok(Lane::Unspecified),
        id => {
            let id = id
                .parse()
                .map_err(|_| ReadingError::NoLane(label.to_owned()))?;
            Ok(Lane::Rank(id))
        }
    }
}

/// A whole number, from 0 to where whole numbers end in this format.
fn count(value: f64) -> Option<u64> {
    const MOST: f64 = (1u64 << 53) as f64;
    ((0.0..=MOST).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::exposition::read;

    const PAGE: &str = "\
p_engine_request_waiting_count{dp_rank=\"4\"} 3
p_engine_request_count{dp_rank=\"4\"} 99
p_request_queue_count{dp_rank=\"4\"} 1
p_request_receive_total{dp_rank=\"4\"} 20
p_request_admit_total{dp_rank=\"4\",source=\"direct\"} 10
p_request_admit_total{dp_rank=\"4\",source=\"queue\"} 4
p_rejection_total{dp_rank=\"4\",scope=\"rank\"} 2
p_rejection_total{dp_rank=\"4\",scope=\"worker\"} 1
p_cancellation_total{dp_rank=\"4\"} 2
";

    fn from(page: &str) -> Result<Reading, ReadingError> {
        reading(Duration::ZERO, &read(page).samples, "p_")
    }

    #[test]
    fn a_page_becomes_a_reading() {
        let lane = LaneReading {
            waiting: 3,
            queued: 1,
            received: 20,
            admitted_direct: 10,
            admitted_queue: 4,
            rejected: 3,
            cancelled: 2,
        };
        assert_eq!(
            from(PAGE).unwrap().lanes,
            BTreeMap::from([(Lane::Rank(4), lane)])
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |page: &str| from(page).unwrap_err().to_string();
        assert!(said("up 1\n").contains("p_engine_request_waiting_count"));
        let missing = PAGE.replace("p_cancellation_total", "x");
        assert!(said(&missing).contains("cancellation_total"));
        for value in ["NaN", "-1", "1.5", "+Inf", "1e300"] {
            let odd = PAGE
                .replace("} 99", "} 1")
                .replace("} 20", &format!("}} {value}"));
            assert!(said(&odd).contains("no count"), "{value}");
        }
        assert!(said(&PAGE.replace("\"4\"", "\"x\"")).contains("dp_rank \"x\""));
        let two = format!(
            "{}{}",
            PAGE.replace('}', ",job=\"a\"}"),
            PAGE.replace('}', ",job=\"b\"}")
        );
        let said = said(&two);
        assert!(
            said.contains("job=\"a\" and job=\"b\"") && said.contains("--match"),
            "{said}"
        );
    }
}
