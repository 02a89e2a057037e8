//! Edge lists as SNAP publishes them: a line for an edge, two vertices between tabs or spaces, comments after `#`.
//!
//! Vertices are numbers below 2^32. There are as many as the largest one says; those that no line names have no edges.
//!
//! What must always hold: a line belongs to the part in which it begins, so parts have each line once. Lines are
//! bounded: a file that is no text costs no memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::{Edge, InputError, Wrong};

/// The longest line, with its end.
const LONGEST: u64 = 4096;
/// Lines between two looks at whether to stop.
const LINES: u64 = 1 << 16;
/// Between two looks at how far the threads are.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A file of edges, and what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeList {
    path: Arc<Path>,
    /// How many lines are edges.
    pub edges: u64,
    /// One more than the largest vertex.
    pub vertices: u64,
}

impl EdgeList {
    /// The file that [`EdgeList::scan`] has looked at, elsewhere.
    pub fn known(path: &Path, edges: u64, vertices: u64) -> Self {
        Self { path: path.into(), edges, vertices }
    }

    /// Looks at every line of a file, with so many threads. `progress` is told how many bytes of how many were looked
    /// at. None if `stop` was set.
    ///
    /// # Errors
    /// What is wrong with the file, and in which line.
    pub fn scan(
        path: &Path,
        threads: usize,
        stop: &AtomicBool,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Option<Self>, InputError> {
        let bytes = length(path)?;
        let looked_at = AtomicU64::new(0);
        let scan = |part| {
            let mut lines = Lines::open(path, part, threads)?;
            let (mut edges, mut vertices, mut told) = (0, 0, lines.at);
            while let Some(edge) = lines.next() {
                let (from, to) = edge?;
                (edges, vertices) = (edges + 1, vertices.max(u64::from(from.max(to)) + 1));
                if edges % LINES == 0 {
                    looked_at.fetch_add(lines.at - told, Ordering::Relaxed);
                    told = lines.at;
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
            Ok((edges, vertices))
        };
        let found = thread::scope(|scope| {
            let scan = &scan;
            let parts: Vec<_> = (0..threads).map(|part| scope.spawn(move || scan(part))).collect();
            while parts.iter().any(|part| !part.is_finished()) {
                progress(looked_at.load(Ordering::Relaxed), bytes);
                thread::sleep(LOOK_EVERY);
            }
            // The first line that is wrong, not the one that was found first.
            parts
                .into_iter()
                .map(|part| part.join().expect("a thread that reads lines panicked"))
                .collect::<Result<Vec<(u64, u64)>, InputError>>()
        })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let edges = found.iter().map(|(edges, _)| edges).sum();
        let vertices = found.iter().map(|(_, vertices)| *vertices).max().unwrap_or_default();
        if edges == 0 {
            return Err(InputError { path: path.into(), line: None, wrong: Wrong::Empty });
        }
        Ok(Some(Self { path: path.into(), edges, vertices }))
    }

    /// The edges of one part of the file.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn part(&self, part: usize, parts: usize) -> Result<Lines, InputError> {
        Lines::open(&self.path, part, parts)
    }
}

/// The edges of a part of a file.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the next line begins, and where the next part does.
    at: u64,
    end: u64,
    line: Vec<u8>,
}

fn failed(path: &Path, error: &io::Error) -> InputError {
    InputError { path: path.into(), line: None, wrong: Wrong::Unreadable(error.to_string()) }
}

fn length(path: &Path) -> Result<u64, InputError> {
    let about = std::fs::metadata(path).map_err(|error| failed(path, &error))?;
    if about.is_dir() {
        return Err(failed(path, &io::Error::from(io::ErrorKind::IsADirectory)));
    }
    Ok(about.len())
}

impl Lines {
    fn open(path: &Path, part: usize, parts: usize) -> Result<Self, InputError> {
        let bytes = length(path)?;
        let begin = |part: usize| (u128::from(bytes) * part as u128 / parts as u128) as u64;
        let (at, end) = (begin(part), begin(part + 1));
        let file = File::open(path).map_err(|error| failed(path, &error))?;
        let file = BufReader::with_capacity(1 << 16, file);
        let mut this = Self { path: path.into(), file, at, end, line: Vec::new() };
        if at > 0 {
            // The line in which the part begins belongs to the one before, unless it begins here.
            this.at = at - 1;
            this.file.seek(SeekFrom::Start(at - 1)).map_err(|error| failed(path, &error))?;
            while this.at < end && this.read_line()? && !this.line.ends_with(b"\n") {}
        }
        Ok(this)
    }

    /// Reads a line, or so much of it as a line may have. False at the end of the file.
    fn read_line(&mut self) -> Result<bool, InputError> {
        self.line.clear();
        let read = self.file.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| failed(&self.path, &error))?;
        self.at += read as u64;
        Ok(read > 0)
    }

    /// What is wrong with the line that was read last: its number is found by counting.
    fn wrong(&self, wrong: Wrong) -> InputError {
        let begin = self.at - self.line.len() as u64;
        let mut before = match File::open(&self.path) {
            Ok(file) => BufReader::new(file.take(begin)),
            Err(error) => return failed(&self.path, &error),
        };
        let mut lines = 1;
        loop {
            match before.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => {
                    lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
                    let len = bytes.len();
                    before.consume(len);
                }
                Err(error) => return failed(&self.path, &error),
            }
        }
        InputError { path: self.path.clone(), line: Some(lines), wrong }
    }
}

impl Iterator for Lines {
    type Item = Edge;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.end {
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            if self.line.len() as u64 == LONGEST && !self.line.ends_with(b"\n") {
                return Some(Err(self.wrong(Wrong::LongLine { most: LONGEST })));
            }
            match edge(&self.line) {
                Ok(Some(edge)) => return Some(Ok(edge)),
                Ok(None) => {}
                Err(wrong) => return Some(Err(self.wrong(wrong))),
            }
        }
        None
    }
}

/// The edge of a line; none if it is a comment, or blank.
fn edge(line: &[u8]) -> Result<Option<(u32, u32)>, Wrong> {
    let line = line.trim_ascii();
    if line.is_empty() || line[0] == b'#' {
        return Ok(None);
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (from, to) = (words.next().unwrap_or_default(), words.next());
    let (Some(to), None) = (to, words.next()) else {
        let count = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        return Err(Wrong::Words { count });
    };
    Ok(Some((vertex(from)?, vertex(to)?)))
}

fn vertex(word: &[u8]) -> Result<u32, Wrong> {
    let shown = || {
        let shown = String::from_utf8_lossy(&word[..word.len().min(40)]).escape_debug().to_string();
        if word.len() > 40 { format!("{shown}...") } else { shown }
    };
    if !word.iter().all(u8::is_ascii_digit) {
        return Err(Wrong::NoNumber { word: shown() });
    }
    let add = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    u32::try_from(word.iter().fold(0, add)).map_err(|_| Wrong::TooLarge { vertex: shown() })
}
