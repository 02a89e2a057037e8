//! Where in the switch's arrays an entry may stand: one hash set, with one cell in each way.

use wire::BlockTag;

use super::layout::WAYS;
use crate::pipeline::primitive::spread;

/// The set that `tag` falls into, in a switch with capacity for `entries` entries: the tags of one set are rivals
/// for its 7 cells. The shadow node needs to know (Concordia, section 5.2.2, "handling collisions").
pub fn set_of(entries: usize, tag: BlockTag) -> usize {
    // The program's TAG arrays hold complements, so that an empty cell is 0: see `parser`.
    let set = spread(!tag.bits(), entries.div_ceil(WAYS) as u64);
    usize::try_from(set).expect("there are no more sets than entries")
}
