//! Chains over the real transports.

use rackmem::rack_file::TransportKind;

use crate::chains_everywhere::{Nodes, everywhere};
use crate::places::rig::Places;

mod shared_memory {
    use super::*;

    fn near(body: fn(Nodes<'_>)) {
        let places = Places::start("chains-near", TransportKind::SharedMemory, "");
        body(&|node| places.nodes[usize::from(node)].here());
    }

    everywhere!(near);
}

mod udp {
    use super::*;

    fn far(body: fn(Nodes<'_>)) {
        let places = Places::start("chains-far", TransportKind::Udp, "");
        body(&|node| places.nodes[usize::from(node)].here());
    }

    everywhere!(far);
}

mod udp_reads_steered {
    use super::*;

    fn far(body: fn(Nodes<'_>)) {
        let places = Places::start(
            "chains-steered",
            TransportKind::Udp,
            "[switch]\nsteering = 1000\nsteer_reads = true\n",
        );
        body(&|node| places.nodes[usize::from(node)].here());
    }

    crate::chains_everywhere::wherever_reads_are_steered!(far);
}
