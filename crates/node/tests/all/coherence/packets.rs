//! The packets that the rest of the rack would send to the node on the bench.

use wire::{
    BlockSize, BlockTag, Copyset, Discipline, Endpoint, GlobalAddr, GlobalStatus, Incarnation, NodeId,
    Packet, PacketKind, Refusal, RequesterId, Seq, SlotId, Status, SwitchEpoch,
};

pub(crate) const BLOCK: BlockSize = BlockSize::MIN;
pub(crate) const NODES: usize = 4;
/// The node on the bench.
pub(crate) const ME: NodeId = NodeId(1);
/// The incarnation of the switch.
pub(crate) const EPOCH: SwitchEpoch = SwitchEpoch(3);
/// The incarnation that every node is in.
pub(crate) const INCARNATION: Incarnation = Incarnation(2);

// Names

/// The `n`th block of the memory of the node on the bench.
pub(crate) fn mine(n: u64) -> BlockTag {
    BLOCK.tag(GlobalAddr::new(ME, n * BLOCK.bytes()))
}

/// The `n`th block of node 2's memory.
pub(crate) fn theirs(n: u64) -> BlockTag {
    BLOCK.tag(GlobalAddr::new(NodeId(2), n * BLOCK.bytes()))
}

pub(crate) fn nodes<const N: usize>(nodes: [u16; N]) -> Copyset {
    nodes.map(NodeId).into_iter().collect()
}

pub(crate) fn requester(node: u16, slot: u16) -> RequesterId {
    RequesterId { node: NodeId(node), slot: SlotId(slot) }
}

pub(crate) fn home_of(tag: BlockTag) -> Endpoint {
    Endpoint::HomeAgent(tag.home())
}

pub(crate) fn agent(node: u16) -> Endpoint {
    Endpoint::CacheAgent(NodeId(node))
}

// Answers to what the node on the bench asked

/// An answer that names what was found.
pub(crate) fn granted<const N: usize>(
    request: &Packet,
    from: Endpoint,
    global_status: GlobalStatus,
    copyset: [u16; N],
) -> Packet {
    let copyset = nodes(copyset);
    Packet { global_status, copyset, in_switch: true, ..request.reply(PacketKind::Ack, from, request.from) }
}

pub(crate) fn refused(request: &Packet, why: Refusal) -> Packet {
    let status = Status::Refused(why);
    Packet { status, in_switch: true, ..request.reply(PacketKind::Ack, Endpoint::Switch, request.from) }
}

pub(crate) fn unlock_ack(unlock: &Packet) -> Packet {
    Packet { provider: false, ..unlock.reply(PacketKind::UnlockAck, unlock.to, unlock.from) }
}

pub(crate) fn write_back_ack(request: &Packet) -> Packet {
    request.reply(PacketKind::WriteBackAck, home_of(request.tag), Endpoint::Requester(request.requester.node))
}

pub(crate) fn close_ack(request: &Packet, from: Endpoint) -> Packet {
    request.reply(PacketKind::CloseAck, from, Endpoint::Requester(request.requester.node))
}

/// A home's answer to an allocator's call.
pub(crate) fn home_reply(call: &Packet, status: Status) -> Packet {
    Packet { status, ..call.reply(PacketKind::HomeReply, call.to, call.from) }
}

/// The same packet, of another event.
pub(crate) fn numbered(packet: Packet, seq: u64) -> Packet {
    Packet { seq: Seq(seq), ..packet }
}

// What others ask the node on the bench

fn request(kind: PacketKind, tag: BlockTag, requester: RequesterId, seq: u64) -> Packet {
    Packet { epoch: EPOCH, incarnation: INCARNATION, ..Packet::request(kind, tag, requester, Seq(seq)) }
}

/// A request that the switch passes on because it does not have the entry.
pub(crate) fn at_home(kind: PacketKind, tag: BlockTag, requester: RequesterId, seq: u64) -> Packet {
    Packet { from: Endpoint::Switch, to: home_of(tag), ..request(kind, tag, requester, seq) }
}

/// The unlock of such a request.
pub(crate) fn unlock<const N: usize>(
    request: &Packet,
    global_status: GlobalStatus,
    copyset: [u16; N],
) -> Packet {
    let copyset = nodes(copyset);
    Packet { global_status, copyset, ..request.reply(PacketKind::Unlock, Endpoint::Switch, request.to) }
}

/// The unlock of a refused one.
pub(crate) fn unlock_refused(request: &Packet, why: Refusal) -> Packet {
    Packet { status: Status::Refused(why), ..unlock(request, GlobalStatus::Unshared, []) }
}

/// A request that the switch forwards to the cache agent on the bench, not for the data.
pub(crate) fn to_agent<const N: usize>(
    kind: PacketKind,
    tag: BlockTag,
    seq: u64,
    global_status: GlobalStatus,
    copyset: [u16; N],
) -> Packet {
    Packet {
        from: Endpoint::Switch,
        to: Endpoint::CacheAgent(ME),
        in_switch: true,
        global_status,
        copyset: nodes(copyset),
        ..request(kind, tag, requester(0, 0), seq)
    }
}

/// The same, for the data too.
pub(crate) fn to_provider<const N: usize>(
    kind: PacketKind,
    tag: BlockTag,
    seq: u64,
    global_status: GlobalStatus,
    copyset: [u16; N],
) -> Packet {
    Packet { provider: true, ..to_agent(kind, tag, seq, global_status, copyset) }
}

/// The requester has what it needs.
pub(crate) fn close(request: &Packet) -> Packet {
    request.reply(PacketKind::Close, Endpoint::Requester(request.requester.node), request.to)
}

/// A copy that comes home, of an event of requester (0, 0).
pub(crate) fn write_back(tag: BlockTag, seq: u64) -> Packet {
    let event = request(PacketKind::ReadMiss, tag, requester(0, 0), seq);
    event.reply(PacketKind::WriteBack, Endpoint::CacheAgent(NodeId(3)), home_of(tag))
}

/// A call of node 0's allocator.
pub(crate) fn call(
    kind: PacketKind,
    tag: BlockTag,
    seq: u64,
    bytes: u64,
    discipline: Option<Discipline>,
) -> Packet {
    Packet {
        from: Endpoint::Allocator(NodeId(0)),
        to: Endpoint::HomeAgent(ME),
        arg: bytes,
        discipline,
        ..request(kind, tag, requester(0, 9), seq)
    }
}

/// The shadow node asks for a cold block to be taken back.
pub(crate) fn demote(tag: BlockTag) -> Packet {
    let shadow = Endpoint::Shadow(NodeId(0));
    let requester = RequesterId { node: NodeId(0), slot: SlotId::MIGRATION };
    Packet { from: shadow, to: Endpoint::HomeAgent(ME), ..request(PacketKind::Demote, tag, requester, 0) }
}

/// What the shadow node is told, by the switch or by a cache agent.
pub(crate) fn to_shadow(kind: PacketKind, tag: BlockTag, status: Status, count: u64) -> Packet {
    let requester = RequesterId { node: tag.home(), slot: SlotId::MIGRATION };
    Packet { to: Endpoint::Shadow(ME), status, arg: count, ..request(kind, tag, requester, 0) }
}
