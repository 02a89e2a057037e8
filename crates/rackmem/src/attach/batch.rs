//! Several operations in one message: one round trip for all of them.
//!
//! They are done in their order, each whatever came of those before it. What must always hold: a batch is never longer
//! than what the daemon takes; what does not fit is refused when it is added.

use wire::GlobalAddr;

use super::client::AttachedHandle;
use super::message::{Answer, MOST_BYTES, MOST_OPERATIONS, Operation};
use crate::error::Error;

/// Operations that go to the daemon together.
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

impl AttachedHandle {
    /// Does what is in the batch. Returns what came of each operation, in order: the bytes of a read, none for a write.
    /// Each range is atomic inside each block, as for [`AttachedHandle::read`]; the batch as a whole is not.
    ///
    /// # Errors
    /// [`Error::Detached`]; other errors are those of single operations.
    pub fn run(&mut self, batch: &Batch) -> Result<Vec<Outcome>, Error> {
        let answers = self.ask(batch.operations, &batch.encoded)?;
        let outcome = |answer| match answer {
            Answer::Done => Ok(Ok(Vec::new())),
            Answer::Bytes(bytes) => Ok(Ok(bytes)),
            Answer::Failed(error) => Ok(Err(error)),
            _ => Err(Error::Detached),
        };
        answers.into_iter().map(outcome).collect()
    }
}
