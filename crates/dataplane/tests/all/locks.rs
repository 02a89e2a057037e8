//! The lock directory, for comparison.

use check::bytecode::model::{Place, encoded_lock};
use random::Dice;
use switch::ebpf::{Frames, Hook, KernelProgram};
use switch::locks::{Directory, DirectoryConfig};
use wire::{
    Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, Rule, Rules, SwitchEpoch, Term,
    WaitList,
};

use crate::against_the_model::{HEADER_AT, Packets};

/// A directory with two sets, in which few locks and nodes meet.
pub(crate) struct Locks {
    directory: Directory,
    nodes: u64,
}

const EPOCH: SwitchEpoch = SwitchEpoch(3);
const LOCKS: u64 = 6;

fn config(nodes: usize) -> DirectoryConfig {
    DirectoryConfig { at: LockEnd::Switch, nodes, entries: 4, epoch: EPOCH }
}

impl Locks {
    fn lock(&self, number: u64) -> GlobalAddr {
        GlobalAddr::new(NodeId((number % self.nodes) as u16), 64 + number * 64)
    }
}

impl Packets for Locks {
    /// Nodes.
    type Config = usize;
    type Model = Directory;
    const RULES: &'static [Rule] = Rule::LOCKS;

    fn program<R: Rules>(rules: R, hook: Hook, nodes: usize) -> KernelProgram {
        let directory = Directory::with_rules(rules, &config(nodes)).expect("it fits");
        directory.for_kernel(Frames::Bare(hook, HEADER_AT)).expect("its jumps are short enough")
    }

    fn new(nodes: usize) -> Self {
        Self { directory: Directory::new(&config(nodes)).expect("it fits"), nodes: nodes as u64 }
    }

    fn model(&mut self) -> &mut Directory {
        &mut self.directory
    }

    fn begin(&mut self, program: &mut dyn Place, dice: &mut Dice) {
        self.directory.restart(EPOCH);
        program.begin(EPOCH.0, 0);
        // As many as have room; of the others the switch knows nothing.
        for number in 0..LOCKS {
            let lock = self.lock(number);
            let holder = (dice.below(2) == 0).then(|| NodeId(dice.below(self.nodes) as u16));
            let sharers = Copyset::from_bits(dice.below(1 << self.nodes));
            self.directory.insert(lock, Term(1 + dice.below(3)), holder, sharers);
            for (array, index) in self.directory.entry_cells(lock) {
                program.set_cell(array, index, self.directory.cell(array, index));
            }
        }
    }

    fn packet(&self, dice: &mut Dice) -> Vec<u8> {
        let lock = self.lock(dice.below(LOCKS));
        let node = |dice: &mut Dice, nodes: u64| NodeId(dice.below(nodes) as u16);
        let entry = self.directory.entry(lock);
        let is_move = dice.below(2) == 0;
        let mut queue = WaitList::EMPTY;
        for waits in 0..self.nodes {
            if is_move && dice.below(4) == 0 {
                queue.push(NodeId(waits as u16), if dice.below(2) == 0 { Mode::Read } else { Mode::Write });
            }
        }
        let holder = entry.and_then(|it| it.holder).filter(|_| dice.below(4) > 0);
        // Now and then one that the rack does not have.
        let named = self.nodes + u64::from(dice.below(40) == 0);
        let who = holder.unwrap_or_else(|| node(dice, named));
        let knows = entry.map_or(Copyset::EMPTY, |it| it.waiting);
        let packet = LockPacket {
            mode: if dice.below(2) == 0 { Mode::Read } else { Mode::Write },
            once: dice.below(8) == 0,
            has_copy: dice.below(3) == 0,
            term: entry.filter(|_| dice.below(8) > 0).map_or(Term(3), |it| it.term),
            waiting: if dice.below(4) > 0 { knows } else { Copyset::from_bits(dice.below(1 << self.nodes)) },
            nodes: Copyset::from_bits(dice.below(1 << named)),
            next: (dice.below(3) > 0).then(|| node(dice, self.nodes)),
            queue,
            epoch: SwitchEpoch(if dice.below(30) > 0 { EPOCH.0 } else { 2 }),
            number: dice.next() as u32,
            ..LockPacket::new(
                if is_move { LockKind::Move } else { LockKind::Acquire },
                lock,
                [0, 64][dice.below(2) as usize],
                who,
            )
        };
        encoded_lock(&packet)
    }
}
