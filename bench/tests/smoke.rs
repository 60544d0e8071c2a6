//! Everything that the programs measure, once and short, so that none rots.

use std::time::Duration;

use indicatif::ProgressBar;
use tidegate_bench::latency::{self, Shape};
use tidegate_bench::ours::Borrowed;
use tidegate_bench::peers::MutexGate;
use tidegate_bench::score::{self, Machine, Plan};
use tidegate_bench::storm;

#[test]
fn every_row_can_be_measured_and_told() {
    let plan = Plan {
        rounds: 1,
        span: Duration::from_millis(1),
        hops: 3,
        long_rounds: 1,
        repeats: 0,
    };
    let watch = Machine::watch();
    let outcomes: Vec<_> = score::all()
        .into_iter()
        .map(|make| score::run(make(), &plan, &ProgressBar::hidden()))
        .collect();
    let machine = watch.end();
    let told = score::json(&machine, &plan, &outcomes);
    let rows = told["rows"].as_array().expect("an array");
    assert!(rows.len() > outcomes.len(), "a row for each bar");
    for row in rows {
        for field in ["name", "ours", "peers", "ratio", "bar", "met"] {
            assert!(row.get(field).is_some(), "{field} in {row}");
        }
        assert!(
            row["ours"]["median"].as_f64().is_some_and(f64::is_finite),
            "{row}"
        );
    }
    let table = score::markdown(&machine, &plan, &outcomes);
    assert!(outcomes.iter().all(|outcome| table.contains(outcome.name)));
}

#[test]
fn schedules_are_kept_by_threads_and_tasks() {
    let shape = Shape {
        callers: 8,
        load: 2.0,
        span: Duration::from_millis(50),
        service: Duration::from_millis(1),
        seed: 1,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("threads can be started");
    let told = [
        latency::threads::<Borrowed>(&shape),
        latency::threads::<MutexGate>(&shape),
        latency::tasks::<Borrowed>(&runtime, &shape),
        latency::tasks::<MutexGate>(&runtime, &shape),
    ];
    // The same schedule for each kind of caller, whatever became of its requests.
    assert_eq!(told[0].requests(), told[1].requests());
    assert_eq!(told[2].requests(), told[3].requests());
    for tally in told {
        assert!(!tally.admitted.is_empty());
        let quantiles = latency::quantiles(&tally.admitted);
        assert!(quantiles.is_sorted(), "{quantiles:?}");
    }
}

#[test]
fn bystanders_see_every_storm() {
    for storm in [
        storm::calm::<Borrowed>,
        storm::all_leave::<Borrowed>,
        storm::limits_move::<Borrowed>,
        storm::burst::<Borrowed>,
        storm::preempted::<Borrowed>,
        storm::preempted::<MutexGate>,
    ] {
        let seen = storm().expect("it can be in it");
        assert!(!seen.lifecycles.is_empty());
    }
}
