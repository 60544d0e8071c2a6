//! A row must be a gate before it is timed: one that forgets a rule is faster.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::subject::Subject;

/// Puts a row through the rules that cost something to keep.
///
/// # Panics
/// It breaks one.
pub fn check<S: Subject>() {
    bounds_are_exact::<S>();
    ranks_have_limits_of_their_own::<S>();
    order_is_first_in_first_out::<S>();
    first_tokens_let_the_next_in::<S>();
    cancelled_offers_pass_on::<S>();
    parked_threads_are_woken::<S>();
}

fn bounds_are_exact<S: Subject>() {
    let gate = S::build(1, 2, 1, 1);
    let mut first = gate.try_admit(Some(0)).expect("room");
    assert!(gate.try_admit(Some(0)).is_none(), "W = 1");
    S::first_token(&mut first);
    let second = gate.try_admit(None).expect("room");
    assert!(gate.try_admit(None).is_none(), "R = 2");
    let ticket = gate.request(Some(0)).queued();
    assert!(!matches!(
        gate.request(None),
        crate::subject::Arrival::Queued(_)
    ));
    assert_eq!(gate.held(), (2, 1, 1), "{}", S::NAME);
    drop((ticket, first, second));
    assert_eq!(gate.held(), (0, 0, 0), "{}", S::NAME);
}

fn ranks_have_limits_of_their_own<S: Subject>() {
    let gate = S::build(2, 1, 1, 0);
    let first = gate.try_admit(Some(0)).expect("room");
    assert!(gate.try_admit(Some(0)).is_none(), "rank 0 is full");
    let second = gate.try_admit(None).expect("the worker is not");
    assert!(gate.try_admit(Some(1)).is_none(), "now it is");
    drop((first, second));
    assert_eq!(gate.held(), (0, 0, 0), "{}", S::NAME);
}

fn order_is_first_in_first_out<S: Subject>() {
    let gate = S::build(1, 1, 1, 2);
    let holder = gate.try_admit(None).expect("room");
    let older = gate.request(None).queued();
    let mut younger = gate.request(None).queued();
    drop(holder);
    assert!(gate.try_admit(None).is_none(), "nobody passes the queue");
    let older = ready(&gate, older);
    assert!(poll(&mut younger).is_pending());
    drop(older);
    drop(ready(&gate, younger));
    assert_eq!(gate.held(), (0, 0, 0), "{}", S::NAME);
}

fn first_tokens_let_the_next_in<S: Subject>() {
    let gate = S::build(1, 2, 1, 1);
    let mut holder = gate.try_admit(None).expect("room");
    let ticket = gate.request(None).queued();
    S::first_token(&mut holder);
    drop(ready(&gate, ticket));
    drop(holder);
    assert_eq!(gate.held(), (0, 0, 0), "{}", S::NAME);
}

fn cancelled_offers_pass_on<S: Subject>() {
    let gate = S::build(1, 1, 1, 2);
    let holder = gate.try_admit(None).expect("room");
    let leaves = gate.request(None).queued();
    let stays = gate.request(None).queued();
    drop(holder);
    assert_eq!(gate.held(), (1, 1, 1), "offered is running");
    drop(leaves);
    drop(ready(&gate, stays));
    assert_eq!(gate.held(), (0, 0, 0), "{}", S::NAME);
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
    assert_eq!(gate.held(), (0, 0, 0), "{}", S::NAME);
}

/// The permit of a ticket whose turn has come.
fn ready<'g, S: Subject>(gate: &'g S, mut ticket: S::Ticket<'g>) -> S::Permit<'g> {
    // Reading at rest lets a pending turn end.
    gate.held();
    match poll(&mut ticket) {
        Poll::Ready(permit) => permit,
        Poll::Pending => panic!("{}: its turn has not come", S::NAME),
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::peers::MutexGate;
    use crate::subject::{Borrowed, Owned};

    #[test]
    fn the_borrowed_row_is_a_gate() {
        check::<Borrowed>();
    }

    #[test]
    fn the_owned_row_is_a_gate() {
        check::<Owned>();
    }

    #[test]
    fn the_mutex_row_is_a_gate() {
        check::<MutexGate>();
    }
}
