//! A row must be a gate before it is timed: one that forgets a rule is faster.
//!
//! A peer that says it keeps a rule is held to it; the rules that it does not
//! claim are told beside its figures.

use std::task::Poll;
use std::thread;

use crate::subject::{Arrival, Subject, poll_once};

/// Puts a row through the rules that it claims.
///
/// # Panics
/// It breaks one.
pub fn check<S: Subject>() {
    lifecycles_leave_nothing::<S>();
    let rules = S::RULES;
    if rules.running {
        the_running_limit_holds::<S>();
    }
    if rules.waiting && rules.queue {
        bounds_are_exact::<S>();
        first_tokens_let_the_next_in::<S>();
    }
    if rules.ranks {
        ranks_have_limits_of_their_own::<S>();
    }
    if rules.queue {
        cancelled_offers_pass_on::<S>();
        parked_threads_are_woken::<S>();
    }
    if rules.order {
        order_is_first_in_first_out::<S>();
    }
}

fn holds<S: Subject>(gate: &S, expected: (u64, u64, u64)) {
    if let Some(held) = gate.held() {
        assert_eq!(held, expected, "{}", S::NAME);
    }
}

fn lifecycles_leave_nothing<S: Subject>() {
    for ranks in [0, 1, 8] {
        let gate = S::build(ranks, 2, 2, 0);
        for rank in [None, Some(0), Some(ranks.saturating_sub(1))] {
            let mut permit = gate.try_admit(rank).expect("room");
            S::first_token(&mut permit);
        }
        holds(&gate, (0, 0, 0));
    }
}

fn the_running_limit_holds<S: Subject>() {
    let gate = S::build(1, 2, 2, 0);
    let permits = [gate.try_admit(None), gate.try_admit(None)];
    assert!(permits.iter().all(Option::is_some), "{}: R = 2", S::NAME);
    assert!(gate.try_admit(None).is_none(), "{}: R = 2", S::NAME);
    assert!(
        matches!(gate.request(None), Arrival::Refused),
        "{}: Q = 0",
        S::NAME
    );
    drop(permits);
    drop(gate.try_admit(None).expect("room again"));
    holds(&gate, (0, 0, 0));
}

fn bounds_are_exact<S: Subject>() {
    let gate = S::build(1, 2, 1, 1);
    let mut first = gate.try_admit(Some(0)).expect("room");
    assert!(gate.try_admit(Some(0)).is_none(), "{}: W = 1", S::NAME);
    S::first_token(&mut first);
    let second = gate.try_admit(None).expect("room");
    assert!(gate.try_admit(None).is_none(), "{}: R = 2", S::NAME);
    let ticket = gate.request(Some(0)).queued();
    assert!(
        matches!(gate.request(None), Arrival::Refused),
        "{}: Q = 1",
        S::NAME
    );
    holds(&gate, (2, 1, 1));
    drop((ticket, first, second));
    holds(&gate, (0, 0, 0));
}

fn ranks_have_limits_of_their_own<S: Subject>() {
    let gate = S::build(2, 1, 1, 0);
    let first = gate.try_admit(Some(0)).expect("room");
    assert!(gate.try_admit(Some(0)).is_none(), "rank 0 is full");
    let second = gate.try_admit(None).expect("the worker is not");
    assert!(gate.try_admit(Some(1)).is_none(), "now it is");
    drop((first, second));
    holds(&gate, (0, 0, 0));
}

fn order_is_first_in_first_out<S: Subject>() {
    let gate = S::build(1, 1, 1, 2);
    let holder = gate.try_admit(None).expect("room");
    let older = gate.request(None).queued();
    let mut younger = gate.request(None).queued();
    drop(holder);
    assert!(gate.try_admit(None).is_none(), "nobody passes the queue");
    let older = ready(&gate, older);
    assert!(poll_once(&mut younger).is_pending());
    drop(older);
    drop(ready(&gate, younger));
    holds(&gate, (0, 0, 0));
}

fn first_tokens_let_the_next_in<S: Subject>() {
    let gate = S::build(1, 2, 1, 1);
    let mut holder = gate.try_admit(None).expect("room");
    let ticket = gate.request(None).queued();
    S::first_token(&mut holder);
    drop(ready(&gate, ticket));
    drop(holder);
    holds(&gate, (0, 0, 0));
}

fn cancelled_offers_pass_on<S: Subject>() {
    let gate = S::build(1, 1, 1, 2);
    let holder = gate.try_admit(None).expect("room");
    let leaves = gate.request(None).queued();
    let stays = gate.request(None).queued();
    drop(holder);
    if S::RULES.offers {
        // Offered is running.
        holds(&gate, (1, 1, 1));
    }
    drop(leaves);
    drop(ready(&gate, stays));
    holds(&gate, (0, 0, 0));
}

fn parked_threads_are_woken<S: Subject>() {
    let gate = S::build(1, 1, 1, 4);
    let holder = gate.try_admit(None).expect("room");
    thread::scope(|scope| {
        for _ in 0..4 {
            let ticket = gate.request(None).queued();
            scope.spawn(move || drop(S::wait(ticket)));
        }
        drop(holder);
    });
    holds(&gate, (0, 0, 0));
}

/// The permit of a ticket whose turn has come.
fn ready<'g, S: Subject>(gate: &'g S, mut ticket: S::Ticket<'g>) -> S::Permit<'g> {
    // Reading at rest lets a pending turn end.
    gate.held();
    match poll_once(&mut ticket) {
        Poll::Ready(permit) => permit,
        Poll::Pending => panic!("{}: its turn has not come", S::NAME),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::ours::{Borrowed, Counting, Dispatched, Owned, OwnedDispatched};
    use crate::peers::{AsyncLockPair, Floor, MutexGate, PlainMutex, TokioPair, TowerLimit};
    use crate::subject::{Rules, Subject};

    #[test]
    fn our_rows_are_gates() {
        check::<Borrowed>();
        check::<Owned>();
        check::<Counting>();
        check::<Dispatched>();
        check::<OwnedDispatched>();
        assert_eq!(Borrowed::RULES, Rules::ALL);
    }

    #[test]
    fn the_mutex_row_is_a_gate() {
        check::<MutexGate>();
        assert_eq!(MutexGate::RULES, Rules::ALL);
        check::<PlainMutex>();
    }

    #[test]
    fn the_semaphores_keep_what_they_claim() {
        check::<TokioPair>();
        check::<AsyncLockPair>();
    }

    #[test]
    fn the_tower_stack_keeps_what_it_claims() {
        check::<TowerLimit>();
    }

    #[test]
    fn the_floor_comes_back_to_nothing() {
        check::<Floor>();
    }
}
