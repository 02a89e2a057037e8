//! The memory of the chip that is read: directory, last-level cache, channels, and who has seen or owns which block.
//!
//! The directory of a block is in its bank, and is where accesses to it are put in order. A writer gets a block when every R2P2
//! that has read it was told.
//!
//! What must always hold (the contract of `nic::objects::Mode::Speculative`): an R2P2 is told of a write before it takes place, and
//! after the answer that carried what is overwritten; whoever asks meanwhile waits.

use super::cache::Cache;
use super::chip::{BLOCK, CHANNELS, CORES, Chip, EDGES, Position, channel_of};
use crate::hardware::{Calendar, Picos};

/// Who asks the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Agent {
    R2p2(u8),
    Core(u8),
}

impl Agent {
    const fn position(self) -> Position {
        match self {
            Self::R2p2(number) => Position::edge(number),
            Self::Core(number) => Position::tile(number),
        }
    }

    fn port(self) -> usize {
        match self {
            Self::R2p2(number) => number.into(),
            Self::Core(number) => usize::from(EDGES) + usize::from(number),
        }
    }
}

/// What a block holds: which version of its object wrote it last. A header has the object's version besides.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sample {
    pub(super) stamp: u64,
    pub(super) version: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    holds: Sample,
    /// Nobody else is served before.
    busy: Picos,
    /// When the last answer with what it holds now arrives.
    answered: Picos,
    /// R2P2s that have seen what it holds, a bit each.
    seen: u8,
    /// The core that may write it.
    owner: Option<u8>,
}

/// The directory has the block in flight: ask again then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Busy(pub(super) Picos);

/// An R2P2 is told that a block is written, or gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Told {
    pub(super) r2p2: u8,
    pub(super) block: u64,
    pub(super) at: Picos,
}

pub(super) struct Memory {
    chip: Chip,
    blocks: Vec<Block>,
    cache: Cache,
    channels: Vec<Calendar>,
    ports: Vec<Calendar>,
}

impl Memory {
    pub(super) fn new(chip: Chip, blocks: u64) -> Self {
        Self {
            chip,
            blocks: vec![
                Block::default();
                usize::try_from(blocks).expect("it fits into this machine's memory")
            ],
            cache: Cache::new(chip.cache / BLOCK, chip.ways),
            channels: vec![Calendar::default(); CHANNELS.into()],
            ports: vec![Calendar::default(); usize::from(EDGES + CORES)],
        }
    }

    fn at(&mut self, block: u64) -> &mut Block {
        &mut self.blocks[block as usize]
    }

    fn free(&self, now: Picos, block: u64) -> Result<(), Busy> {
        let busy = self.blocks[block as usize].busy;
        if now < busy { Err(Busy(busy)) } else { Ok(()) }
    }

    /// Somebody's request to read a block is at its directory: when the block has arrived, and what it holds.
    pub(super) fn read(
        &mut self,
        now: Picos,
        agent: Agent,
        block: u64,
        told: &mut Vec<Told>,
    ) -> Result<(Picos, Sample), Busy> {
        self.free(now, block)?;
        let chip = self.chip;
        let (bank, to) = (Position::bank(block), agent.position());
        let looked = now.plus(chip.cycles(chip.bank));
        let owner = self.at(block).owner.take();
        let leaves = match owner {
            Some(core) => {
                // The owner sends it on, and has it to read.
                self.touch(looked, block, told);
                let there =
                    looked.plus(chip.way(bank, Position::tile(core))).plus(chip.cycles(chip.first_level));
                self.at(block).busy = there;
                there.plus(chip.way(Position::tile(core), to))
            }
            None => self.present(looked, block, told).plus(chip.way(bank, to)),
        };
        let (port, span) = match agent {
            Agent::R2p2(_) => (chip.cycles(chip.port), chip.r2p2.picos(BLOCK)),
            Agent::Core(_) => (chip.cycles(chip.first_level), chip.flits()),
        };
        let arrives = self.ports[agent.port()].reserve(leaves.plus(port), span).plus(span);
        let it = self.at(block);
        if let Agent::R2p2(number) = agent {
            it.seen |= 1 << number;
            it.answered = it.answered.max(arrives);
        }
        Ok((arrives, it.holds))
    }

    /// A core's request to own a block is at its directory: when the core has it.
    pub(super) fn own(
        &mut self,
        now: Picos,
        core: u8,
        block: u64,
        told: &mut Vec<Told>,
    ) -> Result<Picos, Busy> {
        self.free(now, block)?;
        let (chip, bank) = (self.chip, Position::bank(block));
        let taken = self.take(now, block, told);
        self.at(block).busy = taken;
        self.at(block).owner = Some(core);
        Ok(taken.plus(chip.way(bank, Position::tile(core))).plus(chip.flits()))
    }

    /// An R2P2's compare-and-swap is at the directory of its block: when it is done, and how long its answer is in flight. Until
    /// then the block is nobody's.
    pub(super) fn atomic(
        &mut self,
        now: Picos,
        r2p2: u8,
        block: u64,
        told: &mut Vec<Told>,
    ) -> Result<(Picos, Picos), Busy> {
        self.free(now, block)?;
        let (chip, bank) = (self.chip, Position::bank(block));
        let done = self.take(now, block, told);
        self.at(block).busy = done;
        Ok((
            done,
            chip.way(bank, Position::edge(r2p2))
                .plus(chip.cycles(chip.port))
                .plus(chip.r2p2.picos(chip.header)),
        ))
    }

