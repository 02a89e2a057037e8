//! What must hold in a rack after every step: one property a file, each looking at the rack from outside.

mod directory;
mod latest;
mod lost;
mod single_writer;

use wire::{NodeId, Rules};

use crate::rack::{Rack, Touched};

/// Between two looks at everything that a place asserts of itself.
const EVERY: usize = 16;

/// Checks everything that must hold at any moment.
///
/// # Errors
/// What does not hold.
pub fn check<R: Rules>(rack: &Rack<R>) -> Result<(), String> {
    for (node, store) in rack.up() {
        single_writer::check(rack, node.config().id)?;
        latest::check(rack, node.config().id)?;
        node.invariants(store);
    }
    rack.switch.invariants();
    lost::check(rack)
}

/// Checks what the last step can have broken: copies after every step, and the insides of the machines every few
/// steps (all steps, in a run that is traced).
///
/// # Errors
/// What does not hold.
pub(crate) fn check_after<R: Rules>(rack: &Rack<R>, touched: Touched, step: usize) -> Result<(), String> {
    let inside = rack.plan.trace || step.is_multiple_of(EVERY);
    match touched {
        Touched::Nothing => {}
        Touched::Several => check(rack)?,
        Touched::Node(node) => {
            single_writer::check(rack, node)?;
            latest::check(rack, node)?;
            if inside {
                let (machine, store) = &rack.nodes[node.index()];
                machine.invariants(store);
                lost::check(rack)?;
            }
        }
        Touched::Switch if inside => rack.switch.invariants(),
        Touched::Switch => {}
    }
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

/// A copy of a block that hits are possible in.
#[derive(Clone, Copy, Debug)]
struct Cached {
    node: NodeId,
    tag: wire::BlockTag,
    access: node::Access,
    stamp: u64,
}

/// All of them, of nodes that are up.
fn copies<R: Rules>(rack: &Rack<R>) -> impl Iterator<Item = Cached> {
    rack.up().flat_map(|(node, store)| copies_in(node.config().id, store))
}

fn copies_of<R: Rules>(rack: &Rack<R>, node: NodeId) -> impl Iterator<Item = Cached> {
    copies_in(node, &rack.nodes[node.index()].1)
}

fn copies_in(node: NodeId, store: &crate::rack::PlainStore) -> impl Iterator<Item = Cached> {
    store.frames.iter().filter_map(move |frame| {
        frame.published.map(|(tag, access)| Cached { node, tag, access, stamp: frame.stamp })
    })
}
