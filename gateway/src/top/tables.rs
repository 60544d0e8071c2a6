//! The tables of a snapshot, as rows. Pure. Of each, what matters most stands left:
//! where there is little room, columns are left out from the right.

use super::say::{of, percent, rate, seconds, server};
use crate::page::Snapshot;
use crate::page::gate::Gate;

/// Columns of a bar.
const BAR: u64 = 5;

/// A table: its title, and a name for each column.
pub(super) struct Listing {
    pub title: &'static str,
    pub names: &'static [&'static str],
    pub rows: Vec<Vec<Entry>>,
}

/// What stands in a column of a row.
pub(super) enum Entry {
    Text(String),
    /// A count out of its limit.
    Part(u64, u64),
}

impl Entry {
    /// As text, with bars or without.
    pub(super) fn text(&self, bars: bool) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Part(count, limit) if bars => bar(*count, *limit),
            Self::Part(count, limit) => of(*count, *limit),
        }
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Those that have a row, the most important first.
pub(super) fn tables(shown: &Snapshot) -> Vec<Listing> {
    let all = [
        workers(shown),
        queues(shown),
        ranks(shown),
        classes(shown),
        refusals(shown),
    ];
    all.into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn workers(shown: &Snapshot) -> Listing {
    let workers = shown.reading.front.iter().flat_map(|front| &front.workers);
    let rows = workers.map(|worker| {
        let refused = ["refused_worker", "refused_rank", "refused_class"];
        let refused: u64 = refused.iter().map(|how| worker.result(how)).sum();
        let over: Vec<String> = worker
            .over
            .iter()
            .map(|(name, ranks)| format!("{name}: {ranks}"))
            .collect();
        let state = match over.is_empty() {
            true => worker.state.clone(),
            false => format!("{} ({})", worker.state, over.join(", ")),
        };
        let texts = [
            format!("{} {}", worker.id, server(&worker.url)),
            state,
            worker.result("answered").to_string(),
            refused.to_string(),
            worker.blocks.to_string(),
            worker.prefill_tokens.to_string(),
        ];
        texts.map(Entry::from).into()
    });
    Listing {
        title: "Workers",
        names: &[
            "worker",
            "state",
            "answered",
            "refused",
            "KV blocks",
            "prefill",
        ],
        rows: rows.collect(),
    }
}

fn ranks(shown: &Snapshot) -> Listing {
    let rows = shown.reading.gates.iter().flat_map(|gate| {
        gate.lanes.iter().map(move |lane| {
            let (rank, share) = match lane.rank.as_str() {
                "unspecified" => ("none", gate.ranks),
                rank => (rank, 1),
            };
            let part = |count, limit: u64| Entry::Part(count, limit.saturating_mul(share));
            let refused = lane.rejected_rank.saturating_add(lane.rejected_worker);
            let text = |count: u64| Entry::Text(count.to_string());
            vec![
                Entry::Text(whose(gate, rank)),
                part(lane.running, gate.limits.running),
                part(lane.waiting, gate.limits.waiting),
                part(lane.queued, gate.limits.queued),
                text(refused),
                text(lane.direct),
                text(lane.from_queue),
                text(lane.cancelled),
            ]
        })
    });
    Listing {
        title: "Ranks",
        names: &[
            "rank",
            "running",
            "waiting",
            "queued",
            "refused",
            "at once",
            "via queue",
            "left",
        ],
        rows: rows.collect(),
    }
}

/// What the frontend's policy holds.
fn queues(shown: &Snapshot) -> Listing {
    let queues = shown.reading.front.iter().flat_map(|front| &front.queues);
    let rows = queues.flat_map(|queue| {
        queue.classes.iter().map(|class| {
            let wait = |at: usize| seconds(class.wait.map(|wait| wait[at]));
            let texts = [
                format!("{} {}", queue.model, class.name),
                class.held.to_string(),
                class.refusals().to_string(),
                wait(0),
                wait(1),
                percent(class.attainment),
                class.admitted.to_string(),
            ];
            texts.map(Entry::from).into()
        })
    });
    Listing {
        title: "Held at the frontend",
        names: &[
            "model, class",
            "held",
            "refused",
            "wait p50",
            "wait p99",
            "kept",
            "admitted",
        ],
        rows: rows.collect(),
    }
}

fn classes(shown: &Snapshot) -> Listing {
    let rows = shown.reading.gates.iter().flat_map(|gate| {
        let classes = gate.policy.iter().flat_map(|policy| &policy.classes);
        classes.map(|class| {
            let texts = [
                whose(gate, &class.name),
                class.held.to_string(),
                class.refusals().to_string(),
                rate(class.goodput),
                percent(class.attainment),
                seconds(class.first_token[1]),
                class.admitted.to_string(),
            ];
            texts.map(Entry::from).into()
        })
    });
    Listing {
        title: "Classes",
        names: &[
            "class",
            "held",
            "refused",
            "goodput",
            "kept",
            "token p99",
            "admitted",
        ],
        rows: rows.collect(),
    }
}

fn refusals(shown: &Snapshot) -> Listing {
    let counted = shown.refusals.iter().filter(|one| one.total > 0);
    let rows = counted.map(|one| {
        let only = match one.carried_out {
            true => "",
            false => " (only counted)",
        };
        let texts = [
            format!("{}{only}", one.reason.replace('_', " ")),
            rate(one.per_second),
            one.total.to_string(),
        ];
        texts.map(Entry::from).into()
    });
    Listing {
        title: "Refusals",
        names: &["reason", "lately", "since the start"],
        rows: rows.collect(),
    }
}

/// A name at a gate, after its worker where there are several.
fn whose(gate: &Gate, name: &str) -> String {
    match gate.worker.as_str() {
        "" => name.to_owned(),
        worker => format!("{worker} {name}"),
    }
}

/// A count out of its limit, and what share that is, rounded up.
fn bar(count: u64, limit: u64) -> String {
    let full = count.min(limit).saturating_mul(BAR).div_ceil(limit.max(1));
    let bar: String = (0..BAR)
        .map(|at| if at < full { '#' } else { '.' })
        .collect();
    format!("{bar} {}", of(count, limit))
}
