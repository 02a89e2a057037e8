//! The transport between threads of one process does what every transport must do.

use crate::conformance;

use transport::inline::Hub;
use transport::{PeerId, Transport};

use conformance::Rack;

struct InlineRack(Hub);

impl Rack for InlineRack {
    const IN_ORDER: bool = true;
    const LOSSLESS: bool = true;
    // Its inboxes take whatever comes: it is for tests.
    const COUNTS_NO_ROOM: bool = false;

    fn new() -> Self {
        Self(Hub::default())
    }

    fn open(&self, peer: PeerId) -> Box<dyn Transport> {
        Box::new(self.0.connect(peer))
    }
}

conformance!(InlineRack);
