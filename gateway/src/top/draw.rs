//! A snapshot as a frame. Pure: the same snapshot always looks the same.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use crate::page::Snapshot;
use crate::page::gate::Gate;
use crate::page::snapshot::Counts;

/// Columns of a bar.
const BAR: u64 = 5;

/// What a line says beside its name.
type Pairs = Vec<(String, String)>;

/// Draws what is known, or why nothing is, below a line that says whose it is.
pub fn draw(frame: &mut Frame, of: &str, shown: Option<&Snapshot>, trouble: Option<&str>) {
    let [title, rest] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut line = vec![Span::styled("tidegate top", bold), format!("  {of}").into()];
    if let Some(trouble) = trouble {
        line.push(Span::styled(
            format!("  {trouble}"),
            Style::new().fg(Color::Red),
        ));
    }
    frame.render_widget(Line::from(line), title);
    if let Some(shown) = shown {
        body(frame, rest, shown);
    }
}

fn body(frame: &mut Frame, area: Rect, shown: &Snapshot) {
    let (workers, ranks, refusals, classes) = (
        workers(shown),
        ranks(shown),
        refusals(shown),
        classes(shown),
    );
    let tables = [workers, ranks, classes, refusals].into_iter().flatten();
    let tables: Vec<(Table, u16)> = tables.collect();
    let heights = tables.iter().map(|(_, rows)| Constraint::Length(rows + 3));
    let heights = std::iter::once(Constraint::Length(9))
        .chain(heights)
        .chain([Constraint::Min(0)]);
    let areas = Layout::vertical(heights).split(area);
    axes(frame, areas[0], shown);
    for ((table, _), area) in tables.iter().zip(&areas[1..]) {
        frame.render_widget(table, *area);
    }
}

fn axes(frame: &mut Frame, area: Rect, shown: &Snapshot) {
    let areas: [Rect; 3] = Layout::horizontal([Constraint::Ratio(1, 3); 3]).areas(area);
    let axes = [
        ("GPU saturation", gpu(shown)),
        ("Concurrency saturation", concurrency(shown)),
        ("Quality of service", quality(shown)),
    ];
    for ((title, pairs), area) in axes.into_iter().zip(areas) {
        let block = Block::bordered().title(title);
        let width = usize::from(block.inner(area).width);
        let lines: Vec<Line> = pairs
            .iter()
            .map(|(name, value)| pair(name, value, width))
            .collect();
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }
}

/// A name on the left and a value on the right.
fn pair(name: &str, value: &str, width: usize) -> Line<'static> {
    let room = width.saturating_sub(name.chars().count() + 1);
    Line::from(format!("{name} {value:>room$}"))
}

fn gpu(shown: &Snapshot) -> Pairs {
    if shown.gpu.unknown.is_some() {
        let said = [
            "not known: a worker reads it",
            "with --policy; with",
            "--policy-mode observe",
            "nothing else changes",
        ];
        return said.map(|line| (line.to_owned(), String::new())).to_vec();
    }
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
    for (name, told) in [
        ("first token", quality.first_token),
        ("queue wait", quality.queue_wait),
    ] {
        let each = ["p50", "p99", "p99.9"].into_iter().enumerate();
        pairs.extend(
            each.take(if name == "first token" { 3 } else { 2 })
                .map(|(at, q)| (format!("{name} {q}"), seconds(told.map(|told| told[at])))),
        );
    }
    pairs
}

fn workers(shown: &Snapshot) -> Option<(Table<'static>, u16)> {
    let front = shown
        .reading
        .front
        .as_ref()
        .filter(|front| !front.workers.is_empty())?;
    let rows = front.workers.iter().map(|worker| {
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
        [
            format!("{} {}", worker.id, worker.url),
            state,
            worker.blocks.to_string(),
            worker.prefill_tokens.to_string(),
            worker.result("answered").to_string(),
            refused.to_string(),
        ]
    });
    let names = [
        "worker",
        "state",
        "KV blocks",
        "prefill",
        "answered",
        "refused",
    ];
    Some(table("Workers", names, rows.collect()))
}

