//! Chains in several memories, of which some die under load, and metadata servers: nothing that was put or read is lost, and the
//! others go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use check::AtEnd;
use rackmem::{ChainsConfig, Config, Error, GlobalAddr, Nanos, NodeId};

use crate::chains_everywhere::copies::copies;
use crate::chains_everywhere::{assert_linearizable, history_on};
use crate::networked::rig::{Processes, until, until_or_say};

/// A store in the memories of nodes 0 to 2, whose metadata server and clients are at others, or at a memory that is not going to die.
fn store_of(rack: &Processes, many: usize, memories: u16, server: u16) -> GlobalAddr {
    let (lease, quarantine) = (Nanos::from_millis(40), Some(Nanos::from_millis(60)));
    let config =
        ChainsConfig { lease, quarantine, server: NodeId(server), ..copies(many, memories, 512 << 10) };
    let mut here = rack.nodes[usize::from(server)].here();
    here.chains(&config).unwrap().addr()
}

/// Clients at node 3 and at another node, while nodes with memory or the metadata server die, one after the other.
fn histories_while_nodes_die(
    faulty: bool,
    (many, memories, server): (usize, u16, u16),
    dying: &[usize],
    seed: u64,
) {
    let rack = Processes::start_on(4, faulty);
    histories_of_a_rack_whose_nodes_die(rack, (many, memories, server), dying, seed);
}

fn histories_of_a_rack_whose_nodes_die(
    mut rack: Processes,
    (many, memories, server): (usize, u16, u16),
    dying: &[usize],
    seed: u64,
) {
    let lives = (0..memories).find(|node| !dying.contains(&usize::from(*node))).unwrap();
    let addr = store_of(&rack, many, memories, server);
    let handles = rack.nodes.clone();
    let here = |node: u16| handles[usize::from(node)].here();
    // Whoever has one of these hears of its memory's death.
    let mut probes: Vec<_> = dying
        .iter()
        .map(|dead| {
            let home = NodeId(*dead as u16);
            let config = ChainsConfig { server: NodeId(3), ..ChainsConfig::at(home, 64 << 10) };
            here(3).chains(&config).unwrap()
        })
        .collect();
    let kill = |rack: &mut Processes, nth: usize| {
        rack.cut_off(dying[nth]);
        // They stand until they hear of it, and then they go on.
        let (probe, mut there) = (&mut probes[nth], here(3));
        until(|| probe.put(&mut there, 1, b"?").err().filter(|why| matches!(why, Error::NodeDown { .. })));
    };
    histories(&mut rack, &[3, lives], (addr, seed), dying.len(), kill);
}

/// Clients at these nodes, while this is done so many times, each time when they have got on; and when they have once more, the store is
/// used by somebody who knew nothing of it before.
fn histories(
    rack: &mut Processes,
    clients: &[u16],
    (addr, seed): (GlobalAddr, u64),
    times: usize,
    mut harm: impl FnMut(&mut Processes, usize),
) {
    let handles = rack.nodes.clone();
    let here = |node: u16| handles[usize::from(node)].here();
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let goes_on = |_| {
        done.fetch_add(1, Ordering::Relaxed);
        // So that a history is not too long to be looked at.
        std::thread::sleep(Duration::from_micros(500));
        !stop.load(Ordering::SeqCst)
    };
    let get_on = || {
        let before = done.load(Ordering::Relaxed);
        until(|| (done.load(Ordering::Relaxed) > before + 200).then_some(()));
    };
    let history = std::thread::scope(|scope| {
        let stop_at_end = AtEnd(&stop);
        let at_work = scope.spawn(|| history_on(&here, clients, addr, seed, &goes_on));
        for nth in 0..times {
            get_on();
            harm(rack, nth);
        }
        get_on();
        drop(stop_at_end);
        at_work.join().unwrap()
    });
    assert_linearizable(&history);
    let mut there = here(3);
    let mut store = there.chains_at(addr).unwrap();
    store.put(&mut there, 1, b"after").unwrap();
    let mut found = Vec::new();
    assert!(store.get(&mut there, 1, &mut found).unwrap() && found == b"after");
}

#[test]
fn histories_are_linearizable_while_the_first_or_the_last_copy_dies() {
    for (seed, dead) in [(1, 0), (2, 1)] {
        histories_while_nodes_die(false, (2, 2, 3), &[dead], seed);
    }
}

#[test]
fn histories_are_linearizable_while_one_of_three_memories_dies_on_a_network_that_loses() {
    histories_while_nodes_die(true, (2, 3, 3), &[1], 3);
}

