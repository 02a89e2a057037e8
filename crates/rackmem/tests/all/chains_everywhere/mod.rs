//! What must hold of chains, on whatever rack of three nodes: tests of several kinds of racks call these.
#![allow(dead_code, reason = "each kind of rack uses its part")]

pub(crate) mod copies;

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::Instant;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Chains, ChainsConfig, Discipline, Error, GlobalAddr, Nanos, NodeHandle, NodeId};
use random::Random;

/// A handle of each node, for any number of threads.
pub(crate) type Nodes<'a> = &'a (dyn Fn(u16) -> NodeHandle + Sync);

/// Threads of all nodes do this.
fn on_all(nodes: Nodes<'_>, threads: u64, work: impl Fn(u64, &mut NodeHandle) + Sync) {
    on_some(nodes, &[0, 1, 2], threads, work);
}

/// Threads of these nodes.
fn on_some(nodes: Nodes<'_>, some: &[u16], threads: u64, work: impl Fn(u64, &mut NodeHandle) + Sync) {
    std::thread::scope(|scope| {
        for node in some.iter().copied() {
            for thread in 0..threads {
                let work = &work;
                scope.spawn(move || work(u64::from(node) * threads + thread, &mut nodes(node)));
            }
        }
    });
}

/// Two memories, and the metadata server at the third node.
fn spread(bytes: u64) -> ChainsConfig {
    let homes = vec![NodeId(0), NodeId(1)];
    ChainsConfig {
        homes,
        bytes,
        copies: 1,
        server: NodeId(2),
        lease: Nanos::from_millis(150),
        quarantine: None,
    }
}

/// A value of so many bytes that tells which one it is.
fn value(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (number.wrapping_mul(31).wrapping_add(at * 7) >> 3) as u8).collect()
}

pub(crate) fn what_one_client_puts_all_others_get_until_it_is_deleted(nodes: Nodes<'_>) {
    let values = [(1, 0), (u64::MAX, 1), (0, 40), (7, 41), (9, 5000)];
    what_is_put_is_there_until_it_is_deleted(nodes, &spread(256 << 10), &values, 7);
}

/// Values of these keys and lengths are put twice, and all nodes get them; one of these keys is deleted, and put again; the store is freed.
fn what_is_put_is_there_until_it_is_deleted(
    nodes: Nodes<'_>,
    config: &ChainsConfig,
    values: &[(u64, usize)],
    deleted: u64,
) {
    let mut first = nodes(0);
    let mut store = first.chains(config).unwrap();
    let addr = store.addr();
    let mut found = Vec::new();
    assert!(!store.get(&mut first, 1, &mut found).unwrap());
    for &(key, len) in values {
        store.put(&mut first, key, &value(key, len)).unwrap();
        store.put(&mut first, key, &value(!key, len + 3)).unwrap();
        for node in 0..3 {
            let mut there = nodes(node);
            let mut same = there.chains_at(addr).unwrap();
            assert!(same.get(&mut there, key, &mut found).unwrap());
            assert_eq!(found, value(!key, len + 3), "key {key} at node {node}");
        }
    }
    let mut second = nodes(1);
    let mut same = second.chains_at(addr).unwrap();
    same.delete(&mut second, deleted).unwrap();
    same.delete(&mut second, 1234).unwrap();
    assert!(!store.get(&mut first, deleted, &mut found).unwrap());
    store.put(&mut first, deleted, b"again").unwrap();
    assert!(same.get(&mut second, deleted, &mut found).unwrap() && found == b"again");
    store.free(&mut first).unwrap();
    assert_eq!(second.chains_at(addr).err(), Some(Error::Unallocated { addr }));
}

