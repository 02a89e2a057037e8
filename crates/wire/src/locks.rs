//! Packets of the locks that carry their data (GCS, sections 3 and 4).
//!
//! A lock guards a region of memory and is named by the region's first byte. Nodes, not threads, are what the directory
//! knows: a node has at most one request for a lock in flight. One little-endian layout of [`HEADER_BYTES`] bytes, then
//! the wait queue, a byte an entry, then the region's bytes where [`LockPacket::payload`] says so.
//!
//! | bytes | field | |
//! | --- | --- | --- |
//! | 0..2 | magic | `RL` |
//! | 2 | version | 1 |
//! | 3 | kind | [`LockKind`] |
//! | 4 | flags | 1 write, 2 once, 4 has a copy; others must be 0 |
//! | 5 | status | 0 granted, else [`crate::Refusal`] |
//! | 6 | queue | entries that follow |
//! | 7 | next | node + 1, or 0 |
//! | 8..16 | lock | the region's first byte |
//! | 16..24 | term | |
//! | 24..32 | nodes | bitmap |
//! | 32..40 | waiting | bitmap |
//! | 40..48 | writers | bitmap |
//! | 48..50 | node | whom it is about |
//! | 50..52, 52..54 | from, to | nodes |
//! | 54, 55 | from, to | agents |
//! | 56..60 | switch epoch | |
//! | 60..64 | length | bytes of the region; the highest bit: it is [`SIZED`] |
//! | 64..68 | payload | bytes that follow the queue: 0, or as many as the region has; of one that is sized, those that count |
//! | 68..72 | number | of a request or a call |

use core::fmt;

use crate::addr::GlobalAddr;
use crate::coherence::Status;
use crate::copyset::Copyset;
use crate::ids::{NodeId, SwitchEpoch};
use crate::packet::MAX_PAYLOAD;

/// Bytes of an encoded packet before its queue.
pub const HEADER_BYTES: usize = 72;

/// What a header begins with.
pub const MAGIC: [u8; 2] = *b"RL";
/// The version of this layout.
pub const VERSION: u8 = 1;
/// The place of [`MAGIC`].
pub const MAGIC_AT: usize = 0;
/// That of the version, 1 byte.
pub const VERSION_AT: usize = 2;
const FLAG_WRITE: u8 = 1;
const FLAG_ONCE: u8 = 2;
const FLAG_HAS_COPY: u8 = 4;

/// In the length of a region: not all of its bytes count. How many do, its third word says; the others do not travel.
pub const SIZED: u32 = 1 << 31;

/// Bytes that a region of this length takes.
pub const fn region_bytes(len: u32) -> u32 {
    len & !SIZED
}

/// True if so many bytes are a region of this length, or what counts of it.
pub const fn is_whole(payload: u32, len: u32) -> bool {
    if len & SIZED == 0 { payload == len } else { payload <= region_bytes(len) }
}

/// How a lock is wanted or held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// Together with other readers.
    Read,
    /// Alone in the rack.
    Write,
}

/// Counts the holds a lock: every change of who keeps the wait queue, or of who may write, begins the next.
/// 56 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Term(pub u64);

