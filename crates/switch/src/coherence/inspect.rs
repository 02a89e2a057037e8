//! Looking into the switch from outside, as a control plane would: for tests, checkers and tools.

use alloc::vec::Vec;

use wire::{BlockTag, Copyset, GlobalStatus, RequesterId, Rules, Seq, SlotId, SwitchEpoch};

use super::layout::{WAYS, score};
use super::program::Way;
use super::sets::set_of;
use super::switch::Switch;
use super::wait_queue;
use crate::pipeline::alu::WRITER;

/// A directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryView {
    /// The lock word: bit 15 a writer, the rest how many readers.
    pub lock: u16,
    /// The block's state.
    pub status: GlobalStatus,
    /// Who has a copy.
    pub copyset: Copyset,
}

/// What the switch knows of a requester's events of one parity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequesterView {
    /// The last event unlocked.
    pub last_unlock: Seq,
    /// How many times the event since took a lock.
    pub acquisitions: u16,
    /// It was refused.
    pub refused: bool,
    /// It went to the home agent.
    pub at_home: bool,
    /// It is an ADD-TO-SWITCH between its passes.
    pub claiming: bool,
}

/// All that a control plane reads out of a switch before it restarts it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dump {
    /// The incarnation that this was read in.
    pub epoch: SwitchEpoch,
    /// The directory, sorted by tag.
    pub entries: Vec<(BlockTag, EntryView)>,
    /// The nodes with a requester that holds some entry's lock; the switch does not know which.
    pub holders: Copyset,
    /// Entries with a queue of two or more, in order: the lock may have gone from one to the next, and it is not known
    /// who has had it.
    pub queued: Vec<BlockTag>,
}

impl Dump {
    /// The entry of a block, if the directory had it.
    pub fn entry(&self, tag: BlockTag) -> Option<EntryView> {
        let at = self.entries.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
        Some(self.entries[at].1)
    }

    /// True if requesters waited in a queue for the block.
    pub fn has_queue(&self, tag: BlockTag) -> bool {
        self.queued.binary_search(&tag).is_ok()
    }
}

impl EntryView {
    /// True if a writer has the lock.
    pub fn is_write_locked(&self) -> bool {
        u64::from(self.lock) >= WRITER
    }
}

impl<R: Rules> Switch<R> {
    /// The directory and who holds locks in it, as a control plane reads it.
    pub fn dump(&self) -> Dump {
        let mut entries: Vec<_> = self.entries().collect();
        entries.sort_unstable_by_key(|(tag, _)| *tag);
        let scores = self.program.cells(self.arrays.scoreboard).enumerate();
        let holders =
            scores.filter(|(_, score)| score & score::COUNT > 0).map(|(at, _)| RequesterId::of(at / 2).node);
        let queued = |tag: BlockTag, entry: &EntryView| {
            let lock = u64::from(entry.lock);
            let waits = |score: u64| score & score::REFUSED != 0 && score & score::COUNT != 0;
            match lock {
                _ if !self.config.queue || lock < WRITER => false,
                // The last one is a migration, which has no code: one of its home's two scores is this event's.
                WRITER => {
                    let migration = RequesterId { node: tag.home(), slot: SlotId::MIGRATION };
                    (0..2).any(|parity| waits(self.score_of(migration, parity)))
                }
                _ => waits(self.score_of_last(lock)),
            }
        };
        let queued = entries.iter().filter(|(tag, entry)| queued(*tag, entry)).map(|(tag, _)| *tag).collect();
        Dump { epoch: self.config.epoch, queued, holders: holders.collect(), entries }
    }

    /// The entries of the directory, in no order that means anything.
    pub fn entries(&self) -> impl Iterator<Item = (BlockTag, EntryView)> {
        self.arrays.ways.into_iter().flat_map(move |way| {
            let keys = self.program.cells(way.tag).enumerate().filter(|(_, key)| *key != 0);
            keys.map(move |(set, key)| (BlockTag::from_bits(!key), self.view(way, set)))
        })
    }

    /// Takes on what is in register arrays elsewhere, by array and index: those of a program that was made of this switch.
    pub fn take_on(&mut self, cell: impl Fn(usize, usize) -> u64) {
        for (array, entries) in
            self.program.arrays().map(|(_, entries)| entries).enumerate().collect::<Vec<_>>()
        {
            for index in 0..entries {
                self.program.set_cell_of(array, index, cell(array, index));
            }
        }
        self.occupied = self.entries().count();
    }

    /// The contents of all register arrays, for telling states apart.
    pub fn register_arrays(&self) -> Vec<Vec<u64>> {
        self.program.all_cells()
    }

    /// True if the directory has the entry, active or still locked by its ADD.
    pub fn contains(&self, tag: BlockTag) -> bool {
        self.find(tag).is_some()
    }

    /// The entry, if the directory has it.
    pub fn entry(&self, tag: BlockTag) -> Option<EntryView> {
        self.find(tag).map(|(way, set)| self.view(way, set))
    }

    /// What the switch knows of a requester's events of the parity that `seq` has.
    pub fn requester(&self, requester: RequesterId, seq: Seq) -> Option<RequesterView> {
        let slot = requester.index() * 2 + seq.parity();
        let last_unlock = Seq(self.program.cell(self.arrays.last_unlock, slot)?);
        let score = self.program.cell(self.arrays.scoreboard, slot)?;
        Some(RequesterView {
            last_unlock,
            acquisitions: narrow(score & score::COUNT),
            refused: score & score::REFUSED != 0,
            at_home: score & score::HOME != 0,
            claiming: score & score::CLAIMING != 0,
        })
    }