pub(crate) fn values_of_every_size_come_back_as_they_were(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(2));
    let mut store = here.chains(&ChainsConfig::at(NodeId(1), 3 << 20)).unwrap();
    let mut same = there.chains_at(store.addr()).unwrap();
    let mut found = Vec::new();
    for (key, len) in (0..).zip([0, 1, 39, 40, 41, 4072, 4073, 70_000, 500_001]) {
        store.put(&mut here, key, &value(key, len)).unwrap();
        assert!(same.get(&mut there, key, &mut found).unwrap());
        assert_eq!(found, value(key, len), "{len} bytes");
    }
}

pub(crate) fn a_value_of_the_largest_size_comes_back_as_it_was(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let config = ChainsConfig { homes: vec![NodeId(2)], ..spread(2 << 20) };
    let mut store = here.chains(&config).unwrap();
    let (longest, mut found) = (value(5, Chains::LONGEST_VALUE), Vec::new());
    store.put(&mut here, 5, &longest).unwrap();
    let mut same = there.chains_at(store.addr()).unwrap();
    assert!(same.get(&mut there, 5, &mut found).unwrap());
    assert!(found == longest);
    let (len, most) = (longest.len() as u64 + 1, longest.len() as u64);
    let longer = vec![0; longest.len() + 1];
    assert_eq!(store.put(&mut here, 5, &longer), Err(Error::BadSize { len, most }));
}

