//! The programs of the largest rack that there can be, as they are attached to ports.

use switch::coherence::{Switch, SwitchConfig};
use switch::ebpf::{DatagramTerms, Frames, Hook, Output};
use switch::locks::{Directory, DirectoryConfig};
use wire::{Copyset, LockEnd, SwitchEpoch};

use crate::against_the_model::loaded;

const TERMS: DatagramTerms = DatagramTerms { magic: *b"RU", version: 7, kind: 3, switch: 64 };

/// The kernel's verifier walks every path of a program, and gives up after a million instructions.
#[test]
fn programs_for_64_nodes_are_taken() {
    let (nodes, epoch) = (Copyset::NODES, SwitchEpoch(1));
    let entries = 375_000;
    for queue in [false, true] {
        let usual = SwitchConfig::for_nodes(nodes);
        let config = SwitchConfig { entries, epoch, queue, peeks: true, ..usual };
        let switch = Switch::new(&config).expect("it fits");
        let program = switch
            .for_kernel(Frames::Datagrams(TERMS, Hook::TrafficControl, Output::Ports))
            .expect("short enough jumps");
        println!("blocks, queue {queue}: {} instructions", program.code.instructions.len());
        if loaded(&program).is_none() {
            return;
        }
    }
    let config = DirectoryConfig { at: LockEnd::Switch, nodes, entries: 65_536, epoch };
    let directory = Directory::new(&config).expect("it fits");
    let program = directory
        .for_kernel(Frames::Datagrams(TERMS, Hook::TrafficControl, Output::Ports))
        .expect("short enough jumps");
    println!("locks: {} instructions", program.code.instructions.len());
    let _ = loaded(&program);
}
