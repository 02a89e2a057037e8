//! What an application and a daemon say to each other, as bytes and back: in the byte order of little endians.
//!
//! A *frame* is one message behind its length. Both sides greet: the daemon with a [`Welcome`], the application with its
//! settings ([`Terms`]). They begin with the version in all versions, and each side refuses what differs. Then the
//! application asks, and each question is answered: a batch of operations by as many results, an update by the bytes that are there, and the changed
//! bytes by how it went. What must always hold: parsing takes any bytes whatever and never panics; what it accepts is
//! within the bounds below.

use transport::{Terms, WIRE_VERSION};
use wire::{BlockSize, GlobalAddr, NodeId};

use super::bytes::{Bytes, put_counted};
use super::operation::Operation;

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
    /// Which process it is: another number after every start.
    pub(super) session: u64,
    /// The epoch that it is in.
    pub(super) epoch: u32,
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

impl Welcome {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_version(out);
        out.extend(self.node.0.to_le_bytes());
        out.extend((self.nodes as u16).to_le_bytes());
        out.extend(self.block.bytes().to_le_bytes());
        out.extend(self.memory.to_le_bytes());
        out.extend(self.session.to_le_bytes());
        out.extend(self.epoch.to_le_bytes());
        out.extend(self.terms.as_bytes());
    }

    /// None: the daemon serves as many as it can.
    pub(super) fn decode(bytes: &[u8]) -> Result<Greeting<Option<Self>>, Malformed> {
        let mut bytes = Bytes(bytes);
        if let Err(version) = version(&mut bytes)? {
            return Ok(Err(version));
        }
        if bytes.end().is_ok() {
            return Ok(Ok(None));
        }
        let (node, nodes) = (NodeId(bytes.u16()?), usize::from(bytes.u16()?));
        let block = BlockSize::new(bytes.u64()?).ok_or(Malformed)?;
        let (memory, session, epoch) = (bytes.u64()?, bytes.u64()?, bytes.u32()?);
        let terms = terms(&mut bytes)?;
        Ok(Ok(Some(Self { node, nodes, block, memory, session, epoch, terms })))
    }
}

/// What a daemon greets with that serves as many as it can.
pub(super) fn put_full(out: &mut Vec<u8>) {
    put_version(out);
}

/// The application's greeting.
pub(super) fn put_hello(out: &mut Vec<u8>, terms: &Terms) {
    put_version(out);
    out.extend(terms.as_bytes());
}

/// What it says.
pub(super) fn decode_hello(bytes: &[u8]) -> Result<Greeting<Terms>, Malformed> {
    let mut bytes = Bytes(bytes);
    if let Err(version) = version(&mut bytes)? {
        return Ok(Err(version));
    }
    terms(&mut bytes).map(Ok)
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
                    left = left.checked_sub(operation.answers()).ok_or(Malformed)?;
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

/// Opens a greeting.
fn version(bytes: &mut Bytes<'_>) -> Result<Greeting<()>, Malformed> {
    if bytes.take(MAGIC.len())? != MAGIC {
        return Err(Malformed);
    }
    let version = bytes.byte()?;
    Ok(if version == WIRE_VERSION { Ok(()) } else { Err(version) })
}

/// All that is left of it.
fn terms(bytes: &mut Bytes<'_>) -> Result<Terms, Malformed> {
    Terms::parse(std::mem::take(&mut bytes.0)).ok_or(Malformed)
}

fn put_version(out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.push(WIRE_VERSION);
}
