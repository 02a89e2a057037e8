//! Single writer or many readers: while one node may write a block, no other has a copy (Concordia, section
//! 5.1.2, invariant 1).

use node::Access;
use wire::{NodeId, Rules};

use super::{copies, copies_of};
use crate::rack::Rack;

/// Looks at the copies of this node, and who else has any.
pub(super) fn check<R: Rules>(rack: &Rack<R>, node: NodeId) -> Result<(), String> {
    for mine in copies_of(rack, node) {
        for other in copies(rack).filter(|other| other.tag == mine.tag && other.node != node) {
            if mine.access == Access::Modified || other.access == Access::Modified {
                return Err(format!("two nodes have a block that one of them may write: {mine:?} {other:?}"));
            }
        }
    }
    Ok(())
}
