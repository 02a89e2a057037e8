//! A ring of bytes in shared memory, from one producer to one consumer.
//!
//! The consumer makes it. The first page holds the two counters, 128 bytes apart (processors fetch cache lines in
//! pairs); then come the records. A record begins on a cache line with a word that says its kind and the length of its
//! body; the body follows, and the record is filled up to whole cache lines. Records are contiguous: where the rest
//! of the ring is too short, a record of kind [`SKIP`] fills it.
//!
//! | body | |
//! | --- | --- |
//! | packet | the header of 64 bytes, the payload |
//! | packet with zeroes | the header alone: its payload is all zero, and does not travel |
//! | lock | the head, the region's words |
//! | one-sided | the head, the payload's words |
//! | control | the bytes |
//!
//! What must always hold: each side believes only its own counter. What it reads from the other side is used after a
//! check (a distance within the ring, whole cache lines, a record that lies within what was published), and the
//! header of a packet is copied out before it is looked at. A violation breaks the ring, which is not used any more:
//! no panic, no endless loop, no access outside. The counters are positions since the ring was made; they never wrap.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use wire::packet::HEADER_BYTES;
use wire::{LockPacket, Packet, roce};

use super::mapping::Mapping;
use crate::head::{Head, MOST_HEAD, MOST_ONE_SIDED_HEAD, parse_lock, parse_one_sided};
use crate::{Body, Contents};

/// Everything in a ring is so many bytes, or several times that.
const LINE: usize = 64;
/// Where the records begin: behind the page with the counters.
const RECORDS: usize = 4096;
/// Words of 8 bytes: where the producer publishes its head, and the consumer its tail.
const HEAD: usize = 0;
const TAIL: usize = 16;
/// Rings that a peer may ask us to map.
const LARGEST: usize = 1 << 30;
const SMALLEST: usize = 4096;

const SKIP: u64 = 1;
const PACKET: u64 = 2;
const ZEROES: u64 = 3;
const CONTROL: u64 = 4;
const LOCK: u64 = 5;
const ONE_SIDED: u64 = 6;

/// Bytes of a record with a body of so many.
pub(super) const fn record_bytes(body: usize) -> usize {
    (8 + body).next_multiple_of(LINE)
}

/// A ring, as both sides see it.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Mapping<AtomicU64>,
    bytes: usize,
}

impl Ring {
    /// A new ring for `bytes` of records, a power of two.
    pub(super) fn create(bytes: usize) -> io::Result<(OwnedFd, Self)> {
        assert!(bytes.is_power_of_two() && bytes >= SMALLEST, "a ring of {bytes} bytes");
        let (file, memory) = Mapping::create("rackmem-ring", RECORDS + bytes)?;
        Ok((file, Self { memory, bytes }))
    }

    /// The ring that a peer made.
    pub(super) fn open(file: impl AsFd) -> io::Result<Self> {
        let memory = Mapping::<AtomicU64>::open(file, RECORDS + LARGEST)?;
        let bytes = (memory.words().len() * 8).saturating_sub(RECORDS);
        if bytes < SMALLEST || !bytes.is_power_of_two() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a ring of {bytes} bytes")));
        }
        Ok(Self { memory, bytes })
    }

    fn counter(&self, which: usize) -> &AtomicU64 {
        &self.memory.words()[which]
    }

    /// The words from this position on, up to the end of the ring.
    fn records_from(&self, position: u64) -> &[AtomicU64] {
        let offset = position as usize & (self.bytes - 1);
        &self.memory.words()[(RECORDS + offset) / 8..(RECORDS + self.bytes) / 8]
    }
}

/// Why a record was not put in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// The consumer has not taken enough away.
    Full,
    /// The consumer broke the rules.
    Broken,
}

/// The side that puts records in.
#[derive(Debug)]
pub(super) struct Producer {
    ring: Ring,
    head: u64,
    /// The consumer's tail when it was last looked at.
    tail: u64,
}

impl Producer {
    /// The only producer of this ring, which is new.
    pub(super) const fn new(ring: Ring) -> Self {
        Self { ring, head: 0, tail: 0 }
    }

    /// Copies a message in and publishes it. Returns the bytes of its body.
    pub(super) fn push(&mut self, body: Body<'_>) -> Result<usize, Refused> {
        let (kind, bytes) = match body {
            Body::Packet(_, Contents::Zeroes(1..)) => (ZEROES, HEADER_BYTES),
            Body::Packet(_, contents) => (PACKET, HEADER_BYTES + contents.bytes()),
            Body::Lock(packet, contents) => {
                (LOCK, packet.head_bytes().next_multiple_of(8) + contents.bytes())
            }
            Body::Verbs(packet, _, contents) => {
                (ONE_SIDED, Head::bytes_of_one_sided(packet) + contents.bytes())
            }
            Body::Control(bytes) => (CONTROL, bytes.len()),
        };
        let record = record_bytes(bytes);
        let rest = self.ring.records_from(self.head).len() * 8;
        let skip = if record <= rest { 0 } else { rest };
        self.make_space(skip + record)?;
        if skip > 0 {
            self.ring.records_from(self.head)[0].store(length_word(SKIP, skip - 8), Relaxed);
            self.head += skip as u64;
        }
        let words = self.ring.records_from(self.head);
        words[0].store(length_word(kind, bytes), Relaxed);
        match body {
            Body::Packet(packet, contents) => {
                let mut header = [0; HEADER_BYTES];
                packet.encode(&mut header);
                store_bytes(&words[1..], &header);
                store_contents(&words[1 + HEADER_BYTES / 8..], contents);
            }
            Body::Lock(packet, contents) => store_message(&words[1..], &Head::of_lock(packet), contents),
            Body::Verbs(packet, payload, contents) => {
                store_message(&words[1..], &Head::of_one_sided(packet, payload), contents);
            }
            Body::Control(bytes) => store_bytes(&words[1..], bytes),
        }
        self.head += record as u64;
        self.ring.counter(HEAD).store(self.head, Release);
        Ok(bytes)
    }