impl Term {
    /// Before anybody had the lock.
    pub const NONE: Self = Self(0);
    /// A directory's cell has capacity for so much.
    pub const MAX: Self = Self((1 << 56) - 1);

    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The one before this.
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

crate::listed! {
    /// What a packet says.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum LockKind {
        /// Agent to directory: `node` wants the lock.
        Acquire = 1,
        /// Directory to the queue's holder: `node` waits, in your term.
        Forward = 2,
        /// Directory to home: send `node` a copy to read.
        Serve = 3,
        /// Directory to home: lend the lock to `node` for writing; `nodes` have copies that end.
        Lend = 4,
        /// To an agent: a copy to read; of a MOVE, once the DATA are there. With `next`: that writer waits for the copy's end.
        Granted = 5,
        /// Home (directory, if there is no data) to an agent: yours to write, and with it the queue, once `nodes` have
        /// answered INVALIDATED.
        Lent = 6,
        /// Directory to a reader: your copy ends when your threads have left; say so to `next`.
        Invalidate = 7,
        /// Reader to writer: my copy of before your term is gone.
        Invalidated = 8,
        /// Writer to a reader whose answer is missing: is your copy gone?
        Poll = 9,
        /// Holder to directory: the lock goes on, to the readers `nodes` and the writer `next`; I know of `waiting`.
        Move = 10,
        /// Directory to holder: not yet. Your MOVE knew of `nodes`, and these wait: `waiting`, of whom `writers` want to write.
        Denied = 11,
        /// Directory to holder: that term is over, so your MOVE has been approved.
        Approved = 12,
        /// To the next writer, with the queue: yours, once `nodes` have answered INVALIDATED, and the DATA are there.
        Hand = 13,
        /// To the home: the lock is back, with its data.
        WriteBack = 14,
        /// To the holder that moved the lock: what was for me has come.
        Received = 15,
        /// To whoever asked only `once`: somebody has it.
        Busy = 16,
        /// To whoever asked: that is no lock, or it is lost.
        Refused = 17,
        /// Home to switch: keep this lock's entry.
        Install = 18,
        /// Switch to home: I do (granted), or there is no room (refused).
        Installed = 19,
        /// Agent to home, in a new epoch: what I have of this lock. `mode` write: I hold it; `has_copy`: a copy; `once`: it is on
        /// its way from me to `next`; else: I have held it.
        Report = 20,
        /// Home to agent: what became of that.
        Reported = 21,
        /// Holder to home: the lock shall be no more. With `mode` read: it was reclaimed, and shall be lost again.
        Free = 22,
        /// Home to holder: it is no more.
        Freed = 23,
        /// Agent to home, in a new epoch: those were all my reports, so many as `term` says. Home to agent: I have heard from
        /// everybody.
        LastReport = 24,
        /// Home to switch: keep this lock's entry no longer.
        Remove = 25,
        /// Switch to home: I do not.
        Removed = 26,
        /// Agent to home: the lock is lost, as of `term`; lend it to me all the same. Its data are gone, and I know.
        Reclaim = 27,
        /// Holder to whom its MOVE names: the data, which count if the directory approves that MOVE (`term`, the one that it
        /// begins; `waiting`, as in the MOVE).
        Data = 28,
    }
}

impl LockKind {
    /// The kind with this wire form.
    #[inline]
    pub fn from_wire(byte: u8) -> Option<Self> {
        // They are numbered from 1, in this order.
        Self::ALL.get(usize::from(byte).wrapping_sub(1)).copied()
    }

    /// True if the region's bytes may travel with it. What passes a directory is a header.
    pub const fn may_carry_data(self) -> bool {
        matches!(self, Self::Granted | Self::Lent | Self::Hand | Self::WriteBack | Self::Report | Self::Data)
    }
}

/// The machine that a lock packet comes from or goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockEnd {
    /// The lock directory in the switch.
    Switch,
    /// The lock agent of a node.
    Agent(NodeId),
    /// The home of the locks in a node's memory, with the directory of those that the switch does not keep.
    Home(NodeId),
}

impl LockEnd {
    /// The node that it is on, if it is not the switch.
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::Switch => None,
            Self::Agent(node) | Self::Home(node) => Some(node),
        }
    }

    /// Wire form: the agent, and its node.
    pub const fn to_wire(self) -> (u8, u16) {
        match self {
            Self::Switch => (0, 0),
            Self::Agent(node) => (1, node.0),
            Self::Home(node) => (2, node.0),
        }
    }

    /// The machine with this wire form.
    pub const fn from_wire(agent: u8, node: u16) -> Option<Self> {
        match agent {
            0 if node == 0 => Some(Self::Switch),
            1 => Some(Self::Agent(NodeId(node))),
            2 => Some(Self::Home(NodeId(node))),
            _ => None,
        }
    }
}

/// Nodes that wait for a lock, in the order in which they shall have it. A node stands in it once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitList {
    len: u8,
    entries: [u8; Copyset::NODES],
}

