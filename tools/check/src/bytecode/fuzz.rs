//! Packets through the switch's programs, whatever their bytes are: nothing makes a program go round for ever, leave with the
//! lock taken, or touch a byte that is not its own.
//!
//! The fuzzer `kernel_program` under `fuzz/` and a test of the crate `dataplane` call this; nothing else does.

use std::cell::RefCell;

use switch::coherence::{Switch, SwitchConfig};
use switch::ebpf::{Frames, Hook, verdict};
use switch::locks::{Directory, DirectoryConfig, SINGLE_BYTES};
use wire::packet::HEADER_BYTES;
use wire::{LockEnd, SwitchEpoch};

use super::Machine;

/// As many nodes as lists and sets may wrongly name more than.
const NODES: usize = 3;
const EPOCH: SwitchEpoch = SwitchEpoch(0);

/// Both programs, and how long their packets are.
fn programs() -> [(Machine, usize); 2] {
    let switch = Switch::new(&SwitchConfig {
        entries: 7,
        epoch: EPOCH,
        queue: true,
        peeks: true,
        ..SwitchConfig::for_nodes(NODES)
    });
    let directory =
        Directory::new(&DirectoryConfig { at: LockEnd::Switch, nodes: NODES, entries: 4, epoch: EPOCH });
    let blocks = switch.expect("it fits").for_kernel(Frames::Bare(Hook::TrafficControl, 0));
    let locks = directory.expect("it fits").for_kernel(Frames::Bare(Hook::TrafficControl, 0));
    [(blocks, HEADER_BYTES), (locks, SINGLE_BYTES)]
        .map(|(program, bytes)| (Machine::new(&program.expect("short enough jumps")), bytes))
}

/// The first byte says which program, the others are packets, one after the other. True: the program took one of them.
///
/// # Panics
/// If the program does what it must not.
pub fn kernel_program(bytes: &[u8]) -> bool {
    thread_local! {
        static PROGRAMS: RefCell<[(Machine, usize); 2]> = RefCell::new(programs());
    }
    let Some((first, packets)) = bytes.split_first() else { return false };
    PROGRAMS.with_borrow_mut(|programs| {
        let (machine, length) = &mut programs[usize::from(first & 1)];
        machine.state_mut().fill(0);
        let mut taken = false;
        for packet in packets.chunks(*length) {
            let ran = machine.run(packet).unwrap_or_else(|fault| panic!("{fault}, with {packet:?}"));
            taken |= ran.verdict == verdict::TAKEN;
        }
        taken
    })
}
