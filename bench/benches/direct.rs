//! Entering at once and leaving, on one thread: ours, every peer and the floor.

use criterion::{BenchmarkId, Criterion};
use tidegate_bench::ours::{Borrowed, Owned};
use tidegate_bench::peers::{AsyncLockPair, Floor, MutexGate, PlainMutex, TokioPair, TowerLimit};
use tidegate_bench::selfcheck;
use tidegate_bench::subject::Subject;
use tidegate_bench::work::lifecycles;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    row::<Floor>(&mut criterion);
    row::<Borrowed>(&mut criterion);
    row::<Owned>(&mut criterion);
    row::<MutexGate>(&mut criterion);
    row::<PlainMutex>(&mut criterion);
    row::<TokioPair>(&mut criterion);
    row::<AsyncLockPair>(&mut criterion);
    row::<TowerLimit>(&mut criterion);
    criterion.final_summary();
}

/// Admit, first token, release, once the row has shown what it claims.
fn row<S: Subject>(criterion: &mut Criterion) {
    selfcheck::check::<S>();
    let gate = S::build(8, 256, 256, 512);
    for (group, rank) in [("direct ranked", Some(3)), ("direct unranked", None)] {
        criterion.benchmark_group(group).bench_function(
            BenchmarkId::from_parameter(S::NAME),
            |b| {
                b.iter(|| lifecycles(&gate, rank, 1));
            },
        );
    }
}
