//! What a thread has handed to a transport and not flushed yet.

use crate::place::PlaceId;

/// A burst on its way out. One for each thread that sends; reused.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Encoded datagrams, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// Where each goes, and where it ends in `bytes`.
    pub(crate) datagrams: Vec<(PlaceId, usize)>,
    /// Places with something new in their rings, a bit each.
    pub(crate) rings: u128,
}

impl Outgoing {
    /// An empty burst.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), datagrams: Vec::new(), rings: 0 }
    }

    /// True if there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty() && self.rings == 0
    }
}