    /// Takes a block from all who have it, and from the memory: when it is done.
    fn take(&mut self, now: Picos, block: u64, told: &mut Vec<Told>) -> Picos {
        let (chip, bank) = (self.chip, Position::bank(block));
        let looked = now.plus(chip.cycles(chip.bank));
        let mut taken = match self.at(block).owner.take() {
            Some(core) => {
                self.touch(looked, block, told);
                let there = chip.way(bank, Position::tile(core));
                looked.plus(there).plus(chip.cycles(chip.first_level)).plus(there)
            }
            None => self.present(looked, block, told),
        };
        for at in self.tell(looked, block, told) {
            taken = taken.max(at);
        }
        taken
    }

    /// All R2P2s that have seen a block are told. When each has said that it knows.
    fn tell(&mut self, now: Picos, block: u64, told: &mut Vec<Told>) -> impl Iterator<Item = Picos> + use<> {
        let (chip, bank) = (self.chip, Position::bank(block));
        let it = self.at(block);
        let (seen, answered) = (core::mem::take(&mut it.seen), core::mem::take(&mut it.answered));
        let of = move |r2p2: u8| {
            let way = chip.way(bank, Position::edge(r2p2));
            // The answer that is in flight comes first.
            (now.plus(way).max(answered), way)
        };
        let all = (0..EDGES).filter(move |r2p2| seen >> r2p2 & 1 == 1);
        told.extend(all.clone().map(|r2p2| Told { r2p2, block, at: of(r2p2).0 }));
        all.map(move |r2p2| of(r2p2).0.plus(of(r2p2).1))
    }

    /// When a block is in its bank.
    fn present(&mut self, looked: Picos, block: u64, told: &mut Vec<Told>) -> Picos {
        if self.touch(looked, block, told) {
            return looked;
        }
        let chip = self.chip;
        let number = channel_of(block);
        let way = chip.way(Position::bank(block), Position::channel(number));
        let span = chip.channel.picos(BLOCK);
        let begins =
            self.channels[usize::from(number)].reserve(looked.plus(way).plus(chip.memory.into()), span);
        let there = begins.plus(span).plus(way).plus(chip.flits());
        self.at(block).busy = there;
        there
    }

    /// Uses a block in the cache: whether it was there. Who has seen the one that makes room is told.
    fn touch(&mut self, now: Picos, block: u64, told: &mut Vec<Told>) -> bool {
        let (is_there, victim) = self.cache.touch(block);
        if let Some(victim) = victim {
            drop(self.tell(now, victim, told));
        }
        is_there
    }

    /// How long a request is in flight to a block's directory.
    pub(super) fn way(&self, agent: Agent, block: u64) -> Picos {
        self.chip.way(agent.position(), Position::bank(block))
    }

    /// Whether a core may write a block now.
    pub(super) fn is_owner(&self, now: Picos, core: u8, block: u64) -> bool {
        let it = &self.blocks[block as usize];
        it.owner == Some(core) && it.busy <= now
    }

    /// A core's first-level cache has no capacity for it any more.
    pub(super) fn disown(&mut self, core: u8, block: u64) {
        let it = self.at(block);
        if it.owner == Some(core) {
            it.owner = None;
        }
    }

    /// What a block holds, for who owns it.
    pub(super) fn held(&mut self, block: u64) -> &mut Sample {
        &mut self.at(block).holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_read_is_told_after_the_answer_and_before_the_writer_has_the_block() {
        let mut memory = Memory::new(Chip::PAPER, 64);
        let mut told = Vec::new();
        for block in 0..64 {
            let (arrives, _) = memory.read(Picos(1_000), Agent::R2p2(3), block, &mut told).unwrap();
            let Busy(from) = memory.own(Picos(1_001), 5, block, &mut told).unwrap_err();
            assert!(told.is_empty());
            let owned = memory.own(from, 5, block, &mut told).unwrap();
            let [it] = told[..] else { panic!("{told:?}") };
            assert!(
                it.r2p2 == 3 && it.block == block && arrives <= it.at && it.at <= owned,
                "{it:?} {arrives:?}"
            );
            assert!(!memory.is_owner(from, 5, block) && memory.is_owner(owned, 5, block));
            told.clear();
        }
    }

    #[test]
    fn who_reads_a_block_while_it_is_taken_waits() {
        let mut memory = Memory::new(Chip::PAPER, 4);
        let mut told = Vec::new();
        let owned = memory.own(Picos(0), 2, 1, &mut told).unwrap();
        let Busy(until) = memory.read(Picos(10), Agent::R2p2(0), 1, &mut told).unwrap_err();
        assert!(until <= owned);
        memory.read(until, Agent::R2p2(0), 1, &mut told).unwrap();
        assert!(!memory.is_owner(owned, 2, 1), "a reader has it, too");
    }
}
