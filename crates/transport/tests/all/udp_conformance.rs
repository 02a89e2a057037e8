//! The UDP transport does what every transport must do, over paths of several lengths, with a key and without.
//!
//! One scenario is left out, `leaving_says_what_nobody_was_woken_for`: a sender of datagrams cannot know who attends,
//! so whoever waits looks for itself (`udp_binding.rs` tests that).
#![cfg(target_os = "linux")]

use crate::conformance;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use transport::udp::{Key, Naming, UdpConfig, UdpTransport};
use transport::{PeerId, Terms, Transport};

use conformance::Rack;

/// A rack on loopback: each peer has an address of its own there.
struct UdpRack<const MTU: usize, const KEY: bool, const SINGLES: bool> {
    network: u8,
    port: u16,
}

impl<const MTU: usize, const KEY: bool, const SINGLES: bool> UdpRack<MTU, KEY, SINGLES> {
    fn address(&self, peer: PeerId) -> SocketAddr {
        (Ipv4Addr::new(127, 77, self.network, peer.to_wire() + 1), self.port).into()
    }
}

impl<const MTU: usize, const KEY: bool, const SINGLES: bool> Rack for UdpRack<MTU, KEY, SINGLES> {
    const IN_ORDER: bool = false;
    const LOSSLESS: bool = false;
    const COUNTS_NO_ROOM: bool = false;

    fn new() -> Self {
        // Racks of one process differ in the network, and processes in the port.
        static RACKS: AtomicU8 = AtomicU8::new(0);
        Self { network: RACKS.fetch_add(1, Relaxed), port: 10_000 + (std::process::id() % 20_000) as u16 }
    }

    fn open(&self, me: PeerId) -> Box<dyn Transport> {
        let peers = (0..PeerId::OBSERVER.to_wire())
            .filter_map(PeerId::from_wire)
            .filter(|&peer| peer != me)
            .map(|peer| (peer, self.address(peer).into()))
            .collect();
        let key = KEY.then(|| Key::from_bytes([9; 32]));
        let config = UdpConfig {
            me,
            listen: self.address(me),
            peers,
            unlisted: Vec::new(),
            naming: Naming::default(),
            key,
            mtu: MTU,
            block: 1 << 20,
            coalescing: true,
            singles: SINGLES,
            terms: Terms::default(),
        };
        Box::new(UdpTransport::bind(&config).expect("opening a peer"))
    }
}

macro_rules! conforms {
    ($name:ident: $mtu:literal, $key:literal, $singles:literal) => {
        mod $name {
            use super::{UdpRack, conformance};

            conformance! { UdpRack<$mtu, $key, $singles>:
                packets_arrive_whole
                locks_arrive_whole_with_their_queues_and_regions
                one_sided_packets_arrive_whole_to_the_byte
                control_messages_arrive_whole
                everything_arrives_in_order_and_once
                two_threads_of_one_peer_can_send_at_a_time
                the_contents_may_change_after_send
                a_message_names_its_sender
                a_receiver_may_come_late
                a_receiver_that_comes_back_gets_nothing_of_its_former_incarnation
                a_sender_that_comes_back_is_heard
                a_receiver_that_takes_nothing_away_does_not_stop_the_sender
                a_sleeper_is_woken_for_every_message
                several_senders_wake_one_sleeper
                an_observer_is_answered
                one_thread_at_a_time_receives
                what_is_taken_and_delivered_is_counted
            }
        }
    };
}

conforms!(over_1280: 1_280, true, false);
conforms!(over_1500: 1_500, true, false);
conforms!(over_65535: 65_535, true, false);
conforms!(without_a_key: 65_535, false, false);
conforms!(with_a_switch_program_at_the_ports: 1_500, true, true);
