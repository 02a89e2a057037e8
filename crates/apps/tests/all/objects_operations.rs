//! The object store, one operation after the other, on an embedded rack: what is put is there, and nothing else.

use std::collections::BTreeMap;

use apps::objects::{Error, ObjectStore, ObjectStoreConfig, Sabres};
use rackmem::{NodeHandle, NodeId, Rack};
use random::Random;

const FORM: ObjectStoreConfig =
    ObjectStoreConfig { expected_keys: 40, key_bytes: 12, value_bytes: 30, slots: 2, homes: None, salt: 1 };

fn rack() -> Rack {
    let config = rackmem::Config { nodes: 2, memory: 4 << 20, cache: 1 << 20, ..rackmem::Config::default() };
    Rack::embedded(config).unwrap()
}

fn store(node: &mut NodeHandle, config: &ObjectStoreConfig) -> ObjectStore<Sabres> {
    ObjectStore::create(node, config).unwrap()
}

fn get(store: &mut ObjectStore<Sabres>, node: &mut NodeHandle, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![1, 2, 3];
    let found = store.get(node, key, &mut value).unwrap();
    assert!(found || value.is_empty());
    found.then_some(value)
}

#[test]
fn a_store_does_what_a_map_does_also_with_more_keys_than_it_was_made_for() {
    let rack = rack();
    let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    // Twice as many keys as slots: most are in further buckets at times.
    for (keys, expected_keys) in [(20, 40), (90, 40), (12, 1)] {
        let mut ours = store(&mut here, &ObjectStoreConfig { expected_keys, ..FORM });
        let mut theirs = ObjectStore::<Sabres>::open(&mut there, ours.root()).unwrap();
        let (mut model, mut dice) = (BTreeMap::new(), Random::new(keys));
        for round in 0..6000_u64 {
            let key = format!("key {}", dice.below(keys)).into_bytes();
            let (store, node) =
                if dice.below(2) == 0 { (&mut ours, &mut here) } else { (&mut theirs, &mut there) };
            let value = round.to_le_bytes()[..1 + dice.below(8) as usize].to_vec();
            match dice.below(6) {
                4 => {
                    let is_new = store.insert(node, &key, &value).unwrap();
                    assert_eq!(is_new, !model.contains_key(&key));
                    model.entry(key).or_insert(value);
                }
                5 => {
                    // Half of the time what is there, or nothing of that kind.
                    let old = model.get(&key).filter(|_| dice.below(2) == 0).cloned().unwrap_or_default();
                    let is_that = store.replace(node, &key, (&old, &value)).unwrap();
                    assert_eq!(is_that, model.get(&key) == Some(&old));
                    if is_that {
                        model.insert(key, value);
                    }
                }
                0 => assert_eq!(get(store, node, &key), model.get(&key).cloned()),
                1 => {
                    let present = store.put(node, &key, &value).unwrap();
                    assert_eq!(present, model.insert(key, value).is_some());
                }
                2 => assert_eq!(store.delete(node, &key).unwrap(), model.remove(&key).is_some()),
                _ => {
                    let mut room = Vec::new();
                    let add = |found: &mut Vec<u8>| found.splice(..0, *b"x").for_each(drop);
                    let cut = |found: &mut Vec<u8>| {
                        add(found);
                        found.truncate(30);
                    };
                    let found = store.update(node, &key, &mut room, cut).unwrap();
                    let mut known = model.get_mut(&key);
                    if let Some(known) = &mut known {
                        cut(known);
                        assert_eq!(room, **known);
                    }
                    assert_eq!(found, known.is_some());
                }
            }
        }
        for (key, value) in &model {
            assert_eq!(get(&mut theirs, &mut there, key).as_ref(), Some(value));
        }
        let (mut keys, mut next) = (Vec::new(), Some(0));
        while let Some(chain) = next {
            let some;
            (some, next) = theirs.entries(&mut there, chain).unwrap();
            keys.extend(some);
        }
        keys.sort();
        assert!(keys.iter().map(|(key, value)| (key, value)).eq(&model), "each key is listed once");
    }
}

