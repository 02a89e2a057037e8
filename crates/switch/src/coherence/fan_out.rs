//! The multicast engine: one request under its lock becomes the packets that the forward table asks for.
//!
//! In a switch this is the traffic manager behind the pipeline; the home agent uses the same function for the
//! blocks that it keeps. What must always hold: exactly one receiver is asked for the data if the request
//! needs data, and the request names the state and the copyset that were found under the lock. The requester's
//! random number (`arg`) picks who provides, so that every copy of a request, wherever it is forwarded, asks the
//! same provider as long as the copyset stays the same.

use wire::{Copyset, Endpoint, Packet, PacketKind};

use super::tables::Forward;

/// Sends `request` on its way. `request` carries the metadata found under the lock; `from` is who forwards.
pub fn fan_out(request: &Packet, to: Forward, from: Endpoint, mut send: impl FnMut(Packet)) {
    #[allow(clippy::cast_possible_truncation, reason = "32 random bits are enough to choose one of 64")]
    let random = request.arg as u32;
    let forwarded = |to: Endpoint, provider: bool| Packet { from, to, provider, ..*request };
    let answer = Packet {
        from,
        to: Endpoint::Requester(request.requester.node),
        kind: PacketKind::Ack,
        provider: false,
        ..*request
    };
    let sharers = request.copyset;
    match to {
        Forward::Home => send(forwarded(Endpoint::HomeAgent(request.tag.home()), true)),
        Forward::Owner | Forward::OneSharer => {
            if let Some(node) = sharers.pick(random) {
                send(forwarded(Endpoint::CacheAgent(node), true));
            }
        }
        Forward::AllSharersOneProvides => {
            let provider = sharers.pick(random);
            for node in sharers.iter() {
                send(forwarded(Endpoint::CacheAgent(node), Some(node) == provider));
            }
        }
        Forward::OtherSharers => multicast(sharers.without(request.requester.node), forwarded, answer, send),
        Forward::AllSharers => multicast(sharers, forwarded, answer, send),
        Forward::Requester => send(answer),
    }
}

fn multicast(
    sharers: Copyset,
    forwarded: impl Fn(Endpoint, bool) -> Packet,
    answer: Packet,
    mut send: impl FnMut(Packet),
) {
    if sharers.is_empty() {
        send(answer);
    }
    for node in sharers.iter() {
        send(forwarded(Endpoint::CacheAgent(node), false));
    }
}