#[test]
fn histories_are_linearizable_while_two_of_three_copies_die_one_after_the_other() {
    histories_while_nodes_die(false, (3, 3, 3), &[0, 2], 4);
}

#[test]
fn histories_are_linearizable_while_the_metadata_server_dies_with_memory_and_without() {
    for (seed, memories, server) in [(5, 2, 2), (6, 2, 0), (7, 3, 1)] {
        histories_while_nodes_die(false, (2, memories, server), &[server.into()], seed);
    }
}

#[test]
fn histories_are_linearizable_while_the_metadata_server_dies_on_a_network_that_loses() {
    histories_while_nodes_die(true, (2, 2, 2), &[2], 8);
}

#[test]
fn histories_are_linearizable_while_the_metadata_server_and_who_took_over_die_one_after_the_other() {
    histories_while_nodes_die(false, (3, 3, 0), &[0, 1], 9);
}

#[test]
fn a_store_whose_metadata_server_has_died_is_opened_filled_and_freed() {
    let mut rack = Processes::start(4);
    let addr = store_of(&rack, 2, 2, 3);
    let mut here = rack.nodes[2].here();
    let (mut store, mut found) = (here.chains_at(addr).unwrap(), Vec::new());
    store.put(&mut here, 1, b"before").unwrap();
    rack.cut_off(3);
    // What was given to clients before does not last for so many.
    for key in 0..200_u64 {
        store.put(&mut here, key, &key.to_le_bytes()).unwrap();
    }
    // Another node, that knows nothing of it.
    let mut there = rack.nodes[0].here();
    let mut same = there.chains_at(addr).unwrap();
    for key in 0..200_u64 {
        assert!(same.get(&mut there, key, &mut found).unwrap() && found == key.to_le_bytes());
    }
    same.delete(&mut there, 7).unwrap();
    assert!(!store.get(&mut here, 7, &mut found).unwrap());
    // In the next life of its node, another store has its address: it is not that one's backup that is asked.
    rack.reconnect(3);
    let mut back = rack.nodes[3].here();
    until(|| back.chains_at(addr).err().filter(|error| *error == Error::Fenced));
    drop(back);
    rack.rejoin(3);
    let later = until(|| {
        let mut back = rack.nodes[3].here();
        back.chains(&ChainsConfig { server: NodeId(3), ..copies(2, 2, 64 << 10) }).ok()
    });
    assert_eq!(later.addr(), addr);
    let mut second = here.chains_at(addr).unwrap();
    assert!(!second.get(&mut here, 1, &mut found).unwrap(), "that one is empty");
    assert!(store.get(&mut here, 1, &mut found).unwrap());
    store.free(&mut here).unwrap();
    assert_eq!(same.put(&mut there, 1, b"gone").err(), Some(Error::Unallocated { addr }));
    second.put(&mut here, 1, b"second").unwrap();
    later.free(&mut here).unwrap();
    assert_eq!(there.chains_at(addr).err(), Some(Error::Unallocated { addr }));
}

#[test]
fn what_a_memory_had_is_copied_elsewhere_and_its_node_comes_back_to_other_stores() {
    let mut rack = Processes::start(4);
    let addr = store_of(&rack, 2, 2, 3);
    let mut here = rack.nodes[2].here();
    let (mut store, mut found) = (here.chains_at(addr).unwrap(), Vec::new());
    for key in 0..20_u64 {
        store.put(&mut here, key, &key.to_le_bytes().repeat(50)).unwrap();
    }
    rack.cut_off(0);
    for key in 0..20_u64 {
        assert!(store.get(&mut here, key, &mut found).unwrap() && found == key.to_le_bytes().repeat(50));
        store.put(&mut here, key, &(key + 100).to_le_bytes().repeat(50)).unwrap();
    }
    rack.reconnect(0);
    let mut there = rack.nodes[0].here();
    until(|| there.chains_at(addr).err().filter(|error| *error == Error::Fenced));
    drop(there);
    rack.rejoin(0);
    // Its memory is somebody else's now, at the same addresses, and stays that.
    let mut other = until(|| here.chains(&copies(1, 1, 512 << 10)).ok());
    other.put(&mut here, 1, b"other").unwrap();
    let mut same = here.chains_at(addr).unwrap();
    for key in 0..20_u64 {
        assert!(
            same.get(&mut here, key, &mut found).unwrap() && found == (key + 100).to_le_bytes().repeat(50)
        );
    }
    // Freeing gives back what is left.
    let small = store_of(&rack, 2, 2, 3);
    here.chains_at(small).unwrap().free(&mut here).unwrap();
    assert!(other.get(&mut here, 1, &mut found).unwrap() && found == b"other");
}

