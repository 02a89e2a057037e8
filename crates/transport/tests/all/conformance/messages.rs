//! Messages to send, what has come of them, and the ways to make and await them.

use std::time::Instant;

use transport::{Body, Contents, Outgoing, PeerId, Transport};
use wire::{BlockTag, LockPacket, NodeId, Packet, PacketKind, RequesterId, Seq, SlotId, roce};

use super::TIMEOUT;

/// Sent until the first one arrives; never taken for a message.
const KNOCK: &[u8] = b"knock";

/// A message that has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) from: PeerId,
    /// None: a control message.
    pub(crate) packet: Option<Packet>,
    /// A packet about a lock.
    pub(crate) lock: Option<LockPacket>,
    /// A packet between NICs.
    pub(crate) one_sided: Option<roce::Packet>,
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    pub(crate) const fn none(from: PeerId) -> Self {
        Self { from, packet: None, lock: None, one_sided: None, bytes: Vec::new() }
    }
}

pub(crate) const fn node(number: u16) -> PeerId {
    PeerId::node(NodeId(number))
}

/// A packet with this number and a payload of so many bytes.
pub(crate) fn packet(number: u64, payload: usize) -> Packet {
    let requester = RequesterId { node: NodeId(1), slot: SlotId(2) };
    let mut packet =
        Packet::request(PacketKind::ReadMiss, BlockTag::from_bits(number << 12), requester, Seq(number));
    packet.payload = payload as u32;
    packet.arg = !number;
    packet
}

pub(crate) fn number_of(message: &Message) -> u64 {
    message.packet.expect("a packet").seq.0
}

/// Words that tell where they stand and in which message.
pub(crate) fn words(number: u64, bytes: usize) -> Vec<u64> {
    (0..bytes as u64 / 8).map(|at| (number << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Sends and flushes one message.
pub(crate) fn send(from: &dyn Transport, to: PeerId, body: Body<'_>) {
    let mut out = Outgoing::new();
    from.send(to, body, &mut out);
    from.flush(&mut out);
}

pub(crate) fn send_number(from: &dyn Transport, to: PeerId, number: u64) {
    send(from, to, Body::Packet(&packet(number, 0), Contents::None));
}

/// One burst of what has come, without knocks. The second value tells of knocks.
fn take(at: &dyn Transport) -> (Vec<Message>, bool) {
    let (mut messages, mut knocked) = (Vec::new(), false);
    at.receive(&mut |from, body| match body {
        Body::Control(KNOCK) => knocked = true,
        Body::Control(bytes) => {
            messages.push(Message { bytes: bytes.to_vec(), ..Message::none(from) });
        }
        Body::Packet(packet, contents) => {
            let mut bytes = vec![0; contents.bytes()];
            contents.copy_to(0, &mut bytes);
            messages.push(Message { packet: Some(*packet), bytes, ..Message::none(from) });
        }
        Body::Lock(packet, region) => {
            let mut bytes = vec![0; region.bytes()];
            region.copy_to(0, &mut bytes);
            messages.push(Message { lock: Some(*packet), bytes, ..Message::none(from) });
        }
        Body::Verbs(packet, payload, contents) => {
            let mut bytes = vec![0; payload];
            contents.copy_to(0, &mut bytes);
            messages.push(Message { one_sided: Some(*packet), bytes, ..Message::none(from) });
        }
    });
    (messages, knocked)
}

/// One burst of what has come.
pub(crate) fn receive(at: &dyn Transport) -> Vec<Message> {
    take(at).0
}

/// Goes on until `done` says so. Fails when that takes too long.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < TIMEOUT, "{what}: not after {TIMEOUT:?}");
        std::thread::yield_now();
    }
}

/// Sends to a peer until it can be reached. Knocks that come later are no messages. Both receive, as peers do: a
/// transport may have to answer.
pub(crate) fn connect(from: &dyn Transport, to: &dyn Transport) {
    until("reaching a peer", || {
        send(from, to.me(), Body::Control(KNOCK));
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(take(from).0.is_empty(), "nobody has sent anything to the sender");
        let (messages, knocked) = take(to);
        assert!(messages.is_empty(), "nothing but knocks before the first message: {messages:?}");
        knocked
    });
}

/// Messages that were delivered one after the other. Where messages may be lost, they are sent again and again, and copies may come late.
#[derive(Default)]
pub(crate) struct Deliveries {
    /// What was sent more than once, and how many copies may still come.
    copies: Vec<(Message, usize)>,
}

impl Deliveries {
    /// Sends a message and waits for it, or for whatever comes in its place.
    pub(crate) fn deliver(
        &mut self,
        (from, to): (&dyn Transport, &dyn Transport),
        lossless: bool,
        body: Body<'_>,
    ) -> Message {
        let (mut sent, mut again, mut came) = (Instant::now(), 0, Vec::new());
        send(from, to.me(), body);
        until("a message", || {
            if !lossless && sent.elapsed().as_millis() > 100 {
                send(from, to.me(), body);
                (sent, again) = (Instant::now(), again + 1);
            }
            came.extend(receive(to).into_iter().filter(|message| !self.is_copy(message)));
            !came.is_empty()
        });
        let message = came.swap_remove(0);
        if again > 0 {
            self.copies.push((message.clone(), again));
        }
        message
    }

    /// True for a copy of what was delivered before. Two messages may be equal: of a second one there are no more than were sent.
    fn is_copy(&mut self, message: &Message) -> bool {
        let late = self.copies.iter_mut().find(|(before, left)| *left > 0 && before == message);
        late.map(|(_, left)| *left -= 1).is_some()
    }
}
