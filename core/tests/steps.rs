//! What each operation costs, in atomic steps: built with `--cfg tidegate_stall`,
//! run by `.ci/test stalled`. Prints the table.
#![cfg(tidegate_stall)]

mod common;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use common::*;
use tidegate::stall::{Kind, Step, hooked};
use tidegate::{Dispatch, Gate};

/// An operation's steps, by what they do and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    /// Loads of pointers that are written once: of ranks, shares, chunks.
    pointers: u32,
    loads: u32,
    cas: u32,
    /// Other read-modify-writes, and stores, of what other threads write too.
    writes: u32,
    fences: u32,
    /// Counts and leases in the thread's own stripe: a load and a store each.
    counted: u32,
    /// System calls.
    wakes: u32,
}

impl Cost {
    fn add(&mut self, step: &Step) {
        let file = step.at.file();
        if file.ends_with("counters.rs") || file.ends_with("holders.rs") {
            self.counted += u32::from(step.kind == Kind::Store);
            assert_ne!(step.kind, Kind::Rmw, "the stripe is this thread's own");
            return;
        }
        *match step.kind {
            Kind::Load if file.ends_with("publish.rs") => &mut self.pointers,
            Kind::Load => &mut self.loads,
            Kind::Cas => &mut self.cas,
            Kind::Store | Kind::Rmw => &mut self.writes,
            Kind::Fence => &mut self.fences,
            Kind::Wait | Kind::Wake => &mut self.wakes,
        } += 1;
    }
}

/// A row of the table, without its name.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} | {} | {} | {} | {} | {} | {}",
            self.pointers, self.loads, self.cas, self.writes, self.fences, self.counted, self.wakes
        )
    }
}

fn cost<T>(operation: impl FnOnce() -> T) -> (Cost, T) {
    let cost = Rc::new(RefCell::new(Cost::default()));
    let hook = Rc::clone(&cost);
    let result = hooked(move |step| hook.borrow_mut().add(&step), operation);
    (*cost.borrow(), result)
}

fn build(reported: bool, dispatch: Dispatch) -> Gate {
    let gate = Gate::builder()
        .settings(settings(2, 2, 2))
        .dispatch(dispatch)
        .build()
        .unwrap();
    if reported {
        gate.report_engine(report(0..2, None)).unwrap();
    }
    gate.settle();
    gate
}

struct Table(String);

impl Table {
    fn row(&mut self, name: &str, cost: Cost) {
        self.0 += &format!("| {name} | {cost} |\n");
    }
}

/// Admission, first token and release of one lane with nobody else about.
fn lifecycle(table: &mut Table, name: &str, gate: &Gate, rank: Option<u32>) -> [Cost; 4] {
    let (admit, permit) = cost(|| gate.try_admit(rank));
    let mut permit = permit.unwrap();
    let (token, ()) = cost(|| permit.first_token());
    let (release, ()) = cost(|| drop(permit));
    let early = gate.try_admit(rank).unwrap();
    let (early, ()) = cost(|| drop(early));
    let costs = [admit, token, release, early];
    let what = [
        "`try_admit`",
        "`first_token`",
        "drop",
        "drop before the first token",
    ];
    for (what, cost) in what.iter().zip(costs) {
        table.row(&format!("{what}, {name}"), cost);
    }
    costs
}

/// Queueing, a look at the ticket, cancelling; one lane, which is full.
fn queueing(table: &mut Table, name: &str, gate: &Gate, rank: Option<u32>) {
    let full: Vec<_> = std::iter::from_fn(|| gate.try_admit(rank).ok()).collect();
    drop(queue(gate, rank));
    gate.settle();
    let (request, ticket) = cost(|| gate.request(rank));
    let tidegate::Admission::Queued(mut ticket) = request_ok(ticket) else {
        panic!("the lane is full")
    };
    gate.settle();
    let (look, _) = cost(|| poll(&mut ticket).is_ready());
    let (cancel, ()) = cost(|| ticket.cancel());
    gate.settle();
    let mut ticket = queue(gate, rank);
    gate.settle();
    let (release, ()) = cost(|| drop(full));
    gate.settle();
    let (take, permit) = cost(|| poll(&mut ticket));
    assert!(permit.is_ready());
    table.row(&format!("`request` that queues, {name}"), request);
    table.row(&format!("poll of a queued ticket, {name}"), look);
    table.row(&format!("cancel of a queued ticket, {name}"), cancel);
    let two = format!("drop of two permits that rings for a turn, {name}");
    table.row(&two, release);
    table.row(&format!("poll that takes an offer up, {name}"), take);
}

