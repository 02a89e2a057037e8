//! Requesters and homes that keep to the protocol, on a network that loses, repeats and reorders: locks exclude,
//! metadata are those of the last unlock, and once nothing is lost any more, everything ends.
//!
//! Agents are left out: a forwarded request stands for its answer, and a home refuses what it is asked.

use crate::rig;

use std::collections::{BTreeMap, BTreeSet};

use random::Dice;
use rig::{EPOCH, NODES, request, tag};
use switch::coherence::{Effect, EntryView, Resubmit, Switch, SwitchConfig};
use wire::{
    BlockTag, Copyset, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, SlotId,
    Status,
};

type Metadata = (GlobalStatus, Copyset);
type EventId = (RequesterId, u64);

/// A requester's open event: its request is out, or its unlock.
struct Open {
    request: Packet,
    unlock: Option<Packet>,
}

struct Requester {
    id: RequesterId,
    seq: u64,
    /// Unfinished events: at most one without its unlock, and none of the parity of the next one.
    open: Vec<Open>,
}

struct Rack {
    random: Dice,
    switch: Switch,
    requesters: Vec<Requester>,
    network: Vec<Packet>,
    second_passes: Vec<Resubmit>,
    /// What the metadata of every block are, wherever its entry is.
    truth: BTreeMap<BlockTag, Metadata>,
    /// Blocks whose entry the switch has, as their homes know it.
    moved: BTreeSet<BlockTag>,
    /// Events granted by the switch and not unlocked yet.
    holders: BTreeMap<BlockTag, BTreeMap<EventId, PacketKind>>,
    granted: u64,
}

fn blocks() -> Vec<BlockTag> {
    (0..9).map(|n| tag(u16::try_from(n % 2).unwrap(), n)).collect()
}

