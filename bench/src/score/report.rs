//! The table, for people and for scripts.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::peers::{AsyncLockPair, PlainMutex, TokioPair, TowerLimit};
use crate::subject::Subject;

use super::{Judged, Machine, Outcome, Plan, Series, Unit, Verdict};

/// `{"machine": …, "rows": [{"name", "ours", "peers", "ratio", "bar", "met", …}]}`:
/// one row for each bar. `met` is null where nothing was judged.
pub fn json(machine: &Machine, plan: &Plan, outcomes: &[Outcome]) -> Value {
    let rows: Vec<_> = outcomes.iter().flat_map(json_rows).collect();
    json!({
        "machine": machine,
        "plan": {
            "rounds": plan.rounds,
            "long_rounds": plan.long_rounds,
            "reading_milliseconds": plan.span.as_millis() as u64,
            "hops": plan.hops,
            "repeats": plan.repeats,
        },
        "rows": rows,
    })
}

fn json_rows(outcome: &Outcome) -> Vec<Value> {
    let row = json!({
        "name": outcome.name,
        "unit": unit(outcome.unit),
        "note": outcome.note,
        "ours": json_series(&outcome.ours),
        "peers": outcome.peers.iter().map(json_series).collect::<Vec<_>>(),
        "discarded": outcome.discarded,
        "without_both_cores": outcome.without_both_cores(),
        "against": null, "ratio": null, "ratio_low": null, "ratio_high": null,
        "bar": null, "stretch": null, "met": null,
    });
    let judged = outcome.judged();
    if judged.is_empty() {
        return vec![row];
    }
    let with = |judged: Judged| {
        let mut row = row.clone();
        row["against"] = json!(judged.against);
        row["ratio"] = json!(judged.ratio);
        row["ratio_low"] = json!(judged.spread.0);
        row["ratio_high"] = json!(judged.spread.1);
        row["bar"] = json!(judged.bar.at_most);
        row["stretch"] = json!(judged.bar.stretch);
        row["met"] = match judged.verdict {
            Verdict::Met => json!(true),
            Verdict::Missed => json!(false),
            Verdict::Unjudged => Value::Null,
        };
        row
    };
    judged.into_iter().map(with).collect()
}

fn json_series(series: &Series) -> Value {
    let (low, high) = series.spread();
    json!({ "subject": series.name, "median": series.median(), "low": low, "high": high })
}

/// The same as a Markdown table, with what must be known to read it.
pub fn markdown(machine: &Machine, plan: &Plan, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{machine} {} rounds (the long rows {}), readings of {} ms. A reading on two threads that did \
         not find both cores was taken again, up to {} times.\n",
        plan.rounds,
        plan.long_rounds,
        plan.span.as_millis(),
        plan.repeats,
    );
    text.push_str(
        "| row | ours | beside it | ratio | bar | |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for outcome in outcomes {
        markdown_rows(&mut text, outcome);
    }
    text.push_str(
        "\nMedians over the rounds, quartiles in brackets. A ratio is the median of the ratios \
         within a round; rounds without both cores count for nothing, and a row with fewer than half \
         of its rounds left is not judged. A note holds for the rows below it, too, until the next.\n",
    );
    let lacking = [
        (TokioPair::NAME, TokioPair::RULES),
        (AsyncLockPair::NAME, AsyncLockPair::RULES),
        (TowerLimit::NAME, TowerLimit::RULES),
        (PlainMutex::NAME, PlainMutex::RULES),
    ];
    for (name, rules) in lacking {
        let _ = writeln!(text, "- {name}: without {}.", rules.missing().join(", "));
    }
    let mut last = "";
    for outcome in outcomes {
        if !outcome.note.is_empty() && outcome.note != last {
            let _ = writeln!(text, "- {}: {}.", outcome.name, outcome.note);
        }
        last = outcome.note;
    }
    text
}

