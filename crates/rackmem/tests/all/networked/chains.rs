//! Chains between processes; also over a network that loses, doubles and reorders, and with processes and switches that die.

use std::sync::atomic::{AtomicBool, Ordering};

use check::AtEnd;
use rackmem::{Chains, ChainsConfig, Config, Error, Nanos, NodeId, SteeringCounts};

use crate::chains_everywhere::{Nodes, a_store_for_histories, assert_linearizable, everywhere, history_of};
use crate::networked::rig::{Processes, until};

fn both(body: fn(Nodes<'_>)) {
    for faulty in [false, true] {
        let rack = Processes::start_on(3, faulty);
        body(&|node| rack.nodes[usize::from(node)].here());
    }
}

everywhere!(both);

fn histories_of(steering: Option<usize>) {
    let mut rack = Processes::start_steered(3, true, steering);
    (0..3).for_each(|round| a_history_over_a_restart(&mut rack, round));
}

/// Clients of a new store work while the switch is killed, and another one started.
fn a_history_over_a_restart(rack: &mut Processes, round: u64) {
    let nodes = rack.nodes.clone();
    let here = |node: u16| nodes[usize::from(node)].here();
    let addr = a_store_for_histories(&here);
    let history = std::thread::scope(|scope| {
        let clients = scope.spawn(|| history_of(&here, addr, round, 60));
        rack.restart_switch();
        clients.join().unwrap()
    });
    assert_linearizable(&history);
}

#[test]
fn histories_are_linearizable_while_the_switch_is_killed_and_restarted() {
    histories_of(None);
}

#[test]
fn histories_are_linearizable_while_a_switch_that_steers_is_killed_and_restarted() {
    histories_of(Some(usize::MAX));
    histories_of(Some(2));
}

#[test]
fn who_reads_while_the_switch_is_restarted_is_refused_begins_anew_and_reads_nothing_wrong() {
    let config = Config { nodes: 3, memory: 32 << 20, cache: 1 << 20, ..Config::default() };
    let config = Config { steering: Some(usize::MAX), steer_reads: true, ..config };
    let mut rack = Processes::start_with(true, config);
    // In one round of three, or so, a read is in flight then.
    let is_refused = (0..50).any(|round| {
        a_history_over_a_restart(&mut rack, round);
        round >= 2 && rack.steering_counts().reads_refused > 0
    });
    assert!(is_refused, "no read was in flight in any of many restarts");
}

mod steered {
    use super::*;

    /// On a network that loses nothing, and on one that does.
    fn both(body: fn(Nodes<'_>)) {
        for faulty in [false, true] {
            let rack = Processes::start_steered(3, faulty, Some(usize::MAX));
            body(&|node| rack.nodes[usize::from(node)].here());
        }
    }

    everywhere!(both);
}

mod reads_steered {
    use super::*;

    /// On a network that loses, doubles and reorders.
    fn faulty(body: fn(Nodes<'_>)) {
        let config = Config { nodes: 3, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
        let config = Config { steering: Some(usize::MAX), steer_reads: true, preload: true, ..config };
        let rack = Processes::start_with(true, config);
        body(&|node| rack.nodes[usize::from(node)].here());
    }

    crate::chains_everywhere::wherever_reads_are_steered!(faulty);
}

/// After a restart of the switch, a client appends to a key to which nobody has appended since: was it steered, and how many tails was the
/// switch told?
fn after_a_restart(preload: bool) -> (u64, u64) {
    let config = Config { nodes: 3, memory: 4 << 20, cache: 1 << 20, ..Config::default() };
    let mut rack = Processes::start_with(
        false,
        Config { steering: Some(usize::MAX), steer_reads: true, preload, ..config },
    );
    let mut here = rack.nodes[0].here();
    let mut store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20)).unwrap();
    let others = 16;
    for _ in 0..3 {
        (0..=others).for_each(|key| store.put(&mut here, key, b"before").unwrap());
    }
    rack.restart_switch();
    // Reading takes a new connection, and appends nothing.
    let mut found = Vec::new();
    assert!(store.get(&mut here, 0, &mut found).unwrap() && found == b"before");
    let told = if preload {
        until(|| Some(rack.steering_counts().preloaded).filter(|told| *told > others))
    } else {
        0
    };
    assert_eq!(rack.steering_counts().steered, 0);
    store.put(&mut here, 0, b"after").unwrap();
    let appended = |counts: SteeringCounts| (counts.steered + counts.unsteered > 0).then_some(counts.steered);
    (until(|| appended(rack.steering_counts())), told)
}

#[test]
fn a_restarted_switch_that_is_told_tails_steers_a_key_at_once_that_nobody_has_appended_to_since() {
    assert_eq!(after_a_restart(false), (0, 0));
    assert_eq!(after_a_restart(true), (1, 17));
}

#[test]
fn two_stores_with_the_same_keys_are_not_taken_for_each_other() {
    let rack = Processes::start_steered(3, false, Some(usize::MAX));
    let here = |node: u16| rack.nodes[usize::from(node)].here();
    let stores = [0, 1].map(|_| a_store_for_histories(&here));
    std::thread::scope(|scope| {
        for (seed, addr) in (0..).zip(stores) {
            let here = &here;
            scope.spawn(move || assert_linearizable(&history_of(here, addr, seed, 60)));
        }
    });
}

#[test]
fn what_a_dead_client_had_comes_back_and_the_others_go_on() {
    let mut rack = Processes::start(3);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[2].here());
    let (lease, quarantine) = (Nanos::from_millis(20), Some(Nanos::from_millis(30)));
    let mut store =
        here.chains(&ChainsConfig { lease, quarantine, ..ChainsConfig::at(NodeId(1), 64 << 10) }).unwrap();
    let mut doomed = there.chains_at(store.addr()).unwrap();
    store.put(&mut here, 1, &[1; 1000]).unwrap();
    doomed.put(&mut there, 2, &[2; 1000]).unwrap();
    // It has slots that nobody else can have while it lives: of this size the memory has 64, and each client is given 16.
    let mut keys = 10;
    while store.put(&mut here, keys, &[3; 1000]).is_ok() {
        keys += 1;
    }
    assert!(keys < 60, "{keys}");
    drop((doomed, there));
    rack.kill(2);
    let before = keys;
    until(|| store.put(&mut here, keys, &[3; 1000]).ok());
    while store.put(&mut here, keys, &[3; 1000]).is_ok() {
        keys += 1;
    }
    assert!(keys >= before + 15, "{before} keys, then {keys}");
    let mut found = Vec::new();
    assert!(store.get(&mut here, 2, &mut found).unwrap() && found == [2; 1000], "it was put");
    assert_eq!(rack.nodes[1].chain_counts().swept, 1);
}

#[test]
fn a_client_that_dies_in_the_middle_of_puts_leaves_nothing_half_visible() {
    for round in 0..3_u64 {
        let mut rack = Processes::start(3);
        let mut here = rack.nodes[0].here();
        let config = ChainsConfig {
            lease: Nanos::from_millis(100),
            quarantine: Some(Nanos::from_millis(150)),
            ..ChainsConfig::at(NodeId(0), 512 << 10)
        };
        let mut store = here.chains(&config).unwrap();
        let addr = store.addr();
        let stop = AtomicBool::new(false);
        let mut last = 0;
        std::thread::scope(|scope| {
            let doomed = rack.nodes[2].clone();
            let stop = &stop;
            let writer = scope.spawn(move || {
                let mut there = doomed.here();
                let mut store = there.chains_at(addr).unwrap();
                let mut put = 0;
                while !stop.load(Ordering::SeqCst) {
                    match store.put(&mut there, 1, &(put + 1_u64).to_le_bytes().repeat(200)) {
                        Ok(()) => put += 1,
                        Err(error) => {
                            assert!(matches!(error, Error::Fenced | Error::NodeDown { .. }), "{error}");
                            break;
                        }
                    }
                }
                put
            });
            let stop_at_end = AtEnd(stop);
            std::thread::sleep(std::time::Duration::from_millis(30 + 40 * round));
            rack.cut_off(2);
            // The others find out, and what it was in the middle of is there as a whole, or not at all.
            until(|| (rack.nodes[0].chain_counts().swept == 1).then_some(()));
            let mut found = Vec::new();
            if store.get(&mut here, 1, &mut found).unwrap() {
                let (words, rest) = found.as_chunks::<8>();
                assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]));
                last = u64::from_le_bytes(words[0]);
            }
            drop(stop_at_end);
            rack.reconnect(2);
            let put = writer.join().unwrap();
            assert!(last == put || last == put + 1, "{put} were put, {last} is there");
        });
        store.put(&mut here, 1, b"after").unwrap();
        let mut found = Vec::new();
        assert!(store.get(&mut here, 1, &mut found).unwrap() && found == b"after");
    }
}

