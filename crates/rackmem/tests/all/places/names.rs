//! Names over the real transports.

use rackmem::rack_file::TransportKind;

use crate::names_everywhere::{Nodes, everywhere};
use crate::places::rig::Places;

mod shared_memory {
    use super::*;

    fn near(body: fn(Nodes<'_>)) {
        let places = Places::start("names-near", TransportKind::SharedMemory, "");
        body(&|node| places.nodes[usize::from(node)].here());
    }

    everywhere!(near);
}

mod udp {
    use super::*;

    fn far(body: fn(Nodes<'_>)) {
        let places = Places::start("names-far", TransportKind::Udp, "");
        body(&|node| places.nodes[usize::from(node)].here());
    }

    everywhere!(far);
}
