//! Locks over the real transports.

use rackmem::rack_file::TransportKind;

use crate::locks_everywhere::{Nodes, everywhere};
use crate::places::rig::Places;

fn near_and_far(body: fn(Nodes<'_>)) {
    for transport in [TransportKind::SharedMemory, TransportKind::Udp] {
        let places = Places::start("locks", transport, "");
        body(&|node| places.nodes[usize::from(node)].here());
    }
}

everywhere!(near_and_far);
