//! Newcomers between a release and the turn that hands its capacity on: nobody
//! runs a turn here but `settle`.

mod common;

use common::*;
use tidegate::{Dispatch, Gate, Limit};

fn manual(r: u32, w: u32, q: u32, ranks: u32) -> Gate {
    let builder = Gate::builder().dispatch(Dispatch::Manual);
    let gate = builder.settings(settings(r, w, q)).build().unwrap();
    gate.report_engine(report(0..ranks, None)).unwrap();
    gate.settle();
    gate
}

#[test]
fn nobody_passes_the_queue_of_its_own_lane() {
    let gate = manual(2, 2, 1, 2);
    let full = [enter(&gate, Some(0)), enter(&gate, Some(0))];
    let ticket = queue(&gate, Some(0));
    gate.settle();
    drop(full);
    let refusal = gate.try_admit(Some(0)).unwrap_err();
    drop(enter(&gate, Some(1)));
    assert!(refusal.to_string().starts_with("Server overloaded"));
    drop(take(&gate, ticket));
    drop(enter(&gate, Some(0)));
    idle_check(&gate);
}

#[test]
fn a_newcomer_leaves_what_those_who_wait_for_the_worker_need() {
    let gate = manual(1, 1, 1, 2);
    let (first, second) = (enter(&gate, Some(0)), enter(&gate, Some(1)));
    let ticket = queue(&gate, None);
    gate.settle();
    drop(first);
    for rank in [Some(0), Some(1), None] {
        assert!(gate.try_admit(rank).is_err(), "{rank:?} passed the older");
    }
    drop(second);
    let newcomer = gate.try_admit(Some(1)).expect("there is enough for both");
    assert!(gate.try_admit(Some(0)).is_err(), "this is the older one's");
    drop((take(&gate, ticket), newcomer));
    idle_check(&gate);
}

#[test]
fn a_newcomer_leaves_what_came_back_to_a_rank_that_is_waited_for() {
    let gate = manual(1, 1, 1, 2);
    let (first, second) = (enter(&gate, Some(0)), enter(&gate, Some(1)));
    let ticket = queue(&gate, Some(0));
    gate.settle();
    drop(first);
    for rank in [None, Some(0), Some(1)] {
        assert!(gate.try_admit(rank).is_err(), "{rank:?} passed the older");
    }
    drop((take(&gate, ticket), second));
    idle_check(&gate);
}

#[test]
fn of_a_blocked_ranks_tokens_others_have_what_its_queue_cannot_use() {
    let gate = manual(2, 2, 1, 2);
    let full = [enter(&gate, Some(0)), enter(&gate, Some(0))];
    let _ticket = queue(&gate, Some(0));
    gate.settle();
    let others = [enter(&gate, None), enter(&gate, Some(1))];
    assert!(gate.try_admit(None).is_err());
    drop((others, full));
}

#[test]
fn flags_without_anybody_behind_them_shut_nobody_out() {
    let gate = manual(1, 1, 2, 2);
    let full = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let tickets = [queue(&gate, None), queue(&gate, Some(0))];
    gate.settle();
    tickets.into_iter().for_each(|ticket| ticket.cancel());
    drop(full);
    let all = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    assert!(gate.try_admit(None).is_err());
    drop(all);
    idle_check(&gate);
}

#[test]
fn nobody_enters_on_tokens_that_another_share_is_owed() {
    let gate = manual(2, 2, 1, 2);
    let of_rank = |rank| [enter(&gate, rank), enter(&gate, rank)];
    let (kept, going) = (of_rank(Some(0)), of_rank(Some(1)));
    gate.set_limits(settings(1, 1, 1)).unwrap();
    drop(going);
    // Two run, and two may.
    let refusal = gate.try_admit(Some(1)).unwrap_err();
    let tidegate::Rejection::Overloaded(overload) = refusal else {
        panic!("{refusal}")
    };
    assert_eq!(overload.limit, Limit::EngineRequest);
    assert!(gate.try_admit(None).is_err());
    assert_eq!(held(&gate), (2, 2, 0));
    drop(kept);
    gate.settle();
    drop([enter(&gate, Some(0)), enter(&gate, Some(1))]);
    idle_check(&gate);
}
