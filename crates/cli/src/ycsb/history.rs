//! `--history`: every operation of a run as one JSON object a line, for the linearizability checker.
//!
//! ```text
//! {"client":3,"op":"read","key":"user42","value":"9f86d081884c7d65","invoke":1200,"return":2050}
//! ```
//! - `client`: one sequential client (a thread of a node).
//! - `op`: `read`, `insert`, `update` or `rmw`. The initial load is in it, as inserts. An `rmw` that found no
//!   record observed its absence and is written as a `read`.
//! - `value`: a digest of the whole record, FNV-1a of 64 bits as 16 hex digits: what was read, or the record as
//!   it was after the write; null where the key was absent. An `rmw` has what it read in `value` and what it
//!   wrote in `new`.
//! - `invoke` and `return`: nanoseconds of one clock for all clients. `return` is null if the operation
//!   failed, so that it may or may not have happened.
//!
//! An update writes one field, and then nobody could say which record it left behind. With `--history` it
//! therefore goes through the store's atomic read-modify-write, which overwrites the same field and also copies
//! the record out inside the atomic step. (An update of all fields needs no such thing.) That is more work than
//! an update without `--history`: runs with it are for checking, not for measuring.
//!
//! Clients keep their lines in a buffer each and append it to the file when it is full: memory stays bounded,
//! and the lines are in order per client only.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Serialize, Serializer};

use super::keys::fnv_1a;
use super::store::StoreError;
use crate::clock::Moment;

/// A client's lines are written out when there are this many bytes of them.
const BUFFER_BYTES: usize = 1 << 16;

/// What stands for a record in a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Of a whole record.
    pub(crate) fn of(record: &[u8]) -> Self {
        Self(fnv_1a(record))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an operation did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Did {
    /// Read this, or that there is no record.
    Read(Option<Digest>),
    /// Added or replaced the record.
    Insert(Digest),
    /// Left this record behind, or found none.
    Update(Option<Digest>),
    /// Read one and left the other behind.
    ReadModifyWrite { read: Digest, new: Digest },
}

#[derive(Serialize)]
struct Line<'a> {
    client: u64,
    op: &'static str,
    key: &'a str,
    value: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Digest>,
    invoke: u64,
    #[serde(rename = "return")]
    returned: Option<u64>,
}

/// The history of a run, open for writing.
pub struct History {
    lines: Box<dyn Lines>,
    start: Moment,
}

/// Where the lines of a history go.
trait Lines: Send + Sync {
    /// Whole lines, of one client.
    fn append(&self, lines: &[u8]) -> Result<(), StoreError>;
}

/// Into a file.
struct LinesOfFile {
    path: PathBuf,
    file: Mutex<File>,
}

/// To another process, which writes the file.
struct LinesTold<F>(F);

impl History {
    /// Creates the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| {
            format!(
                "cannot create history file `{}`: {error}\n  \
                 --history takes the path of a file to write, in a folder that exists and can be written to",
                path.display()
            )
        })?;
        let lines = LinesOfFile { path: path.to_owned(), file: Mutex::new(file) };
        Ok(Self { lines: Box::new(lines), start: Moment::now() })
    }

    /// A part of a history that began then, and whose file another process writes.
    pub(crate) fn told(start: Moment, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { lines: Box::new(LinesTold(tell)), start }
    }

    /// When it began.
    pub(crate) fn start(&self) -> Moment {
        self.start
    }

    /// The part of it that one client writes.
    pub(crate) fn recorder(&self, client: u64) -> Recorder<'_> {
        Recorder { history: self, client, lines: Vec::with_capacity(BUFFER_BYTES + 1024) }
    }

    /// Adds whole lines.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<(), StoreError> {
        self.lines.append(lines)
    }
}

impl Lines for LinesOfFile {
    fn append(&self, lines: &[u8]) -> Result<(), StoreError> {
        let mut file = self.file.lock().expect("nothing panics while it holds this lock");
        file.write_all(lines).map_err(|error| {
            StoreError(format!(
                "cannot write history file `{}`: {error}; a line is about 150 bytes for each record and operation: \
                 make room, choose another file, or run with fewer --records and --operations",
                self.path.display()
            ))
        })
    }
}

