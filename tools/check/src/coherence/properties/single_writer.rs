//! Single writer or many readers: while one node may write a block, no other has a copy (Concordia, section
//! 5.1.2, invariant 1).

use node::Access;
use wire::{NodeId, Rules};

use super::{copies, copies_of};
use crate::coherence::Blocks;
use crate::rack::Control;

/// Looks at the copies of this node, and who else has any.
pub(super) fn check<R: Rules>(blocks: &Blocks<R>, control: &Control, node: NodeId) -> Result<(), String> {
    for mine in copies_of(blocks, node) {
        for other in copies(blocks, control).filter(|other| other.tag == mine.tag && other.node != node) {
            if mine.access == Access::Modified || other.access == Access::Modified {
                return Err(format!("two nodes have a block that one of them may write: {mine:?} {other:?}"));
            }
        }
    }
    Ok(())
}