    fn make_space(&mut self, need: usize) -> Result<(), Refused> {
        let size = self.ring.bytes as u64;
        if self.head - self.tail + need as u64 <= size {
            return Ok(());
        }
        let tail = self.ring.counter(TAIL).load(Acquire);
        // It can only have gone on from where it was, and not beyond what was published.
        if tail < self.tail || tail > self.head || !tail.is_multiple_of(LINE as u64) {
            return Err(Refused::Broken);
        }
        self.tail = tail;
        if self.head - tail + need as u64 <= size { Ok(()) } else { Err(Refused::Full) }
    }
}

fn length_word(kind: u64, bytes: usize) -> u64 {
    kind << 32 | bytes as u64
}

fn store_bytes(to: &[AtomicU64], bytes: &[u8]) {
    let (pieces, rest) = bytes.as_chunks::<8>();
    for (word, piece) in to.iter().zip(pieces) {
        word.store(u64::from_ne_bytes(*piece), Relaxed);
    }
    if !rest.is_empty() {
        let mut whole = [0; 8];
        whole[..rest.len()].copy_from_slice(rest);
        to[pieces.len()].store(u64::from_ne_bytes(whole), Relaxed);
    }
}

/// Copies words, eight in a turn: that keeps the processor's store port busy.
fn store_words<W>(to: &[AtomicU64], from: &[W], word: impl Fn(&W) -> u64) {
    let ((to8, to_rest), (from8, from_rest)) = (to[..from.len()].as_chunks::<8>(), from.as_chunks::<8>());
    for (to, from) in to8.iter().zip(from8) {
        for (to, from) in to.iter().zip(from) {
            to.store(word(from), Relaxed);
        }
    }
    for (to, from) in to_rest.iter().zip(from_rest) {
        to.store(word(from), Relaxed);
    }
}

/// A head, and behind it the contents, also where they are zeroes: few are, and not worth another kind of record.
fn store_message(to: &[AtomicU64], head: &Head, contents: Contents<'_>) {
    store_bytes(to, head.bytes());
    let behind = &to[head.bytes().len() / 8..];
    match contents {
        Contents::Zeroes(bytes) => behind[..bytes / 8].iter().for_each(|word| word.store(0, Relaxed)),
        _ => store_contents(behind, contents),
    }
}

fn store_contents(to: &[AtomicU64], contents: Contents<'_>) {
    match contents {
        Contents::None | Contents::Zeroes(_) => {}
        Contents::Shared(words) => store_words(to, words, |word| word.load(Relaxed)),
        Contents::Own(words) => store_words(to, words, |word| *word),
    }
}

/// The producer broke the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// What one visit to a ring found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Taken {
    /// Records looked at, whatever they held.
    pub(super) records: usize,
    /// Messages handed over.
    pub(super) messages: usize,
    /// The bytes of their bodies.
    pub(super) bytes: usize,
    /// Records that hold no message of ours.
    pub(super) malformed: usize,
}

/// The side that takes records out. One thread at a time calls [`Consumer::take`].
#[derive(Debug)]
pub(super) struct Consumer {
    ring: Ring,
    /// Up to here the records are taken. Ours; what stands in the ring is for the producer.
    tail: AtomicU64,
}

impl Consumer {
    /// The only consumer of this ring, which is new.
    pub(super) const fn new(ring: Ring) -> Self {
        Self { ring, tail: AtomicU64::new(0) }
    }

    /// True if the producer says so.
    pub(super) fn has_something(&self) -> bool {
        self.ring.counter(HEAD).load(Acquire) != self.tail.load(Relaxed)
    }

