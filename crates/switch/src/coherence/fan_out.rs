//! The multicast engine: one request under its lock becomes the packets that the forward table asks for.
//!
//! In a switch this is the traffic manager behind the pipeline; the home agent uses the same function for the
//! blocks that it keeps. What must always hold: exactly one receiver is asked for the data if the request
//! needs data, and the request names the state and the copyset that were found under the lock. The requester's
//! random number (`arg`) picks who provides, so that every copy of a request, wherever it is forwarded, asks the
//! same provider as long as the copyset stays the same.

use wire::addr::OFFSET_BITS;
use wire::{Endpoint, HeaderField, NodeId, Packet, PacketKind};

use super::tables::Forward;
use crate::pipeline::{Headers, InSoftware, Op};

/// Sends `request` on its way. `request` carries the metadata found under the lock; `from` is who forwards.
pub fn fan_out(request: &Packet, to: Forward, from: Endpoint, mut send: impl FnMut(Packet)) {
    let sharers = request.copyset.bits();
    multicast(&mut InSoftware::new(request, |packet: &Packet| send(*packet), ()), to, from, sharers);
}

/// Sends the packet that goes out on its way: it carries the metadata found under the lock, and these are the sharers.
pub(super) fn multicast<M: Headers<Field = HeaderField>>(
    m: &mut M,
    to: Forward,
    from: Endpoint,
    sharers: M::Word,
) {
    let (agent, node) = from.to_wire();
    m.from(agent, node);
    match to {
        Forward::Home => {
            let tag = m.field(HeaderField::Tag);
            let home = m.with(Op::Shr, tag, u64::from(OFFSET_BITS));
            m.set(HeaderField::Provider, 1);
            send_to(m, Endpoint::HomeAgent, home);
            m.send();
        }
        Forward::Owner | Forward::OneSharer => {
            let provider = provider(m, sharers);
            let there_is_one = m.with(Op::Below, provider, 64);
            m.when(there_is_one, |m| {
                m.set(HeaderField::Provider, 1);
                send_to(m, Endpoint::CacheAgent, provider);
                m.send();
            });
        }
        Forward::AllSharersOneProvides => {
            let provider = provider(m, sharers);
            m.each(sharers, |m, node| {
                let provides = m.compute(Op::Equals, node, provider);
                m.rewrite(HeaderField::Provider, provides);
                send_to(m, Endpoint::CacheAgent, node);
                m.send();
            });
        }
        Forward::OtherSharers => {
            let requester = m.field(HeaderField::RequesterNode);
            let one = m.number(1);
            let me = m.compute(Op::Shl, one, requester);
            let all_but_me = m.with(Op::Xor, me, u64::MAX);
            let others = m.compute(Op::And, sharers, all_but_me);
            invalidate(m, others);
        }
        Forward::AllSharers => invalidate(m, sharers),
        Forward::Requester => answer(m),
    }
}

/// The sharer that the requester's random number picks.
fn provider<M: Headers<Field = HeaderField>>(m: &mut M, sharers: M::Word) -> M::Word {
    let arg = m.field(HeaderField::Arg);
    let random = m.with(Op::And, arg, 0xffff_ffff);
    m.pick(sharers, random)
}

fn invalidate<M: Headers<Field = HeaderField>>(m: &mut M, sharers: M::Word) {
    m.set(HeaderField::Provider, 0);
    let nobody = m.not(sharers);
    m.when(nobody, answer);
    m.each(sharers, |m, node| {
        send_to(m, Endpoint::CacheAgent, node);
        m.send();
    });
}

fn answer<M: Headers<Field = HeaderField>>(m: &mut M) {
    m.set(HeaderField::Kind, PacketKind::Ack as u64);
    m.set(HeaderField::Provider, 0);
    to_requester(m);
    m.send();
}

/// The packet that goes out is for the requester.
pub(super) fn to_requester<M: Headers<Field = HeaderField>>(m: &mut M) {
    let requester = m.field(HeaderField::RequesterNode);
    send_to(m, Endpoint::Requester, requester);
}

/// The packet that goes out is for an agent of a node.
pub(super) fn send_to<M: Headers<Field = HeaderField>>(
    m: &mut M,
    agent: fn(NodeId) -> Endpoint,
    node: M::Word,
) {
    m.to(agent(NodeId(0)).to_wire().0, node);
}
