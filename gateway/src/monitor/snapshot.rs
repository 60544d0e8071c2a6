//! What the frontend's metrics say of the workers' load.

use std::fmt::Write;
use std::time::Duration;

use super::load::Load;
use super::sample::Source;

/// One worker, as it is shown.
#[derive(Clone, Debug)]
pub struct MemberSnapshot {
    /// Its name.
    pub id: u64,
    /// What it does.
    pub worker_type: &'static str,
    /// Its load.
    pub load: Load,
    /// What is heard of it.
    pub sources: [SourceSnapshot; Source::ALL.len()],
    /// The age at which what is heard no longer counts.
    pub load_ttl: Duration,
    /// Samples that were not usable, since it was added.
    pub dropped: u64,
    /// Pages that were asked for in vain, since it was added.
    pub failed_scrapes: u64,
}

/// One source, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct SourceSnapshot {
    /// The source.
    pub source: Source,
    /// The age of the newest that it said; `None` if it said nothing yet.
    pub age: Option<Duration>,
}

impl MemberSnapshot {
    /// Whether every source that ever said something has been silent for too long.
    /// A worker of which nothing was heard yet is not stale but unknown.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        let mut ages = self.sources.iter().filter_map(|heard| heard.age).peekable();
        ages.peek().is_some() && ages.all(|age| age > self.load_ttl)
    }
}

/// A metric of the page: its name without the prefix, its type, what it means.
type Metric = (&'static str, &'static str, &'static str);

const PREFIX: &str = "dynamo_frontend_worker_";

const BLOCKS: Metric = (
    "active_decode_blocks",
    "gauge",
    "KV blocks in use, the largest that a source or the own accounting tells",
);
const TOTAL_BLOCKS: Metric = (
    "kv_total_blocks",
    "gauge",
    "KV blocks of the rank; no series while that is not known",
);
const TOKENS: Metric = (
    "active_prefill_tokens",
    "gauge",
    "Prompt tokens whose first output token has not come",
);
const AGE: Metric = (
    "load_age_seconds",
    "gauge",
    "Age of the newest load sample, by source",
);
const STALE: Metric = (
    "load_stale",
    "gauge",
    "1 while all load samples are older than --load-ttl and count for nothing",
);
const DROPPED: Metric = (
    "load_dropped_total",
    "counter",
    "Load samples that were not usable",
);
const FAILED: Metric = (
    "scrape_failures_total",
    "counter",
    "Metrics pages that were asked for in vain",
);

/// The workers' load in Prometheus' text format. A worker that is not among
/// `members` has no series.
#[must_use]
pub fn render(members: &[MemberSnapshot]) -> String {
    let mut page = String::new();
    for (metric, of) in [
        (
            BLOCKS,
            (|rank| rank.active_decode_blocks) as fn(&super::load::RankLoad) -> u64,
        ),
        (TOKENS, |rank| rank.active_prefill_tokens),
    ] {
        head(&mut page, metric);
        for member in members {
            for rank in &member.load.ranks {
                let labels = format!("dp_rank=\"{}\",{}", rank.rank, labels(member));
                line(&mut page, metric, &labels, of(rank));
            }
        }
    }
    head(&mut page, TOTAL_BLOCKS);
    for member in members {
        for rank in &member.load.ranks {
            if let Some(total) = rank.kv_total_blocks {
                let labels = format!("dp_rank=\"{}\",{}", rank.rank, labels(member));
                line(&mut page, TOTAL_BLOCKS, &labels, total);
            }
        }
    }
    head(&mut page, AGE);
    for member in members {
        for heard in &member.sources {
            if let Some(age) = heard.age {
                let labels = format!("source=\"{}\",{}", heard.source.label(), labels(member));
                line(&mut page, AGE, &labels, age.as_secs_f64());
            }
        }
    }
    for (metric, of) in [
        (
            STALE,
            (|member| u64::from(member.is_stale())) as fn(&MemberSnapshot) -> u64,
        ),
        (DROPPED, |member| member.dropped),
        (FAILED, |member| member.failed_scrapes),
    ] {
        head(&mut page, metric);
        for member in members {
            line(&mut page, metric, &labels(member), of(member));
        }
    }
    page
}

fn labels(member: &MemberSnapshot) -> String {
    let (id, worker_type) = (member.id, member.worker_type);
    format!("worker_id=\"{id}\",worker_type=\"{worker_type}\"")
}

fn head(page: &mut String, (name, kind, meaning): Metric) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "# HELP {PREFIX}{name} {meaning}\n# TYPE {PREFIX}{name} {kind}"
    );
}

fn line(page: &mut String, (name, ..): Metric, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(page, "{PREFIX}{name}{{{labels}}} {value}");
}
