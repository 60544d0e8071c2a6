//! The turn's lists: for each lane its queued requests, oldest first.
//!
//! A list's entry names a slot and the age of the request that was there. Who
//! leaves does not touch the lists; an entry whose slot has another age or
//! state is stale, and goes when the turn meets it or needs its room. There are
//! two entries a slot, so a sweep finds at least half of them stale: the lists
//! take bounded memory whatever leaves, and the turn never allocates.

use crate::chunks::{Entry, Slots};

/// No entry.
const NIL: u32 = u32::MAX;

/// A lane's list.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

/// The lists, and the entries that none of them uses. The turn's alone.
#[derive(Debug)]
pub(crate) struct Lists {
    lanes: Vec<List>,
    free: u32,
    /// How many chunks' entries are in use.
    known: usize,
}

impl Lists {
    pub(crate) fn new(lanes: usize) -> Self {
        Lists {
            lanes: vec![
                List {
                    head: NIL,
                    tail: NIL
                };
                lanes
            ],
            free: NIL,
            known: 0,
        }
    }

    /// The same lists in one with more lanes. The old one comes back, to be
    /// dropped outside the turn.
    pub(crate) fn widen(&mut self, mut wider: Lists) -> Lists {
        wider.lanes[..self.lanes.len()].copy_from_slice(&self.lanes);
        wider.free = self.free;
        wider.known = self.known;
        std::mem::replace(self, wider)
    }

    /// Whether the lane has no entry. (Before the report there is no rank's lane.)
    pub(crate) fn is_empty(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_none_or(|list| list.head == NIL)
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Age and slot of the lane's oldest request that still waits.
    pub(crate) fn head(&mut self, slots: &Slots, lane: usize) -> Option<(u64, u32)> {
        while self.lanes[lane].head != NIL {
            let entry = get(slots, self.lanes[lane].head);
            if slots.is_waiting(entry.slot, entry.age) {
                return Some((entry.age, entry.slot));
            }
            self.pop(slots, lane);
        }
        None
    }

    /// Takes the lane's first entry out.
    pub(crate) fn pop(&mut self, slots: &Slots, lane: usize) {
        let id = self.lanes[lane].head;
        self.lanes[lane].head = get(slots, id).next;
        if self.lanes[lane].head == NIL {
            self.lanes[lane].tail = NIL;
        }
        set(slots, id, |entry| entry.next = self.free);
        self.free = id;
    }

    /// Lists everyone who arrived since the last time.
    pub(crate) fn take_in(&mut self, slots: &Slots) {
        let mut chain = NIL;
        let mut count = 0;
        slots.drain_fresh(|slot, age, lane| {
            let id = self.unused(slots);
            set(slots, id, |entry| {
                *entry = Entry {
                    age,
                    slot,
                    lane,
                    next: chain,
                }
            });
            chain = id;
            count += 1;
        });
        let mut next = sort(slots, chain, count).0;
        while next != NIL {
            let id = next;
            next = get(slots, id).next;
            self.insert(slots, id);
        }
    }

    /// Lists one entry by its age: nearly always last.
    fn insert(&mut self, slots: &Slots, id: u32) {
        let Entry { age, lane, .. } = get(slots, id);
        let List { head, tail } = self.lanes[lane as usize];
        let list = &mut self.lanes[lane as usize];
        if head == NIL || get(slots, tail).age < age {
            set(slots, id, |entry| entry.next = NIL);
            match tail {
                NIL => list.head = id,
                tail => set(slots, tail, |entry| entry.next = id),
            }
            list.tail = id;
            return;
        }
        // Older than its mark: it was slow between the two, or was seen through
        // the mark of its slot's last occupant and is marked once more.
        if get(slots, head).age > age {
            set(slots, id, |entry| entry.next = head);
            list.head = id;
            return;
        }
        let mut before = head;
        loop {
            let Entry {
                age: older, next, ..
            } = get(slots, before);
            if older == age {
                set(slots, id, |entry| entry.next = self.free);
                self.free = id;
                return;
            }
            if next != NIL && get(slots, next).age <= age {
                before = next;
                continue;
            }
            set(slots, id, |entry| entry.next = next);
            set(slots, before, |entry| entry.next = id);
            return;
        }
    }

    /// An unused entry, from a new chunk or a sweep if need be.
    fn unused(&mut self, slots: &Slots) -> u32 {
        if self.free == NIL {
            for (known, ids) in slots.entries_from(self.known) {
                self.known = known;
                for id in ids.rev() {
                    set(slots, id, |entry| entry.next = self.free);
                    self.free = id;
                }
            }
        }
        if self.free == NIL {
            self.sweep(slots);
        }
        let id = self.free;
        self.free = get(slots, id).next;
        id
    }

    /// Takes every stale entry out of every list.
    fn sweep(&mut self, slots: &Slots) {
        for lane in 0..self.lanes.len() {
            let mut rest = self.lanes[lane].head;
            self.lanes[lane] = List {
                head: NIL,
                tail: NIL,
            };
            while rest != NIL {
                let id = rest;
                let Entry {
                    age, slot, next, ..
                } = get(slots, id);
                rest = next;
                if slots.is_waiting(slot, age) {
                    let List { head, tail } = self.lanes[lane];
                    set(slots, id, |entry| entry.next = NIL);
                    if tail != NIL {
                        set(slots, tail, |entry| entry.next = id);
                    }
                    self.lanes[lane] = List {
                        head: if head == NIL { id } else { head },
                        tail: id,
                    };
                } else {
                    set(slots, id, |entry| entry.next = self.free);
                    self.free = id;
                }
            }
        }
    }
}

/// Merge sort of a chain by age: its new first, and what follows its `count`.
fn sort(slots: &Slots, chain: u32, count: u32) -> (u32, u32) {
    match count {
        0 => (NIL, chain),
        1 => {
            let rest = get(slots, chain).next;
            set(slots, chain, |entry| entry.next = NIL);
            (chain, rest)
        }
        _ => {
            let (left, rest) = sort(slots, chain, count / 2);
            let (right, rest) = sort(slots, rest, count - count / 2);
            (merge(slots, left, right), rest)
        }
    }
}

fn merge(slots: &Slots, mut left: u32, mut right: u32) -> u32 {
    let (mut first, mut last) = (NIL, NIL);
    while left != NIL || right != NIL {
        let from_left =
            right == NIL || (left != NIL && get(slots, left).age < get(slots, right).age);
        let from = if from_left { &mut left } else { &mut right };
        let id = *from;
        *from = get(slots, id).next;
        match last {
            NIL => first = id,
            last => set(slots, last, |entry| entry.next = id),
        }
        last = id;
    }
    first
}

fn get(slots: &Slots, id: u32) -> Entry {
    // SAFETY: `Lists` is the turn's alone, and so is this call; one entry.
    unsafe { slots.entry(id, |entry| *entry) }
}

fn set(slots: &Slots, id: u32, f: impl FnOnce(&mut Entry)) {
    // SAFETY: `Lists` is the turn's alone, and so is this call; one entry.
    unsafe { slots.entry(id, f) }
}
