//! A client's history in a file.
//!
//! A process that is killed cannot tell what it did, but others may have seen it. So each change is in the file before
//! it is made, as one that has not returned; a killed process leaves it so. What was written to a file stays when its
//! writer is killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cli::clock::Moment;

const WORDS: usize = 6;
const BYTES: usize = WORDS * 8;

/// What a client did to a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Did {
    /// Saw this value.
    Read(u64),
    /// Made this the value.
    Wrote(u64),
    /// Saw the first, and made it the second.
    Changed(u64, u64),
    /// All that its node had written survives the node.
    Synced,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) did: Did,
    pub(super) invoke: Moment,
    /// None: it did not return.
    pub(super) ret: Option<Moment>,
}

impl Entry {
    fn encode(&self) -> [u8; BYTES] {
        let (kind, first, second) = match self.did {
            Did::Read(value) => (1, value, 0),
            Did::Wrote(value) => (2, value, 0),
            Did::Changed(old, new) => (3, old, new),
            Did::Synced => (4, 0, 0),
        };
        let ret = self.ret.map_or(0, Moment::nanos);
        let words = [kind, self.key, first, second, self.invoke.nanos(), ret];
        let mut bytes = [0; BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let word = |at: usize| u64::from_ne_bytes(bytes[at * 8..][..8].try_into().expect("8 bytes"));
        let did = match word(0) {
            1 => Did::Read(word(2)),
            2 => Did::Wrote(word(2)),
            3 => Did::Changed(word(2), word(3)),
            4 => Did::Synced,
            _ => return None,
        };
        let ret = (word(5) != 0).then(|| Moment::of_nanos(word(5)));
        Some(Self { key: word(1), did, invoke: Moment::of_nanos(word(4)), ret })
    }
}

/// The file of one client in one round.
pub(super) struct Log {
    file: File,
    entries: u64,
}

/// Where a client's history of a round is.
pub(super) fn path(dir: &Path, round: u64, client: u64) -> PathBuf {
    dir.join(format!("history-{round}-{client}"))
}

impl Log {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(path)?;
        Ok(Self { file, entries: 0 })
    }

    /// Notes a change that is about to be made.
    pub(super) fn intend(&self, entry: Entry) -> io::Result<()> {
        self.file.write_all_at(&entry.encode(), self.entries * BYTES as u64)
    }

    /// Notes what was done, in the place of what was intended.
    pub(super) fn done(&mut self, entry: Entry) -> io::Result<()> {
        self.intend(entry)?;
        self.entries += 1;
        Ok(())
    }

    /// What was intended may have been done.
    pub(super) const fn unknown(&mut self) {
        self.entries += 1;
    }
}

/// Reads a client's history. What a killed process had not written to its end is not there.
pub(super) fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let (whole, _) = bytes.as_chunks::<BYTES>();
    Ok(whole.iter().filter_map(Entry::decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_intended_and_not_done_is_read_as_such() {
        let dir = cli::processes::rendezvous::RuntimeDir::new().unwrap();
        let path = path(dir.path(), 3, 7);
        let mut log = Log::create(&path).unwrap();
        let entry = |did, ret| Entry { key: 5, did, invoke: Moment::of_nanos(10), ret };
        let at = Some(Moment::of_nanos(20));
        log.done(entry(Did::Read(1), at)).unwrap();
        log.intend(entry(Did::Wrote(2), None)).unwrap();
        log.done(entry(Did::Changed(1, 2), at)).unwrap();
        log.done(entry(Did::Synced, at)).unwrap();
        log.intend(entry(Did::Wrote(3), None)).unwrap();
        log.unknown();
        log.intend(entry(Did::Wrote(4), None)).unwrap();
        let expected = [
            entry(Did::Read(1), at),
            entry(Did::Changed(1, 2), at),
            entry(Did::Synced, at),
            entry(Did::Wrote(3), None),
            entry(Did::Wrote(4), None),
        ];
        assert_eq!(read(&path).unwrap(), expected);
    }
}
