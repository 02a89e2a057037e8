//! A node on the bench, with its lock store: one input at a time, and what came of it.

use check::locks::PlainLocks;
use node::locks::{LockDrop, LockNodeConfig};
use node::{DataRef, LockEffect, LockMessage, LockNode, Moment, Retransmission, Ticket, View};
use wire::{
    Copyset, GlobalAddr, Incarnation, LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, Refusal, Status,
    SwitchEpoch, Term,
};

pub(crate) const NODES: usize = 4;
/// The node on the bench.
pub(crate) const ME: NodeId = NodeId(1);
/// The incarnation of the switch that it begins in.
pub(crate) const EPOCH: SwitchEpoch = SwitchEpoch(3);
/// Bytes of every region.
pub(crate) const LEN: u32 = 8;
/// When something is sent again.
pub(crate) const FLOOR: Nanos = Nanos(60);

/// A lock in the memory of the node on the bench.
pub(crate) fn mine() -> GlobalAddr {
    GlobalAddr::new(ME, 4096)
}

/// One in node 2's memory.
pub(crate) fn theirs() -> GlobalAddr {
    GlobalAddr::new(NodeId(2), 4096)
}

pub(crate) fn nodes<const N: usize>(nodes: [u16; N]) -> Copyset {
    nodes.map(NodeId).into_iter().collect()
}

/// A packet for the agent on the bench, from wherever its kind comes from, about this node.
pub(crate) fn to_agent(kind: LockKind, lock: GlobalAddr, node: u16, term: u64) -> LockPacket {
    let from = match kind {
        LockKind::Forward | LockKind::Invalidate | LockKind::Denied | LockKind::Approved => LockEnd::Switch,
        LockKind::Invalidated | LockKind::Poll | LockKind::Received | LockKind::Busy => {
            LockEnd::Agent(NodeId(node))
        }
        _ => LockEnd::Home(lock.home()),
    };
    let packet = LockPacket::new(kind, lock, LEN, NodeId(node));
    LockPacket { from, to: LockEnd::Agent(ME), term: Term(term), epoch: EPOCH, ..packet }
}

/// A packet for the home on the bench.
pub(crate) fn to_home(kind: LockKind, node: u16, term: u64) -> LockPacket {
    let from = match kind {
        LockKind::Free | LockKind::Reclaim | LockKind::Report | LockKind::LastReport => {
            LockEnd::Agent(NodeId(node))
        }
        _ => LockEnd::Switch,
    };
    let packet = LockPacket::new(kind, mine(), LEN, NodeId(node));
    LockPacket { from, to: LockEnd::Home(ME), term: Term(term), epoch: EPOCH, ..packet }
}

/// The same packet, with data.
pub(crate) fn with(data: u64, packet: LockPacket) -> LockMessage {
    LockMessage { packet: LockPacket { payload: packet.len, ..packet }, data: Some(DataRef(data)) }
}

pub(crate) fn bare(packet: LockPacket) -> LockMessage {
    LockMessage { packet, data: None }
}

pub(crate) struct Rig {
    pub(crate) node: LockNode,
    pub(crate) store: PlainLocks,
    pub(crate) now: Nanos,
}

