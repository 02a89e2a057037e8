//! The coherence program, for comparison.

use check::bytecode::model::{Place, encoded};
use random::Dice;
use switch::coherence::{Switch, SwitchConfig};
use switch::ebpf::{Frames, Hook, KernelProgram};
use wire::{
    BlockTag, Copyset, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, Rule, Rules, Seq,
    SlotId, Status, SwitchEpoch,
};

use crate::against_the_model::{HEADER_AT, Packets};

/// A switch with one set, in which numbers, blocks and requesters meet.
pub(crate) struct Blocks {
    switch: Switch,
    nodes: u64,
}

const EPOCH: SwitchEpoch = SwitchEpoch(3);

fn config((nodes, queue): (usize, bool)) -> SwitchConfig {
    SwitchConfig { entries: 7, epoch: EPOCH, queue, peeks: true, ..SwitchConfig::for_nodes(nodes) }
}

impl Packets for Blocks {
    /// Nodes, and whether writers wait in a queue.
    type Config = (usize, bool);
    type Model = Switch;
    const RULES: &'static [Rule] = Rule::COHERENCE;

    fn program<R: Rules>(rules: R, hook: Hook, of: Self::Config) -> KernelProgram {
        let switch = Switch::with_rules(rules, &config(of)).expect("it fits");
        switch.for_kernel(Frames::Bare(hook, HEADER_AT)).expect("its jumps are short enough")
    }

    fn new(of: Self::Config) -> Self {
        Self { switch: Switch::new(&config(of)).expect("it fits"), nodes: of.0 as u64 }
    }

    fn model(&mut self) -> &mut Switch {
        &mut self.switch
    }

    fn begin(&mut self, program: &mut dyn Place, _: &mut Dice) {
        self.switch.restart(EPOCH);
        self.switch.set_shadow(NodeId(1));
        program.begin(EPOCH.0, 1);
    }

    fn packet(&self, dice: &mut Dice) -> Vec<u8> {
        let home = dice.below(self.nodes);
        let tag = BlockTag::from_bits(home << 48 | dice.below(10) << 12);
        let requester = RequesterId {
            node: NodeId(if dice.below(8) > 0 { home } else { dice.below(self.nodes + 1) } as u16),
            slot: SlotId([0, 1, 2, 63][dice.below(4) as usize]),
        };
        // Many ADDs, so that the ways fill up.
        let kind = match dice.below(12) {
            0..4 => PacketKind::AddToSwitch,
            4 => PacketKind::Peek,
            _ => PacketKind::ALL[dice.below(10) as usize],
        };
        let refused = [Refusal::Locked, Refusal::Outdated, Refusal::Collision][dice.below(3) as usize];
        let states = [GlobalStatus::Unshared, GlobalStatus::Shared, GlobalStatus::Modified];
        let mut packet = Packet {
            in_switch: dice.below(5) > 0,
            status: if dice.below(5) > 0 { Status::Granted } else { Status::Refused(refused) },
            provider: dice.below(4) == 0,
            global_status: states[dice.below(3) as usize],
            copyset: Copyset::from_bits(dice.below(1 << (self.nodes + 1))),
            repeated: dice.below(5) == 0,
            epoch: SwitchEpoch(if dice.below(30) > 0 { EPOCH.0 } else { 2 }),
            arg: dice.next(),
            ..Packet::request(kind, tag, requester, Seq(1 + dice.below(6)))
        };
        if dice.below(4) == 0 && kind != PacketKind::Peek {
            packet.kind = PacketKind::Unlock;
        }
        encoded(&packet)
    }
}