#[test]
fn a_store_whose_metadata_server_or_memory_dies_is_lost_and_others_are_not() {
    for dead in [1, 2] {
        let mut rack = Processes::start(3);
        let mut here = rack.nodes[0].here();
        let config = ChainsConfig {
            homes: vec![NodeId(1)],
            copies: 1,
            server: NodeId(2),
            lease: Nanos::from_millis(20),
            quarantine: Some(Nanos::from_millis(30)),
            bytes: 64 << 10,
        };
        let mut lost = here.chains(&config).unwrap();
        let mut kept = here.chains(&ChainsConfig::at(NodeId(0), 64 << 10)).unwrap();
        lost.put(&mut here, 1, b"lost").unwrap();
        kept.put(&mut here, 1, b"kept").unwrap();
        rack.cut_off(dead);
        let addr = lost.addr();
        let mut found = Vec::new();
        // Without a metadata server clients go on for as long as they know tails and have slots.
        assert_eq!(until(|| lost.put(&mut here, 1, b"more").err()), Error::NodeDown { addr });
        assert_eq!(lost.get(&mut here, 1, &mut found), Err(Error::NodeDown { addr }), "from then on");
        assert_eq!(
            until(|| here
                .chains_at(addr)
                .err()
                .or_else(|| { here.chains_at(addr).ok()?.get(&mut here, 1, &mut Vec::new()).err() })),
            Error::NodeDown { addr }
        );
        assert!(kept.get(&mut here, 1, &mut found).unwrap() && found == b"kept");
        rack.reconnect(dead);
        let mut there = rack.nodes[dead].here();
        until(|| there.chains_at(addr).err().filter(|error| *error == Error::Fenced));
        drop(there);
        rack.rejoin(dead);
        assert_eq!(
            lost.put(&mut here, 1, b"more"),
            Err(Error::NodeDown { addr }),
            "also in its next incarnation"
        );
        let again =
            ChainsConfig { homes: vec![NodeId(dead as u16)], ..ChainsConfig::at(NodeId(0), 64 << 10) };
        let mut again = until(|| here.chains(&again).ok());
        again.put(&mut here, 1, b"again").unwrap();
        assert!(again.get(&mut here, 1, &mut found).unwrap() && found == b"again");
    }
}

#[test]
fn when_a_steered_store_loses_its_memory_or_its_metadata_server_another_one_is_steered() {
    for dead in [1, 2] {
        let mut rack = Processes::start_steered(3, false, Some(usize::MAX));
        let mut here = rack.nodes[0].here();
        let config = ChainsConfig { server: NodeId(2), ..ChainsConfig::at(NodeId(1), 256 << 10) };
        let mut lost = here.chains(&config).unwrap();
        let mut kept = here.chains(&ChainsConfig::at(NodeId(0), 256 << 10)).unwrap();
        let mut put = |store: &mut Chains, value: &[u8]| store.put(&mut here, 1, value);
        until(|| {
            put(&mut lost, b"lost").unwrap();
            (rack.steering_counts().steered > 0).then_some(())
        });
        put(&mut kept, b"kept").unwrap();
        rack.cut_off(dead);
        let addr = lost.addr();
        // Its client begins its connections anew, and goes on for as long as it has slots.
        assert_eq!(until(|| put(&mut lost, b"more").err()), Error::NodeDown { addr });
        let before = rack.steering_counts().steered;
        until(|| {
            put(&mut kept, b"kept").unwrap();
            (rack.steering_counts().steered > before + 1).then_some(())
        });
    }
}
