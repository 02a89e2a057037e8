//! Stores under names.

use apps::kv::{KvConfig, KvStore};
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use apps::named::{self, Error, Rooted};
use apps::objects::{ObjectStore, ObjectStoreConfig, Sabres};
use rackmem::{Config, NameError, NodeHandle, NodeId, Rack, block_on};

fn rack() -> Rack {
    let config = Config { nodes: 3, cache: 1 << 20, memory: 16 << 20, ..Config::default() };
    Rack::embedded(config).expect("a possible rack")
}

fn live_bytes(rack: &Rack) -> u64 {
    rack.counters().nodes.iter().map(|node| node.memory_live).sum()
}

/// Of all who make one at once one does, and nothing of what the others made stays.
fn is_made_by_one_and_found_by_all<S: Rooted + Send>(config: &(impl Fn() -> S::Config + Sync))
where
    S::Error: Send,
{
    let rack = rack();
    for round in 0..5 {
        let before = live_bytes(&rack);
        let roots = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..9)
                .map(|thread| {
                    let mut handle = rack.node(NodeId(thread % 3));
                    scope.spawn(move || named::open_or::<S>(&mut handle, "it", &config()).unwrap().root())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let mut here = rack.node(NodeId(0));
        assert!(roots.iter().all(|root| *root == roots[0]), "round {round}: {roots:?}");
        assert_eq!(named::open::<S>(&mut here, "it").unwrap().root(), roots[0]);
        named::remove::<S>(&mut here, "it").unwrap();
        assert_eq!(live_bytes(&rack), before, "round {round}");
        let gone = named::open::<S>(&mut here, "it").err();
        assert!(matches!(gone, Some(Error::Name(NameError::NotFound { .. }))), "{gone:?}");
        let gone = named::remove::<S>(&mut here, "it").err();
        assert!(matches!(gone, Some(Error::Name(NameError::NotFound { .. }))), "{gone:?}");
    }
}

fn small() -> KvConfig {
    KvConfig { expected_keys: 100, ..KvConfig::default() }
}

#[test]
fn a_store_under_a_name_is_made_by_one_and_found_by_all() {
    is_made_by_one_and_found_by_all::<KvStore>(&small);
}

#[test]
fn so_is_one_in_locks() {
    let config = || LockedStoreConfig { expected_keys: 100, ..LockedStoreConfig::default() };
    is_made_by_one_and_found_by_all::<LockedStore>(&config);
}

#[test]
fn so_is_one_of_objects() {
    let config = || ObjectStoreConfig { expected_keys: 100, ..ObjectStoreConfig::default() };
    is_made_by_one_and_found_by_all::<ObjectStore<Sabres>>(&config);
}

#[test]
fn a_name_of_another_kind_of_store_is_refused() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let _: KvStore = named::open_or(&mut here, "it", &small()).unwrap();
    let other = named::open_or::<LockedStore>(&mut here, "it", &LockedStoreConfig::default()).err();
    let Some(Error::Name(why @ NameError::Differs { .. })) = other else { panic!("{other:?}") };
    assert!(why.to_string().contains("type store, version 1, and asked for was"), "{why}");
}

#[test]
fn a_maker_that_stopped_midway_has_left_nothing_and_the_next_one_makes_it() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    // As far as a maker gets who dies before his store is whole.
    here.named::<rackmem::Value<u64>>("it").tag(KvStore::TAG, 1).create(0).unwrap();
    let nothing = named::open::<KvStore>(&mut here, "it").err();
    assert!(matches!(nothing, Some(Error::Name(NameError::NotFound { .. }))), "{nothing:?}");
    let store: KvStore = named::open_or(&mut here, "it", &small()).unwrap();
    block_on(store.put(&mut here, b"key", b"value")).unwrap();
    let mut there: NodeHandle = rack.node(NodeId(1));
    let same: KvStore = named::anew(&mut there, "it", &small()).unwrap();
    assert_eq!(same.root(), store.root(), "what is there is not replaced");
}

#[test]
fn who_has_no_memory_for_a_store_is_told_and_the_name_stays_free() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let huge = KvConfig { expected_keys: 1 << 24, ..KvConfig::default() };
    let full = named::open_or::<KvStore>(&mut here, "it", &huge).err();
    assert!(matches!(full, Some(Error::Store(_))), "{full:?}");
    let _: KvStore = named::open_or(&mut here, "it", &small()).unwrap();
}
