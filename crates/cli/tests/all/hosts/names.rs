//! Nodes that are known by name, as in a cluster that starts containers where there is capacity.

use rackmem::{Discipline, NodeId, Rack};

use super::rig::{Rig, SWITCH, Shape, eventually, host};

/// A word of each node's memory is written on the other one. The nodes are on these hosts.
fn work(rig: &Rig, hosts: [usize; 2]) {
    let mut apps = [0, 1].map(|node: u16| {
        let file = rig.file(hosts[usize::from(node)]);
        Rack::attach(&file, NodeId(node)).unwrap().here()
    });
    for node in [0, 1] {
        let [here, there] = &mut apps;
        let word = here.alloc(8, NodeId(node), Discipline::Coherent).unwrap();
        there.write_word(word, 7).unwrap();
        assert_eq!(here.read_word(word), Ok(7));
    }
}

#[test]
fn a_name_that_leads_nowhere_yet_is_waited_for_and_a_node_that_moves_is_found_again() {
    let shape = Shape { nodes: 2, unknown_peers: 1, ..Shape::usual() };
    let Some(mut rig) = Rig::new("names", &shape) else { return };
    let elsewhere = host(2);
    rig.name_nodes(4);
    rig.start_switch();
    rig.start_node(0);
    rig.start_node(1);
    for node in [0, 1] {
        let line = format!("`advertise` of node {node} is node-{node}:7400 (rack.toml:");
        eventually("the switch says which name leads nowhere", || rig.said(SWITCH).contains(&line));
    }
    (0..4).for_each(|at| rig.lead(at, &[host(0), host(1)]));
    let status = rig.until_up(host(0));
    let first = status["nodes"][1]["incarnation"].as_u64();
    work(&rig, [host(0), host(1)]);

    assert_eq!(rig.end(host(1)).0, Some(0));
    (0..4).for_each(|at| rig.lead(at, &[host(0), elsewhere]));
    rig.start(elsewhere, &["node", "--id", "1"]);
    rig.until_status(host(0), "it is up again", |status| {
        status["nodes"][1]["up"] == true && status["nodes"][1]["incarnation"].as_u64() > first
    });
    work(&rig, [host(0), elsewhere]);
}
