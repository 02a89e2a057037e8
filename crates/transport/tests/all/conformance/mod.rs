//! What every transport must do, as one body of tests over "a way to open peers".
//!
//! A test file implements [`Rack`] for its transport and calls [`conformance!`]. Nothing here knows which transport it
//! is; where transports may differ, the constants of `Rack` say what to expect. Waiting is for as long as it takes, up
//! to [`TIMEOUT`], which only a failing test reaches.

pub(crate) mod messages;
mod scenarios;

pub(crate) use scenarios::*;

use std::time::Duration;

use transport::{PeerId, Transport};

/// How long a test waits for something that must happen.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A rack whose peers talk over one kind of transport.
pub(crate) trait Rack: Sized + Sync {
    /// Messages from one thread to one peer arrive in the order in which they were sent.
    const IN_ORDER: bool;
    /// What was taken, and not counted as dropped, arrives for as long as both peers live.
    const LOSSLESS: bool;
    /// Messages for a peer that takes nothing away are in the end counted as dropped by the sender.
    const COUNTS_NO_ROOM: bool;

    /// A rack without peers, that carries blocks of up to 1 MiB.
    fn new() -> Self;

    /// Opens a peer, or opens it again after it was dropped.
    fn open(&self, peer: PeerId) -> Box<dyn Transport>;
}

/// One test for each scenario, for a type that implements [`Rack`].
#[macro_export]
macro_rules! conformance {
    ($rack:ty: $($scenario:ident)*) => {
        $(#[test]
        fn $scenario() {
            conformance::$scenario::<$rack>();
        })*
    };
    ($rack:ty) => {
        $crate::conformance! { $rack:
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
            leaving_says_what_nobody_was_woken_for
            an_observer_is_answered
            one_thread_at_a_time_receives
            what_is_taken_and_delivered_is_counted
        }
    };
}
