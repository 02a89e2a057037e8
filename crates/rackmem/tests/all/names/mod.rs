//! Names on embedded racks.

use rackmem::named::MOST_NAMES;
use rackmem::{Config, Error, LockError, Locked, NameError, NodeId, Rack, Value};

use crate::names_everywhere::{Nodes, everywhere};

fn embedded(body: fn(Nodes<'_>)) {
    let config = Config { nodes: 3, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    body(&|node| rack.node(NodeId(node)));
}

everywhere!(embedded);

#[test]
fn a_node_that_keeps_as_many_names_as_it_can_says_so() {
    let config = Config { nodes: 1, cache: 1 << 20, memory: 16 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut here = rack.here();
    for number in 0..MOST_NAMES {
        here.named::<Locked<u8>>(&number.to_string()).create(0).unwrap();
    }
    let full = NameError::Full { name: "more".to_owned(), home: NodeId(0) };
    assert_eq!(here.named::<Locked<u8>>("more").create(0).err(), Some(full.clone()));
    assert_eq!(here.named::<Locked<u8>>("more").open_or(|| 0).err(), Some(full));
    here.remove_name("17").unwrap();
    here.named::<Locked<u8>>("more").create(0).unwrap();
    assert_eq!(here.names("").unwrap().len(), MOST_NAMES);
}

#[test]
fn of_write_grants_that_need_no_message_one_in_256_is_timed_and_no_read_is() {
    let config = Config { nodes: 1, cache: 1 << 20, memory: 1 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut here = rack.here();
    let nameless = Locked::new(&mut here, NodeId(0), 0_u64).unwrap();
    let named = here.named::<Locked<u64>>("named").create(0).unwrap();
    let timed = || rack.watched_locks().iter().map(|(_, lock)| lock.holds.count()).collect::<Vec<_>>();
    for lock in [&nameless, &named] {
        *lock.write(&mut here).unwrap() += 1;
    }
    let before = timed();
    assert_eq!(before.len(), 1, "what has no name is not watched");
    for _ in 0..1024 {
        *nameless.write(&mut here).unwrap() += 1;
        *named.write(&mut here).unwrap() += 1;
        drop(named.read(&mut here).unwrap());
    }
    let [(_, lock)] = <[_; 1]>::try_from(rack.watched_locks()).unwrap();
    assert_eq!((lock.holds.count() - before[0], lock.waits.count()), (4, 0));
    assert_eq!(lock.fence & 0xffff_ffff, 1025);
}

#[test]
fn a_panic_in_a_hold_that_is_timed_poisons_as_any_other() {
    let config = Config { nodes: 1, cache: 1 << 20, memory: 1 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut here = rack.here();
    let named = here.named::<Locked<u64>>("named").create(0).unwrap();
    for _ in 0..255 {
        drop(named.write(&mut here).unwrap());
    }
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = named.write(&mut here).unwrap();
        panic!("while it writes");
    }));
    assert!(panics.is_err() && rack.watched_locks()[0].1.fence & 0xff == 0);
    assert_eq!(named.write(&mut here).map(drop), Err(LockError::Poisoned { addr: named.addr() }));
}

#[test]
fn a_lock_that_somebody_else_has_removed_is_watched_until_it_is_asked_for() {
    let config = Config { nodes: 2, cache: 1 << 20, memory: 1 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    let named = here.named::<Locked<u64>>("named").create(0).unwrap();
    there.remove_name("named").unwrap();
    assert_eq!(rack.watched_locks().len(), 1);
    let gone = Error::Unallocated { addr: named.addr() };
    assert_eq!(named.write(&mut here).map(drop), Err(LockError::Failed(gone)));
    assert_eq!(rack.watched_locks(), []);
}

#[test]
fn names_are_kept_by_the_first_nodes_alone_if_so_many_are_to_keep_them() {
    let config = |keepers| {
        let config = Config { nodes: 3, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
        Config { name_nodes: keepers, ..config }
    };
    let homes = |keepers| {
        let rack = Rack::embedded(config(keepers)).expect("a possible rack");
        let mut there = rack.node(NodeId(2));
        let names = (0..50).map(|number| number.to_string());
        let homes: std::collections::BTreeSet<_> = names
            .map(|name| {
                let value = there.named::<Value<u8>>(&name).create(0).unwrap();
                assert_eq!(value.addr().home(), there.home_of_name(&name));
                value.addr().home().0
            })
            .collect();
        assert_eq!(there.names("").unwrap().len(), 50);
        Vec::from_iter(homes)
    };
    assert_eq!((homes(None), homes(Some(2)), homes(Some(1))), (vec![0, 1, 2], vec![0, 1], vec![0]));
    for wrong in [0, 4] {
        let Err(refused) = Rack::embedded(config(Some(wrong))) else { panic!("nobody keeps them") };
        let refused = refused.to_string();
        assert!(refused.contains(&format!("{wrong} nodes cannot keep names: 1 to 3 can")), "{refused}");
    }
}
