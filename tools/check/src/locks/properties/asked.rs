//! Whoever the directory has sent to a queue gets the lock before anybody else gets it again and again, wherever the word
//! of that is.
//!
//! From the moment at which the directory has noted that a node waits, until it is served, no other node begins a term more often
//! than it has threads, and once more. For whoever stood in the queue before is served once, the holder's own threads may
//! line up while the word is on its way, and the holder can move the lock only with a queue in which everybody
//! stands whom the directory has noted (GCS, section 4.2). This is what the rule `MoveKnowsAll` is for: the property
//! that [`super::bypass`] checks begins in the queue, and says nothing of how long it takes to get there.

use std::collections::BTreeMap;

use wire::{NodeId, Rules, Term};

use crate::locks::Locks;
use crate::rack::{Conditions, Faults};

/// Who has asked, and who has begun a term since.
#[derive(Clone, Debug)]
pub struct Asked {
    locks: Vec<Since>,
    /// No node may begin a term more often before another one.
    bound: u64,
    most: u64,
    /// Where nothing is lost, repeated or given up, the bound is checked.
    checked: bool,
}

#[derive(Clone, Debug, Default)]
struct Since {
    term: Term,
    /// For each node that waits, how often each other one has begun to hold it.
    passed: BTreeMap<NodeId, BTreeMap<NodeId, u64>>,
}

impl Asked {
    pub(crate) fn new(plan: &Conditions, locks: usize) -> Self {
        Self {
            locks: vec![Since::default(); locks],
            bound: plan.threads as u64 + 1,
            most: 0,
            checked: plan.faults == Faults::default() && plan.restarts.is_never(),
        }
    }

    /// The most times that a node began a term while another waited.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

pub(super) fn check<R: Rules>(locks: &mut Locks<R>, at: usize) -> Result<(), String> {
    let (lock, _) = locks.locks[at];
    let (asked, entry) = (&mut locks.asked, locks.facts.entry(at, lock.home()));
    let since = &mut asked.locks[at];
    let Some(entry) = entry else {
        *since = Since::default();
        return Ok(());
    };
    // Between the passes of a MOVE, who waits is in the packet.
    if entry.moving {
        return Ok(());
    }
    let begun = entry.holder.filter(|_| entry.term > since.term);
    since.term = entry.term;
    since.passed.retain(|node, _| entry.waiting.contains(*node) && begun != Some(*node));
    if let Some(holder) = begun {
        for (node, passed) in &mut since.passed {
            let times = passed.entry(holder).or_default();
            *times += 1;
            asked.most = asked.most.max(*times);
            if asked.checked && *times > asked.bound {
                return Err(format!(
                    "{holder} has begun {times} holds lock {lock} since {node} asked for it"
                ));
            }
        }
    }
    for node in entry.waiting.iter() {
        since.passed.entry(node).or_default();
    }
    Ok(())
}
