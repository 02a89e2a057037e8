//! What one node asks of another that is not done by the memory alone: regions begin, are opened and end; objects are written.
//!
//! Calls and replies travel as SENDs on the queue pair of the two nodes, so each comes once, in the order in which it was
//! sent. Both are words of 64 bits:
//!
//! ```text
//!   call    number | what | address | four arguments | bytes, filled up to a word
//!   reply   number | 0: done, else 1 + why not | three results
//!           number | all bits | words
//! ```
//!
//! What must always hold: whatever arrives is a call or a reply, or is counted as malformed; a reply has the number of its call.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use wire::roce::Key;
use wire::{GlobalAddr, Incarnation, Refusal};

use super::Shape;

/// Set in the numbers of replies.
const IS_REPLY: u64 = 1 << 63;
/// Words before the bytes of a call.
const CALL_WORDS: usize = 7;

const BEGIN: u64 = 1;
const OPEN: u64 = 2;
const END: u64 = 3;
const WRITE: u64 = 4;
const CHAIN: u64 = 5;
const NAMED: u64 = 6;

const WORDS: u64 = 1;
const OBJECTS: u64 = 2;
const UNITS: u64 = 3;
const FRONT_LAST: u64 = 4;

/// Says that a reply has other words than results.
const OTHER_WORDS: u64 = u64::MAX;

/// Most bytes of a call besides what it writes.
pub const CALL_BYTES: usize = CALL_WORDS * 8;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Make a fresh allocation a region.
    Begin {
        /// Where.
        addr: GlobalAddr,
        /// The incarnation of its home in which it was allocated: in another one, it is somebody else's memory.
        incarnation: Incarnation,
        /// What it is made of.
        shape: Shape,
        /// It is known to be zeroes.
        zeroed: bool,
    },
    /// Say what the region at an address is.
    Open {
        /// Where.
        addr: GlobalAddr,
    },
    /// End a region: its memory is about to be given back.
    End {
        /// Where.
        addr: GlobalAddr,
    },
    /// Write into an object the bytes that come with the call.
    Write {
        /// The region.
        addr: GlobalAddr,
        /// Its key, which no later region at this address has.
        key: Key,
        /// Which object.
        object: u64,
        /// From which byte on.
        at: u64,
        /// Only if it has this version.
        expected: Option<u64>,
        /// How many bytes.
        len: usize,
    },
    /// Do something for chains: the words that come with the call say what.
    Chain {
        /// The store.
        addr: GlobalAddr,
        /// How many words.
        words: usize,
    },
    /// Do something for names: the words that come with the call say what.
    Named {
        /// How many words.
        words: usize,
    },
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Done. A region's key and what it is made of; an object's version.
    Done(u64, u64, u64),
    /// Not done.
    Refused(Refusal),
    /// What is said about chains, or names.
    Words(Box<[u64]>),
}

/// Something that has come in a SEND.
pub enum Message<'a> {
    /// This is asked, under this number, and these are the words that came with it.
    Call(u64, Call, &'a [u64]),
    /// This is what became of the call with that number.
    Reply(u64, Reply),
}

impl Call {
    /// The words of the call with this number; what it writes is to be put behind them.
    pub fn words(&self, number: u64) -> Vec<u64> {
        debug_assert_eq!(number & IS_REPLY, 0);
        let (what, addr, arguments) = match *self {
            Self::Begin { addr, incarnation, shape, zeroed } => {
                let (kind, count, len) = shape_words(shape);
                (BEGIN, addr, [kind, count, len, u64::from(incarnation.0) << 32 | u64::from(zeroed)])
            }
            Self::Open { addr } => (OPEN, addr, [0; 4]),
            Self::End { addr } => (END, addr, [0; 4]),
            Self::Chain { addr, words } => (CHAIN, addr, [words as u64, 0, 0, 0]),
            Self::Named { words } => (NAMED, GlobalAddr::from_bits(0), [words as u64, 0, 0, 0]),
            Self::Write { addr, key, object, at, expected, len } => {
                // An odd version is nobody's to expect.
                (WRITE, addr, [u64::from(key.0) << 32 | len as u64, object, at, expected.unwrap_or(u64::MAX)])
            }
        };
        let [a, b, c, d] = arguments;
        vec![number, what, addr.bits(), a, b, c, d]
    }

