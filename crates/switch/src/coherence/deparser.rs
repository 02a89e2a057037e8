//! The deparser: the PHV at the pipeline's end becomes packets, or another pass.

use wire::addr::OFFSET_BITS;
use wire::{Endpoint, HeaderField, PacketKind, Refusal, Rule, Rules, SlotId, Status};

use super::counters::{Counted, Drop};
use super::fan_out::{multicast, send_to, to_requester};
use super::layout::{Fields, ROUTES, route, score};
use super::parser::OfBlocks;
use super::tables::Forward;
use super::wait_queue;
use crate::pipeline::{Op, alu};

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

/// Carries something over to a second pass, if the program decided that the packet makes one.
pub(super) fn resubmit<M: OfBlocks>(m: &mut M, f: &Fields) {
    let route = m.phv(f.route);
    for (to, what) in [(route::UNLOCK_AGAIN, f.score), (route::ADD_AGAIN, f.location)] {
        let again = m.with(Op::Equals, route, to);
        m.when(again, |m| {
            let what = m.phv(what);
            m.carry(what);
            m.count(Counted::Resubmit);
        });
    }
}

/// Does what the program decided about the packet, if that is not another pass.
pub(super) fn deparse<M: OfBlocks, R: Rules>(m: &mut M, rules: R, f: &Fields) {
    let to = m.phv(f.route);
    m.dispatch(to, ROUTES, |m, to| {
        match to {
            route::FORWARD => forward(m, rules, f),
            route::LOCKED => refuse(m, Refusal::Locked),
            route::TO_HOME => to_home(m),
            route::UNLOCKED => {
                let here = m.field(HeaderField::InSwitch);
                let acknowledge = |m: &mut M| {
                    acknowledge(m, 0);
                    m.number(0)
                };
                m.either(here, acknowledge, |m| {
                    to_home(m);
                    m.number(0)
                });
            }
            // Still locked: for whoever stands behind.
            route::FOLLOWED => acknowledge(m, 1),
            route::FOLLOW => follow(m, f),
            route::ADDED => {
                answer(m, Status::Granted);
                notice(m);
            }
            route::PRESENT => refuse(m, Refusal::NotOwner),
            route::COLLISION => {
                refuse(m, Refusal::Collision);
                notice(m);
            }
            route::IN_FLIGHT => m.count(Counted::Drop(Drop::InFlight)),
            route::STALE => {
                let kind = m.field(HeaderField::Kind);
                let is_unlock = m.with(Op::Equals, kind, PacketKind::Unlock as u64);
                m.when(is_unlock, |m| m.count(Counted::Drop(Drop::StaleUnlock)));
                let is_request = m.not(is_unlock);
                m.when(is_request, |m| m.count(Counted::Drop(Drop::StaleRequest)));
            }
            route::UNLOCK_AGAIN | route::ADD_AGAIN => {}
            other => unreachable!("the program has no route {other}"),
        }
        m.number(0)
    });
}

fn forward<M: OfBlocks, R: Rules>(m: &mut M, rules: R, f: &Fields) {
    m.set(HeaderField::Status, u64::from(Status::Granted.to_wire()));
    m.set(HeaderField::InSwitch, 1);
    let repeated = if rules.holds(Rule::ForwarderSaysRepeated) { repeated(m, f) } else { m.number(0) };
    m.rewrite(HeaderField::Repeated, repeated);
    let status = m.phv(f.status);
    m.rewrite(HeaderField::GlobalStatus, status);
    let copyset = m.phv(f.copyset);
    m.rewrite(HeaderField::Copyset, copyset);
    m.set(HeaderField::Payload, 0);
    let code = m.phv(f.forward);
    m.dispatch(code, FORWARDS.len() as u64 + 1, |m, code| {
        match usize::try_from(code).ok().and_then(|code| code.checked_sub(1)) {
            Some(at) => multicast(m, FORWARDS[at], Endpoint::Switch, copyset),
            // The lock stays: the unlock that ends this event releases it. A release by resubmission, as in the
            // paper, would race with duplicates of the request and with the unlock itself.
            None => refuse(m, Refusal::Outdated),
        }
        m.number(0)
    });
}

