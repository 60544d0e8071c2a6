//! The operations that are stopped, and what surrounds them.

use tidegate::{Admission, Gate, Permit, Ticket};

use super::{R, RANKS, Stage};
use crate::common::{enter, eventually, poll, queue};

pub type Scene = for<'g> fn(&'g Gate) -> Stage<'g>;

/// Scenes for every mode.
pub const CALLS: &[(&str, Scene)] = &[
    ("try_admit, ranked", |gate| {
        stage(|| gate.try_admit(Some(0)))
    }),
    ("try_admit, unranked", |gate| stage(|| gate.try_admit(None))),
    ("try_admit, tokens elsewhere", tokens_elsewhere),
    ("try_admit, refused by its rank", |gate| {
        let full = fill(gate, Some(0));
        stage(|| gate.try_admit(Some(0)).err()).with(full, [])
    }),
    ("try_admit, refused by the worker", |gate| {
        stage(|| gate.try_admit(None).err()).with(fill_all(gate), [])
    }),
    ("enter_if_room, unranked", |gate| {
        stage(|| gate.enter_if_room(None))
    }),
    ("request, ranked, queues", |gate| {
        let full = fill(gate, Some(0));
        request(gate, Some(0)).with(full, [])
    }),
    ("request, unranked, queues", |gate| {
        request(gate, None).with(fill_all(gate), [])
    }),
    ("request, queues behind another", |gate| {
        let full = fill(gate, Some(0));
        let first = queue(gate, Some(0));
        request(gate, Some(0)).with(full, [first])
    }),
    ("request, refused by its rank's queue", |gate| {
        let full = fill(gate, Some(0));
        let queued = [queue(gate, Some(0)), queue(gate, Some(0))];
        stage(|| gate.request(Some(0)).err()).with(full, queued)
    }),
    ("cancel, queued", |gate| {
        let full = fill(gate, Some(0));
        let ticket = queue(gate, Some(0));
        let behind = queue(gate, Some(0));
        stage(move || ticket.cancel()).with(full, [behind])
    }),
    ("cancel, unranked and queued", |gate| {
        let full = fill_all(gate);
        let ticket = queue(gate, None);
        let behind = queue(gate, Some(0));
        stage(move || ticket.cancel()).with(full, [behind])
    }),
    ("cancel, offered", |gate| {
        let (full, ticket) = offered(gate, Some(0));
        let behind = queue(gate, Some(0));
        stage(move || ticket.cancel()).with(full, [behind])
    }),
    ("cancel, unranked and offered", |gate| {
        let (full, ticket) = offered(gate, None);
        let behind = queue(gate, None);
        stage(move || ticket.cancel()).with(full, [behind])
    }),
    ("ticket, offer taken", |gate| {
        let (full, mut ticket) = offered(gate, Some(0));
        stage(move || poll(&mut ticket).map(drop)).with(full, [])
    }),
    ("ticket, not offered", |gate| {
        let full = fill(gate, Some(0));
        let mut ticket = queue(gate, Some(0));
        stage(move || {
            let answer = poll(&mut ticket).map(drop);
            (answer, ticket.cancel())
        })
        .with(full, [])
    }),
    ("first token, ranked", |gate| token(enter(gate, Some(0)))),
    ("first token, unranked", |gate| token(enter(gate, None))),
    ("first token, somebody waits for it", |gate| {
        let mut full = fill(gate, Some(0));
        let last = full.pop().unwrap();
        let ticket = queue(gate, Some(0));
        token(last).with(full, [ticket])
    }),
    ("drop, ranked and waiting", |gate| {
        let permit = enter(gate, Some(0));
        stage(move || drop(permit))
    }),
    ("drop, ranked", |gate| {
        let permit = streaming(enter(gate, Some(0)));
        stage(move || drop(permit))
    }),
    ("drop, unranked and waiting", |gate| {
        let permit = enter(gate, None);
        stage(move || drop(permit))
    }),
    ("drop, unranked", |gate| {
        let permit = streaming(enter(gate, None));
        stage(move || drop(permit))
    }),
    ("drop, its rank's queue waits", |gate| {
        let mut full = fill(gate, Some(0));
        let last = full.pop().unwrap();
        let ticket = queue(gate, Some(0));
        stage(move || drop(last)).with(full, [ticket])
    }),
    ("drop, ranked and unranked wait", |gate| {
        let mut full = fill_all(gate);
        let last = full.pop().unwrap();
        let tickets = [queue(gate, None), queue(gate, Some(0)), queue(gate, None)];
        stage(move || drop(last)).with(full, tickets)
    }),
    ("drop, unranked, two wait", |gate| {
        let unranked = enter(gate, None);
        let full = fill_all(gate);
        let tickets = [queue(gate, None), queue(gate, Some(0))];
        stage(move || drop(unranked)).with(full, tickets)
    }),
    ("drop, somebody listens for room", |gate| {
        let mut full = fill_all(gate);
        let last = full.pop().unwrap();
        let mut room = gate.room();
        assert!(poll(&mut room).is_pending());
        stage(move || drop(last)).with(full, [])
    }),
];