fn ranks(shown: &Snapshot) -> Option<(Table<'static>, u16)> {
    let gates = &shown.reading.gates;
    let lane = |gate: &Gate| -> Vec<[String; 8]> {
        let name = |rank: &str| match gate.worker.as_str() {
            "" => rank.to_owned(),
            worker => format!("{worker} {rank}"),
        };
        let lines = gate.lanes.iter().map(|lane| {
            let ranks = if lane.rank == "unspecified" {
                gate.ranks
            } else {
                1
            };
            let refused = lane.rejected_rank + lane.rejected_worker;
            [
                match lane.rank.as_str() {
                    "unspecified" => name("none"),
                    rank => name(rank),
                },
                bar(lane.running, gate.limits.running * ranks),
                bar(lane.waiting, gate.limits.waiting * ranks),
                bar(lane.queued, gate.limits.queued * ranks),
                lane.direct.to_string(),
                lane.from_queue.to_string(),
                refused.to_string(),
                lane.cancelled.to_string(),
            ]
        });
        lines.collect()
    };
    let rows: Vec<_> = gates.iter().flat_map(lane).collect();
    let names = [
        "rank",
        "running",
        "waiting",
        "queued",
        "at once",
        "via queue",
        "refused",
        "left",
    ];
    (!rows.is_empty()).then(|| table("Ranks", names, rows))
}

fn classes(shown: &Snapshot) -> Option<(Table<'static>, u16)> {
    let policies = shown
        .reading
        .gates
        .iter()
        .filter_map(|gate| gate.policy.as_ref());
    let rows = policies.flat_map(|policy| &policy.classes).map(|class| {
        [
            class.name.clone(),
            class.held.to_string(),
            rate(class.goodput),
            percent(class.attainment),
            seconds(class.first_token[1]),
            class.admitted.to_string(),
            class.refused.values().sum::<u64>().to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let names = [
        "class",
        "held",
        "goodput",
        "kept promise",
        "token p99",
        "admitted",
        "refused",
    ];
    (!rows.is_empty()).then(|| table("Classes", names, rows))
}

fn refusals(shown: &Snapshot) -> Option<(Table<'static>, u16)> {
    let rows = shown
        .refusals
        .iter()
        .filter(|one| one.total > 0)
        .map(|one| {
            let only = if one.carried_out {
                ""
            } else {
                " (only counted)"
            };
            let reason = format!("{}{only}", one.reason.replace('_', " "));
            [reason, rate(one.per_second), one.total.to_string()]
        });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| table("Refusals", ["reason", "lately", "since the start"], rows))
}

fn table<const N: usize>(
    title: &'static str,
    names: [&'static str; N],
    rows: Vec<[String; N]>,
) -> (Table<'static>, u16) {
    let count = u16::try_from(rows.len()).unwrap_or(u16::MAX - 3);
    let head = Row::new(names.map(Cell::from)).style(Style::new().add_modifier(Modifier::BOLD));
    let rows = rows.into_iter().map(|row| Row::new(row.map(Cell::from)));
    let widths = (0..N).map(|at| {
        if at == 0 {
            Constraint::Fill(2)
        } else {
            Constraint::Fill(1)
        }
    });
    let table = Table::new(rows, widths)
        .header(head)
        .block(Block::bordered().title(title));
    (table, count)
}

/// A count out of its limit, and what share that is, rounded up.
fn bar(count: u64, limit: u64) -> String {
    let full = count.min(limit).saturating_mul(BAR).div_ceil(limit.max(1));
    let bar: String = (0..BAR)
        .map(|at| if at < full { '#' } else { '.' })
        .collect();
    format!("{bar} {}", of(count, limit))
}

fn of(count: u64, limit: u64) -> String {
    format!("{count}/{limit}")
}

fn rate(per_second: f64) -> String {
    format!("{per_second:.1}/s")
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "?".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn seconds(seconds: Option<f64>) -> String {
    match seconds {
        None => "?".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
