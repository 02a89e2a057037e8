//! A switch on the bench: packets in by hand, second passes when the test wants them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use switch::coherence::{Drop, Effect, EntryView, Resubmit, Switch, SwitchConfig};
use wire::{
    BlockTag, Copyset, Endpoint, GlobalAddr, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId,
    Seq, SlotId, Status, SwitchEpoch,
};

pub(crate) const NODES: usize = 4;
pub(crate) const EPOCH: SwitchEpoch = SwitchEpoch(3);

pub(crate) struct Rig {
    pub(crate) switch: Switch,
    /// A number that no event of any requester has used yet.
    next: u64,
}

/// The block at home on node `home`, the `n`th there.
pub(crate) fn tag(home: u16, n: u64) -> BlockTag {
    BlockTag::from_bits(GlobalAddr::new(NodeId(home), n * 4096).bits())
}

/// The block that the tests are about.
pub(crate) fn block() -> BlockTag {
    tag(2, 1)
}

pub(crate) fn requester(node: u16, slot: u16) -> RequesterId {
    RequesterId { node: NodeId(node), slot: SlotId(slot) }
}

pub(crate) fn home_of(tag: BlockTag) -> RequesterId {
    RequesterId { node: tag.home(), slot: SlotId::MIGRATION }
}

pub(crate) fn nodes<const N: usize>(nodes: [u16; N]) -> Copyset {
    nodes.map(NodeId).into_iter().collect()
}

pub(crate) fn request(kind: PacketKind, tag: BlockTag, requester: RequesterId, seq: u64) -> Packet {
    Packet { epoch: EPOCH, ..Packet::request(kind, tag, requester, Seq(seq)) }
}

/// The unlock of a granted request, with the metadata that it installs.
pub(crate) fn unlock(request: &Packet, global_status: GlobalStatus, copyset: Copyset) -> Packet {
    Packet { kind: PacketKind::Unlock, in_switch: true, global_status, copyset, ..*request }
}

/// The unlock of a request that the switch refused.
pub(crate) fn unlock_refused(request: &Packet, why: Refusal) -> Packet {
    Packet { kind: PacketKind::Unlock, in_switch: true, status: Status::Refused(why), ..*request }
}

/// The unlock of a request that the home agent granted.
pub(crate) fn unlock_at_home(request: &Packet, global_status: GlobalStatus, copyset: Copyset) -> Packet {
    Packet { in_switch: false, ..unlock(request, global_status, copyset) }
}

/// What a single answer says.
pub(crate) fn status_of(packets: &[Packet]) -> Status {
    match packets {
        [one] if one.kind == PacketKind::Ack => one.status,
        other => panic!("one answer expected: {other:?}"),
    }
}

pub(crate) fn refused(why: Refusal) -> Status {
    Status::Refused(why)
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with_entries(700)
    }

    /// A directory of one set: 7 entries, all in each other's way.
    pub(crate) fn one_set() -> Self {
        Self::with_entries(7)
    }

    fn with_entries(entries: usize) -> Self {
        let usual = SwitchConfig::for_nodes(NODES);
        let switch = Switch::new(&SwitchConfig { entries, epoch: EPOCH, peeks: true, ..usual }).unwrap();
        Self { switch, next: 1000 }
    }

    /// A fresh even number, so that successive ones use the same parity.
    pub(crate) fn seq(&mut self) -> u64 {
        self.next += 2;
        self.next
    }

    /// A first pass alone.
    pub(crate) fn first(&mut self, packet: &Packet) -> (Vec<Packet>, Option<Resubmit>) {
        self.first_with(packet, 0)
    }

    pub(crate) fn first_with(&mut self, packet: &Packet, random: u32) -> (Vec<Packet>, Option<Resubmit>) {
        let mut effects = Vec::new();
        self.switch.on_packet(&Packet { arg: u64::from(random), ..*packet }, &mut effects);
        self.switch.invariants_of_any_stream();
        split(effects)
    }

    /// A first pass that must lead to a second.
    pub(crate) fn begin(&mut self, packet: &Packet) -> Resubmit {
        let (sent, again) = self.first(packet);
        assert_eq!(sent, []);
        again.expect("a second pass")
    }

    /// A second pass.
    pub(crate) fn second(&mut self, again: Resubmit) -> Vec<Packet> {
        let mut effects = Vec::new();
        self.switch.on_resubmit(again, &mut effects);
        self.switch.invariants_of_any_stream();
        let (sent, more) = split(effects);
        assert_eq!(more, None, "two passes are enough");
        sent
    }

    /// All passes, one after another.
    pub(crate) fn send(&mut self, packet: &Packet) -> Vec<Packet> {
        self.send_with(packet, 0)
    }

    pub(crate) fn send_with(&mut self, packet: &Packet, random: u32) -> Vec<Packet> {
        let (mut sent, again) = self.first_with(packet, random);
        if let Some(again) = again {
            sent.extend(self.second(again));
        }
        sent
    }

    /// An unlock that must be acknowledged to its requester.
    pub(crate) fn close(&mut self, unlock: &Packet) {
        let sent = self.send(unlock);
        assert_acknowledged(&sent, unlock);
    }

    /// Puts a block in the directory, active, in this state.
    pub(crate) fn install(&mut self, tag: BlockTag, global_status: GlobalStatus, copyset: Copyset) {
        let seq = self.seq();
        let add =
            Packet { global_status, copyset, ..request(PacketKind::AddToSwitch, tag, home_of(tag), seq) };
        let sent = self.send(&add);
        assert!(sent[0].status.is_granted(), "{sent:?}");
        self.close(&unlock(&add, global_status, copyset));
        assert_eq!(self.entry(tag), EntryView { lock: 0, status: global_status, copyset });
        self.switch.invariants();
    }

    pub(crate) fn entry(&self, tag: BlockTag) -> EntryView {
        self.switch.entry(tag).expect("the directory has the entry")
    }

    pub(crate) fn lock(&self, tag: BlockTag) -> u16 {
        self.entry(tag).lock
    }

    pub(crate) fn drops(&self, cause: Drop) -> u64 {
        self.switch.counters().drops(cause)
    }

    /// Sends a packet that must be dropped for this cause, without any effect.
    pub(crate) fn assert_dropped(&mut self, packet: &Packet, cause: Drop) {
        let before = self.drops(cause);
        assert_eq!(self.first(packet), (vec![], None));
        assert_eq!(self.drops(cause), before + 1, "dropped as {cause:?}");
    }
}

pub(crate) fn assert_acknowledged(sent: &[Packet], unlock: &Packet) {
    let node = unlock.requester.node;
    let want = unlock.reply(PacketKind::UnlockAck, Endpoint::Switch, Endpoint::Requester(node));
    assert_eq!(sent, [want]);
}

fn split(effects: Vec<Effect>) -> (Vec<Packet>, Option<Resubmit>) {
    let (mut sent, mut again) = (Vec::new(), None);
    for effect in effects {
        match effect {
            Effect::Send(packet) => sent.push(packet),
            Effect::Resubmit(resubmit) => assert_eq!(again.replace(resubmit), None),
        }
    }
    (sent, again)
}
