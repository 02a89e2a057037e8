//! Peers in processes of their own, which are killed and stopped in the middle of traffic.
//!
//! Each test starts its own executable again, to run the same test; told by the environment, it plays the other peer
//! there until it is killed.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "the scenarios are for the conformance tests")]
#[allow(unused_macros, unused_imports, reason = "as above")]
use crate::conformance;
use crate::shm_rack;

use std::process::{Child, Command, Stdio};

use conformance::Rack;
use conformance::messages::{
    bytes_of, connect, node, number_of, packet, receive, send, send_number, until, words,
};
use rustix::process::{Pid, Signal, kill_process};
use shm_rack::ShmRack;
use transport::{Body, Cause, Contents, PeerId, Transport};

/// Set in the other process: the directory of the rack.
const RACK: &str = "RACKMEM_TEST_RACK";
const US: PeerId = node(1);
const THEM: PeerId = node(2);

/// The other process, killed at the latest when the test ends.
struct Other(Child);

impl Other {
    /// Runs this test again, as the other peer.
    fn start(test: &str, rack: &ShmRack) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("shm_processes::{test}"), "--nocapture"])
            .env(RACK, rack.dir())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens the other peer if this is the other process.
fn as_other() -> Option<Box<dyn Transport>> {
    std::env::var_os(RACK).map(|dir| ShmRack::at(dir.into()).open(THEM))
}

/// Sends numbered packets with contents until it is killed.
fn flood(them: &dyn Transport) -> ! {
    let mut number = 0;
    loop {
        let before = them.counters().counts().sent;
        let contents = words(number, 4096);
        send(them, US, Body::Packet(&packet(number, 4096), Contents::Own(&contents)));
        if them.counters().counts().sent > before {
            number += 1;
        } else {
            std::thread::yield_now();
        }
    }
}

/// Sends back what comes until it is killed.
fn echo(them: &dyn Transport) -> ! {
    loop {
        for message in receive(them) {
            send_number(them, message.from, number_of(&message));
        }
        them.wait(wire::Nanos::from_millis(100));
    }
}

/// Takes what the flood has brought: whole, in order, nothing left out. Returns how many.
fn take_flood(us: &dyn Transport, next: &mut u64) -> u64 {
    let came = receive(us);
    for message in &came {
        assert_eq!(number_of(message), *next);
        assert!(message.bytes == bytes_of(&words(*next, 4096)), "packet {next} is whole");
        *next += 1;
    }
    came.len() as u64
}

#[test]
fn a_sender_killed_in_mid_traffic_leaves_whole_messages_and_can_come_back() {
    if let Some(them) = as_other() {
        flood(&*them);
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    for incarnation in 0..5 {
        let mut other =
            Other::start("a_sender_killed_in_mid_traffic_leaves_whole_messages_and_can_come_back", &rack);
        let mut next = 0;
        until("some traffic", || {
            take_flood(&*us, &mut next);
            next > 1000 * (incarnation + 1)
        });
        other.kill();
        // What it had published is there; then there is nothing, however often we look.
        while take_flood(&*us, &mut next) > 0 {}
        us.attend();
        assert!(!us.leave());
    }
    let counts = us.counters().counts();
    assert_eq!((counts.dropped_for(Cause::BrokenRing), counts.dropped_for(Cause::Malformed)), (0, 0));
    // The socket of the last incarnation lies there; the peer can be opened all the same.
    rack.open(THEM);
}

#[test]
fn a_receiver_that_is_killed_is_unreachable_until_it_comes_back() {
    if let Some(them) = as_other() {
        echo(&*them);
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    let mut number = 0;
    for _ in 0..3 {
        let mut other = Other::start("a_receiver_that_is_killed_is_unreachable_until_it_comes_back", &rack);
        let first = number;
        until("an answer", || {
            number += 1;
            send_number(&*us, THEM, number);
            us.wait(wire::Nanos::from_millis(1));
            let came = receive(&*us);
            assert!(
                came.iter().all(|message| number_of(message) > first),
                "no answers of a former incarnation"
            );
            !came.is_empty()
        });
        other.kill();
        let before = us.counters().counts().dropped_for(Cause::Unreachable);
        until("to hear of its death", || {
            send_number(&*us, THEM, number);
            us.counters().counts().dropped_for(Cause::Unreachable) > before
        });
        // Answers that it had sent before.
        while !receive(&*us).is_empty() {}
    }
    rack.open(THEM);
}

#[test]
fn a_receiver_that_is_stopped_costs_what_is_sent_to_it_and_goes_on_later() {
    if let Some(them) = as_other() {
        echo(&*them);
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    let other = Other::start("a_receiver_that_is_stopped_costs_what_is_sent_to_it_and_goes_on_later", &rack);
    let answered = |number: u64| {
        send_number(&*us, THEM, number);
        us.wait(wire::Nanos::from_millis(1));
        receive(&*us).iter().any(|message| number_of(message) == number)
    };
    until("an answer", || answered(1));
    other.signal(Signal::STOP);
    let full = || us.counters().counts().dropped_for(Cause::Full) > 0;
    let contents = words(2, 1 << 20);
    until("its ring to be full", || {
        send(&*us, THEM, Body::Packet(&packet(2, 1 << 20), Contents::Own(&contents)));
        full()
    });
    other.signal(Signal::CONT);
    until("an answer after the stop", || answered(3));
    drop(other);
    rack.open(THEM);
}

#[test]
fn a_sender_killed_while_we_sleep_does_not_keep_others_from_waking_us() {
    if let Some(them) = as_other() {
        flood(&*them);
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    let friend = rack.open(PeerId::SWITCH);
    connect(&*friend, &*us);
    let forever = wire::Nanos(conformance::TIMEOUT.as_nanos() as u64);
    for _ in 0..5 {
        let mut other =
            Other::start("a_sender_killed_while_we_sleep_does_not_keep_others_from_waking_us", &rack);
        until("some traffic", || {
            us.wait(forever);
            receive(&*us).iter().any(|message| message.from == THEM)
        });
        other.kill();
        until("a message of the friend", || {
            send_number(&*friend, US, 1);
            us.wait(forever);
            receive(&*us).iter().any(|message| message.from == PeerId::SWITCH)
        });
    }
    rack.open(THEM);
}
