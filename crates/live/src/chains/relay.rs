//! What the switch does with packets between clients of chains and memory, on live racks: the machine ([`switch::relay`]), with what it is
//! built for, and the payloads that it forwards.
//!
//! In the switch's process, or in an embedded rack under a lock. What must always hold: a packet is forwarded with the bytes that came with it.

use nic::verbs::Mtu;
use switch::chains::{self, Action, Binding, Steering};
use switch::relay::{self, HEAD};
use transport::{Contents, PeerId};
use wire::roce::Packet;
use wire::{Nanos, NodeId};

use super::Introduction;
use super::times::{FOUND, LIFETIME, SLOT_LIFETIMES};
use crate::config;

/// Keys that the program has capacity for.
const KEYS: usize = 100_000;
/// Connections that it steers; what others send passes as it is. Each takes a record for each number that is remembered, and there is capacity
/// for 16 Ki of them beside the other programs.
const CONNECTIONS: usize = 128;
/// Packet numbers of a connection that the program remembers: far more than a requester has in flight, because others' appends may wait
/// for the acknowledgement of one of them, and are indeterminate if it is forgotten.
const WINDOW: u32 = 128;
/// Cells for entries that were written. An append needs one until it is acknowledged.
const SLOTS: usize = 1 << 14;
/// A read of an old entry is steered as long as that has one: for some seconds' writes. With so many the program wants a chip without FlowCC;
/// beside it there is capacity for `SLOTS`, which are a second's writes.
const SLOTS_OF_READS: usize = 1 << 16;
/// How its program binds words to queue pairs. Clients post both steps of an append at once if that allows it (`session.rs`).
pub(super) const BINDING: Binding = Binding::NONE;

/// What the switch has done for chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SteeringCounts {
    /// Packets that were forwarded.
    pub forwarded: u64,
    /// Appends that were sent to the tail, and those of them that would have gone elsewhere.
    pub steered: u64,
    /// The latter.
    pub moved: u64,
    /// Appends that passed as they were.
    pub unsteered: u64,
    /// Appends that were answered as refused.
    pub refused: u64,
    /// Appends of which nobody knows what became.
    pub indeterminate: u64,
    /// Acknowledgements that were dropped because the one in front was missing.
    pub waited: u64,
    /// Reads that were sent to the tail.
    pub reads: u64,
    /// Of those, the ones to a tail whose append was not acknowledged.
    pub reads_ahead: u64,
    /// Answers to reads that became reads again, because that append was still not acknowledged, or had failed.
    pub reads_turned: u64,
    /// Answers to reads of connections from before a restart, which were refused: those connections begin anew.
    pub reads_refused: u64,
    /// Tails that it was told after a restart, and took.
    pub preloaded: u64,
}

/// The switch's part in chains.
#[derive(Debug)]
pub(crate) struct Relay(pub(crate) relay::Relay);

impl Relay {
    /// Of a rack of so many nodes, with such a program, if there is one. A packet carries so many bytes at most.
    ///
    /// # Panics
    /// If the chip has no capacity for the program.
    pub(crate) fn new(nodes: usize, steering: Option<config::Steering>, mtu: Mtu) -> Self {
        let config = |how: config::Steering| chains::SteeringConfig {
            keys: KEYS,
            top: how.keys,
            connections: CONNECTIONS,
            window: WINDOW,
            slots: if how.reads { SLOTS_OF_READS } else { SLOTS },
            // Of two packets, one could come from another entry.
            reads: if how.reads { mtu.bytes() } else { 0 },
            lifetime: LIFETIME,
            slot_lifetimes: if how.reads { SLOT_LIFETIMES } else { 1 },
            binding: BINDING,
            ..chains::SteeringConfig::default()
        };
        let program = steering.map(|how| Steering::new(&config(how)).expect("the program fits the chip"));
        Self(relay::Relay::new(nodes, program, FOUND))
    }

    /// What it has done.
    pub(crate) fn counts(&self) -> SteeringCounts {
        let mut counts = SteeringCounts { forwarded: self.0.forwarded(), ..SteeringCounts::default() };
        if let Some(program) = self.0.program() {
            let its = program.counters();
            let unsteered = chains::Unsteered::ALL.iter().map(|why| its.unsteered(*why)).sum();
            counts = SteeringCounts {
                steered: its.steered,
                moved: its.moved,
                unsteered,
                refused: its.refused,
                indeterminate: its.indeterminate,
                waited: its.waited,
                reads: its.reads,
                reads_ahead: its.reads_ahead,
                reads_turned: its.reads_turned,
                reads_refused: its.reads_refused,
                preloaded: its.preloaded,
                ..counts
            };
        }
        counts
    }

    /// What a node says about chains; what it is answered.
    pub(crate) fn on_introduction(
        &mut self,
        now: Nanos,
        from: PeerId,
        said: &Introduction,
    ) -> Option<Introduction> {
        self.0.on_introduction(now, from.as_node()?, said)
    }

    /// A packet with so many bytes of payload; `send` sends it on. False if it may not be.
    pub(crate) fn on_packet(
        &mut self,
        now: Nanos,
        from: PeerId,
        (packet, len, contents): (&Packet, usize, Contents<'_>),
        mut send: impl FnMut(NodeId, &Packet, usize, Contents<'_>),
    ) -> bool {
        let Some(from) = from.as_node() else { return false };
        let (mut packet, mut head) = (*packet, [0; HEAD]);
        // Only a program looks at it.
        let head = &mut head[..if self.0.program().is_some() { len.min(HEAD) } else { 0 }];
        if !head.is_empty() {
            contents.copy_to(0, head);
        }
        match self.0.on_packet(now, from, &mut packet, head) {
            None => return false,
            Some((to, Action::Forward)) => send(to, &packet, len, contents),
            Some((to, Action::Bare)) => send(to, &packet, 0, Contents::None),
            Some((_, Action::Drop)) => {}
        }
        // Reads that are sent once more.
        while let Some(sent) = self.0.next_sent() {
            send(sent.to, &sent.packet, 0, Contents::None);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_fits_the_chip_beside_the_others_unless_it_steers_reads() {
        let epoch = wire::SwitchEpoch(0);
        let usual = switch::coherence::SwitchConfig::for_nodes(64);
        let coherence = switch::coherence::SwitchConfig { queue: true, peeks: true, ..usual };
        let locks =
            switch::locks::DirectoryConfig { at: wire::LockEnd::Switch, nodes: 64, entries: 65_536, epoch };
        let coherence = switch::coherence::Switch::new(&coherence).unwrap().stage_map();
        let locks = switch::locks::Directory::new(&locks).unwrap().stage_map();
        let both = switch::locks::beside(&coherence, &locks).unwrap();
        let fits = |reads| {
            let relay = Relay::new(64, Some(config::Steering { reads, keys: 8, preload: false }), Mtu::B4096);
            switch::locks::beside(&both, &relay.0.program().unwrap().stage_map()).is_ok()
        };
        assert_eq!([false, true].map(fits), [true, false]);
    }
}
