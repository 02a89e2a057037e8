//! Where a switch's programs for blocks and locks run if not in the switch's process: at the ports, which see every packet
//! first.
//!
//! The process keeps all else: who is alive, epochs, which locks the directory has, chains. What must always hold: the program is in the
//! incarnation that the process has begun last, and in no other.

use std::path::PathBuf;

use switch::coherence::Dump;
use transport::udp::Single;
use wire::{LockPacket, NodeId, SwitchEpoch};

/// The programs of a switch elsewhere.
pub trait DataPlane: Send {
    /// The incarnation that it is in; 0: none yet. It may have begun under another process.
    fn epoch(&self) -> SwitchEpoch;

    /// Begins an incarnation, in which each memory is where `server_of` says, and returns what the former one held, if there was one. When
    /// it returns, no packet of that is under way in the program any more.
    fn begin_epoch(
        &mut self,
        epoch: SwitchEpoch,
        shadow: NodeId,
        server_of: &dyn Fn(NodeId) -> Option<NodeId>,
    ) -> Option<Dump>;

    /// A packet about a lock has come to the process: what only the control plane does, or of somebody whom the program does not
    /// know yet.
    fn on_lock_packet(&mut self, packet: &LockPacket, send: &mut dyn FnMut(&LockPacket));

    /// Looks after what the program has to know of nodes. Called whenever the process looks for messages. False: another process
    /// has taken the program over, and this one ends.
    fn look(&mut self) -> bool;

    /// What the program has done, and holds.
    fn report(&mut self) -> PlaneReport;
}

/// What a program elsewhere has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlaneReport {
    /// Entries in its directory of blocks.
    pub occupancy: u64,
    /// Packets that it took.
    pub taken: u64,
    /// Of those, how many it dropped.
    pub dropped: u64,
    /// What each program counted of datagrams, by name.
    pub datagrams: Vec<(Single, Vec<(&'static str, u64)>)>,
    /// The devices at which they see packets, and where there.
    pub ports: Vec<(String, &'static str)>,
    /// Where they are kept when this process has gone.
    pub kept: Option<PathBuf>,
}
