//! Random one-sided work between two nodes, and what must hold of it: WRITEs are applied in order and once, READs
//! return what memory had between their post and their completion, atomics are executed once, whole objects are one version,
//! messages come in order, completions in the order of posting, and everything ends.

#[path = "objects.rs"]
mod objects;
#[path = "words.rs"]
mod words;

use std::collections::BTreeMap;

use nic::verbs::*;
use wire::roce::{Key, Psn};
use wire::{Nanos, Rules};

use self::objects::Objects;
use self::words::Words;
use crate::pair::{Dice, Faults, Link, Pair};

const LINKS: usize = 2;
/// Of local memory: one for each operation that may be in flight.
const BUFFERS: u64 = 32;
const WORDS_OF_SLOT: u64 = 400;
const SLOT: u64 = WORDS_OF_SLOT * 8;
/// Address of the shared memory of each node, and of its buffers.
const SHARED: u64 = 0x10_0000;
const LOCAL: u64 = 0x80_0000;
const INBOX: u64 = 0xc0_0000;
/// Words that both links add to and swap.
const COUNTER: u64 = SHARED;
const LOCKWORD: u64 = SHARED + 8;
/// Where each link's own words begin.
const SLOTS: u64 = SHARED + 64;

fn slot_word(link: usize, word: u64) -> u64 {
    SLOTS + link as u64 * SLOT + word * 8
}

/// One direction of one link, as its application sees it.
struct Stream {
    link: Link,
    random: Dice,
    next: u64,
    stamp: u64,
    /// What was last posted for each word of the slot.
    posted: Vec<u64>,
    /// What is in flight, and for READs what the words must at least be.
    open: BTreeMap<WorkId, (Operation, Vec<u64>)>,
    /// Messages that take a receive: what their words are (of a SEND), and the immediate data.
    messages: BTreeMap<u64, (Option<u64>, u32)>,
    received: u64,
    receives: u64,
    swaps: u64,
    known: u64,
    last_ended: Option<WorkId>,
    originals: Vec<u64>,
}

/// A run: the pair, and what its applications do.
pub(crate) struct Run<R: Rules> {
    pub(crate) pair: Pair<R>,
    streams: Vec<Stream>,
    local: [Key; 2],
    shared: [Key; 2],
    inbox: [Key; 2],
    pub(crate) objects: Objects,
    pub(crate) words: Words,
    mtu: Mtu,
    /// The stamp of the last WRITE of each word: node, link, word.
    applied: BTreeMap<(usize, usize, usize), u64>,
    per_stream: u64,
}

/// Runs one seed.
///
/// # Errors
/// Says what was wrong.
pub(crate) fn run<R: Rules>(rules: R, seed: u64, per_stream: u64) -> Result<Run<R>, String> {
    let mut random = Dice::new(seed ^ 0xabcd);
    let faults = match seed % 4 {
        0 => Faults::default(),
        1 => Faults { loss: 5, ..Faults::default() },
        2 => Faults { duplication: 20, delay: 3, jitter: Nanos(10_000), ..Faults::default() },
        _ => Faults { loss: 8, duplication: 8, delay: 2, jitter: Nanos(3_000) },
    };
    let mut pair = Pair::new(rules, seed, faults);
    let mtu = Mtu::ALL[random.below(5) as usize];
    let outstanding = 1 + random.below(8) as u32;
    let ack_delay = Nanos(random.below(2) * 3_000);
    let (window, read_chunk) = (1 + random.below(40) as u32, 1 + random.below(6) as u32);
    let shared =
        [0, 1].map(|at: usize| pair.nodes[at].register(SHARED, 64 + LINKS as u64 * SLOT, Access::ALL));
    let local =
        [0, 1].map(|at: usize| pair.nodes[at].register(LOCAL, 2 * BUFFERS * SLOT, Access::LOCAL_WRITE));
    let inbox =
        [0, 1].map(|at: usize| pair.nodes[at].register(INBOX, 2 * BUFFERS * SLOT, Access::LOCAL_WRITE));
    let mut streams = Vec::new();
    for _ in 0..LINKS {
        // Numbers begin near the end of the circle, so that they come round.
        let psn = [0, 1].map(|_| Psn::new(0u32.wrapping_sub(random.below(200) as u32)));
        let link = pair.connect(
            mtu,
            psn,
            |receive| {
                receive.remembered = outstanding;
                receive.ack_delay = ack_delay;
                receive.ack_every = 4;
            },
            |send| {
                send.retries = 200;
                (send.outstanding, send.window, send.read_chunk) = (outstanding, window, read_chunk);
            },
        );
        for _ in 0..2 {
            streams.push(Stream {
                link,
                random: Dice::new(random.next()),
                next: 0,
                stamp: 0,
                posted: vec![0; WORDS_OF_SLOT as usize],
                open: BTreeMap::new(),
                messages: BTreeMap::new(),
                received: 0,
                receives: 0,
                swaps: 0,
                known: 0,
                last_ended: None,
                originals: Vec::new(),
            });
        }
    }
    let (objects, words) = (Objects::new(&mut pair, random), Words::new(&mut pair));
    let applied = BTreeMap::new();
    let mut run = Run { pair, streams, local, shared, inbox, objects, words, mtu, applied, per_stream };
    run.play()?;
    Ok(run)
}

