//! Words and objects, near and far: over shared memory the words of other processes are mapped, over UDP their NICs are asked.

use rackmem::Rack;
use rackmem::rack_file::TransportKind;

use crate::places::rig::Places;
use crate::regions_everywhere::everywhere;

mod shared_memory {
    use super::*;

    fn mapped(body: fn(&[Rack])) {
        body(&Places::start("near", TransportKind::SharedMemory, "").nodes);
    }

    everywhere!(mapped);
}

mod udp {
    use super::*;

    fn asked(body: fn(&[Rack])) {
        body(&Places::start("far", TransportKind::Udp, "").nodes);
    }

    everywhere!(asked);
}
