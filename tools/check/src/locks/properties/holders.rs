//! At most one node may write, and while one may, nobody has a copy to read of before its term: of a lock in one incarnation
//! of its home.

use node::locks::LockView;
use wire::{Copyset, Incarnation, NodeId, Rules, Term};

use crate::locks::Locks;
use crate::rack::Control;

pub(super) fn check<R: Rules>(locks: &Locks<R>, control: &Control, at: usize) -> Result<(), String> {
    let home = locks.locks[at].0.home();
    let incarnation_of = |node: usize| control.known_incarnation(NodeId(node as u16), home);
    for node in 0..locks.nodes.len() {
        // Each incarnation once.
        if !(0..node).any(|before| incarnation_of(before) == incarnation_of(node)) {
            check_incarnation(locks, control, at, incarnation_of(node))?;
        }
    }
    Ok(())
}

/// Of the nodes that know this incarnation of the lock's home.
fn check_incarnation<R: Rules>(
    locks: &Locks<R>,
    control: &Control,
    at: usize,
    incarnation: Incarnation,
) -> Result<(), String> {
    let (lock, _) = locks.locks[at];
    let views = || {
        let knows = |node: &NodeId| control.known_incarnation(*node, lock.home()) == incarnation;
        let nodes = (0..locks.nodes.len()).map(|node| NodeId(node as u16)).filter(knows);
        nodes.filter_map(|node| Some((node, locks.facts.nodes[node.index()][at].view.as_ref()?)))
    };
    let mut may_write = None::<Term>;
    for (node, view) in views() {
        let Some(holding) = &view.holding else { continue };
        let same = |(other, view): &(NodeId, &LockView)| {
            *other < node && view.holding.as_ref().is_some_and(|other| other.term == holding.term)
        };
        if views().any(|it| same(&it)) {
            return Err(format!("two nodes have term {:?} over {lock}", holding.term));
        }
        // Of memory that was given back, and given out again before the node has heard from the home: it lets nobody in.
        let is_indeterminate = locks.allocations.real && holding.indeterminate;
        if holding.complete
            && !holding.moving
            && !is_indeterminate
            && may_write.replace(holding.term).is_some()
        {
            return Err(format!("two nodes may write under lock {lock}"));
        }
    }
    let Some(term) = may_write else { return Ok(()) };
    let has_copy = |(_, view): &(NodeId, &LockView)| view.copy.is_some_and(|copy| copy <= term);
    let copies: Copyset = views().filter(has_copy).map(|(node, _)| node).collect();
    match copies.is_empty() {
        true => Ok(()),
        false => Err(format!("{copies:?} have copies of lock {lock}, and a node may write")),
    }
}