impl Rack {
    fn new(seed: u64) -> Self {
        let slots = [0, 1, SlotId::MIGRATION.0];
        let ids =
            (0..3).flat_map(|node| slots.map(|slot| RequesterId { node: NodeId(node), slot: SlotId(slot) }));
        Self {
            random: Dice::new(seed),
            // One set of 7 for 9 blocks: ADDs collide, and race for the last way.
            switch: Switch::new(&SwitchConfig {
                entries: 7,
                epoch: EPOCH,
                peeks: true,
                ..SwitchConfig::for_nodes(NODES)
            })
            .unwrap(),
            requesters: ids.map(|id| Requester { id, seq: 0, open: Vec::new() }).collect(),
            network: Vec::new(),
            second_passes: Vec::new(),
            truth: blocks().into_iter().map(|tag| (tag, Metadata::default())).collect(),
            moved: BTreeSet::new(),
            holders: BTreeMap::new(),
            granted: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.pick(n)
    }

    /// Opens an event, if the requester may.
    fn ask(&mut self, at: usize) {
        let requester = &self.requesters[at];
        let next = requester.seq + 1;
        let waits = |open: &Open| open.unlock.is_none() || open.request.seq.0 % 2 == next % 2;
        if requester.open.iter().any(waits) {
            return;
        }
        let id = requester.id;
        let of: Vec<_> = blocks()
            .into_iter()
            .filter(|tag| id.slot != SlotId::MIGRATION || tag.home() == id.node)
            .collect();
        if of.is_empty() {
            return;
        }
        let tag = of[self.below(of.len())];
        let kind = match (id.slot == SlotId::MIGRATION, self.below(5)) {
            (true, _) if self.moved.contains(&tag) => PacketKind::RemoveFromSwitch,
            (true, _) => PacketKind::AddToSwitch,
            (false, 0) => PacketKind::WriteMiss,
            (false, 1) => PacketKind::WriteShared,
            (false, 2) => [PacketKind::EvictShared, PacketKind::EvictModified][self.below(2)],
            (false, 3) => PacketKind::Purge,
            (false, _) => PacketKind::ReadMiss,
        };
        let (global_status, copyset) = self.truth[&tag];
        // A home has its own write lock on an entry that it gives away: nothing changes under it.
        let packet = Packet { global_status, copyset, ..request(kind, tag, id, next) };
        let requester = &mut self.requesters[at];
        requester.seq = next;
        requester.open.push(Open { request: packet, unlock: None });
        self.network.push(packet);
    }

    /// Repeats whatever is not answered yet.
    fn repeat(&mut self, at: usize) {
        for open in &self.requesters[at].open {
            self.network.push(open.unlock.unwrap_or(open.request));
        }
    }

    fn arrive_at_switch(&mut self, packet: &Packet) {
        let mut effects = Vec::new();
        let arg = self.below(1 << 30) as u64;
        self.switch.on_packet(&Packet { arg, ..*packet }, &mut effects);
        self.take(effects);
    }

    fn second_pass(&mut self) {
        let at = self.below(self.second_passes.len());
        let again = self.second_passes.swap_remove(at);
        let mut effects = Vec::new();
        self.switch.on_resubmit(again, &mut effects);
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Resubmit(again) => self.second_passes.push(again),
                Effect::Send(packet) => {
                    self.observe(&packet);
                    self.network.push(packet);
                }
            }
        }
        self.switch.invariants();
    }

    /// What the switch's own packets say about the order in which it did things.
    fn observe(&mut self, packet: &Packet) {
        let event = (packet.requester, packet.seq.0);
        let is_open = self.requesters.iter().any(|requester| {
            requester.id == packet.requester
                && requester.open.iter().any(|open| open.request.seq == packet.seq && open.unlock.is_none())
        });
        let is_grant = match packet.kind {
            PacketKind::Ack => packet.status.is_granted(),
            kind => kind.is_request() && packet.in_switch,
        };
        if is_grant && is_open {
            let holders = self.holders.entry(packet.tag).or_default();
            let others = holders.iter().filter(|(id, _)| **id != event);
            let shares = packet.event.takes_read_lock(wire::AllRules);
            let conflict = others.clone().find(|(_, kind)| !shares || !kind.takes_read_lock(wire::AllRules));
            assert_eq!(conflict, None, "{event:?} was granted {:?} beside it", packet.event);
            if holders.insert(event, packet.event).is_none() {
                self.granted += 1;
            }
        }
        if packet.kind == PacketKind::UnlockAck {
            self.unlocked(packet, event);
        }
    }

    fn unlocked(&mut self, packet: &Packet, event: EventId) {
        let held = self.holders.get_mut(&packet.tag).and_then(|holders| holders.remove(&event));
        if held.is_none() || !packet.status.is_granted() {
            return;
        }
        let truth = self.truth.get_mut(&packet.tag).expect("one of the blocks");
        match packet.event {
            PacketKind::AddToSwitch | PacketKind::RemoveFromSwitch => {}
            PacketKind::ReadMiss => *truth = (packet.global_status, truth.1.union(packet.copyset)),
            _ => *truth = (packet.global_status, packet.copyset),
        }
    }

    /// A packet arrives at a node: the home refuses, the requester ends its event.
    fn arrive_at_node(&mut self, packet: &Packet) {
        if let Endpoint::HomeAgent(home) = packet.to
            && !packet.in_switch
        {
            let kind =
                if packet.kind == PacketKind::Unlock { PacketKind::UnlockAck } else { PacketKind::Ack };
            let to = Endpoint::Requester(packet.requester.node);
            let status = Status::Refused(Refusal::NotOwner);
            self.network.push(Packet { status, ..packet.reply(kind, Endpoint::HomeAgent(home), to) });
            return;
        }
        let Some(requester) = self.requesters.iter_mut().find(|one| one.id == packet.requester) else {
            return;
        };
        let Some(at) = requester.open.iter().position(|open| open.request.seq == packet.seq) else { return };
        let open = &mut requester.open[at];
        match packet.kind {
            PacketKind::UnlockAck if open.unlock.is_some() => {
                requester.open.remove(at);
            }
            PacketKind::AddNotice => {}
            _ if open.unlock.is_none() => {
                let unlock = unlock_of(packet);
                open.unlock = Some(unlock);
                self.network.push(unlock);
                match packet.event {
                    PacketKind::AddToSwitch if packet.status.is_granted() => self.moved.insert(packet.tag),
                    PacketKind::RemoveFromSwitch if packet.status.is_granted() => {
                        self.moved.remove(&packet.tag)
                    }
                    _ => false,
                };
            }
            _ => {}
        }
    }

    fn deliver(&mut self, at: usize, keep: bool) {
        let packet = if keep { self.network[at] } else { self.network.swap_remove(at) };
        match packet.to {
            Endpoint::Switch => self.arrive_at_switch(&packet),
            _ => self.arrive_at_node(&packet),
        }
    }

    fn step(&mut self) {
        match self.below(10) {
            0 | 1 => {
                let at = self.below(self.requesters.len());
                self.ask(at);
            }
            2 => {
                let at = self.below(self.requesters.len());
                self.repeat(at);
            }
            3 | 4 if !self.second_passes.is_empty() => self.second_pass(),
            5 if !self.network.is_empty() => {
                let at = self.below(self.network.len());
                self.network.swap_remove(at);
            }
            fate if !self.network.is_empty() => {
                let at = self.below(self.network.len());
                self.deliver(at, fate == 6);
            }
            _ => {}
        }
    }

    /// Nothing is lost or asked any more: everything has to end.
    fn settle(&mut self) {
        for _ in 0..20 {
            while !self.network.is_empty() || !self.second_passes.is_empty() {
                let choices = self.network.len() + self.second_passes.len();
                if self.below(choices) < self.network.len() {
                    let at = self.below(self.network.len());
                    self.deliver(at, false);
                } else {
                    self.second_pass();
                }
            }
            (0..self.requesters.len()).for_each(|at| self.repeat(at));
        }
        assert!(self.requesters.iter().all(|one| one.open.is_empty()), "every event ends");
    }

    fn compare(&self) {
        for (tag, (status, copyset)) in &self.truth {
            let want = EntryView { lock: 0, status: *status, copyset: *copyset };
            let want = self.moved.contains(tag).then_some(want);
            assert_eq!(self.switch.entry(*tag), want, "{tag:?}");
        }
        assert_eq!(self.switch.occupancy(), self.moved.len());
    }
}

