//! A store that has a name and copies, on a rack whose nodes die one after the other: it is found, and all that was put is there.

use apps::kv::{KvConfig, KvStore};
use apps::named;
use apps::objects::{ObjectStore, ObjectStoreConfig, Sabres};
use rackmem::{Config, GlobalAddr, NodeHandle, NodeId, block_on};

use crate::rig::{Processes, until};

const NODES: usize = 3;
const KEYS: u64 = 120;

fn open(here: &mut NodeHandle) -> KvStore {
    named::open(here, "users").unwrap()
}

/// Sizes on both sides of a block.
fn value(key: u64, round: u64) -> Vec<u8> {
    vec![(key + round) as u8; if key.is_multiple_of(10) { 6000 } else { 100 }]
}

#[test]
fn a_store_outlives_all_who_have_put_something() {
    let config = Config { nodes: NODES, copies: 2, memory: 16 << 20, cache: 1 << 20, ..Config::default() };
    let mut rack = Processes::start_with(false, config);
    let mut here = rack.nodes[0].here();
    here.keep_copies(true).unwrap();
    let config = KvConfig { expected_keys: 16, ..KvConfig::default() };
    let users: KvStore = named::open_or(&mut here, "users", &config).unwrap();
    let has_copies = |addr: GlobalAddr| addr.home() >= NodeId(NODES as u16);
    assert!(has_copies(users.root()));
    for key in 0..KEYS {
        block_on(users.put(&mut here, &key.to_le_bytes(), &value(key, 0))).unwrap();
    }
    here.sync().unwrap();
    for round in 1..=2 * NODES as u64 {
        let dies = (round as usize - 1) % NODES;
        // Whoever dies has written last, on a handle that keeps no copies by itself.
        let mut writer = rack.nodes[dies].here();
        let users = open(&mut writer);
        for key in 0..KEYS {
            block_on(users.put(&mut writer, &key.to_le_bytes(), &value(key, round))).unwrap();
        }
        writer.sync().unwrap();
        drop(writer);
        rack.cut_off(dies);
        let mut there = rack.nodes[(dies + 1) % NODES].here();
        let (users, mut found) = (open(&mut there), Vec::new());
        for key in 0..KEYS {
            assert!(block_on(users.get(&mut there, &key.to_le_bytes(), &mut found)).unwrap(), "{key}");
            assert_eq!(found, value(key, round), "{key} in round {round}");
        }
        // What the dead one had allocated is replaced and deleted as anything else.
        for key in (0..KEYS).step_by(7) {
            assert!(block_on(users.delete(&mut there, &key.to_le_bytes())).unwrap());
        }
        rack.rejoin(dies);
        until(|| rack.has_all_copies().then_some(()));
    }
    let mut last = rack.nodes[1].here();
    named::remove::<KvStore>(&mut last, "users").unwrap();
    assert_eq!(last.names("").unwrap(), []);
}

#[test]
fn a_store_of_objects_loses_nothing_with_those_who_have_made_it_and_put_something() {
    let config = Config { nodes: NODES, memory: 16 << 20, cache: 1 << 20, ..Config::default() };
    let mut rack = Processes::start_with(false, config);
    let mut maker = rack.nodes[2].here();
    // Its last node is none of its homes.
    let config = ObjectStoreConfig { expected_keys: 200, homes: Some(2), ..ObjectStoreConfig::default() };
    let mut names = (0..).map(|number| format!("hits {number}"));
    let name = names.find(|name| maker.home_of_name(name) == NodeId(0)).unwrap();
    let mut made: ObjectStore<Sabres> = named::open_or(&mut maker, &name, &config).unwrap();
    for key in 0..KEYS {
        made.put(&mut maker, &key.to_le_bytes(), &key.to_be_bytes()).unwrap();
    }
    rack.cut_off(2);
    let mut here = rack.nodes[0].here();
    // Nobody has opened it before its maker died.
    let mut found = until(|| named::open::<ObjectStore<Sabres>>(&mut here, &name).ok());
    let mut value = Vec::new();
    for key in 0..KEYS {
        assert!(found.get(&mut here, &key.to_le_bytes(), &mut value).unwrap() && value == key.to_be_bytes());
    }
    drop(maker);
}
