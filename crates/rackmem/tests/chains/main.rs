//! Chains on embedded racks: through the public API, with real threads.

#[path = "../chains_everywhere/mod.rs"]
mod chains_everywhere;

use rackmem::{Chains, ChainsConfig, Config, Error, NodeId, Rack};

use chains_everywhere::{Nodes, everywhere};

fn rack() -> Rack {
    let config = Config { nodes: 3, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    Rack::embedded(config).expect("a possible rack")
}

fn embedded(body: fn(Nodes<'_>)) {
    let rack = rack();
    body(&|node| rack.node(NodeId(node)));
}

everywhere!(embedded);

#[test]
fn one_store_has_as_many_clients_on_a_node_as_can_be_and_no_more() {
    let rack = rack();
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