/// Round trips of an operation, how many there should be, and what for.
pub(crate) type Trips = (u32, RangeInclusive<u32>, &'static str);

/// Operations take as many round trips as they should. On a network that loses, a connection may break: then one of them begins
/// anew, and takes more, so all are done again. None takes fewer.
fn are_right(mut operations: impl FnMut() -> Vec<Trips>) {
    let mut tried = Vec::new();
    for _ in 0..5 {
        let counted = operations();
        assert!(counted.iter().all(|(trips, right, _)| trips >= right.start()), "{counted:?}");
        if counted.iter().all(|(trips, right, _)| right.contains(trips)) {
            return;
        }
        tried.push(counted);
    }
    panic!("more round trips each time: {tried:?}");
}

pub(crate) fn every_round_trip_is_counted(nodes: Nodes<'_>) {
    are_right(|| round_trips(nodes));
}

/// Those of operations on new stores.
fn round_trips(nodes: Nodes<'_>) -> Vec<Trips> {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let (mut counted, mut found) = (Vec::new(), Vec::new());
    // Nobody forgets anything here.
    let config = ChainsConfig { lease: Nanos(60_000_000_000), ..ChainsConfig::at(NodeId(1), 64 << 10) };
    let mut store = here.chains(&config).unwrap();
    store.put(&mut here, 1, b"a").unwrap();
    counted.push((store.trips(), 4..=4, "slots; the entry; whether there is a chain; it is begun"));
    store.get(&mut here, 1, &mut found).unwrap();
    counted.push((store.trips(), 1..=1, "it still is the tail"));
    store.put(&mut here, 1, b"b").unwrap();
    counted.push((store.trips(), 1..=1, "the entry, and the tail's word behind it"));
    let mut same = there.chains_at(store.addr()).unwrap();
    same.get(&mut there, 1, &mut found).unwrap();
    counted.push((same.trips(), 2..=3, "where it is; one READ, or two"));
    store.put(&mut here, 1, b"c").unwrap();
    same.get(&mut there, 1, &mut found).unwrap();
    assert_eq!(&*found, b"c");
    // Where reads are steered it is sent there at once.
    counted.push((same.trips(), 1..=2, "one that is not the tail any more, and what follows"));
    let mut two = here.chains(&spread(64 << 10)).unwrap();
    two.put(&mut here, 1, b"a").unwrap();
    two.put(&mut here, 1, b"b").unwrap();
    counted.push((
        two.trips(),
        2..=2,
        "the tail may be in another memory than the entry: one after the other",
    ));
    counted
}

pub(crate) fn far_more_is_written_than_memory_holds(nodes: Nodes<'_>) {
    let bytes = 192 << 10;
    let config = ChainsConfig::at(NodeId(1), bytes);
    far_more_is_written(nodes, config, 2 * bytes);
}

/// More than so many bytes are written to a few keys of a store, by clients on all nodes.
fn far_more_is_written(nodes: Nodes<'_>, config: ChainsConfig, than: u64) {
    const KEYS: u64 = 5;
    let mut here = nodes(0);
    let addr = here.chains(&ChainsConfig { lease: Nanos::from_millis(60), ..config }).unwrap().addr();
    let written = Mutex::new(0);
    on_all(nodes, 1, |client, here| {
        let mut store = here.chains_at(addr).unwrap();
        for round in 0..250 {
            let (key, len) = ((client + round) % KEYS, 100 + (round as usize * 37) % 900);
            store.put(here, key, &value(round, len)).unwrap();
            *written.lock().unwrap() += len as u64 + 24;
        }
    });
    let written = written.into_inner().unwrap();
    assert!(written > than, "{written} bytes were written");
}

pub(crate) fn memory_that_is_full_is_said_to_be_and_what_was_there_stays(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let config = ChainsConfig { lease: Nanos::from_millis(20), ..ChainsConfig::at(NodeId(1), 64 << 10) };
    let mut store = here.chains(&config).unwrap();
    let mut keys = 0;
    let full = loop {
        match store.put(&mut here, keys, &value(keys, 1000)) {
            Ok(()) => keys += 1,
            Err(error) => break error,
        }
        assert!(keys <= 64, "there is no room for so many");
    };
    assert_eq!(full, Error::OutOfMemory { len: 1000, home: 1 });
    let mut found = Vec::new();
    for key in 0..keys {
        assert!(store.get(&mut here, key, &mut found).unwrap());
        assert_eq!(found, value(key, 1000));
    }
    assert_eq!(keys, 64, "all of it can be used");
}

pub(crate) fn addresses_that_are_no_store_are_refused_with_why(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let coherent = here.alloc(64, NodeId(1), Discipline::Coherent).unwrap();
    let needs = Discipline::Chain;
    assert_eq!(here.chains_at(coherent).err(), Some(Error::WrongDiscipline { addr: coherent, needs }));
    let addr = GlobalAddr::new(NodeId(1), 3 << 20);
    assert_eq!(here.chains_at(addr).err(), Some(Error::Unallocated { addr }));
    let beyond = GlobalAddr::new(NodeId(3), 64);
    assert_eq!(here.chains_at(beyond).err(), Some(Error::NoSuchNode { addr: beyond, nodes: 3 }));
    let config = ChainsConfig::at(NodeId(1), 0);
    assert!(matches!(here.chains(&config), Err(Error::BadSize { len: 0, .. })));
    let config = ChainsConfig::at(NodeId(1), 1 << 40);
    assert!(matches!(here.chains(&config), Err(Error::BadSize { .. })));
    let config = ChainsConfig::at(NodeId(1), 64 << 10);
    let least = here.least_quarantine(config.lease);
    let quarantine = Nanos(least.0 - 1);
    let short = ChainsConfig { quarantine: Some(quarantine), ..config };
    assert_eq!(here.chains(&short).err(), Some(Error::QuarantineTooShort { quarantine, least }));
    let store = here.chains(&ChainsConfig::at(NodeId(1), 64 << 10)).unwrap();
    let words = here.words_at::<u64>(store.addr()).err();
    assert!(matches!(words, Some(Error::WrongDiscipline { .. } | Error::Unallocated { .. })), "{words:?}");
}

pub(crate) fn a_store_that_was_freed_is_refused_and_its_memory_is_used_anew(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(2));
    for round in 0..6 {
        let mut store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20)).unwrap();
        let addr = store.addr();
        let mut same = there.chains_at(addr).unwrap();
        same.put(&mut there, 1, &value(round, 100)).unwrap();
        let mut found = Vec::new();
        assert!(store.get(&mut here, 1, &mut found).unwrap());
        assert_eq!(found, value(round, 100), "nothing of a former store");
        store.free(&mut here).unwrap();
        assert_eq!(there.chains_at(addr).err(), Some(Error::Unallocated { addr }));
        assert_eq!(same.put(&mut there, 2, &value(round, 200_000)), Err(Error::Unallocated { addr }));
    }
}

