//! A snapshot as bytes.
//!
//! ```text
//!   file      "rackmsnp" | version 4 | record: about | record: content ... | record: end
//!   record    kind 4 | length of the payload 4 | payload | checksum 8
//!   about     see `about.rs`
//!   content   bytes of the content, which goes on in the next one
//!   end       bytes of content 8 | entries 8 | moment 1
//! ```
//!
//! Numbers are little-endian; what is in the content is as it lay in memory. A checksum (CRC-64 of ECMA-182, reflected) is that of all
//! before it in the file but other checksums. What must always hold: no file that is cut short, changed in one place, put together of parts
//! of several ones, or longer than it was written is read to its end without an error.

use std::io::{BufReader, ErrorKind, Read, Write};

use crc64fast::Digest;

use super::about::{About, Moment};
use super::error::Error;

/// With what every snapshot begins, of whatever version.
pub const MAGIC: [u8; 8] = *b"rackmsnp";
/// The version of files that this program writes, and reads.
pub(super) const VERSION: u32 = 1;

const ABOUT: u32 = 1;
const CONTENT: u32 = 2;
const END: u32 = 3;

/// Bytes of content in a record.
pub(super) const PIECE: usize = 256 << 10;
const END_BYTES: usize = 17;

/// What the last record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) moment: Moment,
}

/// Writes a snapshot.
pub(super) struct Writer<W> {
    out: W,
    digest: Digest,
    piece: Vec<u8>,
    bytes: u64,
    entries: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn begin(out: W, about: &About) -> Result<Self, Error> {
        let piece = Vec::with_capacity(PIECE);
        let mut this = Self { out, digest: Digest::new(), piece, bytes: 0, entries: 0 };
        this.put(&MAGIC)?;
        this.put(&VERSION.to_le_bytes())?;
        this.record(ABOUT, &about.to_bytes())?;
        Ok(this)
    }

    /// More of the content.
    pub(super) fn content(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PIECE {
                self.end_piece()?;
            }
        }
        Ok(())
    }

    /// The same, as one of many.
    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.entries += 1;
        for len in [key.len(), value.len()] {
            self.content(&u32::try_from(len).expect("no key or value is so long").to_le_bytes())?;
        }
        self.content(key)?;
        self.content(value)
    }

    /// That was all.
    pub(super) fn end(mut self, moment: Moment) -> Result<End, Error> {
        if !self.piece.is_empty() {
            self.end_piece()?;
        }
        let end = End { bytes: self.bytes, entries: self.entries, moment };
        let mut payload = [end.bytes, end.entries].map(u64::to_le_bytes).concat();
        payload.push(moment as u8);
        self.record(END, &payload)?;
        self.out.flush().map_err(Error::Write)?;
        Ok(end)
    }

    fn end_piece(&mut self) -> Result<(), Error> {
        let piece = std::mem::take(&mut self.piece);
        self.record(CONTENT, &piece)?;
        self.piece = piece;
        self.piece.clear();
        Ok(())
    }

    fn record(&mut self, kind: u32, payload: &[u8]) -> Result<(), Error> {
        self.put(&kind.to_le_bytes())?;
        self.put(&u32::try_from(payload.len()).expect("records are short").to_le_bytes())?;
        self.put(payload)?;
        // The checksum itself is in no other one: behind it, every checksum would be the same number.
        self.out.write_all(&self.digest.sum64().to_le_bytes()).map_err(Error::Write)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.digest.write(bytes);
        self.out.write_all(bytes).map_err(Error::Write)
    }
}

/// Reads a snapshot, and checks it on the way.
pub(super) struct Reader<R: Read> {
    input: BufReader<R>,
    digest: Digest,
    piece: Vec<u8>,
    /// What of the piece is read.
    at: usize,
    /// Bytes of the file before this.
    offset: u64,
    /// Bytes of content before this piece's end.
    bytes: u64,
    end: Option<End>,
}

impl<R: Read> Reader<R> {
    pub(super) fn begin(input: R) -> Result<(Self, About), Error> {
        let (input, piece) = (BufReader::with_capacity(PIECE, input), Vec::new());
        let mut this = Self { input, digest: Digest::new(), piece, at: 0, offset: 0, bytes: 0, end: None };
        let mut magic = [0; MAGIC.len()];
        let there = this.try_fill(&mut magic)?;
        if magic[..there] != MAGIC[..there] || there == 0 {
            return Err(Error::NotASnapshot);
        }
        this.whole(there, magic.len())?;
        let version = u32::from_le_bytes(this.number()?);
        if version != VERSION {
            return Err(Error::Version { version });
        }
        if this.record()? != ABOUT {
            return Err(Error::Malformed { what: "it does not begin with what it is of" });
        }
        let about = About::parse(&this.piece)?;
        this.piece.clear();
        Ok((this, about))
    }

    /// What follows in the content, as much as there is at once. Empty: that was all.
    pub(super) fn some(&mut self, most: u64) -> Result<&[u8], Error> {
        while self.at == self.piece.len() && self.end.is_none() {
            self.next_record()?;
        }
        let from = self.at;
        let left = self.piece.len() - from;
        self.at += usize::try_from(most).unwrap_or(left).min(left);
        Ok(&self.piece[from..self.at])
    }

