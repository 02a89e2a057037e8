//! How the contents of a block are named in a live rack.
//!
//! ```text
//! 63        48 47  46 45                                            0
//! +-----------+------+-----------------------------------------------+
//! | node      | kind | index: a frame, a block of home memory, a copy |
//! +-----------+------+-----------------------------------------------+
//! ```

use node::{DataRef, FrameId};
use wire::NodeId;

const NODE_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 46;
/// Blocks of memories with copies follow all that home memory can have.
const COPIED: u64 = 1 << 42;
const COPIED_SHIFT: u32 = 40;
const INDEX_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// The name of what is of this kind on a node, with this number there.
pub(super) fn name(node: NodeId, kind: u64, index: u64) -> DataRef {
    DataRef(u64::from(node.0) << NODE_SHIFT | kind << KIND_SHIFT | index)
}

/// What a name is made of.
pub(super) const fn parts(DataRef(bits): DataRef) -> (NodeId, u64, u64) {
    (NodeId((bits >> NODE_SHIFT) as u16), bits >> KIND_SHIFT & 0b11, bits & INDEX_MASK)
}

/// Where on a node contents are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Location {
    /// In home memory, the block with this number. (48-bit offsets, at least 64 bytes each: 42 bits.)
    Home(u64),
    /// The same in a memory with copies, one of 32: so many blocks, 40 bits, are 64 TiB at least.
    Copied(usize, u64),
    /// In a frame of the cache.
    Frame(FrameId),
    /// In the retained copy with this number.
    Retained(u32),
    /// With the message that the node is handling.
    Received,
}

impl Location {
    pub(super) fn on(self, node: NodeId) -> DataRef {
        let (kind, index) = match self {
            Self::Home(block) => (0, block),
            Self::Copied(nth, block) => (0, COPIED + ((nth as u64) << COPIED_SHIFT | block)),
            Self::Frame(frame) => (1, u64::from(frame.0)),
            Self::Retained(copy) => (2, u64::from(copy)),
            Self::Received => (3, 0),
        };
        name(node, kind, index)
    }

    /// # Panics
    /// If this driver did not make the name.
    pub(super) fn of(data: DataRef) -> (NodeId, Self) {
        let (node, kind, index) = parts(data);
        let number = || u32::try_from(index).expect("frames and copies have 32-bit numbers");
        let location = match kind {
            0 if index >= COPIED => {
                let index = index - COPIED;
                Self::Copied((index >> COPIED_SHIFT) as usize, index & ((1 << COPIED_SHIFT) - 1))
            }
            0 => Self::Home(index),
            1 => Self::Frame(FrameId(number())),
            2 => Self::Retained(number()),
            _ => Self::Received,
        };
        (node, location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_location_on_every_node_has_a_name_of_its_own() {
        for node in [0, 1, 0xffff].map(NodeId) {
            for location in [
                Location::Home(0),
                Location::Home((1 << 42) - 1),
                Location::Copied(0, 0),
                Location::Copied(31, (1 << 40) - 1),
                Location::Frame(FrameId(0)),
                Location::Frame(FrameId(u32::MAX)),
                Location::Retained(0),
                Location::Retained(u32::MAX),
                Location::Received,
            ] {
                assert_eq!(Location::of(location.on(node)), (node, location));
            }
        }
    }
}