impl<R: Rules> Run<R> {
    /// The node that stream `index` posts at.
    fn node(index: usize) -> usize {
        index % 2
    }

    fn buffer(&self, index: usize, id: u64) -> Span {
        let at = (index as u64 / 2) * BUFFERS + id % BUFFERS;
        let key = self.local[Self::node(index)];
        Span { key, address: LOCAL + at * SLOT, len: SLOT as u32 }
    }

    fn play(&mut self) -> Result<(), String> {
        let mut steps = 0u64;
        loop {
            for index in 0..self.streams.len() {
                self.act(index);
            }
            self.objects.write(&mut self.pair);
            let went_on = self.pair.step();
            self.judge()?;
            if let Some(violation) = self.pair.violations() {
                return Err(violation.clone());
            }
            let done =
                self.streams.iter().all(|stream| stream.next == self.per_stream && stream.open.is_empty());
            if done {
                break;
            }
            steps += 1;
            if !went_on && self.streams.iter().all(|stream| stream.next == self.per_stream) {
                // Receives may still be missing.
                for index in 0..self.streams.len() {
                    self.post_receive(index);
                }
                if !self.pair.step() {
                    return Err("stuck: work is open and nothing is in flight".into());
                }
                self.judge()?;
            }
            if steps > 400_000 {
                return Err("stuck: work is open after 400,000 steps".into());
            }
        }
        self.pair.run();
        self.judge()?;
        self.at_rest()
    }

    /// Stream `index` posts something, or does not.
    fn act(&mut self, index: usize) {
        if self.streams[index].random.percent(5) {
            self.post_receive(index);
        }
        let stream = &mut self.streams[index];
        if stream.next == self.per_stream || stream.open.len() as u64 >= BUFFERS || !stream.random.percent(40)
        {
            return;
        }
        let (at, id, link) = (Self::node(index), stream.next, stream.link);
        let buffer = self.buffer(index, id);
        let key = self.shared[1 - at];
        let stream = &mut self.streams[index];
        let first = stream.random.below(WORDS_OF_SLOT);
        let words = match stream.random.below(4) {
            0 => stream.random.below(3),
            1 => stream.random.below(40),
            _ => stream.random.below(WORDS_OF_SLOT),
        }
        .min(WORDS_OF_SLOT - first);
        let local = Span { len: words as u32 * 8, ..buffer };
        let remote = Remote { key, address: slot_word(index / 2, first) };
        let span = first as usize..(first + words) as usize;
        let immediate = stream.random.percent(20).then_some(id as u32);
        let mut expected = Vec::new();
        let operation = match stream.random.below(14) {
            0..4 => {
                stream.stamp += 1;
                stream.posted[span].fill(stream.stamp);
                let stamp = stream.stamp;
                if let Some(data) = immediate {
                    stream.messages.insert(stream.messages.len() as u64 + 1, (None, data));
                }
                fill(&mut self.pair, at, local, stamp);
                Operation::Write { local, remote, immediate }
            }
            4..6 => {
                expected = stream.posted[span].to_vec();
                Operation::Read { local, remote }
            }
            6 => {
                let local = Span { len: local.len.max(8), ..local };
                let number = stream.messages.len() as u64 + 1;
                stream.messages.insert(number, (Some(number), number as u32));
                fill(&mut self.pair, at, local, number);
                Operation::Send { local, immediate: Some(number as u32) }
            }
            7 => {
                let compare = stream.known;
                let result = Some(Span { len: 8, ..buffer });
                let remote = Remote { key, address: LOCKWORD };
                Operation::CompareSwap { remote, compare, swap: compare + 1, result }
            }
            8..10 => {
                let (operation, least) = self.objects.read(1 - at, &mut stream.random, buffer);
                expected = vec![least];
                operation
            }
            10..12 => {
                let (most, counter) = (self.mtu.bytes().min(1024), Remote { key, address: COUNTER });
                let (writer, answers) =
                    self.words.batch(1 - at, index, &mut stream.random, most as usize, counter);
                expected = answers;
                let request = Span { len: writer.bytes().len() as u32, ..buffer };
                let bytes = self.pair.nodes[at].memory.bytes(request).expect("it is there");
                bytes.copy_from_slice(writer.bytes());
                let (address, len) = (buffer.address + u64::from(most), writer.answer_bytes() as u32);
                Operation::Atomics { request, answer: Span { address, len, ..buffer } }
            }
            _ => Operation::FetchAdd { remote: Remote { key, address: COUNTER }, add: 1, result: None },
        };
        let stream = &mut self.streams[index];
        let request =
            WorkRequest { fence: stream.random.percent(5), ..WorkRequest::new(WorkId(id), operation) };
        stream.next += 1;
        stream.open.insert(request.id, (operation, expected));
        self.pair.post(at, link, request).expect("there is room");
    }

