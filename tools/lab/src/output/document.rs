//! A figure's report with what it takes to get it again.
//!
//! What must always hold: reading what was written gives the same document.

use std::io;

use serde::{Deserialize, Serialize};

use crate::figure::FigureReport;
use crate::figure::input::Declared;
use crate::figure::measured::Measured;
use crate::figure::point::Point;
use crate::sizes::Sizes;

/// A figure's results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Document {
    /// The seed of the run.
    pub seed: u64,
    /// The sizes of the run.
    pub sizes: Sizes,
    /// What it was given.
    pub inputs: Vec<Declared>,
    /// What was made of it.
    pub report: FigureReport,
    /// What was measured.
    pub measured: Vec<(Point, Measured)>,
}

impl Document {
    /// As text.
    ///
    /// # Errors
    /// If a number in it is none.
    pub fn to_json(&self) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// From text.
    ///
    /// # Errors
    /// If it is no document.
    pub fn from_json(text: &str) -> io::Result<Self> {
        Ok(serde_json::from_str(text)?)
    }
}
