//! The requests that are held: one queue for each class, in order of arrival.
//!
//! All are in one slab, each linked to its neighbours, so that one that leaves
//! from the middle does so in constant time and nothing stays behind.

use std::time::Duration;

use slab::Slab;

use crate::class::ClassId;
use crate::kept::Room;
use crate::profile::Profile;

/// A held request.
#[derive(Debug)]
pub(super) struct Held<T> {
    /// Whoever waits for it.
    pub who: T,
    pub profile: Profile,
    pub arrived: Duration,
    /// Requests that had to go before it when it arrived.
    pub concurrency: u64,
    /// Its class has been charged for it: it was let in before, and came back.
    pub paid: bool,
}

impl<T> Held<T> {
    pub(super) fn waited_ms(&self, now: Duration) -> f64 {
        now.saturating_sub(self.arrived).as_secs_f64() * 1e3
    }
}

/// Where a request is held. Good for that request alone, and for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    key: usize,
    number: u64,
}

/// The queues of all classes.
#[derive(Debug)]
pub(super) struct Queues<T> {
    nodes: Slab<Node<T>>,
    classes: Vec<Queue>,
    next_number: u64,
}

#[derive(Debug)]
struct Node<T> {
    held: Held<T>,
    number: u64,
    /// How many of its class had been held before it.
    in_class: u64,
    before: Option<usize>,
    after: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    front: Option<usize>,
    back: Option<usize>,
    len: u64,
    /// The tokens that all of them need. Wraps: a need of that size fits nowhere.
    need: u64,
    /// How many have ever been in it.
    ever: u64,
}

impl<T> Queues<T> {
    pub(super) fn new(classes: usize) -> Self {
        Queues {
            nodes: Slab::new(),
            classes: vec![Queue::default(); classes],
            next_number: 0,
        }
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = ClassId> + use<T> {
        (0..self.classes.len()).map(ClassId)
    }

    pub(super) fn len(&self, class: ClassId) -> u64 {
        self.classes.get(class.0).map_or(0, |queue| queue.len)
    }

    /// The room that all of a class would take.
    pub(super) fn room(&self, class: ClassId) -> Room {
        let queue = self.classes.get(class.0).copied().unwrap_or_default();
        Room {
            requests: queue.len,
            tokens: queue.need,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Appends a request to its class's queue; a class of another set is the first.
    pub(super) fn push(&mut self, held: Held<T>) -> Place {
        let number = self.next_number;
        self.next_number += 1;
        let class = held.profile.class;
        let key = self.nodes.insert(Node {
            held,
            number,
            in_class: 0,
            before: None,
            after: None,
        });
        self.link(class, key);
        Place { key, number }
    }

    /// Puts a request back to where it was in its class's queue: before those that
    /// arrived after it. Takes a step for each that is before it.
    pub(super) fn put_back(&mut self, held: Held<T>) -> Place {
        let (class, arrived) = (held.profile.class, held.arrived);
        let mut next = self.front(class).map(|(place, _)| place);
        while let Some(place) = next
            && self.get(place).is_some_and(|held| held.arrived <= arrived)
        {
            next = self.after(place);
        }
        let place = self.push(held);
        if let Some(next) = next {
            self.move_before(place.key, next.key);
        }
        place
    }

    /// Takes the last of a queue out of it, and links it in before `next`.
    fn move_before(&mut self, last: usize, next: usize) {
        let class = self.nodes[last].held.profile.class;
        let Some(queue) = self.classes.get_mut(class.0) else {
            return;
        };
        let second_last = self.nodes[last].before;
        queue.back = second_last;
        if let Some(second_last) = second_last {
            self.nodes[second_last].after = None;
        }
        let before = self.nodes[next].before.replace(last);
        match before {
            Some(before) => self.nodes[before].after = Some(last),
            None => queue.front = Some(last),
        }
        let node = &mut self.nodes[last];
        (node.before, node.after) = (before, Some(next));
        self.nodes[last].in_class = self.nodes[next].in_class;
    }

    pub(super) fn front(&self, class: ClassId) -> Option<(Place, &Held<T>)> {
        let key = self.classes.get(class.0)?.front?;
        self.at(key)
    }

    /// The request behind this one in its class.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        let key = self.node(place)?.after?;
        Some(self.at(key)?.0)
    }

    pub(super) fn get(&self, place: Place) -> Option<&Held<T>> {
        Some(&self.node(place)?.held)
    }

    /// Whoever waits for the request at this place.
    pub(super) fn who_mut(&mut self, place: Place) -> Option<&mut T> {
        let node = self.nodes.get_mut(place.key)?;
        (node.number == place.number).then_some(&mut node.held.who)
    }

    /// The request's class, and how many of that are before it, at most: those that
    /// have left from between count until the class's first one came after them.
    pub(super) fn before(&self, place: Place) -> Option<(ClassId, u64)> {
        let node = self.node(place)?;
        let class = node.held.profile.class;
        let queue = self.classes.get(class.0)?;
        let first = self.nodes.get(queue.front?)?;
        let before = node.in_class.saturating_sub(first.in_class);
        Some((class, before.min(queue.len - 1)))
    }

    /// Takes a request out, wherever it is in its queue; `None` if it is gone.
    pub(super) fn remove(&mut self, place: Place) -> Option<Held<T>> {
        self.node(place)?;
        let node = self.nodes.remove(place.key);
        let queue = self.classes.get_mut(node.held.profile.class.0)?;
        queue.len -= 1;
        queue.need = queue.need.wrapping_sub(node.held.profile.need);
        match node.before {
            Some(before) => self.nodes[before].after = node.after,
            None => queue.front = node.after,
        }
        match node.after {
            Some(after) => self.nodes[after].before = node.before,
            None => queue.back = node.before,
        }
        Some(node.held)
    }

    /// Gives every request the class that `to` says, of a set of `classes`. Places
    /// stay good, and who arrived first stays first.
    pub(super) fn reclass(&mut self, classes: usize, to: impl Fn(ClassId) -> ClassId) {
        let order = |(key, node): (usize, &Node<T>)| (node.held.arrived, node.number, key);
        let mut all: Vec<_> = self.nodes.iter().map(order).collect();
        all.sort_unstable();
        self.classes = vec![Queue::default(); classes];
        for (_, _, key) in all {
            let class = to(self.nodes[key].held.profile.class);
            self.link(class, key);
        }
    }

    /// Appends the node to the queue of this class.
    fn link(&mut self, class: ClassId, key: usize) {
        let class = if class.0 < self.classes.len() {
            class
        } else {
            ClassId(0)
        };
        let queue = &mut self.classes[class.0];
        let before = queue.back.replace(key);
        queue.len += 1;
        let need = self.nodes[key].held.profile.need;
        queue.need = queue.need.wrapping_add(need);
        let in_class = queue.ever;
        queue.ever += 1;
        match before {
            Some(before) => self.nodes[before].after = Some(key),
            None => queue.front = Some(key),
        }
        let node = &mut self.nodes[key];
        node.held.profile.class = class;
        (node.before, node.after) = (before, None);
        node.in_class = in_class;
    }

    fn node(&self, place: Place) -> Option<&Node<T>> {
        let node = self.nodes.get(place.key)?;
        (node.number == place.number).then_some(node)
    }

    fn at(&self, key: usize) -> Option<(Place, &Held<T>)> {
        let Node { held, number, .. } = self.nodes.get(key)?;
        let number = *number;
        Some((Place { key, number }, held))
    }
}

#[cfg(test)]
#[path = "queues_tests.rs"]
mod tests;
