//! What of a dead node's writes to memory with copies may be seen: a prefix of them, with all that it has synced and all that others
//! have seen.
//!
//! A write that was made is remembered until it is known whether it survives. The first look at a block after its writer's death tells:
//! what is there has survived, and what was written to the block later has not. From then on that limits what may be found in the
//! other blocks that the dead one has written.

use std::collections::BTreeMap;

use wire::{BlockTag, Incarnation, NodeId};

/// An incarnation of a node.
pub(crate) type Life = (NodeId, Incarnation);

/// What is known of one node's writes. Writes are numbered over the whole rack, in the order in which they were made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Fate {
    is_dead: bool,
    /// All up to here must survive.
    promised: u64,
    /// Nothing from here on has.
    lost: u64,
}

impl Default for Fate {
    fn default() -> Self {
        Self { is_dead: false, promised: 0, lost: u64::MAX }
    }
}

/// The writes to memory with copies whose fate is not known.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Survival {
    writes: BTreeMap<BlockTag, Vec<(u64, Life)>>,
    fates: BTreeMap<Life, Fate>,
    /// Writes that were lost with their node.
    pub(crate) lost: u64,
    /// It is told in the right moment that a block begins anew. In random runs memory counts as gone when its last node dies, though
    /// one that was getting it may say then that it has it whole.
    is_told: bool,
}

impl Survival {
    /// One that is told in the right moment when a block begins anew.
    pub(crate) fn that_is_told() -> Self {
        Self { is_told: true, ..Self::default() }
    }

    /// A node has written.
    pub(crate) fn wrote(&mut self, tag: BlockTag, write: u64, by: Life) {
        self.writes.entry(tag).or_default().push((write, by));
    }

    /// A block begins anew.
    pub(crate) fn zeroed(&mut self, tag: BlockTag) {
        self.writes.remove(&tag);
    }

    /// A node has died.
    pub(crate) fn died(&mut self, life: Life) {
        self.fates.entry(life).or_default().is_dead = true;
    }

    /// A node that lives was told that its writes up to here survive, or somebody else has seen what it did after them.
    pub(crate) fn promised(&mut self, life: Life, upto: u64) -> Result<(), String> {
        let fate = self.fates.entry(life).or_default();
        fate.promised = fate.promised.max(upto);
        if fate.promised >= fate.lost {
            return Err(format!("{life:?}: write {} is lost, and {} was promised", fate.lost, fate.promised));
        }
        Ok(())
    }

    /// A block is found with this write, by a node or in its home's memory; the last one that is known of is `latest`. All later ones
    /// must be lost.
    pub(crate) fn found(
        &mut self,
        tag: BlockTag,
        (write, latest): (u64, u64),
        by: Option<Life>,
    ) -> Result<(), String> {
        let Some(writes) = self.writes.get_mut(&tag).filter(|writes| !writes.is_empty()) else {
            // Nobody has written it since.
            let what = || format!("{tag:?} is found with write {write}, and the last one is {latest}");
            return if write == latest || !self.is_told { Ok(()) } else { Err(what()) };
        };
        let known = writes.iter().position(|(it, _)| *it == write);
        let later = writes.split_off(known.map_or(0, |at| at + 1));
        let found = known.map(|at| writes[at]);
        for (it, life) in &later {
            let fate = self.fates.entry(*life).or_default();
            if !fate.is_dead {
                return Err(format!("{tag:?} is found with write {write}, and {life:?} has made write {it}"));
            }
            if *it <= fate.promised {
                return Err(format!(
                    "{tag:?} is found with write {write}: write {it} of {life:?} was promised"
                ));
            }
            fate.lost = fate.lost.min(*it);
            self.lost += 1;
        }
        match found {
            Some((write, life)) if by != Some(life) => {
                // Whoever has it now is not given anything older.
                writes.drain(..writes.len() - 1);
                self.promised(life, write)
            }
            _ => Ok(()),
        }
    }
}