#[test]
fn a_store_whose_copies_die_at_once_is_lost() {
    let mut rack = Processes::start(4);
    let addr = store_of(&rack, 2, 2, 3);
    let mut here = rack.nodes[2].here();
    let (mut store, mut found) = (here.chains_at(addr).unwrap(), Vec::new());
    store.put(&mut here, 1, b"one").unwrap();
    let began = std::time::Instant::now();
    rack.cut_off(0);
    rack.cut_off(1);
    assert_eq!(until(|| store.put(&mut here, 1, b"more").err()), Error::NodeDown { addr });
    assert_eq!(store.get(&mut here, 1, &mut found), Err(Error::NodeDown { addr }), "from then on");
    // Who knows nothing of it asks the server first, which lives, and says so at once.
    let mut there = rack.nodes[3].here();
    let mut same = there.chains_at(addr).unwrap();
    assert_eq!(same.get(&mut there, 1, &mut found), Err(Error::NodeDown { addr }));
    assert!(began.elapsed() < Duration::from_secs(30), "it waits for nobody");
}

#[test]
fn a_part_whose_copies_die_at_once_is_lost_and_nobody_waits_for_the_backup_of_its_server() {
    let mut rack = Processes::start(4);
    // The server's backup is where only another part has a copy.
    let addr = store_of(&rack, 2, 3, 3);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[3].here());
    let [mut store, mut same] = [&mut here, &mut there].map(|handle| handle.chains_at(addr).unwrap());
    // Entries in all parts.
    for key in 0..100 {
        store.put(&mut here, key, b"before").unwrap();
    }
    let began = std::time::Instant::now();
    rack.cut_off(1);
    rack.cut_off(2);
    let mut found = Vec::new();
    let lost = until(|| (0..100).find_map(|key| store.get(&mut here, key, &mut found).err()));
    assert_eq!(lost, Error::NodeDown { addr });
    let lost = until(|| (0..100).find_map(|key| same.put(&mut there, key, b"after").err()));
    assert_eq!(lost, Error::NodeDown { addr });
    assert!(began.elapsed() < Duration::from_secs(30), "it waits for nobody");
    let mut again = here.chains_at(addr).unwrap();
    let lost = (0..100).find_map(|key| again.get(&mut here, key, &mut found).err());
    assert_eq!(lost, Some(Error::NodeDown { addr }));
    // It can be given back.
    again.free(&mut here).unwrap();
}

/// Waits until a store has all its copies, after so many were made anew in all.
fn until_copied(rack: &Processes, server: usize, copies: u64) {
    until(|| {
        let counts = rack.nodes[server].chain_counts();
        (counts.missing == 0 && counts.recopied >= copies).then_some(())
    });
}

/// Waits until all others know of the death of the last one of these nodes, and everything has been replaced.
fn until_replaced(rack: &Processes, dead: &[usize]) {
    let live: Vec<usize> = (0..rack.nodes.len()).filter(|node| !dead.contains(node)).collect();
    let last = NodeId(*dead.last().unwrap() as u16);
    for node in &live {
        // By a node's device copies are missed, and it is asked here: it hears of a death a moment after the other machines.
        let mut here = rack.nodes[*node].here();
        let mut lost = || here.words_at::<u64>(GlobalAddr::new(last, 0)).err();
        until(|| lost().filter(|why| matches!(why, Error::NodeDown { .. })));
    }
    let is_whole = |node: &usize| {
        let counts = rack.nodes[*node].chain_counts();
        counts.stores == 1 && counts.missing == 0
    };
    // A living node that was taken for dead, on a busy machine, is seen here.
    let say = || {
        let node = |node: &usize| {
            let it = &rack.nodes[*node];
            let up: Vec<bool> = (0..rack.nodes.len()).map(|other| it.is_up(NodeId(other as u16))).collect();
            format!("node {node}: fenced {}, up {up:?}, {:?}\n", it.is_fenced(), it.chain_counts())
        };
        format!("after {dead:?} died:\n{}", live.iter().map(node).collect::<String>())
    };
    until_or_say(|| live.iter().any(is_whole).then_some(()), say);
}

/// Clients at nodes 3 and 4, while one home after the other dies, each when what the last one had has been copied; and whoever has the
/// metadata server, or its backup.
fn histories_while_copies_are_made_anew(faulty: bool, memories: u16, server: u16, seed: u64) {
    histories_while_copies_are_made_anew_on(faulty, None, (memories, server, seed));
}

