//! A part of a store on its way to memory in the place of a dead one, while clients go on.
//!
//! Passes, as for a virtual machine that moves: the first one is of everything, each one behind it of what has changed while the one before
//! it went on, which the NIC at the source knows. When little is left, or passes do not get smaller, clients are stopped
//! for the last one. On the thread of the store's metadata server, with as many bytes a second as the rack's `refill` says; later passes
//! with twice as many, or clients might change as much as they copy. What must always hold: before the copy counts, a pass has ended that began when
//! nobody was connected to the source any more.

use std::ops::Range;
use std::sync::Arc;

use nic::verbs::Remote;
use wire::Nanos;
use wire::chain_pair::ChainPair;
use wire::chains::UNIT;

use super::fabric::Fabric;
use super::port::{Port, TIMEOUT};
use super::store::{Home, Store};
use crate::actor::{Failure, ThreadContext};
use crate::networked::verbs::chain_work::{Ended, Kind, Work};

/// Units of a piece, and pieces in flight: at most 256 KiB at a time, behind which the server does its other work.
const PIECE: u32 = 256;
const PIECES: usize = 16;
/// A piece counts as no fewer bytes than that.
const LEAST: u64 = 1 << 10;
/// Units for which clients wait: some milliseconds.
const FEW: u32 = 4096;
/// Passes behind which they wait for whatever is left.
const PASSES: u32 = 8;
/// The number of the pass in which nothing is noted any more.
pub(crate) const LAST_PASS: u32 = u32::MAX;

fn bytes_of(units: &Range<u32>) -> u64 {
    units.len() as u64 * UNIT
}

/// A copy that is being made.
pub(crate) struct Copying {
    port: Port,
    /// Which copy of a store's parts it becomes, and in which memory; and of which one it is made.
    number: usize,
    home: Home,
    from: usize,
    /// What this copy is called where its source is.
    pub(crate) name: u64,
    pass: u32,
    /// What is left of this pass, the last first.
    left: Vec<Range<u32>>,
    /// Bytes a second in the first pass, and when there may be more.
    rate: u64,
    next_at: Nanos,
}

impl Copying {
    /// A copy of these units, to a home in the place of a dead one, from another one, with so many bytes a second. Its queue pairs have
    /// this number.
    pub(crate) fn new(
        store: &Store,
        (number, home, from): (usize, Home, usize),
        (units, rate): (Range<u32>, u64),
        (name, thread): (u64, u16),
    ) -> Self {
        let with_it = Arc::new(Self::with_home(store, number, home));
        let port = Port::new(with_it, thread, PIECES as u32).passing();
        let left = Vec::from_iter((!units.is_empty()).then_some(units));
        Self { port, number, home, from, name, pass: 0, left, rate, next_at: Nanos::ZERO }
    }

    fn with_home(store: &Store, number: usize, home: Home) -> Store {
        let mut setup = store.setup.clone();
        setup.homes[number] = home;
        store.with(setup)
    }

    /// The store with the new memory.
    pub(crate) fn store(&self) -> &Store {
        &self.port.store
    }

    /// The memory that is read, and the one that is written.
    pub(crate) fn homes(&self) -> [Home; 2] {
        [self.port.store.setup.homes[self.from], self.home]
    }

    /// The number of its queue pairs.
    pub(crate) fn thread(&self) -> u16 {
        self.port.thread
    }

    /// The store is of this generation by now.
    pub(crate) fn follow(&mut self, store: &Store) {
        if store.setup.generation > self.port.store.setup.generation {
            self.port.reformed(Arc::new(Self::with_home(store, self.number, self.home)));
        }
    }

    /// How long it waits until it goes on.
    pub(crate) fn wait(&self, now: Nanos) -> Nanos {
        self.next_at.saturating_sub(now)
    }

    /// True if all of this pass is copied.
    pub(crate) fn has_passed(&self) -> bool {
        self.left.is_empty()
    }

    /// The number of the next pass.
    pub(crate) fn next_pass(&self) -> u32 {
        self.pass + 1
    }

    /// The next pass has begun: of these units.
    pub(crate) fn begin_pass(&mut self, mut units: Vec<Range<u32>>) {
        debug_assert!(self.has_passed());
        self.pass += 1;
        units.reverse();
        self.left = units;
    }

    /// True if it is time to stop clients.
    pub(crate) fn is_near(&self) -> bool {
        let left: usize = self.left.iter().map(ExactSizeIterator::len).sum();
        self.pass > 0 && (left <= FEW as usize || self.pass >= PASSES)
    }

