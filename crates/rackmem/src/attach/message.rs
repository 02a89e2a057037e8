//! What an application and a daemon say to each other, as bytes and back: in the byte order of little endians.
//!
//! A *frame* is one message behind its length. Both sides greet: the daemon with a [`Welcome`], the application with its
//! settings ([`Terms`]). They begin with the version in all versions, and each side refuses what differs. Then the
//! application asks, and each question is answered: a batch of operations by as many results, an update by the bytes that are there, and the changed
//! bytes by how it went. What must always hold: parsing takes any bytes whatever and never panics; what it accepts is
//! within the bounds below.

use transport::{Terms, WIRE_VERSION};
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use crate::error::Error;
use crate::lock::LockMode;

/// Bytes that one message reads, and bytes that it writes, at most: a block of the largest size.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// Operations of a batch.
pub(super) const MOST_OPERATIONS: usize = 1024;
/// The longest frame.
pub(super) const MOST_FRAME: usize = MOST_BYTES + 64 * MOST_OPERATIONS;
/// What greetings begin with, in front of the version.
const MAGIC: &[u8; 7] = b"rackmem";

/// Bytes that are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// A greeting: what was said, or with which version what this one cannot read.
pub(super) type Greeting<T> = Result<T, u8>;

/// What the daemon is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Welcome {
    pub(super) node: NodeId,
    pub(super) nodes: usize,
    pub(super) block: BlockSize,
    pub(super) memory: u64,
    /// Its settings.
    pub(super) terms: Terms,
}

/// What an application asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Request<'a> {
    /// These, one after the other.
    Batch(Vec<Operation<'a>>),
    /// The bytes of this range, and the block to itself until they are back.
    Update { addr: GlobalAddr, len: usize },
    /// The bytes of the range that is being updated, changed.
    Changed(&'a [u8]),
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation<'a> {
    Read { addr: GlobalAddr, len: usize },
    Write { addr: GlobalAddr, bytes: &'a [u8] },
    Alloc { len: u64, home: NodeId, discipline: Discipline },
    Free { addr: GlobalAddr },
    Lock { addr: GlobalAddr, mode: LockMode, once: bool },
    Unlock { lock: u32 },
}

/// What came of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// It is done.
    Done,
    Bytes(Vec<u8>),
    Allocated(GlobalAddr),
    /// The lock is held, under this number.
    Locked(u32),
    /// Somebody else holds it.
    Busy,
    Failed(Error),
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Malformed> {
        self.take(LEN).map(|bytes| bytes.try_into().expect("as long as was asked for"))
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn addr(&mut self) -> Result<GlobalAddr, Malformed> {
        self.u64().map(GlobalAddr::from_bits)
    }

    /// A number of bytes that a message may carry.
    fn len(&mut self) -> Result<usize, Malformed> {
        let len = self.u32()? as usize;
        if len <= MOST_BYTES { Ok(len) } else { Err(Malformed) }
    }

    fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.len()?;
        self.take(len)
    }

    fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::from(self.u16()?);
        if count <= MOST_OPERATIONS { Ok(count) } else { Err(Malformed) }
    }

    /// Opens a greeting.
    fn version(&mut self) -> Result<Greeting<()>, Malformed> {
        if self.take(MAGIC.len())? != MAGIC {
            return Err(Malformed);
        }
        let version = self.byte()?;
        Ok(if version == WIRE_VERSION { Ok(()) } else { Err(version) })
    }

    /// All that is left.
    fn terms(&mut self) -> Result<Terms, Malformed> {
        Terms::parse(std::mem::take(&mut self.0)).ok_or(Malformed)
    }

    const fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    // Whoever makes a message keeps within its bounds.
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

fn put_version(out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.push(WIRE_VERSION);
}

impl Welcome {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_version(out);
        out.extend(self.node.0.to_le_bytes());
        out.extend((self.nodes as u16).to_le_bytes());
        out.extend(self.block.bytes().to_le_bytes());
        out.extend(self.memory.to_le_bytes());
        out.extend(self.terms.as_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Greeting<Self>, Malformed> {
        let mut bytes = Bytes(bytes);
        if let Err(version) = bytes.version()? {
            return Ok(Err(version));
        }
        let (node, nodes) = (NodeId(bytes.u16()?), usize::from(bytes.u16()?));
        let block = BlockSize::new(bytes.u64()?).ok_or(Malformed)?;
        let memory = bytes.u64()?;
        let terms = bytes.terms()?;
        Ok(Ok(Self { node, nodes, block, memory, terms }))
    }
}

/// The application's greeting.
pub(super) fn put_hello(out: &mut Vec<u8>, terms: &Terms) {
    put_version(out);
    out.extend(terms.as_bytes());
}

/// What it says.
pub(super) fn decode_hello(bytes: &[u8]) -> Result<Greeting<Terms>, Malformed> {
    let mut bytes = Bytes(bytes);
    if let Err(version) = bytes.version()? {
        return Ok(Err(version));
    }
    bytes.terms().map(Ok)
}

const BATCH: u8 = 1;
const UPDATE: u8 = 2;
const CHANGED: u8 = 3;

/// The front of a batch of so many operations, which follow.
pub(super) fn begin_batch(out: &mut Vec<u8>, operations: usize) {
    out.push(BATCH);
    out.extend((operations as u16).to_le_bytes());
}

pub(super) fn put_update(out: &mut Vec<u8>, addr: GlobalAddr, len: usize) {
    out.push(UPDATE);
    out.extend(addr.bits().to_le_bytes());
    out.extend((len as u32).to_le_bytes());
}

pub(super) fn put_changed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(CHANGED);
    put_counted(out, bytes);
}

impl<'a> Request<'a> {
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(bytes);
        let request = match bytes.byte()? {
            BATCH => {
                let count = bytes.count()?;
                let mut left = MOST_BYTES;
                let mut operations = Vec::with_capacity(count);
                for _ in 0..count {
                    let operation = Operation::decode(&mut bytes)?;
                    // What is written is bounded by the frame.
                    if let Operation::Read { len, .. } = operation {
                        left = left.checked_sub(len).ok_or(Malformed)?;
                    }
                    operations.push(operation);
                }
                Self::Batch(operations)
            }
            UPDATE => Self::Update { addr: bytes.addr()?, len: bytes.len()? },
            CHANGED => Self::Changed(bytes.counted()?),
            _ => return Err(Malformed),
        };
        bytes.end()?;
        Ok(request)
    }
}

