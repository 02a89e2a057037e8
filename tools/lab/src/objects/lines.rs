//! A version in every cache line, which readers compare and strip: FaRM's.
//!
//! ```text
//!   first line   version, odd while it is written 64 | data 384 | version 64
//!   the others   data 448 | version 64
//! ```
//! # Why no torn read is called whole
//! A READ reads words in order. So a reader has the object's version first: say v, even. Then whoever made it v has written all else
//! before, and every word that the reader gets is of v or newer. A writer of anything newer changes the version of *each* line before it changes any
//! data; and a reader gets a line's version behind its data. So if it gets a newer word, the version of that line is not v.
//!
//! FaRM's versions are of 16 bits, and its writers are the object's home, so they can change lines as they like. From afar, a
//! writer changes the versions of all lines by a batch of atomics, and then WRITEs the lines, on the same queue pair.
//!
//! A reader that loads lines itself could strip them where they are, without a copy. Then it is no one-sided read, and no NIC could do
//! it; that is measured by an example (`object_reads`).

use apps::objects::{Layout, Versioned};
use rackmem::{Error, GlobalAddr, NodeHandle, NodeId, Words};

use super::{opened, room, store, take};

/// Objects with a version in every line.
#[derive(Clone, Debug)]
pub struct Lines {
    words: Words<u64>,
    len: usize,
    lines: usize,
}

/// Words of a line.
const LINE: usize = 8;
/// Bytes of data in the first line, and in others.
const FIRST: usize = 48;
const OTHER: usize = 56;

const fn lines(len: usize) -> usize {
    1 + len.saturating_sub(FIRST).div_ceil(OTHER)
}

impl Lines {
    fn of(words: Words<u64>, len: usize) -> Self {
        Self { words, len, lines: lines(len) }
    }

    /// Writes an object that was taken in this version.
    fn put(
        &self,
        node: &mut NodeHandle,
        at: usize,
        version: u64,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        assert_eq!(bytes.len(), self.len, "all of an object is written");
        for line in 0..self.lines {
            self.words.store(node, at + line * LINE + LINE - 1, version + 1)?;
        }
        let next = (version + 2).to_le_bytes();
        let raw = room(raw, self.lines * LINE * 8);
        let (first, others) = bytes.split_at(self.len.min(FIRST));
        raw[8..8 + first.len()].copy_from_slice(first);
        let (in_lines, _) = raw.as_chunks_mut::<{ LINE * 8 }>();
        for (line, bytes) in in_lines[1..].iter_mut().zip(others.chunks(OTHER)) {
            line[..bytes.len()].copy_from_slice(bytes);
        }
        in_lines.iter_mut().for_each(|line| line[OTHER..].copy_from_slice(&next));
        self.words.write_bytes(node, at + 1, &raw[8..])?;
        store(&self.words, node, at, version + 2)
    }
}

/// Strips lines into bytes; their version, if they all have the same.
#[inline(always)]
fn strip(lines: &[[u8; LINE * 8]], into: &mut [u8]) -> Option<u64> {
    let (first, others) = lines.split_first()?;
    let version: &[u8; 8] = first.first_chunk()?;
    if !version[0].is_multiple_of(2) || first[OTHER..] != *version {
        return None;
    }
    let Some((in_first, into)) = into.split_at_mut_checked(FIRST) else {
        let len = into.len();
        into.copy_from_slice(&first[8..8 + len]);
        return Some(u64::from_le_bytes(*version));
    };
    in_first.copy_from_slice(&first[8..8 + FIRST]);
    // Whole lines with constant lengths, which become a few moves.
    let (whole, rest) = into.as_chunks_mut::<OTHER>();
    for (line, bytes) in others.iter().zip(whole.iter_mut()) {
        if line[OTHER..] != *version {
            return None;
        }
        bytes.copy_from_slice(&line[..OTHER]);
    }
    if let Some(line) = others.get(whole.len()) {
        if line[OTHER..] != *version {
            return None;
        }
        rest.copy_from_slice(&line[..rest.len()]);
    }
    Some(u64::from_le_bytes(*version))
}

impl Layout for Lines {
    const NAME: &'static str = "lines";

    fn create(node: &mut NodeHandle, count: usize, len: usize, home: NodeId) -> Result<Self, Error> {
        Ok(Self::of(node.words(count * lines(len) * LINE, home)?, len))
    }

    fn open(node: &mut NodeHandle, addr: GlobalAddr, len: usize) -> Result<Self, Error> {
        Ok(Self::of(opened(node.words_at(addr)?, lines(len) * LINE, len)?, len))
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
        assert_eq!(into.len(), self.len, "all of an object is read");
        let raw = room(raw, self.lines * LINE * 8);
        self.words.read_bytes(node, index * self.lines * LINE, raw)?;
        Ok(strip(raw.as_chunks().0, into))
    }

    fn write(
        &self,
        node: &mut NodeHandle,
        index: usize,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let at = index * self.lines * LINE;
        let version = take(&self.words, node, at, None)?.expect("no version was expected");
        self.put(node, at, version, bytes, raw)
    }

    fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        self.words.free(node)
    }
}

impl Versioned for Lines {
    const ID: u64 = 2;

    fn write_if(
        &self,
        node: &mut NodeHandle,
        index: usize,
        version: u64,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let at = index * self.lines * LINE;
        if take(&self.words, node, at, Some(version))?.is_none() {
            return Ok(false);
        }
        self.put(node, at, version, bytes, raw)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object of these bytes in lines of this version.
    fn in_lines(bytes: &[u8], version: u64) -> Vec<[u8; 64]> {
        let mut all = vec![[0; 64]; lines(bytes.len())];
        let (first, others) = bytes.split_at(bytes.len().min(FIRST));
        all[0][..8].copy_from_slice(&version.to_le_bytes());
        all[0][8..8 + first.len()].copy_from_slice(first);
        for (line, bytes) in all[1..].iter_mut().zip(others.chunks(OTHER)) {
            line[..bytes.len()].copy_from_slice(bytes);
        }
        all.iter_mut().for_each(|line| line[OTHER..].copy_from_slice(&version.to_le_bytes()));
        all
    }

    #[test]
    fn lines_of_one_version_are_stripped_whatever_the_length() {
        for len in [1, 47, 48, 49, 104, 105, 128, 1024] {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut into = vec![0; len];
            assert_eq!(strip(&in_lines(&bytes, 6), &mut into), Some(6));
            assert_eq!(into, bytes, "{len} bytes");
        }
    }

    #[test]
    fn any_line_of_another_version_is_found() {
        for len in [20, 105, 160, 1024] {
            let bytes = vec![7; len];
            for line in 0..lines(len) {
                let mut all = in_lines(&bytes, 6);
                all[line][OTHER..].copy_from_slice(&8_u64.to_le_bytes());
                assert_eq!(strip(&all, &mut vec![0; len]), None, "line {line} of {len} bytes");
            }
            assert_eq!(strip(&in_lines(&bytes, 7), &mut vec![0; len]), None, "odd: it is being written");
        }
    }
}