    /// Copies some of what is left of this pass. So many bytes.
    pub(crate) fn step<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
    ) -> Result<u64, Failure> {
        let began = fabric.now();
        let pieces = self.take(began);
        loop {
            match self.copy(fabric, context, &pieces) {
                Err(Failure::Broken) if fabric.now().saturating_sub(began) < TIMEOUT => {
                    self.port.disconnected(self.from);
                    self.port.disconnected(self.number);
                }
                copied => return copied.map(|()| pieces.iter().map(bytes_of).sum()),
            }
        }
    }

    /// The next pieces, and when there may be more.
    fn take(&mut self, now: Nanos) -> Vec<Range<u32>> {
        let mut pieces = Vec::with_capacity(PIECES);
        while pieces.len() < PIECES
            && let Some(units) = self.left.pop()
        {
            let end = units.end.min(units.start + PIECE);
            pieces.push(units.start..end);
            if end < units.end {
                self.left.push(end..units.end);
            }
        }
        let bytes: u64 = pieces.iter().map(|units| bytes_of(units).max(LEAST)).sum();
        let rate = if self.pass == 0 { self.rate } else { self.rate.saturating_mul(2) };
        self.next_at = self.next_at.max(now) + Nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
        pieces
    }

    /// Copies all that is left of this pass.
    pub(crate) fn end_pass<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
    ) -> Result<u64, Failure> {
        let mut bytes = 0;
        while !self.has_passed() {
            bytes += self.step(fabric, context)?;
        }
        Ok(bytes)
    }

    /// Copies these, all at once.
    fn copy<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        pieces: &[Range<u32>],
    ) -> Result<(), Failure> {
        self.port.connect(fabric, context, self.from)?;
        self.port.connect(fabric, context, self.number)?;
        let [source, target] = self.homes().map(|home| {
            let node = home.addr.home();
            (node, home.key, ChainPair::of_client(fabric.me(), node, self.port.thread).number())
        });
        let at = |key, units: &Range<u32>| Remote { key, address: u64::from(units.start) * UNIT };
        let reads: Vec<_> = pieces
            .iter()
            .map(|units| {
                let read = Kind::Read { remote: at(source.1, units), len: bytes_of(units) as u32 };
                fabric.post(context, Work::of_chain(source.0, read, Box::default(), 0, source.2))
            })
            .collect();
        let mut writes = Vec::with_capacity(pieces.len());
        for (units, read) in pieces.iter().zip(reads) {
            let Ended::Answer(words) = fabric.wait(context, &read)? else { return Err(Failure::Broken) };
            let (write, len) = (Kind::Write { remote: at(target.1, units) }, bytes_of(units) as usize);
            writes.push(fabric.post(context, Work::of_chain(target.0, write, words, len, target.2)));
        }
        writes.iter().try_for_each(|write| match fabric.wait(context, write)? {
            Ended::Answer(_) => Ok(()),
            _ => Err(Failure::Broken),
        })
    }
}

#[cfg(test)]
mod tests {
    use wire::roce::Key;
    use wire::{GlobalAddr, Incarnation, NodeId};

    use super::*;
    use crate::chains::Setup;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn copying(units: Range<u32>, rate: u64) -> Copying {
        let home = |node| Home {
            addr: GlobalAddr::new(NodeId(node), 4096),
            key: Key(1),
            incarnation: Incarnation(0),
        };
        let (lease, quarantine, homes) = (Nanos(1), Nanos(2), [0, 1, 1, 0].map(home).into());
        let setup = Setup { lease, quarantine, each: 1 << 20, copies: 2, generation: 0, homes };
        let store = Store::new(GlobalAddr::new(NodeId(2), 64), Incarnation(0), setup);
        Copying::new(&store, (2, home(3), 0), (units, rate), (7, 9))
    }

    /// All that is taken in this pass, each time when it may be, and how long that takes.
    fn pass(copying: &mut Copying, from: Nanos) -> (Vec<Range<u32>>, Nanos) {
        let (mut now, mut taken) = (from, Vec::new());
        while !copying.has_passed() {
            let pieces = copying.take(now);
            assert!(pieces.iter().map(bytes_of).sum::<u64>() <= 256 << 10, "the server has other work, too");
            taken.extend(pieces);
            now = now + copying.wait(now);
        }
        (taken, now.saturating_sub(from))
    }

    #[test]
    fn a_pass_takes_all_of_it_once_and_as_long_as_its_rate_says() {
        let mut copying = copying(5..5 + (1 << 16), 4 << 20);
        let (taken, took) = pass(&mut copying, SECOND);
        assert_eq!(
            taken.iter().cloned().flatten().collect::<Vec<_>>(),
            (5..5 + (1 << 16)).collect::<Vec<_>>()
        );
        assert_eq!(took, SECOND, "4 MiB");
        assert!(!copying.is_near(), "nobody knows what has changed");
        // Later passes are twice as fast; little pieces count as more than they have.
        copying.begin_pass(vec![0..8192, 9000..9000 + 8192]);
        assert_eq!(pass(&mut copying, SECOND + SECOND).1, Nanos(125_000_000), "1 MiB");
        copying.begin_pass((0..8192).map(|at| at * 8..at * 8 + 1).collect());
        assert!(!copying.is_near());
        assert_eq!(pass(&mut copying, SECOND + SECOND + SECOND).1, SECOND, "8 MiB, as it counts");
    }

    #[test]
    fn clients_are_stopped_when_little_is_left_or_passes_do_not_get_smaller() {
        let mut some = copying(1..2, 1);
        pass(&mut some, SECOND);
        for _ in 1..PASSES {
            some.begin_pass(vec![0..FEW, 9000..9001]);
            assert!(!some.is_near());
            pass(&mut some, SECOND);
        }
        some.begin_pass(vec![0..FEW, 9000..9001]);
        assert!(some.is_near(), "that does not get smaller");
        let mut little = copying(1..1, 1);
        assert!(little.has_passed(), "nothing was ever given to clients");
        little.begin_pass(vec![0..FEW - 1, 9000..9001]);
        assert!(little.is_near());
    }
}
