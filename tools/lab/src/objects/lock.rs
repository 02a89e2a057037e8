//! A lock in front of each object, which readers take by compare-and-swap from afar: DrTM's.
//!
//! ```text
//!   lock: 1 while somebody has it 64 | data
//! ```
//! Three operations for each read, of which the last, giving the lock back, is waited for by nobody. DrTM's readers share an object with
//! each other by leases; here a reader has it alone, so this is for objects that one reader wants at a time.

use apps::objects::Layout;
use rackmem::{Error, GlobalAddr, NodeHandle, NodeId, WordOperation, Words};

use super::{opened, wait};

/// Objects behind locks. They have no versions.
#[derive(Clone, Debug)]
pub struct LockAndRead {
    words: Words<u64>,
    stride: usize,
}

const FREE: u64 = 0;
const TAKEN: u64 = 1;

fn stride(len: usize) -> usize {
    (len.div_ceil(8) + 1).next_multiple_of(8)
}

impl LockAndRead {
    /// Gives the lock back: in flight when this returns, and nobody waits for it.
    fn give_back(&self, node: &mut NodeHandle, at: usize) -> Result<(), Error> {
        match self.words.post(node, at, WordOperation::Swap(FREE))?.poll(node) {
            Some(Err(why)) => Err(why),
            _ => Ok(()),
        }
    }
}

impl Layout for LockAndRead {
    const NAME: &'static str = "lock";

    fn create(node: &mut NodeHandle, count: usize, len: usize, home: NodeId) -> Result<Self, Error> {
        let stride = stride(len);
        Ok(Self { words: node.words(count * stride, home)?, stride })
    }

    fn open(node: &mut NodeHandle, addr: GlobalAddr, len: usize) -> Result<Self, Error> {
        let stride = stride(len);
        Ok(Self { words: opened(node.words_at(addr)?, stride, len)?, stride })
    }

    fn addr(&self) -> GlobalAddr {
        self.words.addr()
    }

    #[inline(always)]
    fn try_read(
        &self,
        node: &mut NodeHandle,
        index: usize,
        into: &mut [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        let at = index * self.stride;
        if self.words.compare_exchange(node, at, FREE, TAKEN)?.is_err() {
            return Ok(None);
        }
        let read = self.words.read_bytes(node, at + 1, into);
        self.give_back(node, at)?;
        read.map(|()| Some(0))
    }

    fn write(&self, node: &mut NodeHandle, index: usize, bytes: &[u8], _: &mut Vec<u8>) -> Result<(), Error> {
        let at = index * self.stride;
        let mut looks = 0;
        while self.words.compare_exchange(node, at, FREE, TAKEN)?.is_err() {
            wait(&mut looks);
        }
        let written = self.words.write_bytes(node, at + 1, bytes);
        self.give_back(node, at)?;
        written
    }

    fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        self.words.free(node)
    }
}
