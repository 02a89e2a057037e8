//! What must hold in a rack after every step: one property a file, each looking at the rack from outside.

mod directory;
mod latest;
mod lost;
mod single_writer;

use node::Node;
use wire::{NodeId, Rules};

use super::{Blocks, PlainStore};
use crate::rack::{Bench, Control};

/// Between two looks at everything that a place asserts of itself.
const EVERY: usize = 16;

/// Checks everything that must hold at any moment.
fn check<R: Rules>(blocks: &mut Blocks<R>, control: &Control) -> Result<(), String> {
    for node in control.up().iter() {
        single_writer::check(blocks, control, node)?;
        latest::check(blocks, control, node)?;
        let (machine, store) = &blocks.nodes[node.index()];
        machine.invariants(store);
    }
    blocks.switch.invariants();
    lost::check(blocks, control)
}

/// Checks what the last step can have broken: copies after every step, and the insides of the machines every few
/// steps (all steps, in a run that is traced).
pub(super) fn check_after<R: Rules, M: Copy>(
    blocks: &mut Blocks<R>,
    bench: &Bench<M>,
    step: usize,
) -> Result<(), String> {
    let (control, touched) = (&bench.control, bench.touched());
    let inside = bench.plan.trace || step.is_multiple_of(EVERY) || touched.is_several();
    for node in touched.nodes.iter().filter(|node| control.is_up(Some(*node))) {
        single_writer::check(blocks, control, node)?;
        latest::check(blocks, control, node)?;
        if inside {
            let (machine, store) = &blocks.nodes[node.index()];
            machine.invariants(store);
        }
    }
    if touched.switch && inside {
        blocks.switch.invariants();
    }
    if inside && !touched.nodes.is_empty() { lost::check(blocks, control) } else { Ok(()) }
}

/// Checks everything that must hold when nothing is in flight.
pub(super) fn check_at_rest<R: Rules, M: Copy>(
    blocks: &mut Blocks<R>,
    bench: &Bench<M>,
) -> Result<(), String> {
    check_settled(blocks, &bench.control)
}

/// The same, of a rack without a bench.
pub(crate) fn check_settled<R: Rules>(blocks: &mut Blocks<R>, control: &Control) -> Result<(), String> {
    check(blocks, control)?;
    directory::check_at_rest(blocks, control)
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
fn copies<R: Rules>(blocks: &Blocks<R>, control: &Control) -> impl Iterator<Item = Cached> {
    blocks.up(control).flat_map(|(node, store)| copies_in(node, store))
}

fn copies_of<R: Rules>(blocks: &Blocks<R>, node: NodeId) -> impl Iterator<Item = Cached> {
    let (node, store) = &blocks.nodes[node.index()];
    copies_in(node, store)
}

fn copies_in<R: Rules>(node: &Node<R>, store: &PlainStore) -> impl Iterator<Item = Cached> {
    store.frames.iter().filter_map(move |frame| {
        let (tag, cached) = frame.published?;
        let access = node.access(tag, cached);
        Some(Cached { node: node.config().id, tag, access, stamp: frame.stamp })
    })
}