    /// A buffer for a message of stream `index`, at its other end.
    fn post_receive(&mut self, index: usize) {
        let stream = &mut self.streams[index];
        if stream.receives - stream.received >= BUFFERS {
            return;
        }
        let at = (index as u64 / 2) * BUFFERS + stream.receives % BUFFERS;
        let (to, id) = (1 - Self::node(index), WorkId(stream.receives));
        stream.receives += 1;
        let link = stream.link;
        let local = Span { key: self.inbox[to], address: INBOX + at * SLOT, len: SLOT as u32 };
        self.pair.post_receive(to, link, Receive { id, local }).expect("there is room");
    }

    /// Looks at what was placed and what has ended since.
    fn judge(&mut self) -> Result<(), String> {
        for at in 0..2 {
            for (span, bytes) in std::mem::take(&mut self.pair.nodes[at].placed) {
                if span.key == self.shared[at] {
                    self.judge_write(at, span, &bytes)?;
                }
            }
            for completion in std::mem::take(&mut self.pair.nodes[at].completions) {
                let link = self
                    .streams
                    .iter()
                    .position(|stream| stream.link.0[at] == completion.queue_pair)
                    .expect("a queue pair of ours")
                    / 2;
                if !matches!(completion.status, Status::Success | Status::Torn) {
                    return Err(format!("failed: {completion:?}"));
                }
                if completion.receive {
                    self.judge_receive(at, link * 2 + (1 - at), &completion)?;
                } else {
                    self.judge_ended(link * 2 + at, &completion)?;
                }
            }
        }
        Ok(())
    }

