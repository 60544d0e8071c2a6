//! Being refused: by one rank, and by a whole worker with its queue.

use criterion::{BenchmarkId, Criterion};
use tidegate_bench::ours::Borrowed;
use tidegate_bench::peers::MutexGate;
use tidegate_bench::selfcheck;
use tidegate_bench::subject::Subject;
use tidegate_bench::work::{refusals, refused_requests};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    row::<Borrowed>(&mut criterion);
    row::<MutexGate>(&mut criterion);
    criterion.final_summary();
}

fn row<S: Subject>(criterion: &mut Criterion) {
    selfcheck::check::<S>();
    let gate = S::build(8, 1, 1, 1);
    let mut permits = vec![gate.try_admit(Some(3))];
    criterion
        .benchmark_group("refusal, full rank")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter(|| refusals(&gate, Some(3), 1));
        });
    permits.extend([0, 1, 2, 4, 5, 6, 7].map(|rank| gate.try_admit(Some(rank))));
    let tickets: Vec<_> = (0..8).map(|_| gate.request(None).queued()).collect();
    criterion
        .benchmark_group("refusal, full worker")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter(|| refused_requests(&gate, Some(3), 1));
        });
    drop((tickets, permits));
}
