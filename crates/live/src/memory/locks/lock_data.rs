//! How the data of a lock are named in a live rack. The names of blocks ([`crate::memory`]'s `data_ref`) are others: a
//! message about a lock never carries one.
//!
//! ```text
//! 63        48 47  46 45                                                  0
//! +-----------+------+-----------------------------------------------------+
//! | node      | kind | index: a word of home memory, a slot, a kept report |
//! +-----------+------+-----------------------------------------------------+
//! ```

use node::DataRef;
use wire::NodeId;

const NODE_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 46;
const INDEX_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// Where on a node the data of a lock are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LockPlace {
    /// In home memory, from this offset on: a multiple of 8.
    Home(u64),
    /// In this slot's copy.
    Copy(u32),
    /// With the message that the node is handling.
    Received,
    /// In a message that was kept, with this number.
    Kept(u32),
}

impl LockPlace {
    pub(super) fn on(self, node: NodeId) -> DataRef {
        let (kind, index) = match self {
            Self::Home(offset) => (0, offset / 8),
            Self::Copy(slot) => (1, u64::from(slot)),
            Self::Received => (2, 0),
            Self::Kept(number) => (3, u64::from(number)),
        };
        DataRef(u64::from(node.0) << NODE_SHIFT | kind << KIND_SHIFT | index)
    }

    pub(super) fn of(data: DataRef) -> (NodeId, Self) {
        let index = data.0 & INDEX_MASK;
        let number = || u32::try_from(index).expect("slots and messages have 32-bit numbers");
        let place = match data.0 >> KIND_SHIFT & 0b11 {
            0 => Self::Home(index * 8),
            1 => Self::Copy(number()),
            2 => Self::Received,
            _ => Self::Kept(number()),
        };
        (NodeId((data.0 >> NODE_SHIFT) as u16), place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_on_every_node_has_a_name_of_its_own() {
        for node in [0, 1, 0xffff].map(NodeId) {
            for place in [
                LockPlace::Home(0),
                LockPlace::Home((1 << 48) - 8),
                LockPlace::Copy(0),
                LockPlace::Copy(u32::MAX),
                LockPlace::Received,
                LockPlace::Kept(u32::MAX),
            ] {
                assert_eq!(LockPlace::of(place.on(node)), (node, place));
            }
        }
    }
}