/// How a requester ends its event: with the metadata of the state diagram (Figure 6), or with none.
fn unlock_of(answer: &Packet) -> Packet {
    let me = answer.requester.node;
    let unlock = Packet { kind: PacketKind::Unlock, to: Endpoint::Switch, provider: false, ..*answer };
    if !answer.status.is_granted() {
        return unlock;
    }
    let without = answer.copyset.without(me);
    let (global_status, copyset) = match answer.event {
        PacketKind::ReadMiss => (GlobalStatus::Shared, answer.copyset.with(me)),
        PacketKind::WriteMiss | PacketKind::WriteShared => (GlobalStatus::Modified, Copyset::only(me)),
        PacketKind::EvictShared if !without.is_empty() => (GlobalStatus::Shared, without),
        PacketKind::EvictShared | PacketKind::EvictModified | PacketKind::Purge => Metadata::default(),
        _ => (answer.global_status, answer.copyset),
    };
    Packet { global_status, copyset, ..unlock }
}

/// Prints how to see a failure again.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: SEED={} cargo test -p rackmem-switch protocol_streams", self.0);
        }
    }
}

#[test]
fn locks_exclude_and_metadata_survive_loss_repetition_and_reordering() {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..150, |seed: u64| seed..seed + 1);
    let (mut granted, mut collisions) = (0, 0);
    for seed in seeds {
        let replay = Replay(seed);
        let mut rack = Rack::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4000 {
            rack.step();
        }
        rack.settle();
        rack.compare();
        granted += rack.granted;
        collisions += rack.switch.counters().refusals(Refusal::Collision);
        drop(replay);
    }
    assert!(given.is_some() || granted > 10_000, "the streams did something: {granted} events granted");
    assert!(given.is_some() || collisions > 100, "and met collisions: {collisions}");
}
