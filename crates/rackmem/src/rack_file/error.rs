//! What is wrong with a rack file: every mistake with its line, and what to write instead.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a rack file was refused: all mistakes that could be found in one go, from the top of the file down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RackFileError {
    path: PathBuf,
    mistakes: Vec<Mistake>,
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The line, counted from 1; none if the file as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong, and what to write instead.
    pub what: String,
}

impl RackFileError {
    /// A mistake about the file as a whole.
    pub(super) fn of_file(path: &Path, what: String) -> Self {
        Self { path: path.to_owned(), mistakes: vec![Mistake { line: None, what }] }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it: at least one mistake.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl fmt::Display for RackFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.path.display();
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match mistake.line {
                Some(line) => write!(f, "{file}:{line}: {}", mistake.what)?,
                None => write!(f, "{file}: {}", mistake.what)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for RackFileError {}

/// The mistakes found so far in one text.
pub(super) struct Mistakes<'t> {
    path: &'t Path,
    text: &'t str,
    /// With the byte of the text that each is about.
    found: Vec<(usize, String)>,
}

impl<'t> Mistakes<'t> {
    pub(super) fn new(path: &'t Path, text: &'t str) -> Self {
        Self { path, text, found: Vec::new() }
    }

    /// Something is wrong at this byte of the text.
    pub(super) fn add(&mut self, at: usize, what: impl fmt::Display) {
        self.found.push((at, what.to_string()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// File and line of this byte of the text.
    pub(super) fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path.display(), self.line(at))
    }

    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The error, if there is a mistake.
    pub(super) fn into_result(mut self) -> Result<(), RackFileError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|(at, _)| *at);
        let found = std::mem::take(&mut self.found);
        let lines = found.into_iter().map(|(at, what)| Mistake { line: Some(self.line(at)), what });
        Err(RackFileError { path: self.path.to_owned(), mistakes: lines.collect() })
    }
}
