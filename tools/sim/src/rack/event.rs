//! What can happen next in a rack, and the messages in flight.
//!
//! An event is small, so that the queue stays dense; a message waits in the [`Flights`] under its number.

use wire::NodeId;

use crate::system::{Envelope, ThreadId};

/// The number of a message in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlightId(u32);

impl FlightId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a processor: threads first, then the nodes' agents, then their NICs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ServerId(pub(super) u16);

/// What happens at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A message is at the switch's ingress.
    AtSwitch(FlightId),
    /// A message is visible to its processor.
    Arrive(FlightId),
    /// A processor has spent the cost of its message, in this incarnation of it.
    Handled(ServerId, u16),
    /// A thread goes on, in this incarnation of it.
    Resume(ThreadId, u16),
    /// A node wants to be called.
    Deadline(NodeId),
    /// The scheduled fault with this number.
    Fault(u16),
}

/// A message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight<M> {
    pub(super) message: M,
    pub(super) envelope: Envelope,
}

/// All messages in flight, in slots that are used again.
pub(super) struct Flights<M> {
    slots: Vec<Slot<M>>,
    free: Option<u32>,
    count: u32,
}

enum Slot<M> {
    Used(Flight<M>),
    /// The next free one.
    Free(Option<u32>),
}

impl<M: Copy> Flights<M> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: None, count: 0 }
    }

    pub(super) fn insert(&mut self, flight: Flight<M>) -> FlightId {
        self.count += 1;
        let Some(index) = self.free else {
            self.slots.push(Slot::Used(flight));
            return FlightId(
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 messages in flight"),
            );
        };
        let slot = &mut self.slots[index as usize];
        if let Slot::Free(next) = *slot {
            self.free = next;
        }
        *slot = Slot::Used(flight);
        FlightId(index)
    }

    pub(super) fn get(&self, id: FlightId) -> &Flight<M> {
        match &self.slots[id.0 as usize] {
            Slot::Used(flight) => flight,
            Slot::Free(_) => panic!("{id:?} is not in flight"),
        }
    }

    pub(super) fn remove(&mut self, id: FlightId) -> Flight<M> {
        let slot = core::mem::replace(&mut self.slots[id.0 as usize], Slot::Free(self.free));
        let Slot::Used(flight) = slot else { panic!("{id:?} was not in flight") };
        self.free = Some(id.0);
        self.count -= 1;
        flight
    }

    /// How many there are.
    pub(super) const fn len(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Place, Processor, Service};

    fn flight(message: u32) -> Flight<u32> {
        let place = Place::Node(NodeId(0));
        let who = Processor::Thread(ThreadId(0));
        let service = Service::Datagram;
        let envelope = Envelope { from: place, to: place, sender: who, receiver: who, bytes: 64, service };
        Flight { message, envelope }
    }

    #[test]
    fn messages_keep_their_numbers_and_their_places_are_used_again() {
        let mut flights = Flights::new();
        let (a, b) = (flights.insert(flight(1)), flights.insert(flight(2)));
        assert_eq!(flights.remove(a).message, 1);
        let c = flights.insert(flight(3));
        assert_eq!((c, flights.get(b).message, flights.get(c).message), (a, 2, 3));
        assert_eq!((flights.len(), flights.slots.len()), (2, 2));
    }

    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<Event>(), 8);
    }

    #[test]
    #[should_panic(expected = "was not in flight")]
    fn a_message_arrives_once() {
        let mut flights = Flights::new();
        let a = flights.insert(flight(1));
        flights.remove(a);
        flights.remove(a);
    }
}