#[test]
fn further_buckets_are_given_back_and_a_full_store_says_so_and_stays_sound() {
    let rack = rack();
    let mut node = rack.node(NodeId(0));
    let mut store = store(&mut node, &ObjectStoreConfig { expected_keys: 20, slots: 1, ..FORM });
    let key = |number: u32| number.to_le_bytes();
    let mut full = None;
    for round in 0..20 {
        let mut put = 0;
        let why = loop {
            match store.put(&mut node, &key(put), &[7]) {
                Ok(_) => put += 1,
                Err(why) => break why,
            }
        };
        assert!(matches!(why, Error::NoBuckets { .. }), "{why}");
        assert_eq!(*full.get_or_insert(put), put, "round {round}: as many keys as before have room");
        for number in 0..put {
            assert_eq!(get(&mut store, &mut node, &key(number)), Some(vec![7]));
        }
        assert_eq!(get(&mut store, &mut node, &key(put)), None);
        // The last ones first in every other round: those are in front.
        for at in 0..put {
            let number = if round % 2 == 0 { at } else { put - 1 - at };
            assert!(store.delete(&mut node, &key(number)).unwrap());
        }
    }
    assert!(full.unwrap() >= 10, "a bucket, and 8 further ones at least");
}

#[test]
fn a_store_that_is_taken_apart_or_was_not_made_leaves_no_memory_allocated() {
    let rack = rack();
    let mut node = rack.node(NodeId(0));
    let live = || rack.counters().nodes.iter().map(|node| node.memory_live).sum::<u64>();
    let config = ObjectStoreConfig { expected_keys: 4000, ..FORM };
    let before = live();
    let mut store = store(&mut node, &config);
    store.put(&mut node, b"key", &[1]).unwrap();
    let mut same = store.clone();
    store.destroy(&mut node).unwrap();
    assert!(matches!(same.put(&mut node, b"key", &[1]), Err(Error::Memory(_))));
    assert_eq!(live(), before);
    // Making it fails at the second home, for its buckets or for what says which further ones are free.
    while node.byte_objects(1, 4000, NodeId(1)).is_ok() {}
    let full = live();
    let why = ObjectStore::<Sabres>::create(&mut node, &config).err();
    assert!(matches!(why, Some(Error::Memory(rackmem::Error::OutOfMemory { home: 1, .. }))), "{why:?}");
    assert_eq!(live(), full);
    let one = ObjectStoreConfig { homes: Some(1), ..config };
    let mut on_one = ObjectStore::<Sabres>::create(&mut node, &one).unwrap();
    assert!(!on_one.put(&mut rack.node(NodeId(1)), b"key", b"1").unwrap());
    let mut same = ObjectStore::<Sabres>::open(&mut rack.node(NodeId(1)), on_one.root()).unwrap();
    assert_eq!(get(&mut same, &mut node, b"key"), Some(vec![b'1']));
}

#[test]
fn what_does_not_fit_and_what_is_no_store_is_refused_with_why() {
    let rack = rack();
    let mut node = rack.node(NodeId(0));
    let mut store = store(&mut node, &FORM);
    assert_eq!(store.put(&mut node, &[0; 13], b""), Err(Error::KeyTooLong { len: 13, most: 12 }));
    assert_eq!(store.get(&mut node, &[0; 13], &mut Vec::new()), Err(Error::KeyTooLong { len: 13, most: 12 }));
    assert_eq!(store.put(&mut node, b"key", &[0; 31]), Err(Error::ValueTooLong { len: 31, most: 30 }));
    store.put(&mut node, b"key", &[1; 30]).unwrap();
    let longer = store.update(&mut node, b"key", &mut Vec::new(), |value| value.push(2));
    assert_eq!(longer, Err(Error::ValueTooLong { len: 31, most: 30 }));
    assert_eq!(get(&mut store, &mut node, b"key"), Some(vec![1; 30]), "nothing was changed");
    let root = node.alloc(4096, NodeId(1), rackmem::Discipline::Coherent).unwrap();
    let none = ObjectStore::<Sabres>::open(&mut node, root).err();
    assert_eq!(none, Some(Error::NotAStore { root }));
    let many = ObjectStoreConfig { expected_keys: u64::MAX, ..FORM };
    let made = ObjectStore::<Sabres>::create(&mut node, &many).err();
    assert!(matches!(made, Some(Error::Memory(rackmem::Error::OutOfMemory { .. }))), "{made:?}");
    for config in [
        ObjectStoreConfig { slots: 64, ..FORM },
        ObjectStoreConfig { slots: 0, ..FORM },
        ObjectStoreConfig { key_bytes: 0, ..FORM },
        ObjectStoreConfig { value_bytes: 1 << 20, ..FORM },
        ObjectStoreConfig { slots: 4000, value_bytes: 1000, ..FORM },
    ] {
        let made = ObjectStore::<Sabres>::create(&mut node, &config).err();
        assert_eq!(made, Some(Error::BadBuckets { most: 1 << 20 }), "{config:?}");
    }
}
