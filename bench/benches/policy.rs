//! What the policy costs a request: the decision alone, and the whole way over the
//! desk. Without a policy none of this is on the path.

use std::time::Duration;

use criterion::Criterion;
use tidegate_bench::judged::{SIZE, judge, state};
use tidegate_policy::decision::Decision;
use tidegate_policy::desk::{Desk, Entry, Outcome};
use tidegate_policy::file;
use tidegate_policy::shadow::Mode;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let now = Duration::from_secs(3);
    let judged = judge();
    let gold = judged.settings().classes.choose(None, Some("gold"), "m");
    let profile = judged.profile("m", gold, 500, Some(200));
    assert_eq!(judged.decide(now, &profile, 0.0, 0), Decision::Admit);
    let mut group = criterion.benchmark_group("policy");
    group.bench_function("decide", |b| {
        b.iter(|| judged.decide(now, std::hint::black_box(&profile), 0.0, 0));
    });
    group.bench_function("profile and decide", |b| {
        b.iter(|| {
            let profile = judged.profile("m", gold, std::hint::black_box(500), Some(200));
            judged.decide(now, &profile, 0.0, 0)
        });
    });

    let settings = file::parse(file::DEFAULT).expect("the default file");
    let mut desk: Desk<()> = Desk::new(Duration::ZERO, settings, SIZE, Mode::Enforce);
    desk.observe(Duration::ZERO, &state());
    let mut moves = Vec::new();
    group.bench_function("over the desk: arrives, enters, first token, ends", |b| {
        b.iter(|| {
            let profile = desk.judge().profile("m", gold, 500, Some(200));
            let mut gate = |(): &()| Entry::In(());
            let held = desk.arrives(now, profile, (), &mut gate, &mut moves);
            assert!(held.is_none(), "there is room");
            let Some(((), Outcome::Enters((), mut inside))) = moves.pop() else {
                panic!("it enters");
            };
            desk.first_token(now, &mut inside);
            desk.ended(now, inside, Some(100));
        });
    });
    group.finish();
    criterion.final_summary();
}
