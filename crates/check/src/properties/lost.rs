//! A block is only lost if its latest contents died with a node: nobody alive has a copy, and nothing is lost
//! in a rack in which no node has died. (Its home's memory may be current all the same: a dead node had the right
//! to change it.)

use wire::Rules;

use super::copies;
use crate::rack::Rack;

pub(super) fn check<R: Rules>(rack: &Rack<R>) -> Result<(), String> {
    for (home, _) in rack.up() {
        for tag in home.lost() {
            if !rack.has_lost_a_node() {
                return Err(format!("{tag:?} is lost, and no node has died"));
            }
            if let Some(copy) = copies(rack).find(|copy| copy.tag == tag) {
                return Err(format!("{tag:?} is lost, and there is a copy: {copy:?}"));
            }
        }
    }
    Ok(())
}