pub(crate) fn clients_of_a_former_store_do_not_reach_the_one_in_its_place(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(2));
    let config = ChainsConfig::at(NodeId(1), 64 << 10);
    let (mut former, mut in_place) = (Vec::<Chains>::new(), 0);
    for round in 0..12 {
        let mut store = here.chains(&config).unwrap();
        let addr = store.addr();
        store.put(&mut here, 1, &value(round, 40)).unwrap();
        for mut old in former.drain(..).filter(|old| old.addr() == addr) {
            in_place += 1;
            assert_eq!(old.put(&mut there, 7, b"from before"), Err(Error::Unallocated { addr }));
            assert_eq!(old.free(&mut there), Err(Error::Unallocated { addr }));
        }
        let mut found = Vec::new();
        assert!(!store.get(&mut here, 7, &mut found).unwrap(), "nobody has put that here");
        assert!(store.get(&mut here, 1, &mut found).unwrap() && found == value(round, 40));
        let mut same = there.chains_at(addr).unwrap();
        assert!(same.get(&mut there, 1, &mut found).unwrap());
        former.push(same);
        store.free(&mut here).unwrap();
    }
    assert!(in_place > 0, "a store begins where another one was");
}

/// What clients on all nodes did to a few keys of a store.
pub(crate) fn history_of(nodes: Nodes<'_>, addr: GlobalAddr, seed: u64, each: u64) -> Vec<Operation<u64>> {
    history_on(nodes, &[0, 1, 2], addr, seed, &|round| round < each)
}

/// What clients on these nodes did, for as long as they were to go on.
pub(crate) fn history_on(
    nodes: Nodes<'_>,
    some: &[u16],
    addr: GlobalAddr,
    seed: u64,
    goes_on: &(dyn Fn(u64) -> bool + Sync),
) -> Vec<Operation<u64>> {
    const KEYS: u64 = 4;
    let (all, began) = (Mutex::new(Vec::new()), Instant::now());
    let now = || Nanos(1 + u64::try_from(began.elapsed().as_nanos()).unwrap());
    on_some(nodes, some, 2, |client, here| {
        let mut store = here.chains_at(addr).unwrap();
        let (mut dice, mut mine, mut found) = (Random::new(seed + client), Vec::new(), Vec::new());
        for round in (0..).take_while(|round| goes_on(*round)) {
            let (key, new) = (dice.below(KEYS), seed << 40 | client << 20 | (round + 1));
            let invoke = now();
            let op = match dice.below(10) {
                0 => {
                    store.delete(here, key).unwrap();
                    Op::Delete
                }
                1..=4 => {
                    let len = [1, 9, 60][dice.below(3) as usize];
                    let words = new.to_le_bytes().repeat(len);
                    store.put(here, key, &words).unwrap();
                    Op::Insert { value: new }
                }
                _ => {
                    let value = store.get(here, key, &mut found).unwrap().then(|| {
                        let (words, rest) = found.as_chunks::<8>();
                        assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]), "a mix");
                        u64::from_le_bytes(words[0])
                    });
                    Op::Read { value }
                }
            };
            mine.push(Operation { client: seed << 8 | client, key, op, invoke, ret: Some(now()) });
        }
        all.lock().unwrap().extend(mine);
    });
    all.into_inner().unwrap()
}