/// The same, on a rack whose switch steers so many keys.
fn histories_while_copies_are_made_anew_on(
    faulty: bool,
    steering: Option<usize>,
    (memories, server, seed): (u16, u16, u64),
) {
    let shape = Config { nodes: 5, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    // Nobody may be taken for dead who only has no processor for a moment: two of them at a time are too many.
    let config = Config { peek: faulty, steering, ..shape };
    let mut rack = Processes::start_with(faulty, config);
    let addr = store_of(&rack, 2, memories, server);
    let kill = |rack: &mut Processes, dead: usize| {
        rack.cut_off(dead);
        until_replaced(rack, &(0..=dead).collect::<Vec<_>>());
    };
    histories(&mut rack, &[3, 4], (addr, seed), 3, kill);
    assert!(steering.is_none() || rack.steering_counts().moved > 0, "somebody was sent elsewhere");
    let mut there = rack.nodes[3].here();
    there.chains_at(addr).unwrap().free(&mut there).unwrap();
}

#[test]
fn histories_are_linearizable_while_copies_are_made_anew_and_more_nodes_die_than_there_are_copies() {
    histories_while_copies_are_made_anew(false, 2, 4, 10);
    histories_while_copies_are_made_anew(false, 3, 3, 11);
}

#[test]
fn histories_are_linearizable_while_one_metadata_server_after_the_other_dies() {
    histories_while_copies_are_made_anew(false, 2, 0, 13);
    histories_while_copies_are_made_anew(false, 3, 1, 14);
}

#[test]
fn histories_are_linearizable_while_copies_are_made_anew_on_a_network_that_loses() {
    histories_while_copies_are_made_anew(true, 3, 4, 12);
}

/// All first copies are in one memory, and the switch steers.
fn steered_histories_while_nodes_die(faulty: bool, (many, server): (usize, u16), dying: &[usize], seed: u64) {
    let rack = Processes::start_steered(4, faulty, Some(usize::MAX));
    histories_of_a_rack_whose_nodes_die(rack, (many, many as u16, server), dying, seed);
}

#[test]
fn steered_histories_are_linearizable_while_the_first_or_the_last_copy_dies() {
    for (seed, dead) in [(21, 0), (22, 1)] {
        steered_histories_while_nodes_die(false, (2, 3), &[dead], seed);
    }
}

#[test]
fn steered_histories_are_linearizable_while_two_of_three_copies_die_on_a_network_that_loses() {
    steered_histories_while_nodes_die(true, (3, 3), &[0, 1], 23);
}

#[test]
fn steered_histories_are_linearizable_while_the_metadata_server_dies_with_memory_and_without() {
    steered_histories_while_nodes_die(false, (2, 2), &[2], 24);
    steered_histories_while_nodes_die(false, (2, 0), &[0], 25);
}

#[test]
fn steered_histories_are_linearizable_while_copies_are_made_anew_and_steered_again() {
    histories_while_copies_are_made_anew_on(false, Some(usize::MAX), (2, 0, 26));
}

#[test]
fn steered_histories_are_linearizable_while_copies_are_made_anew_on_a_network_that_loses() {
    histories_while_copies_are_made_anew_on(true, Some(usize::MAX), (2, 4, 27));
}

#[test]
fn a_store_with_copies_is_steered_again_when_what_its_first_memory_had_is_elsewhere() {
    let config = Config { nodes: 4, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    let config = Config { steering: Some(usize::MAX), ..config };
    let mut rack = Processes::start_with(false, config);
    let addr = store_of(&rack, 2, 2, 3);
    let mut here = rack.nodes[2].here();
    let mut store = here.chains_at(addr).unwrap();
    let is_steered = |rack: &Processes, put: &mut dyn FnMut()| {
        let before = rack.steering_counts().steered;
        until(|| {
            put();
            (rack.steering_counts().steered > before + 1).then_some(())
        });
    };
    is_steered(&rack, &mut || store.put(&mut here, 1, b"before").unwrap());
    // The first copy is gone: the other one decides, and the switch looks at nothing.
    rack.cut_off(0);
    until_copied(&rack, 3, 1);
    is_steered(&rack, &mut || store.put(&mut here, 1, b"after").unwrap());
    // And so when the other one is gone, and is made of what is there now.
    rack.cut_off(1);
    until_copied(&rack, 3, 2);
    is_steered(&rack, &mut || store.put(&mut here, 1, b"at last").unwrap());
    let (mut there, mut found) = (rack.nodes[3].here(), Vec::new());
    assert!(there.chains_at(addr).unwrap().get(&mut there, 1, &mut found).unwrap() && found == b"at last");
}

#[test]
fn what_is_copied_is_all_that_there_was_and_a_node_that_returns_is_used_again() {
    let mut rack = Processes::start(3);
    let addr = store_of(&rack, 2, 2, 2);
    let mut here = rack.nodes[2].here();
    let (mut store, mut found) = (here.chains_at(addr).unwrap(), Vec::new());
    let value = |key: u64, round: u64| (key * 1000 + round).to_le_bytes().repeat(1 + key as usize % 200);
    let mut round = 0;
    for dead in [0, 1, 0] {
        for key in 0..300 {
            store.put(&mut here, key, &value(key, round)).unwrap();
        }
        store.delete(&mut here, round).unwrap();
        let before = rack.nodes[2].chain_counts().recopied;
        rack.cut_off(dead);
        // The node that is left has all of it: of one copy of each part the other one is made there.
        if dead != 0 || round == 0 {
            until_copied(&rack, 2, before + 2);
        }
        for key in 0..300 {
            let is_there = store.get(&mut here, key, &mut found).unwrap();
            assert!(is_there == (key != round) && (!is_there || found == value(key, round)), "{key}");
        }
        round += 1;
        if round == 3 {
            break;
        }
        rack.reconnect(dead);
        let mut there = rack.nodes[dead].here();
        until(|| there.chains_at(addr).err().filter(|error| *error == Error::Fenced));
        drop(there);
        rack.rejoin(dead);
    }
    assert!(rack.nodes[2].chain_counts().recopied >= 4);
}

#[test]
fn clients_go_on_while_a_copy_is_made_anew_and_what_they_write_is_in_it() {
    let config = Config { nodes: 4, memory: 96 << 20, cache: 1 << 20, ..Config::default() };
    let mut rack = Processes::start_with(false, config);
    let (lease, quarantine) = (Nanos::from_millis(40), Some(Nanos::from_millis(60)));
    let (mut here, mut there) = (rack.nodes[3].here(), rack.nodes[3].here());
    let store = ChainsConfig { lease, quarantine, server: NodeId(2), ..copies(2, 2, 32 << 20) };
    let mut store = here.chains(&store).unwrap();
    let mut same = there.chains_at(store.addr()).unwrap();
    let value = |key: u64, round: u64| (key << 32 | round).to_le_bytes().repeat(1500);
    for key in 0..1500 {
        store.put(&mut here, key, &value(key, 0)).unwrap();
    }
    rack.cut_off(0);
    let (mut rounds, mut meanwhile, mut found) = (vec![0; 1500], 0, Vec::new());
    for key in (0..1500).cycle() {
        rounds[key as usize] += 1;
        store.put(&mut here, key, &value(key, rounds[key as usize])).unwrap();
        let counts = rack.nodes[2].chain_counts();
        if counts.missing == 0 && counts.recopied == 2 {
            assert_eq!(counts.bytes_missing, 0);
            assert!(counts.bytes_recopied >= 1500 * 12_000, "{counts:?}");
            break;
        }
        meanwhile += u64::from(counts.bytes_recopied > 0);
    }
    assert!(meanwhile > 0, "somebody could write");
    // What is read from here on is in those copies; and by somebody who has heard of nothing since the store began.
    rack.cut_off(1);
    for (key, round) in (0..).zip(rounds) {
        assert!(same.get(&mut there, key, &mut found).unwrap());
        assert!(found == value(key, round), "{key} {round}: {:?}", found.get(..8));
    }
}

#[test]
fn what_is_left_of_a_store_with_copies_is_freed_and_nothing_of_others() {
    let mut rack = Processes::start(4);
    let addr = store_of(&rack, 2, 2, 3);
    let mut here = rack.nodes[2].here();
    let mut store = here.chains_at(addr).unwrap();
    store.put(&mut here, 1, b"copies").unwrap();
    rack.cut_off(0);
    store.put(&mut here, 1, b"one copy").unwrap();
    rack.reconnect(0);
    let mut there = rack.nodes[0].here();
    until(|| there.chains_at(addr).err().filter(|error| *error == Error::Fenced));
    drop(there);
    rack.rejoin(0);
    let mut other = until(|| here.chains(&copies(1, 1, 1 << 20)).ok());
    other.put(&mut here, 1, b"other").unwrap();
    store.free(&mut here).unwrap();
    assert_eq!(here.chains_at(addr).err(), Some(Error::Unallocated { addr }));
    // Nobody else gets that memory.
    let mut third = here.chains(&copies(1, 1, 1 << 20)).unwrap();
    third.put(&mut here, 1, b"third").unwrap();
    let mut found = Vec::new();
    assert!(other.get(&mut here, 1, &mut found).unwrap() && found == b"other");
}
