//! How the data of a lock are named in a live rack: as contents of blocks are ([`crate::memory`]'s `data_ref`), of other kinds. A
//! message about a lock never carries the name of a block's, or the other way round.

use node::DataRef;
use wire::NodeId;

use crate::memory::data_ref::{name, parts};

/// Where on a node the data of a lock are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LockLocation {
    /// In home memory, from this offset on: a multiple of 8. (Named by words.)
    Home(u64),
    /// In this slot's copy.
    Copy(u32),
    /// With the message that the node is handling.
    Received,
    /// In a message that was kept, with this number.
    Kept(u32),
}

impl LockLocation {
    pub(super) fn on(self, node: NodeId) -> DataRef {
        let (kind, index) = match self {
            Self::Home(offset) => (0, offset / 8),
            Self::Copy(slot) => (1, u64::from(slot)),
            Self::Received => (2, 0),
            Self::Kept(number) => (3, u64::from(number)),
        };
        name(node, kind, index)
    }

    pub(super) fn of(data: DataRef) -> (NodeId, Self) {
        let (node, kind, index) = parts(data);
        let number = || u32::try_from(index).expect("slots and messages have 32-bit numbers");
        let location = match kind {
            0 => Self::Home(index * 8),
            1 => Self::Copy(number()),
            2 => Self::Received,
            _ => Self::Kept(number()),
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
                LockLocation::Home(0),
                LockLocation::Home((1 << 48) - 8),
                LockLocation::Copy(0),
                LockLocation::Copy(u32::MAX),
                LockLocation::Received,
                LockLocation::Kept(u32::MAX),
            ] {
                assert_eq!(LockLocation::of(location.on(node)), (node, location));
            }
        }
    }
}