/// An earlier copy of the request was granted, and what it set off may still be on its way: this one did not take the lock, or not
/// for the first time.
fn repeated<M: OfBlocks>(m: &mut M, f: &Fields) -> M::Word {
    let kind = m.field(HeaderField::Kind);
    let peeks = m.with(Op::Equals, kind, PacketKind::Peek as u64);
    let (verdict, score) = (m.phv(f.verdict), m.phv(f.score));
    let acquired = m.with(Op::Equals, verdict, alu::ACQUIRED);
    let count = m.with(Op::And, score, score::COUNT);
    let at_most_once = m.with(Op::Below, count, 2);
    let first = m.compute(Op::And, acquired, at_most_once);
    let first_or_peek = m.compute(Op::Or, first, peeks);
    m.not(first_or_peek)
}

/// Tells the one before in the queue who follows. The upper half of `arg` says which event of that one is meant.
fn follow<M: OfBlocks>(m: &mut M, f: &Fields) {
    let score = m.phv(f.score);
    let code = m.with(Op::And, score, score::COUNT);
    let index = m.with(Op::Xor, code, u64::from(wait_queue::FLIP));
    let before = m.with(Op::Shr, index, u64::from((2 * SlotId::PER_NODE).trailing_zeros()));
    let arg = m.field(HeaderField::Arg);
    let random = m.with(Op::And, arg, 0xffff_ffff);
    let upper = m.with(Op::Shl, code, 32);
    let arg = m.compute(Op::Or, random, upper);
    m.set(HeaderField::Kind, PacketKind::Follow as u64);
    m.set(HeaderField::Status, u64::from(Status::Granted.to_wire()));
    m.set(HeaderField::InSwitch, 1);
    m.set(HeaderField::Provider, 0);
    m.set(HeaderField::Payload, 0);
    m.rewrite(HeaderField::Arg, arg);
    from_switch(m);
    send_to(m, Endpoint::Requester, before);
    m.send();
}

fn refuse<M: OfBlocks>(m: &mut M, why: Refusal) {
    m.count(Counted::Refusal(why));
    answer(m, Status::Refused(why));
}

fn answer<M: OfBlocks>(m: &mut M, status: Status) {
    m.set(HeaderField::Kind, PacketKind::Ack as u64);
    m.set(HeaderField::Status, u64::from(status.to_wire()));
    m.set(HeaderField::InSwitch, 1);
    m.set(HeaderField::Provider, 0);
    m.set(HeaderField::Payload, 0);
    from_switch(m);
    to_requester(m);
    m.send();
}

/// The shadow of the directory hears of an answer to an ADD, too.
fn notice<M: OfBlocks>(m: &mut M) {
    m.set(HeaderField::Kind, PacketKind::AddNotice as u64);
    let shadow = m.shadow();
    send_to(m, Endpoint::Shadow, shadow);
    m.send();
}

fn acknowledge<M: OfBlocks>(m: &mut M, followed: u64) {
    m.set(HeaderField::Kind, PacketKind::UnlockAck as u64);
    m.set(HeaderField::Provider, followed);
    m.set(HeaderField::Payload, 0);
    from_switch(m);
    to_requester(m);
    m.send();
}

fn to_home<M: OfBlocks>(m: &mut M) {
    m.set(HeaderField::InSwitch, 0);
    m.set(HeaderField::Payload, 0);
    from_switch(m);
    let tag = m.field(HeaderField::Tag);
    let home = m.with(Op::Shr, tag, u64::from(OFFSET_BITS));
    send_to(m, Endpoint::HomeAgent, home);
    m.send();
}

fn from_switch<M: OfBlocks>(m: &mut M) {
    let (agent, node) = Endpoint::Switch.to_wire();
    m.from(agent, node);
}