    /// Stamps of a word only grow: or a WRITE came twice, or late.
    fn judge_write(&mut self, at: usize, span: Span, bytes: &[u8]) -> Result<(), String> {
        for (word, stamp) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let address = span.address + word as u64 * 8;
            let link = ((address - SLOTS) / SLOT) as usize;
            let number = ((address - SLOTS) % SLOT / 8) as usize;
            // Written by the other node's stream.
            let applied = self.applied.entry((at, link, number)).or_default();
            let stamp = u64::from_ne_bytes(*stamp);
            if stamp <= *applied {
                return Err(format!("WRITE {stamp} of {address:#x} after WRITE {applied}"));
            }
            *applied = stamp;
        }
        Ok(())
    }

    fn judge_receive(&mut self, at: usize, index: usize, completion: &Completion) -> Result<(), String> {
        let stream = &mut self.streams[index];
        if completion.id != WorkId(stream.received) {
            return Err(format!("receive {} expected: {completion:?}", stream.received));
        }
        stream.received += 1;
        let number = stream.received;
        // A SEND says which message of the stream it is; a WRITE which piece of work.
        let slot = (index as u64 / 2) * BUFFERS + completion.id.0 % BUFFERS;
        let span = Span { key: self.inbox[at], address: INBOX + slot * SLOT, len: completion.len };
        let bytes = self.pair.nodes[at].memory.bytes(span).expect("it is there").to_vec();
        let words = bytes.as_chunks::<8>().0;
        let sent = self.streams[index].messages.get(&number).copied();
        let Some((stamp, immediate)) = sent else { return Err(format!("nobody sent message {number}")) };
        if completion.immediate != Some(immediate)
            || stamp.is_some_and(|stamp| words.iter().any(|word| u64::from_ne_bytes(*word) != stamp))
        {
            return Err(format!("message {number} is not what was sent: {completion:?}"));
        }
        Ok(())
    }

    fn judge_ended(&mut self, index: usize, completion: &Completion) -> Result<(), String> {
        let at = Self::node(index);
        let buffer = self.buffer(index, completion.id.0);
        let stream = &mut self.streams[index];
        if stream.last_ended.is_some_and(|last| last >= completion.id) {
            return Err(format!("{:?} ended before {completion:?}", stream.last_ended));
        }
        stream.last_ended = Some(completion.id);
        let (operation, expected) = stream.open.remove(&completion.id).ok_or("ended twice")?;
        if completion.status == Status::Torn && !matches!(operation, Operation::ReadObject { .. }) {
            return Err(format!("torn, and no object: {completion:?}"));
        }
        match operation {
            Operation::Read { local, remote } => {
                let bytes = self.pair.nodes[at].memory.bytes(local).expect("it is there");
                let first = (remote.address - slot_word(index / 2, 0)) / 8;
                for (word, (read, least)) in bytes.as_chunks::<8>().0.iter().zip(expected).enumerate() {
                    let read = u64::from_ne_bytes(*read);
                    let most = stream.posted[first as usize + word];
                    if read < least || read > most {
                        return Err(format!("READ {:?}: {read}, not {least} to {most}", completion.id));
                    }
                }
            }
            Operation::CompareSwap { compare, .. } => {
                let original = completion.original.ok_or("an atomic without its word")?;
                let stored = self.pair.nodes[at].memory.word(buffer.key, buffer.address);
                if stored != original {
                    return Err(format!("{stored} was stored, not {original}"));
                }
                stream.swaps += u64::from(original == compare);
                stream.known = original + u64::from(original == compare);
            }
            Operation::FetchAdd { .. } => {
                stream.originals.push(completion.original.ok_or("an atomic without its word")?);
            }
            Operation::Atomics { answer, .. } => {
                let bytes = self.pair.nodes[at].memory.bytes(answer).expect("it is there");
                stream.originals.extend(Words::judge(completion, &expected, bytes)?);
            }
            Operation::ReadObject { local, remote } => {
                let bytes = self.pair.nodes[at].memory.bytes(local).expect("it is there");
                self.objects.judge(1 - at, remote, expected[0], completion, bytes)?;
            }
            Operation::Write { .. } | Operation::Send { .. } => {}
        }
        Ok(())
    }

    /// Every atomic was executed once.
    fn at_rest(&mut self) -> Result<(), String> {
        for at in 0..2 {
            let others = self.streams.iter().enumerate().filter(|(index, _)| Self::node(*index) != at);
            let mut originals: Vec<u64> = Vec::new();
            let mut swaps = 0;
            for (_, stream) in others {
                originals.extend(&stream.originals);
                swaps += stream.swaps;
            }
            originals.sort_unstable();
            let each_once = originals.iter().copied().eq(0..originals.len() as u64);
            let key = self.shared[at];
            let count = self.pair.nodes[at].memory.word(key, COUNTER);
            if !each_once || count != originals.len() as u64 {
                return Err(format!("{} additions made {count}: {originals:?}", originals.len()));
            }
            let swapped = self.pair.nodes[at].memory.word(key, LOCKWORD);
            if swapped != swaps {
                return Err(format!("{swaps} swaps made {swapped}"));
            }
        }
        self.words.at_rest(&mut self.pair)
    }
}

fn fill<R: Rules>(pair: &mut Pair<R>, at: usize, span: Span, stamp: u64) {
    for word in pair.nodes[at].memory.bytes(span).expect("it is there").as_chunks_mut::<8>().0 {
        *word = stamp.to_ne_bytes();
    }
}