impl<'a> Operation<'a> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Read { addr, len } => {
                out.push(1);
                out.extend(addr.bits().to_le_bytes());
                out.extend((len as u32).to_le_bytes());
            }
            Self::Write { addr, bytes } => {
                out.push(2);
                out.extend(addr.bits().to_le_bytes());
                put_counted(out, bytes);
            }
            Self::Alloc { len, home, discipline } => {
                out.push(3);
                out.extend(len.to_le_bytes());
                out.extend(home.0.to_le_bytes());
                out.push(discipline as u8);
            }
            Self::Free { addr } => {
                out.push(4);
                out.extend(addr.bits().to_le_bytes());
            }
            Self::Lock { addr, mode, once } => {
                out.push(5);
                out.extend(addr.bits().to_le_bytes());
                out.extend([u8::from(mode == LockMode::Write), u8::from(once)]);
            }
            Self::Unlock { lock } => {
                out.push(6);
                out.extend(lock.to_le_bytes());
            }
        }
    }

    fn decode(bytes: &mut Bytes<'a>) -> Result<Self, Malformed> {
        Ok(match bytes.byte()? {
            1 => Self::Read { addr: bytes.addr()?, len: bytes.len()? },
            2 => Self::Write { addr: bytes.addr()?, bytes: bytes.counted()? },
            3 => Self::Alloc {
                len: bytes.u64()?,
                home: NodeId(bytes.u16()?),
                discipline: Discipline::from_wire(bytes.byte()?).ok_or(Malformed)?,
            },
            4 => Self::Free { addr: bytes.addr()? },
            5 => Self::Lock {
                addr: bytes.addr()?,
                mode: if bytes.flag()? { LockMode::Write } else { LockMode::Read },
                once: bytes.flag()?,
            },
            6 => Self::Unlock { lock: bytes.u32()? },
            _ => return Err(Malformed),
        })
    }
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
        match self {
            Self::Done => out.push(0),
            Self::Bytes(bytes) => {
                out.push(1);
                put_counted(out, bytes);
            }
            Self::Allocated(addr) => {
                out.push(2);
                out.extend(addr.bits().to_le_bytes());
            }
            Self::Locked(lock) => {
                out.push(3);
                out.extend(lock.to_le_bytes());
            }
            Self::Busy => out.push(4),
            Self::Failed(error) => {
                out.push(5);
                encode_error(error, out);
            }
        }
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Malformed> {
        Ok(match bytes.byte()? {
            0 => Self::Done,
            1 => Self::Bytes(bytes.counted()?.to_vec()),
            2 => Self::Allocated(bytes.addr()?),
            3 => Self::Locked(bytes.u32()?),
            4 => Self::Busy,
            5 => Self::Failed(decode_error(bytes)?),
            _ => return Err(Malformed),
        })
    }
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
        _ => return Err(Malformed),
    })
}