/// What one input caused.
#[derive(Debug)]
#[must_use]
pub(crate) struct Effects(pub(crate) Vec<LockEffect>);

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with_config(|_| {})
    }

    pub(crate) fn with_config(change: impl FnOnce(&mut LockNodeConfig)) -> Self {
        let mut config = LockNodeConfig {
            retransmission: Retransmission::AfterRoundTrips { floor: FLOOR, most: Nanos::MAX },
            epoch: EPOCH,
            ..LockNodeConfig::new(ME, NODES)
        };
        change(&mut config);
        Self { node: LockNode::new(config), store: PlainLocks::new(2), now: Nanos(1) }
    }

    /// A holder over a lock in this term, with nobody inside.
    pub(crate) fn holding(lock: GlobalAddr, term: u64) -> Self {
        let mut rig = Self::new();
        let _ = rig.wants(1, Mode::Write, lock);
        let out = rig.gets(with(10, to_agent(LockKind::Lent, lock, ME.0, term)));
        assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
        let _ = rig.leaves(lock, Mode::Write, Some(11));
        rig
    }

    /// A home whose lock `mine()` the switch keeps, lent to node 0 in term 1.
    pub(crate) fn lending() -> Self {
        let mut rig = Self::new();
        let asked = rig.gets(bare(LockPacket { number: 1, ..to_home(LockKind::Acquire, 0, 0) }));
        let install = asked.only();
        assert_eq!(install.kind, LockKind::Install);
        let _ = rig.gets(bare(LockPacket { number: install.number, ..to_home(LockKind::Installed, 1, 0) }));
        let lent = rig.gets(bare(to_home(LockKind::Lend, 0, 1))).only();
        assert_eq!((lent.kind, lent.to), (LockKind::Lent, LockEnd::Agent(NodeId(0))));
        rig
    }

    pub(crate) fn input(
        &mut self,
        input: impl FnOnce(&mut LockNode, Moment, &mut PlainLocks, &mut Vec<LockEffect>),
    ) -> Effects {
        let mut out = Vec::new();
        let at = Moment { now: self.now, random: 12345 };
        input(&mut self.node, at, &mut self.store, &mut out);
        self.node.invariants();
        Effects(out)
    }

    pub(crate) fn gets(&mut self, message: LockMessage) -> Effects {
        self.input(|node, at, store, out| node.on_packet(at, &message, store, out))
    }

    /// The packet must be dropped for this cause, and change nothing that can be seen.
    #[track_caller]
    pub(crate) fn drops(&mut self, why: LockDrop, message: LockMessage) {
        let lock = message.packet.lock;
        let seen = |rig: &Self| (rig.node.view(lock), rig.node.home_of(lock), rig.store.clone());
        let (before, dropped) = (seen(self), self.node.counters().dropped(why));
        let out = self.gets(message);
        assert!(out.0.is_empty(), "{why:?} expected of {message:?}: {out:?}");
        assert_eq!(self.node.counters().dropped(why), dropped + 1, "{why:?} expected of {message:?}");
        let after = seen(self);
        assert_eq!((after.1, &after.2.home), (before.1, &before.2.home), "{message:?}");
        if let Some(view) = before.0 {
            assert_eq!(after.0, Some(view), "what is dropped changes nothing: {message:?}");
        }
    }

    pub(crate) fn wants(&mut self, ticket: u32, mode: Mode, lock: GlobalAddr) -> Effects {
        self.asks(ticket, mode, lock, LEN, false)
    }

    pub(crate) fn asks(
        &mut self,
        ticket: u32,
        mode: Mode,
        lock: GlobalAddr,
        len: u32,
        once: bool,
    ) -> Effects {
        let thread = (Ticket(ticket), mode, once);
        self.input(|node, at, store, out| node.on_lock(at, thread, (lock, len), store, out))
    }

    /// A thread leaves, and a writer leaves this number.
    pub(crate) fn leaves(&mut self, lock: GlobalAddr, mode: Mode, wrote: Option<u64>) -> Effects {
        if self.store.leave(lock, mode, wrote) {
            return self.input(|node, at, store, out| node.on_left(at, lock, store, out));
        }
        Effects(Vec::new())
    }

    /// The thread that is inside to write ends the lock.
    pub(crate) fn frees(&mut self, ticket: u32, lock: GlobalAddr) -> Effects {
        self.store.end(lock);
        self.input(|node, at, store, out| node.on_free(at, (Ticket(ticket), false), lock, store, out))
    }

    /// The thread that has reclaimed the lock gives it up.
    pub(crate) fn gives_up(&mut self, ticket: u32, lock: GlobalAddr) -> Effects {
        self.store.end(lock);
        self.input(|node, at, store, out| node.on_free(at, (Ticket(ticket), true), lock, store, out))
    }

    /// A thread that was told that the lock is lost wants it all the same.
    pub(crate) fn reclaims(&mut self, ticket: u32, lock: GlobalAddr) -> Effects {
        self.input(|node, at, store, out| node.on_reclaim(at, Ticket(ticket), (lock, LEN), store, out))
    }

    /// So much time passes; then the node is called.
    pub(crate) fn waits(&mut self, span: Nanos) -> Effects {
        self.now += span;
        self.input(|node, at, store, out| node.on_deadline(at, store, out))
    }

    /// A new epoch, in which these nodes are down, or back in another incarnation.
    pub(crate) fn epoch(&mut self, number: u32, down: &[u16], back: &[u16]) -> Effects {
        let incarnation = |node: u16| match (down.contains(&node), back.contains(&node)) {
            (true, _) => None,
            (_, true) => Some(Incarnation(1)),
            _ => Some(Incarnation(0)),
        };
        let incarnations = (0..NODES as u16).map(incarnation).collect();
        let view = View { epoch: SwitchEpoch(number), incarnations, shadow: NodeId(0), memories: Vec::new() };
        self.input(|node, at, store, out| node.on_new_epoch(at, &view, store, out))
    }

    /// Every live node but the one on the bench has nothing to report to its home, and the home hears it, and what it says itself.
    pub(crate) fn hears_reports(&mut self, own: &Effects, epoch: u32, others: &[u16]) -> Effects {
        let mut all = Vec::new();
        for packet in own.sent().filter(|packet| packet.to == LockEnd::Home(ME)) {
            let data = (packet.payload > 0).then(|| own.data_of(&packet)).flatten();
            all.extend(self.gets(LockMessage { packet, data }).0);
        }
        for node in others {
            let last = LockPacket { epoch: SwitchEpoch(epoch), ..to_home(LockKind::LastReport, *node, 0) };
            all.extend(self.gets(bare(last)).0);
        }
        Effects(all)
    }
}

