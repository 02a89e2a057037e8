//! The links of the simulated rack do what every transport must do, in order and with its fault rules; and they take the
//! time that the hardware model says.

use crate::conformance;
use crate::simulated;

use sim::fault::{Rules, drop_per_mille, reorder};
use transport::{Body, Contents, Outgoing, PeerId, Transport};
use wire::Nanos;

use conformance::Rack;
use conformance::messages::{node, packet, receive, send_number, words};
use simulated::SimRack;

impl Rack for SimRack {
    const IN_ORDER: bool = true;
    const LOSSLESS: bool = true;
    const COUNTS_NO_ROOM: bool = true;

    fn new() -> Self {
        Self::with(Rules::none(), 1)
    }

    fn open(&self, peer: PeerId) -> Box<dyn Transport> {
        Box::new(self.connect(peer))
    }
}

conformance!(SimRack);

/// Loses one message in a hundred, and lets others overtake.
struct FaultyRack(SimRack);

impl Rack for FaultyRack {
    const IN_ORDER: bool = false;
    const LOSSLESS: bool = false;
    const COUNTS_NO_ROOM: bool = false;

    fn new() -> Self {
        Self(SimRack::with(faults(), 2))
    }

    fn open(&self, peer: PeerId) -> Box<dyn Transport> {
        self.0.open(peer)
    }
}

fn faults() -> Rules<()> {
    Rules::none().with(drop_per_mille(10)).with(reorder(Nanos::from_micros(20)))
}

/// Without the scenarios whose messages must all arrive.
mod with_faults {
    use super::{FaultyRack, conformance};

    conformance! { FaultyRack:
        packets_arrive_whole
        control_messages_arrive_whole
        everything_arrives_in_order_and_once
        two_threads_of_one_peer_can_send_at_a_time
        the_contents_may_change_after_send
        a_message_names_its_sender
        a_receiver_may_come_late
        a_receiver_that_comes_back_gets_nothing_of_its_former_incarnation
        a_sender_that_comes_back_is_heard
        a_receiver_that_takes_nothing_away_does_not_stop_the_sender
        an_observer_is_answered
        one_thread_at_a_time_receives
    }
}

/// When a message of so many bytes of payload, sent at 0, has arrived.
fn arrival(from: PeerId, to: PeerId, payload: usize) -> Nanos {
    let rack = SimRack::new();
    let (a, b) = (rack.connect(from), rack.connect(to));
    let contents = words(1, payload);
    let mut out = Outgoing::new();
    a.send(to, Body::Packet(&packet(1, payload), Contents::Own(&contents)), &mut out);
    assert_eq!(receive(&b).len(), 1);
    rack.now()
}

#[test]
fn a_message_takes_what_the_hardware_model_says() {
    // The table of `sim::hardware`: 1.15 us for 64 bytes between nodes.
    assert!((1_145..=1_155).contains(&arrival(node(0), node(1), 0).0));
    assert!(arrival(node(0), PeerId::SWITCH, 0) < Nanos(350), "to the ingress of the switch only");
    assert_eq!(arrival(PeerId::SWITCH, node(1), 0), arrival(PeerId::SWITCH, node(63), 0));
    let block = arrival(node(0), node(1), 4096) - arrival(node(0), node(1), 0);
    assert!((1_600..1_900).contains(&block.0), "fetched, twice on a link, and to memory: {block:?}");
}

#[test]
fn one_seed_gives_one_run_and_the_rules_are_asked() {
    let run = |seed| {
        let rack = SimRack::with(faults(), seed);
        let (a, b) = (rack.connect(node(0)), rack.connect(node(1)));
        let mut arrived = Vec::new();
        for number in 0..1000 {
            send_number(&a, node(1), number);
            if number % 10 == 9 {
                arrived.extend(
                    receive(&b).iter().map(|message| (conformance::messages::number_of(message), rack.now())),
                );
            }
        }
        (arrived, rack.faults())
    };
    let (arrived, faults) = run(7);
    assert_eq!(run(7), (arrived.clone(), faults));
    assert_ne!(run(8).0, arrived);
    assert!(faults.dropped > 0 && faults.delayed > 0, "{faults:?}");
    assert_eq!(arrived.len() as u64, 1000 - faults.dropped);
    assert!(!arrived.is_sorted_by_key(|(number, _)| number), "some overtook others");
}
