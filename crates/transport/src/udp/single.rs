//! Packets that travel one in a datagram: between a node and the switch, where a switch program in the kernel
//! takes them at the port and never shows them to a process.
//!
//! | bytes | |
//! | --- | --- |
//! | 0..32 | the head ([`super::envelope`]), with a counter of single packets alone |
//! | 32.. | the packet's header |
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
use wire::NodeId;

use super::envelope::{EnvelopeKind, MAGIC};
use super::key::Key;
use super::session::{Session, name};
use super::tag::TAG;
use super::transport::UdpTransport;
use crate::peer::PeerId;

/// The byte in a datagram's head that says that it brings a single packet.
pub const SINGLE_KIND: u8 = EnvelopeKind::Single as u8;
/// What a datagram begins with.
pub const SINGLE_MAGIC: [u8; 2] = MAGIC;

/// The keys of both directions between two sessions.
pub(super) struct SingleKeys {
    sending: [u8; 16],
    receiving: [u8; 16],
}

impl SingleKeys {
    pub(super) fn new(key: &Key, me: (PeerId, u128), peer: (PeerId, u128)) -> Self {
        let direction = |from: (PeerId, u128), to: (PeerId, u128)| {
            let mut bytes = [0; 16];
            let peers = [from.0.to_wire(), to.0.to_wire()];
            let context: [&[u8]; 3] = [&peers, &from.1.to_le_bytes(), &to.1.to_le_bytes()];
            key.derive(b"rackmem udp single", &context, &mut bytes);
            bytes
        };
        Self { sending: direction(me, peer), receiving: direction(peer, me) }
    }

    /// The tag of these bytes.
    pub(super) fn tag(&self, bytes: &[u8]) -> [u8; TAG] {
        tag(&self.sending, bytes)
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
    pub(super) fn verify_single(&self, covered: &[u8], found: Option<&[u8; TAG]>) -> bool {
        let (Some(keys), Some(found)) = (self.singles(), found) else { return false };
        let expected = tag(&keys.receiving, covered);
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

    /// The sessions with nodes, for a switch program that takes single packets in this peer's place.
    pub fn node_sessions(&self) -> Vec<NodeSession> {
        let of = |peer: &super::session::Peer| {
            let (node, session) = (peer.id.as_node()?, peer.session()?);
            let keys = session.singles()?;
            Some(NodeSession {
                node,
                address: session.address,
                theirs: name(session.theirs),
                mine: name(session.mine),
                key_in: keys.receiving,
                key_out: keys.sending,
            })
        };
        self.peers.iter().flatten().filter_map(of).collect()
    }
}
