//! A CRC-64 behind each object, which every reader computes again: Pilaf's.
//!
//! ```text
//!   version, odd while it is written 64 | data | zeroes up to a word | CRC-64 of all in front 64
//! ```
//! Writers exclude each other by the version, which Pilaf does by having one of them, the server. Data and CRC are written in no
//! particular order: of a mix of two versions the CRC is wrong, but once in 2^64 times.

use apps::objects::{Layout, Versioned};
use crc64fast::Digest;
use rackmem::{Error, GlobalAddr, NodeHandle, NodeId, Words};

use super::{opened, room, store, take};

/// Objects with a checksum.
#[derive(Clone, Debug)]
pub struct Checksum {
    words: Words<u64>,
    len: usize,
    stride: usize,
}

/// Words of an object: version, data, CRC.
const fn words(len: usize) -> usize {
    len.div_ceil(8) + 2
}

fn crc(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.write(bytes);
    digest.sum64()
}

impl Checksum {
    fn of(words_of_all: Words<u64>, len: usize) -> Self {
        Self { words: words_of_all, len, stride: words(len).next_multiple_of(8) }
    }

    /// Writes an object that was taken, and makes it this version.
    fn put(
        &self,
        node: &mut NodeHandle,
        at: usize,
        next: u64,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        assert_eq!(bytes.len(), self.len, "all of an object is written");
        let raw = room(raw, words(self.len) * 8);
        let (covered, sum) = raw.split_at_mut(raw.len() - 8);
        covered[..8].copy_from_slice(&next.to_le_bytes());
        covered[8..8 + bytes.len()].copy_from_slice(bytes);
        covered[8 + bytes.len()..].fill(0);
        sum.copy_from_slice(&crc(covered).to_le_bytes());
        self.words.write_bytes(node, at + 1, &raw[8..])?;
        store(&self.words, node, at, next)
    }
}

impl Layout for Checksum {
    const NAME: &'static str = "checksum";

    fn create(node: &mut NodeHandle, count: usize, len: usize, home: NodeId) -> Result<Self, Error> {
        let stride = words(len).next_multiple_of(8);
        let objects = Self::of(node.words(count * stride, home)?, len);
        // Zeroes with their sum.
        let (zeroes, mut raw) = (vec![0; len], Vec::new());
        for index in 0..count {
            objects.put(node, index * stride, 0, &zeroes, &mut raw)?;
        }
        Ok(objects)
    }

    fn open(node: &mut NodeHandle, addr: GlobalAddr, len: usize) -> Result<Self, Error> {
        let stride = words(len).next_multiple_of(8);
        Ok(Self::of(opened(node.words_at(addr)?, stride, len)?, len))
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
        raw: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        let raw = room(raw, words(self.len) * 8);
        self.words.read_bytes(node, index * self.stride, raw)?;
        let (covered, sum) = raw.split_at(raw.len() - 8);
        if crc(covered).to_le_bytes() != sum {
            return Ok(None);
        }
        into.copy_from_slice(&covered[8..8 + self.len]);
        Ok(Some(u64::from_le_bytes(covered[..8].try_into().expect("eight bytes"))))
    }

    fn write(
        &self,
        node: &mut NodeHandle,
        index: usize,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let at = index * self.stride;
        let version = take(&self.words, node, at, None)?.expect("no version was expected");
        self.put(node, at, version + 2, bytes, raw)
    }

    fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        self.words.free(node)
    }
}

impl Versioned for Checksum {
    const ID: u64 = 4;

    fn write_if(
        &self,
        node: &mut NodeHandle,
        index: usize,
        version: u64,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let at = index * self.stride;
        if take(&self.words, node, at, Some(version))?.is_none() {
            return Ok(false);
        }
        self.put(node, at, version + 2, bytes, raw)?;
        Ok(true)
    }
}
