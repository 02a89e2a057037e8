//! A plain READ, and nothing else: what a reader gets may be of any number of versions.

use apps::objects::Layout;
use rackmem::{Error, GlobalAddr, NodeHandle, NodeId, Words};

use super::opened;

/// Objects that nobody checks.
#[derive(Clone, Debug)]
pub struct Plain {
    words: Words<u64>,
    stride: usize,
}

/// As the rack's own objects lie, which have one word more.
fn stride(len: usize) -> usize {
    match len.div_ceil(8) {
        words @ ..=8 => words.next_power_of_two(),
        words => words.next_multiple_of(8),
    }
}

impl Layout for Plain {
    const NAME: &'static str = "plain";

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
        self.words.read_bytes(node, index * self.stride, into)?;
        Ok(Some(0))
    }

    fn write(&self, node: &mut NodeHandle, index: usize, bytes: &[u8], _: &mut Vec<u8>) -> Result<(), Error> {
        self.words.write_bytes(node, index * self.stride, bytes)
    }

    fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        self.words.free(node)
    }
}
