//! Bytes of words as they are: a plain one-sided READ and WRITE.
//!
//! Nothing is checked and nobody waits for anybody: whoever wants more than that makes it out of these and of atomics, as the
//! layouts of objects do that NICs without SABRes need. What must always hold: words are read, and written, one after the other,
//! each whole; that is what such layouts rely on.

use live::memory::regions::Missing;
use live::networked::verbs::{Far, Opened};

use super::Words;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};

impl Words<u64> {
    /// Bytes that are read or written at a time, at most.
    pub const MOST_BYTES: usize = 1 << 20;

    /// Reads the bytes of words from word `at` on, as they are, whoever is writing them. Each word is whole; several may be of different
    /// times: each word is read behind the one in front of it. Everything that this handle has begun before at the same home is
    /// done before.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`]; [`Error::BadSize`] for more than [`Words::MOST_BYTES`]; [`Error::Unallocated`] if the words were freed. Where
    /// they are on another machine it may be zeroes instead.
    #[inline]
    pub fn read_bytes(&self, node: &mut NodeHandle, at: usize, into: &mut [u8]) -> Result<(), Error> {
        let Opened::Near(region) = &self.region else { return self.read_bytes_far(node, at, into) };
        node.permitted()?;
        if into.len() > Self::MOST_BYTES {
            return Err(too_long(into.len()));
        }
        if let Err(why) = region.try_read_bytes(self.offset(at), into) {
            return Err(self.not_there(why, at, into.len()));
        }
        if node.is_strict() { node.confirmed(()) } else { Ok(()) }
    }

    /// Writes the bytes of words from word `at` on, whoever is reading or writing them: each word behind the one in front of it.
    /// Everything that this handle has begun before at the same home is done before. When this returns, it is written.
    ///
    /// # Errors
    /// As for [`Words::read_bytes`]; but of words that were freed, and are on another machine, nobody may say so.
    #[inline]
    pub fn write_bytes(&self, node: &mut NodeHandle, at: usize, bytes: &[u8]) -> Result<(), Error> {
        let Opened::Near(region) = &self.region else { return self.write_bytes_far(node, at, bytes) };
        node.permitted()?;
        if bytes.len() > Self::MOST_BYTES {
            return Err(too_long(bytes.len()));
        }
        if let Err(why) = region.try_write_bytes(self.offset(at), bytes) {
            return Err(self.not_there(why, at, bytes.len()));
        }
        if node.is_strict() { node.confirmed(()) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn read_bytes_far(&self, node: &mut NodeHandle, at: usize, into: &mut [u8]) -> Result<(), Error> {
        let far = self.far(at, into.len())?;
        if node.is_attached() {
            return node.ask_to_read_words(far, at, into);
        }
        let read = node.sent(|joined, context, pipeline| {
            pipeline.send(joined, context, far.home());
            joined.read_bytes(context, far, (at, 0), into)
        });
        read.map_err(|why| failed(why, self.addr(), into.len() as u64))
    }

    #[cold]
    #[inline(never)]
    fn write_bytes_far(&self, node: &mut NodeHandle, at: usize, bytes: &[u8]) -> Result<(), Error> {
        let far = self.far(at, bytes.len())?;
        if node.is_attached() {
            return node.ask_to_write_words(far, at, bytes);
        }
        let written = node.sent(|joined, context, pipeline| {
            pipeline.send(joined, context, far.home());
            joined.write_bytes(context, far, (at, 0), bytes)
        });
        written.map_err(|why| failed(why, self.addr(), bytes.len() as u64))
    }

    /// The home's NIC must not be asked for what is not in the region: it would not talk to us again.
    fn far(&self, at: usize, len: usize) -> Result<&Far, Error> {
        let Opened::Far(far) = &self.region else { unreachable!("it is not near") };
        if len > Self::MOST_BYTES {
            return Err(too_long(len));
        }
        let inside = at.checked_add(len.div_ceil(8)).is_some_and(|end| end <= self.len());
        if inside { Ok(far) } else { Err(self.not_there(Missing::Beyond, at, len)) }
    }

    /// Where a word begins; beyond everything, if it cannot be counted.
    #[inline(always)]
    fn offset(&self, at: usize) -> u64 {
        // At the end of all, which is in no region.
        (at as u64).saturating_mul(8)
    }

    #[cold]
    #[inline(never)]
    fn not_there(&self, why: Missing, at: usize, len: usize) -> Error {
        self.missing(why, at.saturating_add(len.div_ceil(8)).saturating_sub(1))
    }
}

#[cold]
fn too_long(len: usize) -> Error {
    Error::BadSize { len: len as u64, most: Words::<u64>::MOST_BYTES as u64 }
}
