//! What one host writes another one reads, also where the path carries only short packets; and nothing that a rack sends
//! is longer than its file says.

use rackmem::{Discipline, NodeHandle, NodeId};

use super::network::Hub;
use super::rig::{Rig, Shape, finishes, host};

/// Not a multiple of anything.
const LENGTH: usize = 300_007;

fn pattern(seed: u8) -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8 ^ seed).collect()
}

/// A text over many blocks, and a word that goes back and forth.
fn exchange(mut one: NodeHandle, mut other: NodeHandle) {
    let text = one.alloc(LENGTH as u64, NodeId(0), Discipline::Coherent).unwrap();
    let mut seen = vec![0; LENGTH];
    one.write(text, &pattern(1)).unwrap();
    other.read(text, &mut seen).unwrap();
    assert!(seen == pattern(1), "the other host reads what one has written");
    other.write(text, &pattern(2)).unwrap();
    one.read(text, &mut seen).unwrap();
    assert!(seen == pattern(2), "and the other way round");
    let word = one.alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    for round in 0..50 {
        for node in [&mut one, &mut other] {
            node.update(word, 8, |word| word.set_word(0, word.word(0) + 1)).unwrap();
        }
        assert_eq!(one.read_word(word).unwrap(), 2 * (round + 1));
    }
}

/// A daemon gives the memory, and two applications exchange what is in it.
fn hosts_share_memory(name: &str, hub: Hub, mtu: u32, block: &'static str) {
    share_memory(name, &Shape { hub, mtu, block, ..Shape::usual() });
}

fn share_memory(name: &str, shape: &Shape) {
    let Some(mut rig) = Rig::new(name, shape) else { return };
    rig.start_switch();
    rig.start_node(0);
    let racks = rig.join_all([1, 2]);
    rig.until_up(host(1));
    let [one, other] = [0, 1].map(|at: usize| racks[at].here());
    finishes("two hosts exchange what they write", move || exchange(one, other));
    assert_eq!(rig.network.fragments(), 0, "no packet was too long for a link");
    rig.until_status(host(1), "programs in the kernel took packets, if there are some", |status| {
        let taken = status["switch"]["kernel"]["blocks"]["taken"].as_u64();
        taken.map_or(!shape.kernel, |taken| taken > 0)
    });
}

#[test]
fn hosts_on_one_ethernet_share_memory() {
    hosts_share_memory("ethernet", Hub::Bridge { mtu: 1500 }, 1500, "4 KiB");
}

#[test]
fn hosts_on_one_ethernet_share_memory_with_a_switch_in_the_kernel() {
    if let Some(shape) = Shape::in_kernel() {
        share_memory("in-kernel", &shape);
    }
}

#[test]
fn hosts_on_the_shortest_packets_share_memory() {
    hosts_share_memory("shortest", Hub::Bridge { mtu: 1280 }, 1280, "4 KiB");
}

#[test]
fn hosts_behind_a_router_with_a_narrow_path_share_large_blocks() {
    hosts_share_memory("narrow", Hub::Router { narrowest: 1280 }, 1280, "64 KiB");
}