    fn parse(words: &[u64]) -> Option<(Self, &[u64])> {
        let ([_, what, addr, a, b, c, d], bytes) = words.split_first_chunk::<CALL_WORDS>()?;
        let addr = GlobalAddr::from_bits(*addr);
        let call = match *what {
            BEGIN if *d as u32 <= 1 => Self::Begin {
                addr,
                incarnation: Incarnation((*d >> 32) as u32),
                shape: shape_of(*a, *b, *c)?,
                zeroed: *d as u32 == 1,
            },
            OPEN => Self::Open { addr },
            END => Self::End { addr },
            WRITE => Self::Write {
                addr,
                key: Key((*a >> 32) as u32),
                object: *b,
                at: *c,
                expected: (*d != u64::MAX).then_some(*d),
                len: *a as u32 as usize,
            },
            CHAIN => Self::Chain { addr, words: usize::try_from(*a).ok()? },
            NAMED => Self::Named { words: usize::try_from(*a).ok()? },
            _ => return None,
        };
        let len = match call {
            Self::Write { len, .. } => len,
            Self::Chain { words, .. } | Self::Named { words } => words.checked_mul(8)?,
            _ => 0,
        };
        (bytes.len() == len.div_ceil(8)).then_some((call, bytes))
    }
}

impl Reply {
    /// What is said of a region.
    pub fn of_region(key: Key, shape: Shape) -> Self {
        let (kind, count, len) = shape_words(shape);
        Self::Done(u64::from(key.0) << 32 | kind, count, len)
    }

    /// The region that a reply tells of.
    pub fn region(&self) -> Option<(Key, Shape)> {
        let Self::Done(head, count, len) = *self else { return None };
        Some((Key((head >> 32) as u32), shape_of(head & 0xffff_ffff, count, len)?))
    }

    /// The words of the reply to this call.
    pub fn words(&self, number: u64) -> Vec<u64> {
        let (outcome, [a, b, c]) = match self {
            Self::Done(a, b, c) => (0, [*a, *b, *c]),
            Self::Refused(why) => (1 + *why as u64, [0; 3]),
            Self::Words(words) => return [&[number | IS_REPLY, OTHER_WORDS], &**words].concat(),
        };
        vec![number | IS_REPLY, outcome, a, b, c]
    }

    fn parse(words: &[u64]) -> Option<Self> {
        if let [_, OTHER_WORDS, words @ ..] = words {
            return Some(Self::Words(words.into()));
        }
        let [_, outcome, a, b, c] = *words else { return None };
        match outcome {
            0 => Some(Self::Done(a, b, c)),
            why => {
                let why = u8::try_from(why - 1).ok()?;
                Refusal::ALL.into_iter().find(|it| *it as u8 == why).map(Self::Refused)
            }
        }
    }
}

impl<'a> Message<'a> {
    /// Reads what has come.
    pub fn parse(words: &'a [u64]) -> Option<Self> {
        let number = words.first()? & !IS_REPLY;
        if words[0] & IS_REPLY != 0 {
            return Reply::parse(words).map(|reply| Self::Reply(number, reply));
        }
        Call::parse(words).map(|(call, bytes)| Self::Call(number, call, bytes))
    }
}

fn shape_words(shape: Shape) -> (u64, u64, u64) {
    match shape {
        Shape::Words { count } => (WORDS, count as u64, 0),
        Shape::Objects { count, len, front_last: false } => (OBJECTS, count as u64, len as u64),
        Shape::Objects { count, len, front_last: true } => (FRONT_LAST, count as u64, len as u64),
        Shape::Chain { first, units } => (UNITS, units.into(), first.into()),
    }
}

