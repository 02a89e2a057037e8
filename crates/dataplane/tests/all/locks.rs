//! The lock directory, for comparison.

use dataplane::Loaded;
use random::Dice;
use switch::ebpf::{Frames, KernelProgram, Output};
use switch::locks::{Directory, DirectoryConfig, Drop, Effect, SINGLE_BYTES};
use wire::{
    Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, Rule, Rules, SwitchEpoch, Term,
    WaitList,
};

use crate::against_the_model::{HEADER_AT, Model};

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

impl Model for Locks {
    /// Nodes.
    type Config = usize;
    const BYTES: usize = SINGLE_BYTES;
    const RULES: &'static [Rule] = Rule::LOCKS;

    fn program<R: Rules>(rules: R, nodes: usize) -> KernelProgram {
        let directory = Directory::with_rules(rules, &config(nodes)).expect("it fits");
        directory.for_kernel(Frames::Bare(HEADER_AT), Output::Log).expect("its jumps are short enough")
    }

    fn new(nodes: usize) -> Self {
        Self { directory: Directory::new(&config(nodes)).expect("it fits"), nodes: nodes as u64 }
    }

    fn begin(&mut self, loaded: &mut Loaded, dice: &mut Dice) {
        self.directory.restart(EPOCH);
        loaded.set_epoch(EPOCH.0);
        loaded.clear(0);
        // As many as have room; of the others the switch knows nothing.
        for number in 0..LOCKS {
            let lock = self.lock(number);
            let holder = (dice.below(2) == 0).then(|| NodeId(dice.below(self.nodes) as u16));
            let sharers = Copyset::from_bits(dice.below(1 << self.nodes));
            self.directory.insert(lock, Term(1 + dice.below(3)), holder, sharers);
            for (array, index) in self.directory.entry_cells(lock) {
                loaded.set_cell(array, index, self.directory.cell(array, index));
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
        encoded(&packet)
    }

    fn run(&mut self, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (packet, _) = LockPacket::parse_head(bytes)?;
        if packet.payload > 0 || matches!(packet.kind, LockKind::Install | LockKind::Remove) {
            return None;
        }
        let (mut effects, mut sent) = (Vec::new(), Vec::new());
        self.directory.on_packet(&packet, &mut effects);
        if let [Effect::Resubmit(again)] = effects[..] {
            effects.clear();
            self.directory.on_resubmit(&again, &mut effects);
        }
        for effect in &effects {
            let Effect::Send(packet) = effect else { panic!("a packet is resubmitted once") };
            let mut out = encoded(packet);
            // Behind its list a single packet has what came in there: nobody looks at it.
            let head = packet.head_bytes();
            out[head..].copy_from_slice(&bytes[head..]);
            sent.push(out);
        }
        Some(sent)
    }

    fn arrays(&self) -> Vec<Vec<u64>> {
        self.directory.register_arrays()
    }

    fn counters(&self) -> Vec<u64> {
        Drop::ALL.map(|cause| self.directory.dropped(cause)).to_vec()
    }
}

fn encoded(packet: &LockPacket) -> Vec<u8> {
    let mut bytes = vec![0; SINGLE_BYTES];
    packet.encode(&mut bytes);
    bytes
}
