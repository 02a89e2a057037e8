//! Chains on embedded racks: through the public API, with real threads.

use rackmem::{Chains, ChainsConfig, Config, ConfigError, Error, NodeId, Rack};

use crate::chains_everywhere::{Nodes, everywhere};

fn rack(steering: Option<usize>) -> Rack {
    rack_that_reads(steering, false)
}

fn rack_that_reads(steering: Option<usize>, steer_reads: bool) -> Rack {
    let config =
        Config { nodes: 3, cache: 1 << 20, memory: 8 << 20, steering, steer_reads, ..Config::default() };
    Rack::embedded(config).expect("a possible rack")
}

fn embedded(body: fn(Nodes<'_>)) {
    let rack = rack(None);
    body(&|node| rack.node(NodeId(node)));
}

everywhere!(embedded);

mod steered {
    use super::*;

    fn embedded(body: fn(Nodes<'_>)) {
        let rack = rack(Some(usize::MAX));
        body(&|node| rack.node(NodeId(node)));
    }

    everywhere!(embedded);
}

mod reads_steered {
    use super::*;

    fn embedded(body: fn(Nodes<'_>)) {
        let rack = rack_that_reads(Some(usize::MAX), true);
        body(&|node| rack.node(NodeId(node)));
    }

    crate::chains_everywhere::wherever_reads_are_steered!(embedded);

    #[test]
    fn an_old_cursor_leads_to_the_tail_in_one_round_trip_and_the_next_one_knows_it() {
        let rack = rack_that_reads(Some(usize::MAX), true);
        let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(2)));
        let mut store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20)).unwrap();
        let (mut same, mut found) = (there.chains_at(store.addr()).unwrap(), Vec::new());
        // What begins a chain is not known to the switch.
        store.put(&mut here, 1, &[0]).unwrap();
        store.put(&mut here, 1, &[0, 0]).unwrap();
        assert!(same.get(&mut there, 1, &mut found).unwrap());
        let before = rack.steering_counts().unwrap().reads;
        for round in 1..=20 {
            for last in 0..5 {
                store.put(&mut here, 1, &[round, last]).unwrap();
            }
            assert!(same.get(&mut there, 1, &mut found).unwrap() && found == [round, 4]);
            assert_eq!(same.trips(), 1, "round {round}");
        }
        assert_eq!(rack.steering_counts().unwrap().reads - before, 20);
    }

    #[test]
    fn a_rack_that_does_not_steer_steers_no_reads() {
        let config = Config { steer_reads: true, ..Config::default() };
        assert_eq!(Rack::embedded(config).err(), Some(ConfigError::NotSteered));
    }
}

/// Two clients put to one key in turn, a hundred times; how many round trips that took, and how many appends were sent elsewhere.
fn trips_of_two_in_turn(steering: Option<usize>) -> (u32, u64) {
    let rack = rack(steering);
    let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(2)));
    let mut store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20)).unwrap();
    let mut same = there.chains_at(store.addr()).unwrap();
    let mut trips = 0;
    for round in 0..50_u8 {
        store.put(&mut here, 1, &[round, 0]).unwrap();
        trips += store.trips();
        // It has heard nothing of what the other one has appended meanwhile, nor the other way round.
        same.put(&mut there, 1, &[round, 1]).unwrap();
        trips += same.trips();
    }
    let mut found = Vec::new();
    for (client, node) in [(&mut store, &mut here), (&mut same, &mut there)] {
        assert!(client.get(node, 1, &mut found).unwrap() && found == [49, 1]);
    }
    (trips, rack.steering_counts().unwrap().moved)
}

#[test]
fn an_append_that_has_lost_its_race_is_tried_again_unless_the_switch_sends_it_to_the_tail() {
    let (native, moved) = trips_of_two_in_turn(None);
    assert_eq!(moved, 0);
    let (steered, moved) = trips_of_two_in_turn(Some(usize::MAX));
    assert!(native >= 190, "{native} for a hundred puts: two each, of which one has lost");
    assert!(steered <= 120, "{steered}: one each, and slots now and then");
    assert!(moved >= 90, "{moved}");
}

#[test]
fn one_store_has_as_many_clients_on_a_node_as_can_be_and_no_more() {
    let rack = rack(None);
    let mut here = rack.node(NodeId(0));
    let store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20)).unwrap();
    let mut clients = vec![store; Chains::MOST_CLIENTS + 1];
    for client in &mut clients[1..] {
        client.get(&mut here, 1, &mut Vec::new()).unwrap();
    }
    let most = Chains::MOST_CLIENTS;
    assert_eq!(clients[0].get(&mut here, 1, &mut Vec::new()), Err(Error::TooManyClients { most }));
    clients.pop();
    clients[0].get(&mut here, 1, &mut Vec::new()).unwrap();
}
