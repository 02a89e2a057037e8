//! What a daemon answers, as bytes and back.
//!
//! What must always hold: every error that an operation may end with can be said, and is the same at the other side.

use live::memory::regions::Shape;
use live::networked::Draining;
use live::networked::verbs::RegionName;
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use super::bytes::{Bytes, put_addr, put_counted, put_name, put_option, put_u64};
use super::message::Malformed;
use super::operation::{put_shape, shape_of};
use crate::error::Error;

/// What came of one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// It is done.
    Done,
    Bytes(Vec<u8>),
    Allocated(GlobalAddr),
    /// The lock of a block is held, under this number, and a writer has died who had it.
    Locked(u32, Option<NodeId>),
    /// Somebody else holds it; or the object is being written; or it has another version than was expected.
    Busy,
    Failed(Error),
    /// A lock that carries these bytes is held, under this number, and a writer has died in it.
    Held(u32, Option<NodeId>, Vec<u8>),
    /// What a region, or a store of chains, is called, and what it is made of; and whether processes of this machine may map it.
    Region(RegionName, Shape, bool),
    /// What a word was.
    Word(u64),
    /// An object of this version.
    Object(u64, Vec<u8>),
    /// What came of an operation on a key: the value, if one was asked for and there is one, and round trips.
    Chained(u32, Option<Vec<u8>>),
    /// How far a node has come that is to leave.
    Draining(Draining),
}

/// The front of so many answers, which follow.
pub(super) fn begin_answers(out: &mut Vec<u8>, answers: usize) {
    out.extend((answers as u16).to_le_bytes());
}

/// What a message of answers says.
pub(super) fn decode_answers(bytes: &[u8]) -> Result<Vec<Answer>, Malformed> {
    let mut bytes = Bytes(bytes);
    let answers = (0..bytes.count()?).map(|_| Answer::decode(&mut bytes)).collect::<Result<_, _>>()?;
    bytes.end()?;
    Ok(answers)
}

impl Answer {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let kind = out.len();
        out.push(0);
        out[kind] = match self {
            Self::Done => 0,
            Self::Bytes(bytes) => {
                put_counted(out, bytes);
                1
            }
            Self::Allocated(addr) => {
                put_addr(out, *addr);
                2
            }
            Self::Locked(lock, died) => {
                out.extend(lock.to_le_bytes());
                put_option(out, *died, |out, died| out.extend(died.0.to_le_bytes()));
                3
            }
            Self::Busy => 4,
            Self::Failed(error) => {
                encode_error(error, out);
                5
            }
            Self::Held(lock, died, bytes) => {
                out.extend(lock.to_le_bytes());
                put_option(out, *died, |out, died| out.extend(died.0.to_le_bytes()));
                put_counted(out, bytes);
                6
            }
            Self::Region(name, shape, is_shared) => {
                put_name(out, name);
                put_shape(out, *shape);
                out.push(u8::from(*is_shared));
                7
            }
            Self::Word(word) => {
                put_u64(out, *word);
                8
            }
            Self::Object(version, bytes) => {
                put_u64(out, *version);
                put_counted(out, bytes);
                9
            }
            Self::Chained(trips, value) => {
                out.extend(trips.to_le_bytes());
                put_option(out, value.as_deref(), put_counted);
                10
            }
            Self::Draining(draining) => {
                put_draining(out, *draining);
                11
            }
        };
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Malformed> {
        Ok(match bytes.byte()? {
            0 => Self::Done,
            1 => Self::Bytes(bytes.counted()?.to_vec()),
            2 => Self::Allocated(bytes.addr()?),
            3 => Self::Locked(bytes.u32()?, bytes.option(|bytes| bytes.u16().map(NodeId))?),
            4 => Self::Busy,
            5 => Self::Failed(decode_error(bytes)?),
            6 => Self::Held(
                bytes.u32()?,
                bytes.option(|bytes| bytes.u16().map(NodeId))?,
                bytes.counted()?.to_vec(),
            ),
            7 => Self::Region(bytes.name()?, shape_of(bytes)?, bytes.flag()?),
            8 => Self::Word(bytes.u64()?),
            9 => Self::Object(bytes.u64()?, bytes.counted()?.to_vec()),
            10 => Self::Chained(bytes.u32()?, bytes.option(|bytes| bytes.counted().map(<[u8]>::to_vec))?),
            11 => Self::Draining(draining_of(bytes)?),
            _ => return Err(Malformed),
        })
    }
}

fn put_draining(out: &mut Vec<u8>, draining: Draining) {
    let kind = out.len();
    out.push(0);
    out[kind] = match draining {
        Draining::No => 0,
        Draining::Refused { bytes } => {
            put_u64(out, bytes);
            1
        }
        Draining::Moving { memories, bytes, staying } => {
            put_u64(out, memories);
            put_u64(out, bytes);
            put_option(out, staying, Vec::push);
            2
        }
        Draining::Done { staying } => {
            out.push(staying);
            3
        }
        Draining::Left { staying, in_order } => {
            out.extend([staying, in_order.into()]);
            4
        }
    };
}

fn draining_of(bytes: &mut Bytes<'_>) -> Result<Draining, Malformed> {
    Ok(match bytes.byte()? {
        0 => Draining::No,
        1 => Draining::Refused { bytes: bytes.u64()? },
        2 => Draining::Moving {
            memories: bytes.u64()?,
            bytes: bytes.u64()?,
            staying: bytes.option(Bytes::byte)?,
        },
        3 => Draining::Done { staying: bytes.byte()? },
        4 => Draining::Left { staying: bytes.byte()?, in_order: bytes.flag()? },
        _ => return Err(Malformed),
    })
}

