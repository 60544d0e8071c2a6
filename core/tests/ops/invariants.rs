//! What holds at rest, whatever happened: read off the counts alone.

use tidegate::{Lane, Limit, Overload, Scope, Snapshot};

/// Checks a reading against the rules, and against the one of a step before.
pub fn check(now: &Snapshot, before: &Snapshot) {
    conserved(now);
    totalled(now);
    bounded(now, before);
    work_conserving(now);
}

/// Rule 10: every request received is accounted for.
fn conserved(now: &Snapshot) {
    for lane in &now.lanes {
        assert_eq!(
            lane.received,
            lane.admitted_direct
                + lane.admitted_queue
                + lane.rejected_rank
                + lane.rejected_worker
                + lane.cancelled
                + lane.queued
                + lane.offered,
            "{lane:?}"
        );
        assert!(lane.waiting <= lane.running, "{lane:?}");
        assert!(lane.offered <= lane.waiting, "{lane:?}");
    }
}

/// The worker holds what its lanes hold.
fn totalled(now: &Snapshot) {
    assert_eq!(now.worker.running, now.total(|lane| lane.running));
    assert_eq!(now.worker.waiting, now.total(|lane| lane.waiting));
    assert_eq!(now.worker.queued, now.total(|lane| lane.queued));
}

/// Rule 9: no count is over its limit, but for one that a shrunk limit left
/// there, and that one does not grow.
fn bounded(now: &Snapshot, before: &Snapshot) {
    let per_rank = limits(now);
    let whole = per_rank.map(|limit| limit * now.ranks());
    let counts = |c: tidegate::Counts| [c.running, c.waiting, c.queued];
    let within = |place: &str, now: [u64; 3], before: [u64; 3], limits: [u64; 3]| {
        for i in 0..3 {
            assert!(
                now[i] <= limits[i].max(before[i]),
                "{place}: {before:?} became {now:?} under {limits:?}"
            );
        }
    };
    within("worker", counts(now.worker), counts(before.worker), whole);
    for lane in &now.lanes {
        if let Lane::Rank(id) = lane.lane {
            let older = before
                .lane(lane.lane)
                .map_or([0; 3], |l| counts(l.counts()));
            within(
                &format!("rank {id}"),
                counts(lane.counts()),
                older,
                per_rank,
            );
        }
    }
}

/// Rule 4: no queued request fits.
fn work_conserving(now: &Snapshot) {
    let [r, w, _] = limits(now);
    let n = now.ranks();
    let worker_has_room = now.worker.running < n * r && now.worker.waiting < n * w;
    for lane in &now.lanes {
        let own_room = lane.lane == Lane::Unspecified || (lane.running < r && lane.waiting < w);
        assert!(
            lane.queued == 0 || !(worker_has_room && own_room),
            "a queued request fits: {lane:?} in {now:?}"
        );
    }
}

/// Rule 8, as it reads at rest, and that the limit named is really reached.
pub fn check_refusal(refusal: &Overload, ranked: bool, at: &Snapshot) {
    let [r, w, q] = limits(at).map(|limit| limit * at.ranks());
    let nobody = at.worker.queued >= q && (at.worker.running >= r || at.worker.waiting >= w);
    assert_eq!(
        refusal.scope == Scope::Worker,
        !ranked || nobody,
        "{refusal:?} at {at:?}"
    );
    let used = match refusal.limit {
        Limit::EngineRequest => refusal.counts.running,
        Limit::EngineRequestWaiting => refusal.counts.waiting,
        Limit::RequestQueue => refusal.counts.queued,
    };
    assert!(used >= refusal.value, "{refusal:?}");
    let place = if refusal.of_worker {
        at.worker
    } else {
        at.lane(refusal.lane).expect("a lane").counts()
    };
    assert_eq!(refusal.counts, place);
}

fn limits(at: &Snapshot) -> [u64; 3] {
    [
        at.limits.engine_request_limit,
        at.limits.engine_request_waiting_limit,
        at.limits.request_queue_limit,
    ]
    .map(u64::from)
}