/// Turns, for gates without a dispatcher of their own.
pub const TURNS: &[(&str, Scene)] = &[
    ("turn, nobody is left", |gate| {
        let mut full = fill(gate, Some(0));
        let ticket = queue(gate, Some(0));
        drop(full.pop());
        ticket.cancel();
        stage(|| gate.settle()).with(full, [])
    }),
    ("turn, one of a rank's two fits", |gate| {
        let mut full = fill(gate, Some(0));
        let tickets = [queue(gate, Some(0)), queue(gate, Some(0))];
        drop(full.pop());
        stage(|| gate.settle()).with(full, tickets)
    }),
    ("turn, all lanes wait", |gate| {
        let full = fill_all(gate);
        let tickets = [
            queue(gate, None),
            queue(gate, Some(0)),
            queue(gate, Some(1)),
        ];
        gate.settle();
        let mut full = full;
        drop(full.split_off(2));
        stage(|| gate.settle()).with(full, tickets)
    }),
];

fn stage<'g, T: Send + 'g>(operation: impl FnOnce() -> T + Send + 'g) -> Stage<'g> {
    Stage {
        operation: Box::new(|| {
            let left = operation();
            Box::new(|| drop(left))
        }),
        permits: Vec::new(),
        tickets: Vec::new(),
    }
}

/// A request: if it queued, then everybody else goes, and it must be admitted
/// with no other event.
fn request(gate: &Gate, rank: Option<u32>) -> Stage<'_> {
    Stage {
        operation: Box::new(move || {
            let arrived = gate.request(rank);
            Box::new(move || {
                if let Ok(Admission::Queued(mut ticket)) = arrived {
                    eventually("one who queued is admitted", || {
                        gate.settle();
                        poll(&mut ticket).is_ready()
                    });
                }
            })
        }),
        permits: Vec::new(),
        tickets: Vec::new(),
    }
}

impl<'g> Stage<'g> {
    /// What the others hold.
    fn with(
        mut self,
        permits: Vec<Permit<'g>>,
        tickets: impl IntoIterator<Item = Ticket<'g>>,
    ) -> Self {
        self.permits = permits;
        self.tickets = tickets.into_iter().collect();
        self
    }
}

/// Everything that one lane can hold.
fn fill(gate: &Gate, rank: Option<u32>) -> Vec<Permit<'_>> {
    let mut permits = Vec::new();
    while let Ok(permit) = gate.try_admit(rank) {
        permits.push(permit);
    }
    permits
}

fn fill_all(gate: &Gate) -> Vec<Permit<'_>> {
    let ranks = (0..RANKS).map(Some);
    ranks.flat_map(|rank| fill(gate, rank)).collect()
}

fn streaming(mut permit: Permit<'_>) -> Permit<'_> {
    permit.first_token();
    permit
}

fn token(mut permit: Permit<'_>) -> Stage<'_> {
    stage(move || {
        permit.first_token();
        permit
    })
}

/// Rank 0 has room and no tokens, which lie free at rank 1.
fn tokens_elsewhere(gate: &Gate) -> Stage<'_> {
    let rank_1 = fill(gate, Some(1));
    let unranked: Vec<_> = (0..R).map(|_| enter(gate, None)).collect();
    drop(rank_1);
    stage(|| gate.try_admit(Some(0))).with(unranked, [])
}

/// A request of this lane that was offered capacity, with everything else taken.
fn offered(gate: &Gate, rank: Option<u32>) -> (Vec<Permit<'_>>, Ticket<'_>) {
    let mut full = fill_all(gate);
    let Ok(Admission::Queued(ticket)) = gate.request(rank) else {
        panic!("everything is taken")
    };
    // The first one is of rank 0.
    drop(full.remove(0));
    gate.settle();
    (full, ticket)
}