    /// Looks at no more than `most` records, and hands over the messages in them while `wanted` says so. `control` is
    /// where control messages are copied to.
    pub(super) fn take(
        &self,
        most: usize,
        largest_payload: u64,
        control: &mut Vec<u8>,
        wanted: impl Fn() -> bool,
        each: &mut dyn FnMut(Body<'_>),
    ) -> (Taken, Result<(), Broken>) {
        let mut taken = Taken::default();
        let head = self.ring.counter(HEAD).load(Acquire);
        let mut tail = self.tail.load(Relaxed);
        if head.checked_sub(tail).is_none_or(|ready| ready > self.ring.bytes as u64)
            || !head.is_multiple_of(LINE as u64)
        {
            return (taken, Err(Broken));
        }
        for _ in 0..most {
            if tail == head || !wanted() {
                break;
            }
            let words = self.ring.records_from(tail);
            let word = words[0].load(Relaxed);
            let (kind, bytes) = (word >> 32, word as u32 as usize);
            let record = record_bytes(bytes);
            if record > words.len() * 8 || record as u64 > head - tail {
                return (taken, Err(Broken));
            }
            tail += record as u64;
            taken.records += 1;
            // Ours moves before the message is handed over: whatever happens there, it is handed over once.
            self.tail.store(tail, Relaxed);
            let body = &words[1..record / 8];
            let message = match kind {
                SKIP => None,
                PACKET => Some(packet(body, bytes, largest_payload, |packet, payload| {
                    each(Body::Packet(packet, payload))
                })),
                ZEROES => Some(zeroes(body, bytes, largest_payload, |packet, payload| {
                    each(Body::Packet(packet, payload))
                })),
                LOCK => Some(lock(body, bytes, largest_payload, |packet, region| {
                    each(Body::Lock(packet, region))
                })),
                ONE_SIDED => Some(one_sided(body, bytes, |packet, payload, contents| {
                    each(Body::Verbs(packet, payload, contents))
                })),
                CONTROL if bytes <= crate::MOST_CONTROL => {
                    load_bytes(body, bytes, control);
                    each(Body::Control(control));
                    Some(true)
                }
                _ => Some(false),
            };
            match message {
                None => {}
                Some(true) => {
                    taken.messages += 1;
                    taken.bytes += bytes;
                }
                Some(false) => taken.malformed += 1,
            }
            self.ring.counter(TAIL).store(tail, Release);
        }
        (taken, Ok(()))
    }
}

/// Reads a header from a copy of it: in the ring it may change while it is looked at.
fn header(body: &[AtomicU64], largest_payload: u64) -> Option<Packet> {
    let mut header = [0; HEADER_BYTES];
    for (piece, word) in header.chunks_exact_mut(8).zip(body) {
        piece.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    Packet::parse_header(&header).ok().filter(|packet| u64::from(packet.payload) <= largest_payload)
}

/// Hands over a packet and its payload in place, if that is what the record holds.
fn packet(
    body: &[AtomicU64],
    bytes: usize,
    largest_payload: u64,
    each: impl FnOnce(&Packet, Contents<'_>),
) -> bool {
    let Some(payload) = bytes.checked_sub(HEADER_BYTES) else { return false };
    let Some(packet) = header(body, largest_payload) else { return false };
    if packet.payload as usize != payload || !payload.is_multiple_of(8) {
        return false;
    }
    let words = &body[HEADER_BYTES / 8..][..payload / 8];
    each(&packet, if words.is_empty() { Contents::None } else { Contents::Shared(words) });
    true
}

/// The same for a packet about a lock, and its region.
fn lock(
    body: &[AtomicU64],
    bytes: usize,
    largest_payload: u64,
    each: impl FnOnce(&LockPacket, Contents<'_>),
) -> bool {
    let mut head = [0; MOST_HEAD];
    let head = copy_head(body, bytes, &mut head);
    let Some((packet, head)) = parse_lock(head, bytes, largest_payload) else { return false };
    let words = &body[head / 8..bytes / 8];
    each(&packet, if words.is_empty() { Contents::None } else { Contents::Shared(words) });
    true
}

/// The same for a packet between NICs.
fn one_sided(
    body: &[AtomicU64],
    bytes: usize,
    each: impl FnOnce(&roce::Packet, usize, Contents<'_>),
) -> bool {
    let mut head = [0; MOST_ONE_SIDED_HEAD];
    let head = copy_head(body, bytes, &mut head);
    let Some(read) = parse_one_sided(head, bytes) else { return false };
    let words = &body[read.head / 8..bytes / 8];
    each(&read.packet, read.payload, if words.is_empty() { Contents::None } else { Contents::Shared(words) });
    true
}

/// A copy of as much of a message of so many bytes as a head can have: in the ring it may change while it is looked at.
fn copy_head<'a>(body: &[AtomicU64], bytes: usize, to: &'a mut [u8]) -> &'a [u8] {
    // Whole words: what lies behind the record's bytes is not looked at.
    for (piece, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(body) {
        *piece = word.load(Relaxed).to_ne_bytes();
    }
    let there = to.len().min(bytes);
    &to[..there]
}

/// The same for a packet whose payload did not travel.
fn zeroes(
    body: &[AtomicU64],
    bytes: usize,
    largest_payload: u64,
    each: impl FnOnce(&Packet, Contents<'_>),
) -> bool {
    if bytes != HEADER_BYTES {
        return false;
    }
    let Some(packet) = header(body, largest_payload) else { return false };
    each(&packet, Contents::Zeroes(packet.payload as usize));
    true
}

fn load_bytes(body: &[AtomicU64], bytes: usize, to: &mut Vec<u8>) {
    to.clear();
    for word in &body[..bytes.div_ceil(8)] {
        to.extend_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    to.truncate(bytes);
}
