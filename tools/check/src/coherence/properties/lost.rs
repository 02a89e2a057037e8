//! A block is only lost if its latest contents died with a node: nobody alive has a copy, and nothing is lost
//! in a rack in which no node has died. (Its home's memory may be current all the same: a dead node had the right
//! to change it.)

use wire::Rules;

use super::copies;
use crate::coherence::Blocks;
use crate::rack::Control;

pub(super) fn check<R: Rules>(blocks: &Blocks<R>, control: &Control) -> Result<(), String> {
    for (home, _) in blocks.up(control) {
        for tag in home.lost() {
            if !control.has_lost_a_node() {
                return Err(format!("{tag:?} is lost, and no node has died"));
            }
            if let Some(copy) = copies(blocks, control).find(|copy| copy.tag == tag) {
                return Err(format!("{tag:?} is lost, and there is a copy: {copy:?}"));
            }
        }
    }
    Ok(())
}
