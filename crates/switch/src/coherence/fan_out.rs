//! The multicast engine: one request under its lock becomes the packets that the forward table asks for.
//!
//! In a switch this is the traffic manager behind the pipeline; the home agent uses the same function for the
//! blocks that it keeps. What must always hold: exactly one receiver is asked for the data if the request
//! needs data, and the request names the state and the copyset that were found under the lock. The requester's
//! random number (`arg`) picks who provides, so that every copy of a request, wherever it is forwarded, asks the
//! same provider as long as the copyset stays the same.

use wire::addr::OFFSET_BITS;
use wire::{Endpoint, HeaderField, Packet, PacketKind};

use super::in_software::InSoftware;
use super::tables::Forward;
use crate::pipeline::{Headers, Op};

/// Sends `request` on its way. `request` carries the metadata found under the lock; `from` is who forwards.
pub fn fan_out(request: &Packet, to: Forward, from: Endpoint, send: impl FnMut(Packet)) {
    let sharers = request.copyset.bits();
    multicast(&mut InSoftware::new(request, send, ()), to, from, sharers);
}

/// Sends the packet that goes out on its way: it carries the metadata found under the lock, and these are the sharers.
pub(super) fn multicast<M: Headers>(m: &mut M, to: Forward, from: Endpoint, sharers: M::Word) {
    m.from(from);
    match to {
        Forward::Home => {
            let tag = m.field(HeaderField::Tag);
            let home = m.with(Op::Shr, tag, u64::from(OFFSET_BITS));
            m.set(HeaderField::Provider, 1);
            m.to(Endpoint::HomeAgent, home);
            m.send();
        }
        Forward::Owner | Forward::OneSharer => {
            let provider = provider(m, sharers);
            let there_is_one = m.with(Op::Below, provider, 64);
            m.when(there_is_one, |m| {
                m.set(HeaderField::Provider, 1);
                m.to(Endpoint::CacheAgent, provider);
                m.send();
            });
        }
        Forward::AllSharersOneProvides => {
            let provider = provider(m, sharers);
            m.each(sharers, |m, node| {
                let provides = m.compute(Op::Equals, node, provider);
                m.rewrite(HeaderField::Provider, provides);
                m.to(Endpoint::CacheAgent, node);
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
fn provider<M: Headers>(m: &mut M, sharers: M::Word) -> M::Word {
    let arg = m.field(HeaderField::Arg);
    let random = m.with(Op::And, arg, 0xffff_ffff);
    m.pick(sharers, random)
}

fn invalidate<M: Headers>(m: &mut M, sharers: M::Word) {
    m.set(HeaderField::Provider, 0);
    let nobody = m.not(sharers);
    m.when(nobody, answer);
    m.each(sharers, |m, node| {
        m.to(Endpoint::CacheAgent, node);
        m.send();
    });
}

fn answer<M: Headers>(m: &mut M) {
    m.set(HeaderField::Kind, PacketKind::Ack as u64);
    m.set(HeaderField::Provider, 0);
    to_requester(m);
    m.send();
}

/// The packet that goes out is for the requester.
pub(super) fn to_requester<M: Headers>(m: &mut M) {
    let requester = m.field(HeaderField::RequesterNode);
    m.to(Endpoint::Requester, requester);
}