    /// The ways of the set that a tag belongs to, and what they hold.
    pub fn ways_of(&self, tag: BlockTag) -> [Option<BlockTag>; WAYS] {
        let set = self.set(tag);
        self.arrays.ways.map(|way| match self.cell(way.tag, set) {
            0 => None,
            key => Some(BlockTag::from_bits(!key)),
        })
    }

    fn set(&self, tag: BlockTag) -> usize {
        set_of(self.config.entries, tag)
    }

    fn find(&self, tag: BlockTag) -> Option<(Way, usize)> {
        let set = self.set(tag);
        // A tag whose complement is 0 is at home nowhere, and its cell would be an empty one.
        let key = Some(!tag.bits()).filter(|key| *key != 0)?;
        self.arrays.ways.into_iter().find(|way| self.cell(way.tag, set) == key).map(|way| (way, set))
    }

    fn cell(&self, array: crate::pipeline::step::ArrayId, index: usize) -> u64 {
        self.program.cell(array, index).expect("the index is inside the array")
    }

    fn view(&self, way: Way, set: usize) -> EntryView {
        let status = narrow(self.cell(way.status, set));
        EntryView {
            lock: narrow(self.cell(way.lock, set)),
            status: GlobalStatus::from_wire(status).expect("G-STATUS holds a state"),
            copyset: Copyset::from_bits(self.cell(way.copyset, set)),
        }
    }

    /// True if a lock word with a queue names a requester of this rack as its last.
    fn is_requester(&self, lock: u64) -> bool {
        wait_queue::decode(narrow(lock & score::COUNT)).0.node.index() < self.config.nodes
    }

    fn score_of_last(&self, lock: u64) -> u64 {
        let (requester, parity) = wait_queue::decode(narrow(lock & score::COUNT));
        self.score_of(requester, parity)
    }

    fn score_of(&self, requester: RequesterId, parity: usize) -> u64 {
        self.cell(self.arrays.scoreboard, requester.index() * 2 + parity)
    }

    /// Asserts what holds whatever packets came: the arrays are in order, and the occupancy is right.
    ///
    /// # Panics
    /// If it does not hold: a bug in the switch.
    pub fn invariants_of_any_stream(&self) {
        let mut occupied = 0;
        let everyone = u64::MAX >> (64 - self.config.nodes);
        for way in self.arrays.ways {
            for (set, key) in self.program.cells(way.tag).enumerate() {
                let entry = self.view(way, set);
                if key == 0 {
                    let empty =
                        EntryView { lock: 0, status: GlobalStatus::Unshared, copyset: Copyset::EMPTY };
                    assert_eq!(entry, empty, "an empty way has no lock and no metadata");
                    continue;
                }
                occupied += 1;
                let (tag, lock) = (BlockTag::from_bits(!key), u64::from(entry.lock));
                assert_eq!(self.set(tag), set, "{tag:?} lies where its hash says");
                let queued = self.config.queue && self.is_requester(lock);
                assert!(lock <= WRITER || queued, "{tag:?} has readers beside a writer: {lock:#x}");
                assert_eq!(entry.copyset.bits() & !everyone, 0, "{tag:?} is shared by nodes there are not");
            }
        }
        assert_eq!(occupied, self.occupied, "the occupancy is the number of entries");
    }

    /// Asserts what holds if all requesters and homes keep to the protocol.
    ///
    /// # Panics
    /// If it does not hold: a bug in the switch, or in them.
    pub fn invariants(&self) {
        self.invariants_of_any_stream();
        let mut held = 0;
        for (at, way) in self.arrays.ways.into_iter().enumerate() {
            for (set, key) in self.program.cells(way.tag).enumerate() {
                if key == 0 {
                    continue;
                }
                let (tag, entry) = (BlockTag::from_bits(!key), self.view(way, set));
                let elsewhere = self.arrays.ways[..at].iter().any(|way| self.cell(way.tag, set) == key);
                assert!(!elsewhere, "{tag:?} is in two ways");
                let copies = entry.copyset.len();
                let fits = match entry.status {
                    GlobalStatus::Unshared => copies == 0,
                    GlobalStatus::Shared => copies > 0,
                    GlobalStatus::Modified => copies == 1,
                };
                assert!(fits, "{tag:?} is {:?} with copies at {:?}", entry.status, entry.copyset);
                if u64::from(entry.lock) > WRITER {
                    let waits = self.score_of_last(u64::from(entry.lock)) != 0;
                    assert!(waits, "{tag:?}: the last in line has the lock, or waits for it: {entry:?}");
                }
                held += if u64::from(entry.lock) == WRITER { 1 } else { u64::from(entry.lock) };
            }
        }
        if self.config.queue {
            // Who waits in the queue holds nothing yet, and who has handed over holds nothing more.
            return;
        }
        let scored: u64 = self.program.cells(self.arrays.scoreboard).map(|score| score & score::COUNT).sum();
        assert_eq!(held, scored, "every lock held is in a score, and every score holds its locks");
    }
}

fn narrow<T: TryFrom<u64>>(cell: u64) -> T {
    T::try_from(cell).ok().expect("a cell is no wider than its array says")
}
