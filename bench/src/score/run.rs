//! Measuring a row: rounds in which every contender has its turn.

use indicatif::ProgressBar;

use crate::timing::{Cores, Reading};

use super::{Contender, Outcome, Plan, Row, Series};

/// Takes all readings of a row: A B C, then C B A, and so on, so that what
/// drifts does not drift into one contender's figures. The first round of each
/// is a warm-up and not kept.
///
/// A two-thread reading without both cores is thrown away and repeated, as
/// often as the plan says; the last one then stands, marked, and is not judged.
pub fn run(row: Row, plan: &Plan, progress: &ProgressBar) -> Outcome {
    let rounds = if row.long {
        plan.long_rounds
    } else {
        plan.rounds
    };
    let mut contenders = vec![row.ours];
    contenders.extend(row.peers);
    let mut series: Vec<_> = contenders
        .iter()
        .map(|contender| Series {
            name: contender.name.clone(),
            readings: Vec::new(),
        })
        .collect();
    let mut discarded = 0;
    if !row.long {
        for contender in &mut contenders {
            (contender.measure)(plan);
        }
    }
    for round in 0..rounds {
        let forth = 0..contenders.len();
        let order: Vec<_> = if round % 2 == 0 {
            forth.collect()
        } else {
            forth.rev().collect()
        };
        for index in order {
            let reading = read(&mut contenders[index], plan, &mut discarded);
            series[index].readings.push(reading);
        }
        progress.set_message(format!("{} ({}/{rounds})", row.name, round + 1));
        progress.tick();
    }
    progress.inc(1);
    let peers = series.split_off(1);
    Outcome {
        name: row.name,
        unit: row.unit,
        note: row.note,
        ours: series.remove(0),
        peers,
        bars: row.bars,
        discarded,
    }
}

fn read(contender: &mut Contender, plan: &Plan, discarded: &mut usize) -> Reading {
    for _ in 0..plan.repeats {
        let reading = (contender.measure)(plan);
        if reading.cores != Cores::One {
            return reading;
        }
        *discarded += 1;
    }
    (contender.measure)(plan)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::score::{Bar, Unit};

    #[test]
    fn rounds_without_both_cores_are_repeated_and_counted() {
        let calls = Rc::new(Cell::new(0));
        let seen = Rc::clone(&calls);
        let ours = Contender::new("ours", move |_| {
            seen.set(seen.get() + 1);
            Reading {
                value: 1.0,
                cores: [Cores::Both, Cores::One][seen.get() % 2],
            }
        });
        let row = Row {
            name: "row",
            unit: Unit::Nanoseconds,
            long: true,
            ours,
            peers: vec![],
            bars: vec![Bar::absolute(1.0)],
            note: "",
        };
        let outcome = run(row, &Plan::QUICK, &ProgressBar::hidden());
        assert_eq!(outcome.ours.readings.len(), Plan::QUICK.long_rounds);
        assert_eq!(outcome.discarded, Plan::QUICK.long_rounds);
        assert_eq!(outcome.without_both_cores(), 0);
        assert_eq!(calls.get(), 2 * Plan::QUICK.long_rounds);
    }
}
