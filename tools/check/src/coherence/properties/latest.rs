//! A valid copy is the latest: whatever a hit could read was written last (Concordia, section 5.1.2,
//! invariant 2).

use wire::{NodeId, Rules};

use super::copies_of;
use crate::coherence::Blocks;
use crate::rack::Control;

pub(super) fn check<R: Rules>(blocks: &mut Blocks<R>, control: &Control, node: NodeId) -> Result<(), String> {
    if control.view().memories.is_empty() {
        return check_copies(blocks, node);
    }
    for copy in copies_of(blocks, node).collect::<Vec<_>>() {
        blocks.find(copy.tag, copy.stamp, Some(Blocks::<R>::life(control, node)))?;
    }
    check_copies(blocks, node)
}

fn check_copies<R: Rules>(blocks: &Blocks<R>, node: NodeId) -> Result<(), String> {
    for copy in copies_of(blocks, node) {
        let latest = blocks.latest.get(&copy.tag).copied().unwrap_or(0);
        if copy.stamp != latest {
            return Err(format!("the latest write is {latest}, and a node has a copy without it: {copy:?}"));
        }
    }
    Ok(())
}