impl<F: Fn(&str) + Send + Sync> Lines for LinesTold<F> {
    fn append(&self, lines: &[u8]) -> Result<(), StoreError> {
        if !lines.is_empty() {
            (self.0)(str::from_utf8(lines).expect("lines are JSON"));
        }
        Ok(())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("start", &self.start).finish_non_exhaustive()
    }
}

/// Records the operations of one client.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    history: &'a History,
    client: u64,
    lines: Vec<u8>,
}

impl Recorder<'_> {
    /// Records an operation; one that failed has not returned.
    pub(crate) fn record(
        &mut self,
        key: &[u8],
        did: Did,
        invoke: Moment,
        returned: Option<Moment>,
    ) -> Result<(), StoreError> {
        let (op, value, new) = match did {
            Did::Read(value) => ("read", value, None),
            Did::Insert(value) => ("insert", Some(value), None),
            Did::Update(value) => ("update", value, None),
            Did::ReadModifyWrite { read, new } => ("rmw", Some(read), Some(new)),
        };
        let since_start =
            |at: Moment| u64::try_from((at - self.history.start).as_nanos()).unwrap_or(u64::MAX);
        let line = Line {
            client: self.client,
            op,
            key: str::from_utf8(key).expect("key names are ASCII"),
            value,
            new,
            invoke: since_start(invoke),
            returned: returned.map(since_start),
        };
        serde_json::to_writer(&mut self.lines, &line).expect("writing plain values to memory cannot fail");
        self.lines.push(b'\n');
        if self.lines.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let written = self.history.append(&self.lines);
        self.lines.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// A file of this test's own.
    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("rackmem-history-{}-{name}", std::process::id()))
    }

    #[test]
    fn each_operation_is_one_line_with_the_fields_that_the_checker_reads() {
        let path = path("lines");
        let history = History::create(&path).unwrap();
        let mut recorder = history.recorder(3);
        let at = |nanos| history.start + Duration::from_nanos(nanos);
        let (old, new) = (Digest(0xab), Digest(u64::MAX));
        recorder.record(b"user1", Did::Insert(old), at(1), Some(at(2))).unwrap();
        recorder.record(b"user1", Did::Read(None), at(3), Some(at(4))).unwrap();
        recorder.record(b"user1", Did::Update(Some(new)), at(5), None).unwrap();
        recorder.record(b"user1", Did::ReadModifyWrite { read: old, new }, at(7), Some(at(8))).unwrap();
        recorder.flush().unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            concat!(
                r#"{"client":3,"op":"insert","key":"user1","value":"00000000000000ab","invoke":1,"return":2}"#,
                "\n",
                r#"{"client":3,"op":"read","key":"user1","value":null,"invoke":3,"return":4}"#,
                "\n",
                r#"{"client":3,"op":"update","key":"user1","value":"ffffffffffffffff","invoke":5,"return":null}"#,
                "\n",
                r#"{"client":3,"op":"rmw","key":"user1","value":"00000000000000ab","new":"ffffffffffffffff","invoke":7,"return":8}"#,
                "\n",
            )
        );
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn buffers_stay_bounded_and_lines_of_several_clients_stay_whole() {
        let path = path("clients");
        let history = History::create(&path).unwrap();
        std::thread::scope(|scope| {
            for client in 0..4 {
                let mut recorder = history.recorder(client);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let now = Moment::now();
                        recorder.record(b"user1", Did::Read(Some(Digest(1))), now, Some(now)).unwrap();
                        assert!(recorder.lines.len() < BUFFER_BYTES);
                    }
                    recorder.flush().unwrap();
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 8000);
        assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = History::create(Path::new("/nonexistent/folder/history")).unwrap_err();
        assert!(error.contains("/nonexistent/folder/history") && error.contains("--history"), "{error}");
    }

    #[test]
    fn a_full_disk_is_reported_by_whoever_writes() {
        // The device that is always full; where there is none, there is nothing to test with.
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let history = History::create(full).unwrap();
        let mut recorder = history.recorder(0);
        let now = Moment::now();
        recorder.record(b"user1", Did::Read(None), now, Some(now)).unwrap();
        let error = recorder.flush().unwrap_err();
        assert!(error.0.contains("/dev/full") && error.0.contains("make room"), "{error:?}");
    }
}