fn shape_of(kind: u64, count: u64, len: u64) -> Option<Shape> {
    let (count, len) = (usize::try_from(count).ok()?, usize::try_from(len).ok()?);
    let shape = match kind {
        WORDS if len == 0 => Shape::Words { count },
        OBJECTS | FRONT_LAST if len > 0 => Shape::Objects { count, len, front_last: kind == FRONT_LAST },
        UNITS if len > 0 => {
            Shape::Chain { first: u32::try_from(len).ok()?, units: u32::try_from(count).ok()? }
        }
        _ => return None,
    };
    (count > 0 && shape.bytes().is_some()).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NodeId;

    fn all() -> Vec<Call> {
        let (addr, incarnation) = (GlobalAddr::new(NodeId(3), 4096), Incarnation(u32::MAX));
        let write = |expected, len| Call::Write { addr, key: Key(0x1203), object: 7, at: 5, expected, len };
        vec![
            Call::Begin { addr, incarnation: Incarnation(0), shape: Shape::Words { count: 9 }, zeroed: true },
            Call::Begin { addr, incarnation, shape: Shape::objects(2, 77), zeroed: false },
            Call::Begin {
                addr,
                incarnation,
                shape: Shape::Objects { count: 2, len: 77, front_last: true },
                zeroed: false,
            },
            Call::Begin { addr, incarnation, shape: Shape::Chain { first: 8, units: 77 }, zeroed: true },
            Call::Open { addr },
            Call::End { addr },
            Call::Chain { addr, words: 0 },
            Call::Chain { addr, words: 3 },
            Call::Named { words: 3 },
            write(None, 0),
            write(Some(12), 13),
        ]
    }

    #[test]
    fn a_call_is_read_as_it_was_written() {
        for (number, call) in (1..).zip(all()) {
            let mut words = call.words(number);
            match call {
                Call::Write { len, .. } => words.extend(vec![5; len.div_ceil(8)]),
                Call::Chain { words: more, .. } | Call::Named { words: more } => words.extend(vec![5; more]),
                _ => {}
            }
            match Message::parse(&words) {
                Some(Message::Call(again, read, _)) => assert_eq!((again, read), (number, call)),
                _ => panic!("{call:?} is not read"),
            }
            words.push(0);
            assert!(Message::parse(&words).is_none(), "more than it says: {call:?}");
            assert!(Message::parse(&words[..words.len() - 2]).is_none(), "less: {call:?}");
        }
        for malformed in [
            vec![],
            vec![1, 9, 0, 0, 0, 0, 0],
            vec![1, BEGIN, 0, OBJECTS, 1, 0, 0],
            vec![1, BEGIN, 0, WORDS, 1, 0, 2],
        ] {
            assert!(Message::parse(&malformed).is_none(), "{malformed:?}");
        }
        let many = vec![1, BEGIN, 0, OBJECTS, u64::MAX, 8, 0];
        assert!(Message::parse(&many).is_none(), "more bytes than can be counted");
    }

    #[test]
    fn a_reply_is_read_as_it_was_written() {
        let region = Reply::of_region(Key(0xffff_ff01), Shape::objects(5, 100));
        assert_eq!(region.region(), Some((Key(0xffff_ff01), Shape::objects(5, 100))));
        let refused = Refusal::ALL.into_iter().map(Reply::Refused);
        for reply in refused.chain([region, Reply::Done(1, 2, u64::MAX)]) {
            let words = reply.words(77);
            assert!(matches!(Message::parse(&words), Some(Message::Reply(77, read)) if read == reply));
            assert!(Message::parse(&words[..4]).is_none());
        }
        for others in [vec![], vec![7], vec![7; 40]] {
            let reply = Reply::Words(others.into());
            assert!(
                matches!(Message::parse(&reply.words(5)), Some(Message::Reply(5, read)) if read == reply)
            );
        }
        assert!(Message::parse(&[1 << 63, 1, 0, 0, 0]).is_none(), "no such reason");
    }
}