fn request_ok<T>(result: Result<T, tidegate::Rejection>) -> T {
    result.expect("not refused")
}

fn refusals(table: &mut Table, name: &str, gate: &Gate, rank: Option<u32>) -> [Cost; 2] {
    let _full: Vec<_> = [Some(0), Some(1), None]
        .into_iter()
        .flat_map(|rank| std::iter::from_fn(move || gate.try_admit(rank).ok()))
        .collect();
    let _queued: Vec<_> = [Some(0), Some(1), None]
        .into_iter()
        .flat_map(|rank| std::iter::from_fn(move || gate.request(rank).ok()))
        .collect();
    gate.settle();
    let (entry, refused) = cost(|| gate.try_admit(rank).err());
    assert!(refused.is_some());
    let (queue, refused) = cost(|| gate.request(rank).err());
    assert!(refused.is_some());
    table.row(&format!("`try_admit`, refused, {name}"), entry);
    table.row(&format!("`request`, refused, {name}"), queue);
    [entry, queue]
}

#[test]
fn operations_cost_what_they_should() {
    let mut table = Table(String::new());
    // The thread's stripe is drawn at its first count.
    drop(build(false, Dispatch::Manual).try_admit(None));

    let gate = build(true, Dispatch::Manual);
    let [admit, token, release, early] = lifecycle(&mut table, "ranked", &gate, Some(0));
    let once = Cost::default();
    assert_eq!((admit.loads, admit.cas, admit.writes), (1, 1, 0));
    assert_eq!((admit.counted, admit.fences, admit.wakes), (1, 0, 0));
    for cost in [token, release, early] {
        let rmw = Cost { writes: 1, ..once };
        assert_eq!(
            Cost {
                pointers: 0,
                ..cost
            },
            rmw,
            "one read-modify-write"
        );
    }

    // A lease is one more count of its own, and one more when it goes.
    let (owned, permit) = cost(|| gate.try_admit_owned(Some(0)).unwrap());
    let counted = admit.counted + 1;
    assert_eq!(owned, Cost { counted, ..admit });
    let (gone, ()) = cost(|| drop(permit));
    let counted = release.counted + 1;
    assert_eq!(gone, Cost { counted, ..release });
    table.row("`try_admit_owned`, ranked", owned);
    table.row("drop of an owned permit, ranked", gone);

    let gate = build(false, Dispatch::Manual);
    let [admit, token, release, early] = lifecycle(&mut table, "unranked", &gate, None);
    assert_eq!((admit.loads, admit.cas, admit.writes), (1, 1, 0));
    for (cost, times) in [(token, 1), (release, 1), (early, 2)] {
        let put = Cost {
            loads: times,
            writes: times,
            ..once
        };
        assert_eq!(
            Cost {
                pointers: 0,
                ..cost
            },
            put,
            "a look and an addition for each token"
        );
    }

    let gate = build(true, Dispatch::Manual);
    let refused_ranked = refusals(&mut table, "ranked", &gate, Some(0));
    let gate = build(true, Dispatch::Manual);
    let refused = refusals(&mut table, "unranked, two ranks", &gate, None);
    for cost in refused_ranked.into_iter().chain(refused) {
        let shared = (cost.cas, cost.writes, cost.fences, cost.wakes);
        assert_eq!((shared, cost.counted), ((0, 0, 0, 0), 1), "only counts");
    }

    queueing(
        &mut table,
        "ranked",
        &build(true, Dispatch::Manual),
        Some(0),
    );
    queueing(
        &mut table,
        "unranked",
        &build(false, Dispatch::Manual),
        None,
    );
    println!(
        "| operation | pointers | loads | CAS | other writes | fences | own counter | wake-ups |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n{}",
        table.0
    );
}
