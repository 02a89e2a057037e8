//! What must hold in a rack after every step: one property a file, each looking at the rack from outside.

mod directory;
mod latest;
mod single_writer;

use crate::rack::Rack;
use wire::Rules;

/// Checks everything that must hold at any moment.
///
/// # Errors
/// What does not hold.
pub fn check<R: Rules>(rack: &Rack<R>) -> Result<(), String> {
    single_writer::check(rack)?;
    latest::check(rack)?;
    rack.switch.invariants();
    Ok(())
}

/// Checks everything that must hold when nothing is under way.
///
/// # Errors
/// What does not hold.
pub fn check_at_rest<R: Rules>(rack: &Rack<R>) -> Result<(), String> {
    check(rack)?;
    directory::check_at_rest(rack)
}

/// The copies of a block that hits are possible in.
fn copies<R: Rules>(
    rack: &Rack<R>,
) -> impl Iterator<Item = (wire::NodeId, wire::BlockTag, node::Access, u64)> {
    rack.nodes.iter().flat_map(|(node, store)| {
        store.frames.iter().filter_map(|frame| {
            frame.published.map(|(tag, access)| (node.config().id, tag, access, frame.stamp))
        })
    })
}