fn markdown_rows(text: &mut String, outcome: &Outcome) {
    let judged = outcome.judged();
    let bars: Vec<_> = judged.iter().map(bar).collect();
    let column = |cells: Vec<String>| cells.join("<br>");
    let ratios = judged.iter().map(|j| {
        let of = j
            .against
            .as_ref()
            .map_or(String::new(), |name| format!(" × {name}"));
        if j.against.is_none() {
            return String::new();
        }
        let digits = if j.ratio < 0.1 { 4 } else { 2 };
        format!(
            "{:.digits$}{of} [{:.digits$}, {:.digits$}]",
            j.ratio, j.spread.0, j.spread.1
        )
    });
    let mut name = outcome.name.to_owned();
    let alone = outcome.without_both_cores();
    if alone > 0 {
        let _ = write!(name, " (**{alone} readings without both cores**)");
    }
    if outcome.discarded > 0 {
        let _ = write!(name, " ({} readings repeated)", outcome.discarded);
    }
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} | {} | {} |",
        figure(&outcome.ours, outcome.unit),
        column(
            outcome
                .peers
                .iter()
                .map(|peer| format!("{} {}", peer.name, figure(peer, outcome.unit)))
                .collect()
        ),
        column(ratios.collect()),
        column(bars),
        column(judged.iter().map(|j| verdict(j).to_owned()).collect()),
    );
}

fn bar(judged: &Judged) -> String {
    let times = if judged.against.is_some() { " ×" } else { "" };
    let at_most = judged.bar.at_most.map(|most| format!("≤ {most}{times}"));
    let stretch = judged.bar.stretch.map(|wish| format!("(try for {wish})"));
    [at_most, stretch]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn verdict(judged: &Judged) -> &'static str {
    let reached = judged.bar.stretch.is_some_and(|wish| judged.ratio <= wish);
    match judged.verdict {
        Verdict::Met if reached => "met, and more",
        Verdict::Met => "met",
        Verdict::Missed => "**missed**",
        Verdict::Unjudged if judged.bar.at_most.is_some() && judged.bar.judged => "too few rounds",
        Verdict::Unjudged if judged.bar.at_most.is_none() && reached => "reached",
        Verdict::Unjudged => "–",
    }
}

fn figure(series: &Series, kind: Unit) -> String {
    let (low, high) = series.spread();
    let median = series.median();
    let (scale, name) = match kind {
        Unit::Bytes => (1.0, "B"),
        Unit::Nanoseconds if median >= 1e6 => (1e6, "ms"),
        Unit::Nanoseconds if median >= 1e3 => (1e3, "µs"),
        Unit::Nanoseconds => (1.0, "ns"),
    };
    let digits = if kind == Unit::Bytes { 0 } else { 1 };
    format!(
        "{:.digits$} {name} [{:.digits$}, {:.digits$}]",
        median / scale,
        low / scale,
        high / scale
    )
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Bar, Noise};
    use crate::timing::Reading;

    #[test]
    fn each_bar_is_a_row_that_a_script_can_read() {
        let series = |name: &str, value| Series {
            name: name.into(),
            readings: vec![Reading::of(value)],
        };
        let outcome = Outcome {
            name: "row",
            unit: Unit::Nanoseconds,
            note: "as it is",
            ours: series("ours", 1.0),
            peers: vec![series("a", 2.0), series("b", 1.0)],
            bars: vec![Bar::times(0.6, 0), Bar::times(0.5, 1), Bar::wish(1.0, 1)],
            discarded: 3,
        };
        let machine = Machine {
            date: "today".into(),
            commit: "abc".into(),
            cpu: "a cpu".into(),
            cores: 2,
            kernel: "6".into(),
            virtual_machine: true,
            noise: Noise {
                load_before: 0.0,
                load_after: 0.0,
                steal_percent: 0.0,
                both_cores_percent: 100.0,
                seconds: 1.0,
            },
        };
        let told = json(&machine, &Plan::QUICK, std::slice::from_ref(&outcome));
        let rows = told["rows"].as_array().unwrap();
        let of = |name: &str| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("met"), [json!(true), json!(false), Value::Null]);
        assert_eq!(of("ratio"), [json!(0.5), json!(1.0), json!(1.0)]);
        assert_eq!(of("bar"), [json!(0.6), json!(0.5), Value::Null]);
        assert_eq!(told["machine"]["cores"], 2);
        let text = markdown(&machine, &Plan::QUICK, &[outcome]);
        assert!(text.contains("| met<br>**missed**<br>reached |"), "{text}");
    }
}
