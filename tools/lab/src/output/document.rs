//! A figure's report with what it takes to get it again.
//!
//! What must always hold: reading what was written gives the same document.

use std::io;

use serde::{Deserialize, Serialize};

use crate::figure::Report;
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
    /// What everything takes.
    pub constants: Vec<Constant>,
    /// What was made of it.
    pub report: Report,
    /// What was measured.
    pub measured: Vec<(Point, Measured)>,
}

/// A constant of the model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// What it is.
    pub what: String,
    /// How much, with its unit.
    pub value: String,
    /// Where that comes from.
    pub source: String,
}

impl Constant {
    /// A constant.
    pub fn new(what: &str, value: impl ToString, source: &str) -> Self {
        Self { what: what.to_owned(), value: value.to_string(), source: source.to_owned() }
    }
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
