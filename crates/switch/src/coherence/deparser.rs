//! The deparser and what is behind it: the PHV at the pipeline's end becomes packets, or another pass.

use alloc::vec::Vec;

use wire::{Copyset, Endpoint, GlobalStatus, Packet, PacketKind, Refusal, Rule, Rules, Status};

use super::counters::{Counters, Drop};
use super::fan_out::fan_out;
use super::layout::{Fields, route, score};
use super::switch::{Carried, Effect, Resubmit};
use super::tables::Forward;
use super::wait_queue;
use crate::pipeline::{Phv, alu};

/// The forward table's codes, from 1 up.
const FORWARDS: [Forward; 7] = [
    Forward::Home,
    Forward::Owner,
    Forward::OneSharer,
    Forward::AllSharersOneProvides,
    Forward::OtherSharers,
    Forward::AllSharers,
    Forward::Requester,
];

/// Does what the program decided about `packet`.
pub(super) fn deparse<R: Rules>(
    rules: R,
    f: &Fields,
    phv: &Phv,
    packet: &Packet,
    shadow: Endpoint,
    counters: &mut Counters,
    out: &mut Vec<Effect>,
) {
    let mut send = |packet| out.push(Effect::Send(packet));
    match phv.get(f.route) {
        route::FORWARD => forward(rules, f, phv, packet, counters, send),
        route::LOCKED => send(refuse(packet, Refusal::Locked, counters)),
        route::TO_HOME => send(to_home(packet)),
        route::UNLOCKED if packet.in_switch => {
            let to = Endpoint::Requester(packet.requester.node);
            send(Packet { provider: false, ..packet.reply(PacketKind::UnlockAck, Endpoint::Switch, to) });
        }
        route::UNLOCKED => send(to_home(packet)),
        // Still locked: for whoever stands behind.
        route::FOLLOWED => {
            let to = Endpoint::Requester(packet.requester.node);
            send(Packet { provider: true, ..packet.reply(PacketKind::UnlockAck, Endpoint::Switch, to) });
        }
        route::FOLLOW => send(follow(f, phv, packet)),
        route::UNLOCK_AGAIN => {
            let score = u16::try_from(phv.get(f.score)).expect("the score has 16 bits");
            resubmit(packet, Carried::Score(score), counters, out);
        }
        route::ADD_AGAIN => {
            let way = u8::try_from(phv.get(f.location)).expect("a location has 4 bits");
            resubmit(packet, Carried::Way(way), counters, out);
        }
        route::ADDED => {
            let granted = answer(packet, Status::Granted);
            send(granted);
            send(Packet { kind: PacketKind::AddNotice, to: shadow, ..granted });
        }
        route::PRESENT => send(refuse(packet, Refusal::NotOwner, counters)),
        route::COLLISION => {
            let refused = refuse(packet, Refusal::Collision, counters);
            send(refused);
            send(Packet { kind: PacketKind::AddNotice, to: shadow, ..refused });
        }
        route::IN_FLIGHT => counters.count_drop(Drop::InFlight),
        route::STALE if packet.kind == PacketKind::Unlock => counters.count_drop(Drop::StaleUnlock),
        route::STALE => counters.count_drop(Drop::StaleRequest),
        other => unreachable!("the program has no route {other}"),
    }
}

fn forward<R: Rules>(
    rules: R,
    f: &Fields,
    phv: &Phv,
    packet: &Packet,
    counters: &mut Counters,
    mut send: impl FnMut(Packet),
) {
    let status = u8::try_from(phv.get(f.status)).ok().and_then(GlobalStatus::from_wire);
    let found = Packet {
        status: Status::Granted,
        in_switch: true,
        // An earlier copy of the request was granted, and what it set off may still be on its way: this one
        // did not take the lock, or not for the first time.
        repeated: rules.holds(Rule::ForwarderSaysRepeated)
            && packet.kind != PacketKind::Peek
            && (phv.get(f.verdict) != alu::ACQUIRED || phv.get(f.score) & score::COUNT > 1),
        global_status: status.expect("G-STATUS holds what the parser put there"),
        copyset: Copyset::from_bits(phv.get(f.copyset)),
        payload: 0,
        ..*packet
    };
    let code = usize::try_from(phv.get(f.forward)).unwrap_or(0);
    match code.checked_sub(1).and_then(|at| FORWARDS.get(at)) {
        Some(to) => fan_out(&found, *to, Endpoint::Switch, send),
        // The lock stays: the unlock that ends this event releases it. A release by resubmission, as in the
        // paper, would race with duplicates of the request and with the unlock itself.
        None => send(refuse(&found, Refusal::Outdated, counters)),
    }
}

/// Tells the one before in the queue who follows. The upper half of `arg` says which event of that one is meant.
fn follow(f: &Fields, phv: &Phv, packet: &Packet) -> Packet {
    let code = u16::try_from(phv.get(f.score) & score::COUNT).expect("a code has 13 bits");
    let (before, _) = wait_queue::decode(code);
    Packet {
        status: Status::Granted,
        in_switch: true,
        provider: false,
        arg: wait_queue::with_code(packet.arg, code),
        ..packet.reply(PacketKind::Follow, Endpoint::Switch, Endpoint::Requester(before.node))
    }
}

fn refuse(packet: &Packet, why: Refusal, counters: &mut Counters) -> Packet {
    counters.count_refusal(why);
    answer(packet, Status::Refused(why))
}

fn answer(packet: &Packet, status: Status) -> Packet {
    let to = Endpoint::Requester(packet.requester.node);
    Packet { status, in_switch: true, provider: false, ..packet.reply(PacketKind::Ack, Endpoint::Switch, to) }
}

fn to_home(packet: &Packet) -> Packet {
    let to = Endpoint::HomeAgent(packet.tag.home());
    Packet { in_switch: false, ..packet.reply(packet.kind, Endpoint::Switch, to) }
}

fn resubmit(packet: &Packet, carried: Carried, counters: &mut Counters, out: &mut Vec<Effect>) {
    counters.resubmits += 1;
    out.push(Effect::Resubmit(Resubmit { packet: *packet, carried }));
}