const ENTRY_WRITE: u8 = 1 << 7;

impl WaitList {
    /// Nobody.
    pub const EMPTY: Self = Self { len: 0, entries: [0; Copyset::NODES] };

    /// Adds a node at the end.
    ///
    /// # Panics
    /// If it is in the list.
    pub fn push(&mut self, node: NodeId, mode: Mode) {
        assert!(!self.nodes().contains(node), "{node} waits once");
        let write = if mode == Mode::Write { ENTRY_WRITE } else { 0 };
        self.entries[usize::from(self.len)] =
            u8::try_from(node.0).expect("a rack has at most 64 nodes") | write;
        self.len += 1;
    }

    /// Who waits, in order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Mode)> + '_ {
        self.entries[..usize::from(self.len)].iter().map(|&entry| {
            let mode = if entry & ENTRY_WRITE != 0 { Mode::Write } else { Mode::Read };
            (NodeId(u16::from(entry & !ENTRY_WRITE)), mode)
        })
    }

    /// Who waits.
    pub fn nodes(&self) -> Copyset {
        self.iter().map(|(node, _)| node).collect()
    }

    /// Who waits to write.
    pub fn writers(&self) -> Copyset {
        self.iter().filter(|(_, mode)| *mode == Mode::Write).map(|(node, _)| node).collect()
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True if nobody waits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut list = Self::EMPTY;
        for &entry in bytes {
            let node = NodeId(u16::from(entry & !ENTRY_WRITE));
            if node.index() >= Copyset::NODES || list.nodes().contains(node) {
                return None;
            }
            list.push(node, if entry & ENTRY_WRITE != 0 { Mode::Write } else { Mode::Read });
        }
        Some(list)
    }
}

impl fmt::Debug for WaitList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = |(node, mode): (NodeId, Mode)| (node.0, mode);
        f.debug_list().entries(self.iter().map(entry)).finish()
    }
}

/// A message between two places about a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockPacket {
    /// What it says.
    pub kind: LockKind,
    /// Whether this is about reading or writing.
    pub mode: Mode,
    /// Whoever asks does not want to wait for somebody who has the lock.
    pub once: bool,
    /// Whoever asks has a copy of the data, unless that has ended meanwhile. In a LENT without data: it is current.
    pub has_copy: bool,
    /// Granted, or why not.
    pub status: Status,
    /// The region's first byte.
    pub lock: GlobalAddr,
    /// Bytes of the region, perhaps [`SIZED`].
    pub len: u32,
    /// Whom this is about: who asks, who gets, who moves the lock.
    pub node: NodeId,
    /// The term that this belongs to. In what comes from a MOVE, the one that it begins.
    pub term: Term,
    /// Readers: to be served, or to be awaited.
    pub nodes: Copyset,
    /// Who waits, as the directory knows it, or as the holder does.
    pub waiting: Copyset,
    /// Of those, who wants to write.
    pub writers: Copyset,
    /// The writer that is served next.
    pub next: Option<NodeId>,
    /// Who waits behind that, in order.
    pub queue: WaitList,
    /// Who sends it.
    pub from: LockEnd,
    /// Who shall get it.
    pub to: LockEnd,
    /// The incarnation of the switch that the sender knows of.
    pub epoch: SwitchEpoch,
    /// Bytes of the region that travel with the packet: none, or all that count.
    pub payload: u32,
    /// Which of its requests for this lock `node` means, and which one is refused; which call of the home an INSTALL is.
    /// 0: none, or nobody knows.
    pub number: u32,
}

impl LockPacket {
    /// A packet about a lock with nothing else said.
    pub const fn new(kind: LockKind, lock: GlobalAddr, len: u32, node: NodeId) -> Self {
        Self {
            kind,
            mode: Mode::Read,
            once: false,
            has_copy: false,
            status: Status::Granted,
            lock,
            len,
            node,
            term: Term::NONE,
            nodes: Copyset::EMPTY,
            waiting: Copyset::EMPTY,
            writers: Copyset::EMPTY,
            next: None,
            queue: WaitList::EMPTY,
            from: LockEnd::Agent(node),
            to: LockEnd::Switch,
            epoch: SwitchEpoch(0),
            payload: 0,
            number: 0,
        }
    }

