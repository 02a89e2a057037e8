//! What the switch does with packets between clients of chains and memory: it carries them on.
//!
//! In the switch's process, or in an embedded rack under a lock. What must always hold: a packet comes from the node that has the
//! other end of the queue pair that it is for, or it goes nowhere.

use transport::{Contents, PlaceId};
use wire::NodeId;
use wire::chain_pair::ChainPair;
use wire::roce::Packet;

/// The switch's part in chains.
#[derive(Debug)]
pub(crate) struct Relay {
    nodes: usize,
    /// Packets that were carried on.
    pub(crate) carried: u64,
}

impl Relay {
    /// Of a rack of so many nodes.
    pub(crate) const fn new(nodes: usize) -> Self {
        Self { nodes, carried: 0 }
    }

    /// A packet with so many bytes of payload; `send` sends it on. False if it may not be.
    pub(crate) fn on_packet(
        &mut self,
        from: PlaceId,
        (packet, len, contents): (&Packet, usize, Contents<'_>),
        send: impl FnOnce(NodeId, &Packet, usize, Contents<'_>),
    ) -> bool {
        let pair = ChainPair::of(packet.to).filter(|pair| from.as_node() == Some(pair.peer));
        let Some(pair) = pair.filter(|pair| pair.owner.index() < self.nodes) else { return false };
        self.carried += 1;
        send(pair.owner, packet, len, contents);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::roce::{Extension, Opcode, Psn};

    #[test]
    fn a_packet_goes_to_the_owner_of_its_queue_pair_if_it_is_from_the_other_end() {
        let mut relay = Relay::new(3);
        let pair = |client, memory| ChainPair::of_client(NodeId(client), NodeId(memory), 5).other();
        let mut carry = |from: u16, number| {
            let packet = Packet::new(Opcode::Acknowledge, number, Psn::new(1), Extension::Plain);
            let mut to = None;
            let body = (&packet, 0, Contents::None);
            let carried = relay.on_packet(PlaceId::node(NodeId(from)), body, |node, ..| to = Some(node));
            assert_eq!(carried, to.is_some());
            to
        };
        assert_eq!(carry(0, pair(0, 2).number()), Some(NodeId(2)));
        assert_eq!(carry(2, pair(0, 2).other().number()), Some(NodeId(0)));
        assert_eq!(carry(1, pair(1, 1).number()), Some(NodeId(1)), "to memory of its own");
        assert_eq!(carry(1, pair(0, 2).number()), None, "of somebody else");
        assert_eq!(carry(0, pair(0, 3).number()), None, "to nowhere");
        assert_eq!(carry(0, wire::roce::QpNumber::new(2)), None, "about something else");
    }
}
