//! What the faults of many runs came to, kind by kind: so that a search that no longer injects one is seen.

use super::{Conditions, Counts, Fault, Order};

/// One kind of fault, over many runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// How often it happened.
    pub total: u64,
    /// Fewest times in a run.
    pub fewest: u64,
    /// Runs in which it did not.
    pub runs_without: u64,
    /// Runs that had drawn it.
    pub drawn: u64,
    /// Of those, runs in which it did not happen.
    pub drawn_without: u64,
}

/// Every kind, over many runs.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    runs: u64,
    kinds: [Tally; Fault::ALL.len()],
}

/// So many runs that have drawn a fault which never happens are no chance.
const ENOUGH: u64 = 20;

impl Tallies {
    /// A run is over.
    pub fn take(&mut self, drawn: &Conditions, counts: &Counts) {
        for (fault, tally) in Fault::ALL.into_iter().zip(&mut self.kinds) {
            let (times, drawn) = (counts[fault], drawn.draws(fault));
            tally.fewest = if self.runs == 0 { times } else { tally.fewest.min(times) };
            tally.total += times;
            tally.runs_without += u64::from(times == 0);
            tally.drawn += u64::from(drawn);
            tally.drawn_without += u64::from(drawn && times == 0);
        }
        self.runs += 1;
    }

    /// Every kind, with what it came to.
    pub fn all(&self) -> impl Iterator<Item = (Fault, Tally)> {
        Fault::ALL.into_iter().zip(self.kinds)
    }

    /// Faults that many runs have drawn, and that never happened: the search does not look for what it says it does.
    pub fn blind(&self) -> Vec<Fault> {
        let blind = self.all().filter(|(_, tally)| tally.drawn >= ENOUGH && tally.total == 0);
        blind.map(|(fault, _)| fault).collect()
    }
}

impl Conditions {
    /// True if a run like this is to have such faults.
    pub fn draws(&self, fault: Fault) -> bool {
        let (faults, restarts) = (&self.faults, &self.restarts);
        let rate = match fault {
            Fault::Lost => faults.lose,
            Fault::Duplicated => faults.duplicate,
            Fault::Reordered if self.order == Order::None => 0,
            Fault::Reordered => faults.reorder,
            Fault::Delayed => faults.delay,
            Fault::Corrupted => faults.corrupt,
            Fault::Partition | Fault::Unreachable => faults.partition,
            Fault::SwitchStopped => restarts.switch,
            Fault::NodeDied | Fault::NodeReturned => restarts.node,
            Fault::ShadowRestarted => restarts.shadow,
            Fault::Epoch => restarts.switch + restarts.node,
        };
        rate > 0
    }
}