    /// The next packet in the same matter: another kind, from here to there, without payload.
    #[must_use]
    pub const fn reply(self, kind: LockKind, from: LockEnd, to: LockEnd) -> Self {
        Self { kind, from, to, payload: 0, ..self }
    }

    /// Bytes of header and queue.
    pub const fn head_bytes(&self) -> usize {
        HEADER_BYTES + self.queue.len()
    }

    /// Writes header and queue; returns how many bytes those are.
    ///
    /// # Panics
    /// If `out` is too short: [`HEADER_BYTES`] and 64 more are always enough.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let (from_agent, from_node) = self.from.to_wire();
        let (to_agent, to_node) = self.to.to_wire();
        let bytes = self.head_bytes();
        let (header, queue) = out[..bytes].split_at_mut(HEADER_BYTES);
        header.fill(0);
        header[0..2].copy_from_slice(&MAGIC);
        header[2] = VERSION;
        header[3] = self.kind as u8;
        header[4] = flag(self.mode == Mode::Write, FLAG_WRITE)
            | flag(self.once, FLAG_ONCE)
            | flag(self.has_copy, FLAG_HAS_COPY);
        header[5] = self.status.to_wire();
        header[6] = self.queue.len;
        header[7] =
            self.next.map_or(0, |node| u8::try_from(node.0 + 1).expect("a rack has at most 64 nodes"));
        header[8..16].copy_from_slice(&self.lock.bits().to_le_bytes());
        header[16..24].copy_from_slice(&self.term.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.nodes.bits().to_le_bytes());
        header[32..40].copy_from_slice(&self.waiting.bits().to_le_bytes());
        header[40..48].copy_from_slice(&self.writers.bits().to_le_bytes());
        header[48..50].copy_from_slice(&self.node.0.to_le_bytes());
        header[50..52].copy_from_slice(&from_node.to_le_bytes());
        header[52..54].copy_from_slice(&to_node.to_le_bytes());
        header[54] = from_agent;
        header[55] = to_agent;
        header[56..60].copy_from_slice(&self.epoch.0.to_le_bytes());
        header[60..64].copy_from_slice(&self.len.to_le_bytes());
        header[64..68].copy_from_slice(&self.payload.to_le_bytes());
        header[68..72].copy_from_slice(&self.number.to_le_bytes());
        queue.copy_from_slice(&self.queue.entries[..self.queue.len()]);
        bytes
    }

    /// Reads a packet and returns it with its payload bytes. `None` for whatever is not exactly what
    /// [`LockPacket::encode`] writes, followed by exactly the payload that the header announces.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (packet, rest) = Self::parse_head(bytes)?;
        (rest.len() == packet.payload as usize).then_some((packet, rest))
    }

    /// Reads header and queue, and returns what follows: for whoever keeps the payload somewhere else.
    pub fn parse_head(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(core::array::from_fn(|i| header[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| header[at + i]));
        let node = |number: u16| (usize::from(number) < Copyset::NODES).then_some(NodeId(number));

        let known_flags = FLAG_WRITE | FLAG_ONCE | FLAG_HAS_COPY;
        if header[0..2] != MAGIC || header[2] != VERSION || header[4] & !known_flags != 0 {
            return None;
        }
        let (entries, rest) = rest.split_at_checked(usize::from(header[6]))?;
        let (len, payload) = (u32_at(60), u32_at(64));
        if payload != 0 && !is_whole(payload, len)
            || region_bytes(len) > MAX_PAYLOAD
            || u64_at(16) > Term::MAX.0
        {
            return None;
        }
        let end = |agent: u8, number: u16| LockEnd::from_wire(agent, node(number)?.0);
        let packet = Self {
            kind: LockKind::from_wire(header[3])?,
            mode: if header[4] & FLAG_WRITE != 0 { Mode::Write } else { Mode::Read },
            once: header[4] & FLAG_ONCE != 0,
            has_copy: header[4] & FLAG_HAS_COPY != 0,
            status: Status::from_wire(header[5])?,
            lock: GlobalAddr::from_bits(u64_at(8)),
            len,
            node: node(u16_at(48))?,
            term: Term(u64_at(16)),
            nodes: Copyset::from_bits(u64_at(24)),
            waiting: Copyset::from_bits(u64_at(32)),
            writers: Copyset::from_bits(u64_at(40)),
            next: match header[7] {
                0 => None,
                one_more => Some(node(u16::from(one_more) - 1)?),
            },
            queue: WaitList::parse(entries)?,
            from: end(header[54], u16_at(50))?,
            to: end(header[55], u16_at(52))?,
            epoch: SwitchEpoch(u32_at(56)),
            payload,
            number: u32_at(68),
        };
        Some((packet, rest))
    }
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::Refusal;

    fn packet() -> LockPacket {
        let mut queue = WaitList::EMPTY;
        queue.push(NodeId(3), Mode::Write);
        queue.push(NodeId(0), Mode::Read);
        LockPacket {
            mode: Mode::Write,
            once: true,
            has_copy: true,
            status: Status::Refused(Refusal::Lost),
            term: Term(77),
            nodes: Copyset::from_bits(0b101),
            waiting: Copyset::from_bits(0b1001),
            writers: Copyset::from_bits(0b1000),
            next: Some(NodeId(63)),
            queue,
            from: LockEnd::Home(NodeId(2)),
            to: LockEnd::Agent(NodeId(1)),
            epoch: SwitchEpoch(9),
            payload: 5,
            number: 0xdead_beef,
            ..LockPacket::new(LockKind::Hand, GlobalAddr::new(NodeId(2), 4096), 5, NodeId(1))
        }
    }

    #[test]
    fn what_travels_is_all_of_a_region_or_what_counts_of_one_that_is_sized() {
        let read = |len: u32, payload: u32| {
            let mut bytes = [0; HEADER_BYTES + 64 + 16];
            let packet = LockPacket { len, payload, queue: WaitList::EMPTY, ..packet() };
            let head = packet.encode(&mut bytes);
            LockPacket::parse(&bytes[..head + payload as usize]).is_some()
        };
        let found = [(16, 0), (16, 16), (16, 8), (SIZED | 16, 8), (SIZED | 16, 16), (SIZED | 8, 16)];
        let found = found.map(|(len, payload)| read(len, payload));
        assert_eq!(found, [true, true, false, true, true, false]);
        assert!(!read(SIZED | (MAX_PAYLOAD + 8), 8), "no region is that long");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut bytes = [0xee; HEADER_BYTES + 64];
        let head = packet().encode(&mut bytes);
        let whole = [&bytes[..head], b"hello"].concat();
        let (read, payload) = LockPacket::parse(&whole).unwrap();
        assert_eq!(read, packet());
        assert_eq!(payload, b"hello");
        for kind in LockKind::ALL {
            let head = LockPacket { kind, payload: 0, ..packet() }.encode(&mut bytes);
            assert_eq!(LockPacket::parse(&bytes[..head]).unwrap().0.kind, kind);
        }
    }

    #[test]
    fn bytes_that_nobody_writes_are_refused() {
        let mut bytes = [0; HEADER_BYTES + 64];
        let head = packet().encode(&mut bytes);
        let whole = [&bytes[..head], b"hello"].concat();
        for end in 0..whole.len() {
            assert!(LockPacket::parse(&whole[..end]).is_none(), "cut after {end}");
        }
        let refused = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            assert!(LockPacket::parse(&bytes).is_none(), "byte {at} = {byte:#x}");
        };
        for (at, byte) in
            [(0, b'X'), (2, 2), (3, 0), (3, 99), (4, 8), (5, 99), (6, 3), (7, 65), (49, 1), (54, 9), (23, 1)]
        {
            refused(at, byte);
        }
        // A node twice in the queue, and one that there cannot be.
        refused(HEADER_BYTES + 1, 3);
        refused(HEADER_BYTES + 1, 64);
    }
}
