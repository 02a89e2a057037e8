//! Sequences of calls by chance do to a map what they do to the standard library's.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use proptest::prelude::*;
use sorted::{Key, Map, Set};

/// What is done to both maps. Keys are pairs, of few values: calls meet the same ones.
#[derive(Clone, Copy, Debug)]
enum Call {
    Insert((u16, u64), u32),
    Remove((u16, u64)),
    Add((u16, u64), u32),
    Pop { last: bool },
    KeepOdd,
    Double,
}

fn key() -> impl Strategy<Value = (u16, u64)> {
    (0..4_u16, prop_oneof![0..4_u64, u64::MAX - 2..=u64::MAX])
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        (key(), any::<u32>()).prop_map(|(key, value)| Call::Insert(key, value)),
        key().prop_map(Call::Remove),
        (key(), 0..9_u32).prop_map(|(key, more)| Call::Add(key, more)),
        any::<bool>().prop_map(|last| Call::Pop { last }),
        Just(Call::KeepOdd),
        Just(Call::Double),
    ]
}

fn hash(map: &Map<(u16, u64), u32>) -> u64 {
    let mut hasher = DefaultHasher::new();
    map.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn a_map_does_what_the_standard_librarys_does(calls in prop::collection::vec(call(), 0..200), from in key(), to in key()) {
        let (mut ours, mut theirs) = (Map::new(), BTreeMap::new());
        for call in calls {
            match call {
                Call::Insert(key, value) => prop_assert_eq!(ours.insert(key, value), theirs.insert(key, value)),
                Call::Remove(key) => prop_assert_eq!(ours.remove(&key), theirs.remove(&key)),
                Call::Add(key, more) => {
                    let (ours, theirs) = (ours.entry(key).or_insert(1), theirs.entry(key).or_insert(1));
                    (*ours, *theirs) = (ours.wrapping_add(more), theirs.wrapping_add(more));
                    prop_assert_eq!(ours, theirs);
                }
                Call::Pop { last: false } => prop_assert_eq!(ours.pop_first(), theirs.pop_first()),
                Call::Pop { last: true } => prop_assert_eq!(ours.pop_last(), theirs.pop_last()),
                Call::KeepOdd => {
                    ours.retain(|_, value| *value % 2 == 1);
                    theirs.retain(|_, value| *value % 2 == 1);
                }
                Call::Double => {
                    ours.values_mut().enumerate().for_each(|(at, value)| *value = value.wrapping_mul(at as u32 + 2));
                    theirs.values_mut().enumerate().for_each(|(at, value)| *value = value.wrapping_mul(at as u32 + 2));
                }
            }
            prop_assert_eq!(ours.len(), theirs.len());
            prop_assert!(ours.iter().eq(theirs.iter()));
            prop_assert!(ours.keys().rev().eq(theirs.keys().rev()));
            prop_assert_eq!((ours.first_key_value(), ours.last_key_value()), (theirs.first_key_value(), theirs.last_key_value()));
            prop_assert_eq!((ours.get(&from), ours.contains_key(&to)), (theirs.get(&from), theirs.contains_key(&to)));
            if from <= to {
                prop_assert!(ours.range(from..=to).eq(theirs.range(from..=to)));
                prop_assert!(ours.range(..to).rev().eq(theirs.range(..to).rev()));
            }
            // However it became what it is.
            let again: Map<_, _> = theirs.iter().rev().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(&ours, &again);
            prop_assert_eq!(hash(&ours), hash(&again));
            prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
        prop_assert!(ours.into_iter().eq(theirs));
    }

    #[test]
    fn bits_have_the_order_of_the_keys(a in key(), b in key()) {
        prop_assert_eq!(a.cmp(&b), a.bits().cmp(&b.bits()));
    }
}

#[test]
fn a_set_says_what_is_new_and_what_was_there() {
    let mut set = Set::from([3_u32, 1, 2]);
    assert!(!set.insert(1) && set.insert(7) && set.remove(&3) && !set.remove(&3));
    assert_eq!(format!("{set:?}"), "{1, 2, 7}");
    set.retain(|key| *key != 2);
    assert_eq!((set.first(), set.last(), set.range(2..).count()), (Some(&1), Some(&7), 1));
    assert_eq!((set.pop_last(), set.pop_first(), set.pop_first()), (Some(7), Some(1), None));
}

#[test]
fn keys_of_a_large_map_that_have_gone_are_not_found_again() {
    let mut map: Map<u64, u64> = (0..100).map(|key| (key, key)).collect();
    for round in 0..10 {
        for key in 0..100 {
            assert_eq!(map.get_mut(&key).copied(), Some(key));
        }
        let gone = |key: &u64| key % 10 == round;
        (0..100).filter(gone).for_each(|key| assert_eq!(map.remove(&key), Some(key)));
        for key in 0..100 {
            assert_eq!(map.get_mut(&key).is_none(), gone(&key), "{key}");
        }
        // Others get their slots.
        for key in (0..100).rev().filter(gone) {
            map.insert(key, key);
        }
    }
}