pub(crate) fn assert_linearizable(history: &[Operation<u64>]) {
    match check_history(history, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_store_for_histories(nodes: Nodes<'_>) -> GlobalAddr {
    let config = ChainsConfig { homes: vec![NodeId(1)], ..spread(512 << 10) };
    nodes(0).chains(&config).unwrap().addr()
}

pub(crate) fn histories_are_linearizable(nodes: Nodes<'_>) {
    let addr = nodes(0).chains(&spread(512 << 10)).unwrap().addr();
    assert_linearizable(&history_of(nodes, addr, 1, 100));
}

pub(crate) fn histories_of_one_memory_are_linearizable(nodes: Nodes<'_>) {
    let addr = a_store_for_histories(nodes);
    assert_linearizable(&history_of(nodes, addr, 2, 100));
}

/// One test for each of those that do not wait until memory comes back: where reads are steered that takes seconds.
macro_rules! wherever_reads_are_steered {
    ($nodes:ident) => {
        #[test]
        fn what_one_client_puts_all_others_get_until_it_is_deleted() {
            $nodes(crate::chains_everywhere::what_one_client_puts_all_others_get_until_it_is_deleted);
        }

        #[test]
        fn values_of_every_size_come_back_as_they_were() {
            $nodes(crate::chains_everywhere::values_of_every_size_come_back_as_they_were);
        }

        #[test]
        fn a_value_of_the_largest_size_comes_back_as_it_was() {
            $nodes(crate::chains_everywhere::a_value_of_the_largest_size_comes_back_as_it_was);
        }

        #[test]
        fn every_round_trip_is_counted() {
            $nodes(crate::chains_everywhere::every_round_trip_is_counted);
        }

        #[test]
        fn addresses_that_are_no_store_are_refused_with_why() {
            $nodes(crate::chains_everywhere::addresses_that_are_no_store_are_refused_with_why);
        }

        #[test]
        fn a_store_that_was_freed_is_refused_and_its_memory_is_used_anew() {
            $nodes(crate::chains_everywhere::a_store_that_was_freed_is_refused_and_its_memory_is_used_anew);
        }

        #[test]
        fn clients_of_a_former_store_do_not_reach_the_one_in_its_place() {
            $nodes(crate::chains_everywhere::clients_of_a_former_store_do_not_reach_the_one_in_its_place);
        }

        #[test]
        fn histories_are_linearizable() {
            $nodes(crate::chains_everywhere::histories_are_linearizable);
        }

        #[test]
        fn histories_of_one_memory_are_linearizable() {
            $nodes(crate::chains_everywhere::histories_of_one_memory_are_linearizable);
        }

        #[test]
        fn what_is_put_into_copies_all_others_get_until_it_is_deleted() {
            $nodes(
                crate::chains_everywhere::copies::what_is_put_into_copies_all_others_get_until_it_is_deleted,
            );
        }

        #[test]
        fn each_copy_takes_a_put_one_round_trip_more_and_a_get_none() {
            $nodes(
                crate::chains_everywhere::copies::each_copy_takes_a_put_one_round_trip_more_and_a_get_none,
            );
        }

        #[test]
        fn copies_that_cannot_be_are_refused_with_why() {
            $nodes(crate::chains_everywhere::copies::copies_that_cannot_be_are_refused_with_why);
        }

        #[test]
        fn histories_of_copies_are_linearizable() {
            $nodes(crate::chains_everywhere::copies::histories_of_copies_are_linearizable);
        }
    };
}
pub(crate) use wherever_reads_are_steered;

/// One test for each of them.
macro_rules! everywhere {
    ($nodes:ident) => {
        crate::chains_everywhere::wherever_reads_are_steered!($nodes);

        #[test]
        fn far_more_is_written_than_memory_holds() {
            $nodes(crate::chains_everywhere::far_more_is_written_than_memory_holds);
        }

        #[test]
        fn far_more_is_written_than_copies_hold() {
            $nodes(crate::chains_everywhere::copies::far_more_is_written_than_copies_hold);
        }

        #[test]
        fn memory_that_is_full_is_said_to_be_and_what_was_there_stays() {
            $nodes(crate::chains_everywhere::memory_that_is_full_is_said_to_be_and_what_was_there_stays);
        }
    };
}
pub(crate) use everywhere;
