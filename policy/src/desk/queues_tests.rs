use proptest::prelude::*;

use super::*;

fn held(who: u64, class: usize) -> Held<u64> {
    Held {
        who,
        profile: Profile {
            model: String::new(),
            class: ClassId(class),
            input: 0,
            need: who + 1,
            cost: 0,
        },
        arrived: Duration::from_millis(who),
        concurrency: 0,
        paid: false,
    }
}

fn order(queues: &Queues<u64>, class: usize) -> Vec<u64> {
    let mut order = Vec::new();
    let mut next = queues.front(ClassId(class)).map(|(place, _)| place);
    while let Some(place) = next {
        order.push(queues.get(place).unwrap().who);
        next = queues.after(place);
    }
    order
}

proptest! {
    /// Against one list for each class.
    #[test]
    fn each_class_is_first_in_first_out_and_anyone_may_leave(
        steps in prop::collection::vec((0_usize..3, any::<prop::sample::Index>(), any::<bool>()), 0..80),
    ) {
        let mut queues = Queues::new(3);
        let mut naive = vec![Vec::new(); 3];
        let mut places = Vec::new();
        for (who, (class, which, joins)) in steps.into_iter().enumerate() {
            let who = who as u64;
            if joins || places.is_empty() {
                places.push((who, queues.push(held(who, class))));
                naive[class].push(who);
            } else {
                let (left, place) = places.swap_remove(which.index(places.len()));
                prop_assert_eq!(queues.remove(place).map(|held| held.who), Some(left));
                prop_assert!(queues.remove(place).is_none(), "a place is good once");
                naive.iter_mut().for_each(|queue| queue.retain(|who| *who != left));
            }
            for (class, queue) in naive.iter().enumerate() {
                prop_assert_eq!(&order(&queues, class), queue);
                prop_assert_eq!(queues.len(ClassId(class)), queue.len() as u64);
                let tokens = queue.iter().map(|who| who + 1).sum();
                let requests = queue.len() as u64;
                prop_assert_eq!(queues.room(ClassId(class)), Room { requests, tokens });
            }
            prop_assert_eq!(queues.total(), naive.iter().map(Vec::len).sum::<usize>() as u64);
        }
        // All in one class: in order of arrival over all of them.
        queues.reclass(1, |_| ClassId(0));
        let mut all = naive.concat();
        all.sort_unstable();
        prop_assert_eq!(order(&queues, 0), all);
        for (who, place) in places {
            prop_assert_eq!(queues.remove(place).map(|held| held.who), Some(who));
        }
        prop_assert_eq!(queues.total(), 0);
    }
}

#[test]
fn a_place_that_is_used_again_is_another() {
    let mut queues = Queues::new(1);
    let first = queues.push(held(1, 0));
    queues.remove(first).unwrap();
    let second = queues.push(held(2, 0));
    assert_eq!(first.key, second.key);
    assert!(queues.remove(first).is_none());
    assert_eq!(queues.remove(second).unwrap().who, 2);
}

proptest! {
    /// Against one list that is sorted by arrival.
    #[test]
    fn who_is_put_back_is_where_it_was_whatever_happened_since(
        steps in prop::collection::vec((0_u8..3, any::<prop::sample::Index>()), 0..80),
    ) {
        let mut queues = Queues::new(2);
        let (mut inside, mut waiting) = (Vec::new(), Vec::new());
        for (who, (step, which)) in steps.into_iter().enumerate() {
            let who = who as u64;
            match step {
                1 if !waiting.is_empty() => {
                    let front = queues.front(ClassId(0)).unwrap().0;
                    let next = queues.remove(front).unwrap();
                    prop_assert_eq!(waiting.remove(0), next.who);
                    inside.push(next);
                }
                2 if !inside.is_empty() => {
                    let back = inside.swap_remove(which.index(inside.len()));
                    let who = back.who;
                    let place = queues.put_back(back);
                    prop_assert_eq!(queues.get(place).map(|held| held.who), Some(who));
                    waiting.push(who);
                    waiting.sort_unstable();
                }
                _ => {
                    queues.push(held(who, 0));
                    waiting.push(who);
                }
            }
            prop_assert_eq!(&order(&queues, 0), &waiting);
            prop_assert_eq!(queues.len(ClassId(0)), waiting.len() as u64);
        }
        queues.reclass(3, |_| ClassId(2));
        prop_assert_eq!(order(&queues, 2), waiting);
        while let Some(place) = queues.front(ClassId(2)).map(|(place, _)| place) {
            prop_assert!(queues.remove(place).is_some());
        }
        prop_assert_eq!(queues.total(), 0);
    }
}