/// A kind, and two numbers.
fn encode_error(error: &Error, out: &mut Vec<u8>) {
    let [kind, first, second] = error_words(error);
    out.push(kind as u8);
    out.extend(first.to_le_bytes());
    out.extend(second.to_le_bytes());
}

/// An error as a kind and two numbers.
pub(crate) fn error_words(error: &Error) -> [u64; 3] {
    let bits = |addr: &GlobalAddr| addr.bits();
    let (kind, first, second) = match error {
        Error::Unallocated { addr } => (0, bits(addr), 0),
        Error::WrongDiscipline { addr, needs } => (1, bits(addr), *needs as u64),
        Error::NoSuchNode { addr, nodes } => (2, bits(addr), *nodes as u64),
        Error::Unaligned { addr } => (3, bits(addr), 0),
        // The block size is known to both.
        Error::CrossesBlocks { addr, len, block } => {
            (4, bits(addr), (*len as u64) << 8 | u64::from(block.shift()))
        }
        Error::OutOfRange { addr, len } => (5, bits(addr), *len),
        Error::BadSize { len, most } => (6, *len, *most),
        Error::OutOfMemory { len, home } => (7, *len, u64::from(*home)),
        Error::NotAnAllocation { addr } => (8, bits(addr), 0),
        Error::Lost { addr } => (9, bits(addr), 0),
        Error::NodeDown { addr } => (10, bits(addr), 0),
        Error::Fenced => (11, 0, 0),
        Error::TooManyLocks { most } => (12, *most as u64, 0),
        Error::Detached => (13, 0, 0),
        Error::WrongLength { addr, len } => (14, bits(addr), *len),
        Error::RegionTooLong { len, most } => (15, *len, *most),
        Error::Broken { addr } => (16, bits(addr), 0),
        Error::OutOfBounds { index, count } => (17, *index as u64, *count as u64),
        Error::HalfWritten { addr, index } => (18, bits(addr), *index as u64),
        Error::TooManyClients { most } => (19, *most as u64, 0),
        Error::QuarantineTooShort { quarantine, least } => (20, quarantine.0, least.0),
        Error::TooManyCopies { copies, memories } => (21, *copies as u64, *memories as u64),
        Error::TooManyAttached { most } => (22, *most as u64, 0),
        Error::TooManyPinned { most } => (23, *most as u64, 0),
        Error::NoCopies => (24, 0, 0),
        Error::PinnedToWrite { addr } => (25, bits(addr), 0),
    };
    [kind, first, second]
}

fn decode_error(bytes: &mut Bytes<'_>) -> Result<Error, Malformed> {
    let (kind, first, second) = (bytes.byte()?, bytes.u64()?, bytes.u64()?);
    parse_error(kind.into(), first, second)
}

/// The error that these words are.
pub(crate) fn error_of([kind, first, second]: [u64; 3]) -> Option<Error> {
    parse_error(kind, first, second).ok()
}

fn parse_error(kind: u64, first: u64, second: u64) -> Result<Error, Malformed> {
    let addr = GlobalAddr::from_bits(first);
    let size = |number| usize::try_from(number).map_err(|_| Malformed);
    Ok(match kind {
        0 => Error::Unallocated { addr },
        1 => {
            let needs = u8::try_from(second).ok().and_then(Discipline::from_wire).ok_or(Malformed)?;
            Error::WrongDiscipline { addr, needs }
        }
        // A rack has a node: the message counts from 0 to the last.
        2 if second > 0 => Error::NoSuchNode { addr, nodes: size(second)? },
        24 => Error::NoCopies,
        3 => Error::Unaligned { addr },
        4 => {
            let block = 1u64.checked_shl(second as u8 as u32).and_then(BlockSize::new).ok_or(Malformed)?;
            Error::CrossesBlocks { addr, len: size(second >> 8)?, block }
        }
        5 => Error::OutOfRange { addr, len: second },
        6 => Error::BadSize { len: first, most: second },
        7 => Error::OutOfMemory { len: first, home: u16::try_from(second).map_err(|_| Malformed)? },
        8 => Error::NotAnAllocation { addr },
        9 => Error::Lost { addr },
        10 => Error::NodeDown { addr },
        11 => Error::Fenced,
        12 => Error::TooManyLocks { most: size(first)? },
        13 => Error::Detached,
        14 => Error::WrongLength { addr, len: second },
        15 => Error::RegionTooLong { len: first, most: second },
        16 => Error::Broken { addr },
        // There is at least one: the message counts from 0 to the last.
        17 if second > 0 => Error::OutOfBounds { index: size(first)?, count: size(second)? },
        18 => Error::HalfWritten { addr, index: size(second)? },
        19 => Error::TooManyClients { most: size(first)? },
        20 => Error::QuarantineTooShort { quarantine: Nanos(first), least: Nanos(second) },
        21 => Error::TooManyCopies { copies: size(first)?, memories: size(second)? },
        22 => Error::TooManyAttached { most: size(first)? },
        23 => Error::TooManyPinned { most: size(first)? },
        25 => Error::PinnedToWrite { addr },
        _ => return Err(Malformed),
    })
}
