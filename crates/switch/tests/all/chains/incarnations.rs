//! Two incarnations of the switch, whole, as its process has it: what was said to the first one, and comes to the second. Where a rule is left
//! out, the scenario that is for it says so: true means that it went wrong.

use switch::chains::{Action, Steering, SteeringConfig};
use switch::relay::{Introduction, Relay};
use wire::chain_pair::ChainPair;
use wire::chains::{Reply, Word};
use wire::roce::{Extension, Packet, Psn, QpNumber};
use wire::{Incarnation, Nanos, NodeId, Rules, SwitchEpoch};

use crate::chains::rig::{BASE, Entry, MEMORY, REGION, answer_packet, head, swap_packet, write_packet};
use crate::chains::scenarios::{KEY, X, tail};

const CLIENT: NodeId = NodeId(2);
const INCARNATION: Incarnation = Incarnation(1);
const FIRST: Psn = Psn::new(77);

const fn pair() -> ChainPair {
    ChainPair::of_client(CLIENT, MEMORY, 4)
}

/// A switch, in its first epoch.
fn switch<R: Rules>(rules: R, epoch: u32) -> Relay<R> {
    let config = SteeringConfig {
        keys: 5,
        window: 8,
        slots: 256,
        lifetime: Nanos(1_000),
        ..SteeringConfig::default()
    };
    let mut relay =
        Relay::with_rules(rules, 3, Some(Steering::with_rules(rules, &config).unwrap()), Nanos(1_000));
    relay.begin_epoch(SwitchEpoch(epoch), &[Some(INCARNATION); 3]);
    relay
}

/// Says it in the client's name: is it heard?
fn hears<R: Rules>(relay: &mut Relay<R>, said: Introduction) -> bool {
    relay.on_introduction(Nanos(1), CLIENT, &said).is_some()
}

fn begin(number: u64, epoch: u32) -> Introduction {
    Introduction::Begin {
        client: pair().number(),
        first: FIRST,
        region: REGION,
        of: INCARNATION.0 as u16,
        incarnation: INCARNATION,
        server: (MEMORY, INCARNATION),
        switch: SwitchEpoch(epoch),
        as_asked: false,
        number,
    }
}

/// A packet of this connection: a relay's memories begin with 0.
fn of_pair(packet: Packet, to: QpNumber) -> Packet {
    let mut packet = Packet { to, ..packet };
    match &mut packet.extension {
        Extension::Reth(reth) => reth.address -= BASE,
        Extension::Atomic(word) => word.address -= BASE,
        _ => {}
    }
    packet
}

/// The switch dies when it has moved an append, and a copy of what it was told of that connection reaches the next one: does that take the
/// connection for one that it knows, and pass what another word was as what the client has asked about?
pub(crate) fn introductions<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 0), Entry(3, 0));
    let mut relay = switch(rules, 1);
    assert!(hears(&mut relay, begin(1, 1)));
    let (memory, of, region, number) = (MEMORY, INCARNATION.0 as u16, REGION, 2);
    let scan = Introduction::Scan { memory, of, region, switch: SwitchEpoch(1), number };
    assert!(hears(&mut relay, scan));
    hears(&mut relay, Introduction::Tail { key: KEY, at: a.at(), version: a.version(), number });
    let to_memory = pair().other().number();
    let mut write = of_pair(write_packet(CLIENT.0, FIRST, b), to_memory);
    let passed = relay.on_packet(Nanos(2), CLIENT, &mut write, &head(b, KEY));
    assert_eq!(passed, Some((MEMORY, Action::Forward)));
    let mut swap = of_pair(swap_packet(CLIENT.0, FIRST.plus(1), X, b), to_memory);
    assert_eq!(relay.on_packet(Nanos(3), CLIENT, &mut swap, &[]), Some((MEMORY, Action::Forward)));
    let Extension::Atomic(word) = swap.extension else { unreachable!() };
    assert_eq!(word.address, a.at().offset(), "it was moved");

    let mut relay = switch(rules, 2);
    hears(&mut relay, begin(1, 1));
    let told = |relay: &mut Relay<R>| {
        let original = Word::tail(a.version()).to_bits();
        let mut answer = of_pair(answer_packet(CLIENT.0, FIRST.plus(1), original), pair().number());
        assert_eq!(relay.on_packet(Nanos(4), MEMORY, &mut answer, &[]), Some((CLIENT, Action::Forward)));
        let Extension::AethAtomic(_, word) = answer.extension else { unreachable!() };
        Some(Reply::from_bits(word))
    };
    // X and a are both in the same use of their slots, so nothing tells their words apart.
    let is_misled = told(&mut relay) == tail(X);
    assert!(is_misled || told(&mut relay) == Some(Reply::Indeterminate));
    // Its connection begins anew, is known, and what it asks then is answered as it is.
    assert!(hears(&mut relay, begin(3, 2)));
    assert_eq!(told(&mut relay), tail(a));
    is_misled
}
