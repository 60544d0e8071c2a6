use proptest::prelude::*;

use super::*;

fn held(who: u64, class: usize) -> Held<u64> {
    Held {
        who,
        profile: Profile {
            model: String::new(),
            class: ClassId(class),
            input: 0,
            need: 0,
        },
        arrived: Duration::from_millis(who),
        concurrency: 0,
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
