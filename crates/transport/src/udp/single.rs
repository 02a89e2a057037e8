//! Packets that travel one in a datagram: between a node and the switch, where a switch program in the kernel
//! takes them at the port and never shows them to a process.
//!
//! | bytes | |
//! | --- | --- |
//! | 0..32 | the head ([`super::envelope`]), with a counter of single packets alone |
//! | 32.. | the packet's header; of one about a lock with its list, and zeroes up to the longest |
//! | behind it | the tag, 16 bytes |
//!
//! The tag is SipHash-2-4 with 128 bits over what is before it, under a key for one direction between two sessions. It is a
//! pseudorandom function, so a counter is for telling repetitions, and not for secrecy as in [`super::tag`]; it takes additions,
//! rotations and exclusive ors only, which is what the kernel's virtual machine has. What must always hold: in one session
//! and direction nobody sends two datagrams with one counter, and whoever receives takes a counter once.

use std::fmt;
use std::hash::Hasher as _;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use siphasher::sip128::{Hasher128 as _, SipHasher24};
use wire::{Copyset, LockPacket, NodeId, locks, packet};

use super::envelope::{EnvelopeKind, MAGIC};
use super::key::Key;
use super::record::RecordKind;
use super::session::{Session, name};
use super::tag::TAG;
use super::transport::UdpTransport;
use crate::peer::PeerId;

wire::listed! {
    /// What a single packet is about. Each kind has its own keys, counters and window: programs know nothing of each other.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Single {
        /// A block.
        Packet,
        /// A lock.
        Lock,
    }
}

impl Single {
    pub(super) const fn of(kind: EnvelopeKind) -> Option<Self> {
        match kind {
            EnvelopeKind::Single => Some(Self::Packet),
            EnvelopeKind::SingleLock => Some(Self::Lock),
            EnvelopeKind::Data | EnvelopeKind::Hello => None,
        }
    }

    pub(super) const fn envelope(self) -> EnvelopeKind {
        match self {
            Self::Packet => EnvelopeKind::Single,
            Self::Lock => EnvelopeKind::SingleLock,
        }
    }

    /// The byte in a datagram's head that says so.
    pub const fn to_wire(self) -> u8 {
        self.envelope() as u8
    }

    /// Bytes of the packet in it.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Packet => packet::HEADER_BYTES,
            Self::Lock => locks::HEADER_BYTES + Copyset::NODES,
        }
    }

    /// What there is in a datagram's body, as a record has it.
    pub(super) fn record(self, body: &[u8]) -> Option<(RecordKind, &[u8])> {
        if body.len() != self.bytes() {
            return None;
        }
        match self {
            Self::Packet => Some((RecordKind::Packet, body)),
            Self::Lock => {
                let (packet, _) = LockPacket::parse_head(body)?;
                // A record's content has whole words.
                Some((RecordKind::Lock, &body[..packet.head_bytes().next_multiple_of(8)]))
            }
        }
    }
}

/// What a datagram begins with.
pub const SINGLE_MAGIC: [u8; 2] = MAGIC;

/// The keys of both directions between two sessions, by kind.
pub(super) struct SingleKeys {
    sending: [[u8; 16]; Single::ALL.len()],
    receiving: [[u8; 16]; Single::ALL.len()],
}

impl SingleKeys {
    pub(super) fn new(key: &Key, me: (PeerId, u128), peer: (PeerId, u128)) -> Self {
        let direction = |from: (PeerId, u128), to: (PeerId, u128)| {
            Single::ALL.map(|kind| {
                let mut bytes = [0; 16];
                let peers = [from.0.to_wire(), to.0.to_wire(), kind.to_wire()];
                let context: [&[u8]; 3] = [&peers, &from.1.to_le_bytes(), &to.1.to_le_bytes()];
                key.derive(b"rackmem udp single", &context, &mut bytes);
                bytes
            })
        };
        Self { sending: direction(me, peer), receiving: direction(peer, me) }
    }

    /// The tag of these bytes.
    pub(super) fn tag(&self, kind: Single, bytes: &[u8]) -> [u8; TAG] {
        tag(&self.sending[kind as usize], bytes)
    }
}

fn tag(key: &[u8; 16], bytes: &[u8]) -> [u8; TAG] {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

impl fmt::Debug for SingleKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleKeys(..)")
    }
}

impl Session {
    /// True if a single packet's tag is what it should be.
    pub(super) fn verify_single(&self, kind: Single, covered: &[u8], found: Option<&[u8; TAG]>) -> bool {
        let (Some(keys), Some(found)) = (self.singles(), found) else { return false };
        let expected = tag(&keys.receiving[kind as usize], covered);
        // Every byte is looked at, whatever the others say.
        expected.iter().zip(found).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// What a switch program needs to know of the session with a node.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeSession {
    /// The node.
    pub node: NodeId,
    /// Where it receives.
    pub address: SocketAddr,
    /// The names of the node's session and of the switch's, as heads have them.
    pub theirs: u64,
    /// See `theirs`.
    pub mine: u64,
    /// The key of what comes from the node.
    pub key_in: [u8; 16],
    /// The key of what goes to it.
    pub key_out: [u8; 16],
}

impl fmt::Debug for NodeSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {:x} of {} at {}", self.theirs, self.node, self.address)
    }
}

impl UdpTransport {
    /// True if packets for this peer travel alone.
    pub(super) fn is_single(&self, to: PeerId) -> bool {
        self.singles && (to == PeerId::SWITCH || self.me == PeerId::SWITCH) && to != PeerId::OBSERVER
    }

    /// How many sessions have begun: as long as it is the same, [`UdpTransport::node_sessions`] says the same.
    pub fn sessions_begun(&self) -> u64 {
        self.sessions.load(Relaxed)
    }

    /// The sessions with nodes, for a switch program that takes single packets of a kind in this peer's place.
    pub fn node_sessions(&self, kind: Single) -> Vec<NodeSession> {
        let of = |peer: &super::session::Peer| {
            let (node, session) = (peer.id.as_node()?, peer.session()?);
            let keys = session.singles()?;
            Some(NodeSession {
                node,
                address: session.address,
                theirs: name(session.theirs),
                mine: name(session.mine),
                key_in: keys.receiving[kind as usize],
                key_out: keys.sending[kind as usize],
            })
        };
        self.peers.iter().flatten().filter_map(of).collect()
    }
}
