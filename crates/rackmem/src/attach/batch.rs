//! Several operations in one message: one round trip for all of them, where a daemon does them.
//!
//! They are done in their order, each whatever came of those before it. What must always hold: a batch is never longer
//! than what the daemon takes; what does not fit is refused when it is added.

use wire::GlobalAddr;

use super::answer::Answer;
use super::bytes::Bytes;
use super::message::{MOST_BYTES, MOST_OPERATIONS};
use super::operation::Operation;
use crate::error::Error;
use crate::handle::NodeHandle;

/// Small operations that are done together.
#[derive(Default)]
pub struct Batch {
    encoded: Vec<u8>,
    operations: usize,
    /// Bytes that it reads and writes.
    bytes: usize,
}

/// What came of an operation of a batch.
pub type Outcome = Result<Vec<u8>, Error>;

impl Batch {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.operations
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Adds a read of `len` bytes. False: there is no capacity for it.
    #[must_use]
    pub fn read(&mut self, addr: GlobalAddr, len: usize) -> bool {
        self.add(len, &Operation::Read { addr, len })
    }

    /// Adds a write. False: there is no capacity for it.
    #[must_use]
    pub fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> bool {
        self.add(bytes.len(), &Operation::Write { addr, bytes })
    }

    fn add(&mut self, bytes: usize, operation: &Operation<'_>) -> bool {
        let fits = self.operations < MOST_OPERATIONS && bytes <= MOST_BYTES - self.bytes;
        if fits {
            operation.encode(&mut self.encoded);
            self.operations += 1;
            self.bytes += bytes;
        }
        fits
    }
}

impl NodeHandle {
    /// Does what is in the batch. Returns what came of each operation, in order: the bytes of a read, none for a write.
    /// Each range is atomic inside each block, as for [`NodeHandle::read`]; the batch as a whole is not. It takes an attached
    /// handle one round trip.
    ///
    /// # Errors
    /// [`Error::Detached`]; other errors are those of single operations.
    pub fn run(&mut self, batch: &Batch) -> Result<Vec<Outcome>, Error> {
        if !self.is_attached() {
            return Ok(self.run_here(batch));
        }
        let conversation = self.conversation()?;
        let answers = conversation.ask(batch.operations, &batch.encoded)?;
        let outcome = |answer| match answer {
            Answer::Done => Ok(Ok(Vec::new())),
            Answer::Bytes(bytes) => Ok(Ok(bytes)),
            Answer::Failed(error) => Ok(Err(error)),
            _ => Err(conversation.cut()),
        };
        answers.into_iter().map(outcome).collect()
    }

    /// One after the other.
    fn run_here(&mut self, batch: &Batch) -> Vec<Outcome> {
        let mut encoded = Bytes(&batch.encoded);
        let one = |_| match Operation::decode(&mut encoded) {
            Ok(Operation::Read { addr, len }) => {
                let mut bytes = vec![0; len];
                self.read(addr, &mut bytes).map(|()| bytes)
            }
            Ok(Operation::Write { addr, bytes }) => self.write(addr, bytes).map(|()| Vec::new()),
            other => unreachable!("nobody has added {other:?}"),
        };
        (0..batch.operations).map(one).collect()
    }
}