impl Effects {
    pub(crate) fn sent(&self) -> impl Iterator<Item = LockPacket> + '_ {
        self.0.iter().filter_map(|effect| match effect {
            LockEffect::Send(message) => Some(message.packet),
            _ => None,
        })
    }

    pub(crate) fn data_of(&self, packet: &LockPacket) -> Option<DataRef> {
        self.0.iter().find_map(|effect| match effect {
            LockEffect::Send(message) if message.packet == *packet => message.data,
            _ => None,
        })
    }

    /// The only packet that was sent.
    #[track_caller]
    pub(crate) fn only(&self) -> LockPacket {
        let sent: Vec<_> = self.sent().collect();
        let [packet] = sent.as_slice() else { panic!("one packet expected: {self:?}") };
        *packet
    }

    /// The MOVE that was sent, with the data beside it for the next writer and each other reader.
    #[track_caller]
    pub(crate) fn moved(&self) -> LockPacket {
        let sent: Vec<_> = self.sent().collect();
        let [data @ .., moved] = sent.as_slice() else { panic!("a MOVE expected: {self:?}") };
        assert_eq!((moved.kind, moved.payload), (LockKind::Move, 0), "{self:?}");
        let to = moved.next.into_iter().fold(moved.nodes, Copyset::with).without(ME);
        assert_eq!(data.iter().filter_map(|data| data.to.node()).collect::<Copyset>(), to, "{self:?}");
        let its = |data: &LockPacket| (data.kind, data.term, data.waiting, data.payload);
        let expected = (LockKind::Data, moved.term.next(), moved.waiting, LEN);
        assert!(data.iter().all(|data| its(data) == expected), "{self:?}");
        *moved
    }

    /// The packets of this kind.
    pub(crate) fn of(&self, kind: LockKind) -> Vec<LockPacket> {
        self.sent().filter(|packet| packet.kind == kind).collect()
    }

    /// What threads were told.
    pub(crate) fn told(&self) -> Vec<LockEffect> {
        self.0.iter().filter(|effect| !matches!(effect, LockEffect::Send(_))).copied().collect()
    }

    #[track_caller]
    pub(crate) fn nothing(&self) {
        assert!(self.0.is_empty(), "nothing expected: {self:?}");
    }
}

/// A refusal of the request with this number.
pub(crate) fn refused(lock: GlobalAddr, why: Refusal, number: u32) -> LockMessage {
    let packet = to_agent(LockKind::Refused, lock, ME.0, 0);
    bare(LockPacket { status: Status::Refused(why), number, ..packet })
}