    /// The next bytes of the content. `what` is said where it has no more.
    pub(super) fn read(&mut self, into: &mut [u8], what: &'static str) -> Result<(), Error> {
        let mut done = 0;
        while done < into.len() {
            let some = self.some((into.len() - done) as u64)?;
            if some.is_empty() {
                return Err(Error::Malformed { what });
            }
            into[done..][..some.len()].copy_from_slice(some);
            done += some.len();
        }
        Ok(())
    }

    /// Passes over the next bytes.
    fn skip(&mut self, mut bytes: u64, what: &'static str) -> Result<(), Error> {
        while bytes > 0 {
            match self.some(bytes)?.len() {
                0 => return Err(Error::Malformed { what }),
                some => bytes -= some as u64,
            }
        }
        Ok(())
    }

    /// The lengths of the next entry's key and value; None behind the last one.
    fn lengths(&mut self) -> Result<Option<[usize; 2]>, Error> {
        if self.is_at_end()? {
            return Ok(None);
        }
        let mut lengths = [[0; 4]; 2];
        self.read(lengths.as_flattened_mut(), ENTRY)?;
        Ok(Some(lengths.map(|len| u32::from_le_bytes(len) as usize)))
    }

    /// The next entry.
    pub(super) fn entry(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Error> {
        let Some([of_key, of_value]) = self.lengths()? else { return Ok(false) };
        key.resize(of_key, 0);
        value.resize(of_value, 0);
        self.read(key, ENTRY)?;
        self.read(value, ENTRY)?;
        Ok(true)
    }

    /// Passes over the next entry: the lengths of its key and value.
    pub(super) fn skip_entry(&mut self) -> Result<Option<[usize; 2]>, Error> {
        let Some(lengths) = self.lengths()? else { return Ok(None) };
        self.skip(lengths.iter().map(|len| *len as u64).sum(), ENTRY)?;
        Ok(Some(lengths))
    }

    /// Passes over the rest, and says what the last record did.
    pub(super) fn finish(&mut self) -> Result<End, Error> {
        while !self.some(u64::MAX)?.is_empty() {}
        Ok(self.end.expect("there is no more"))
    }

    fn is_at_end(&mut self) -> Result<bool, Error> {
        Ok(self.some(0)?.is_empty() && self.at == self.piece.len())
    }

    fn next_record(&mut self) -> Result<(), Error> {
        let kind = self.record()?;
        self.at = 0;
        match kind {
            CONTENT => self.bytes += self.piece.len() as u64,
            END => {
                let end = self.parsed_end().ok_or(Error::Malformed { what: "its end is none" })?;
                if end.bytes != self.bytes {
                    return Err(Error::Malformed { what: "its end counts other bytes than there are" });
                }
                (self.end, self.at) = (Some(end), 0);
                self.piece.clear();
                let at = self.offset;
                if self.try_fill(&mut [0])? > 0 {
                    return Err(Error::Damaged { at });
                }
            }
            _ => return Err(Error::Malformed { what: "it has a part of no known kind" }),
        }
        Ok(())
    }

    fn parsed_end(&self) -> Option<End> {
        let (words, moment) = self.piece.as_chunks::<8>();
        let [bytes, entries] = words else { return None };
        let [moment] = moment else { return None };
        let [bytes, entries] = [bytes, entries].map(|word| u64::from_le_bytes(*word));
        (self.piece.len() == END_BYTES).then_some(End { bytes, entries, moment: Moment::of(*moment)? })
    }

    /// Reads a record: its kind. The payload is in `piece`.
    fn record(&mut self) -> Result<u32, Error> {
        let kind = u32::from_le_bytes(self.number()?);
        let len = u32::from_le_bytes(self.number()?) as usize;
        // Nothing is allocated for what no snapshot has.
        if len > PIECE {
            return Err(Error::Damaged { at: self.offset });
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(len, 0);
        self.fill(&mut piece)?;
        self.piece = piece;
        let sum = self.digest.sum64();
        let (mut written, before) = ([0; 8], self.digest.clone());
        self.fill(&mut written)?;
        self.digest = before;
        let at = self.offset;
        if u64::from_le_bytes(written) == sum { Ok(kind) } else { Err(Error::Damaged { at }) }
    }

    fn number(&mut self) -> Result<[u8; 4], Error> {
        let mut number = [0; 4];
        self.fill(&mut number)?;
        Ok(number)
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Error> {
        let there = self.try_fill(into)?;
        self.whole(there, into.len())
    }

    fn whole(&self, there: usize, len: usize) -> Result<(), Error> {
        if there == len { Ok(()) } else { Err(Error::CutShort { len: self.offset }) }
    }

    /// Reads as much of it as there is.
    fn try_fill(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < into.len() {
            match self.input.read(&mut into[done..]) {
                Ok(0) => break,
                Ok(some) => done += some,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(Error::Read(why)),
            }
        }
        self.digest.write(&into[..done]);
        self.offset += done as u64;
        Ok(done)
    }
}

const ENTRY: &str = "an entry goes on behind its end";
