//! A message sequence: what passed between the places of a rack, and when.
//!
//! What must always hold: steps stand in the order in which they began, and every column that a step names exists.

use wire::Nanos;

/// A message sequence chart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The places, from left to right.
    pub columns: Vec<String>,
    /// What happened.
    pub steps: Vec<Step>,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it began.
    pub at: Nanos,
    /// What it was.
    pub what: What,
}

/// A message, or something at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A message.
    Message {
        /// The column it left.
        from: usize,
        /// The column it went to.
        to: usize,
        /// When its receiver had handled it; `None`: it was lost.
        handled: Option<Nanos>,
        /// What it said.
        label: String,
        /// It carried a block.
        block: bool,
    },
    /// Something happened at a place.
    Note {
        /// The column.
        column: usize,
        /// What.
        text: String,
    },
}

impl Step {
    /// When nothing of it is left: for a lost message, when it was sent.
    pub fn end(&self) -> Nanos {
        match self.what {
            What::Message { handled: Some(handled), .. } => handled,
            _ => self.at,
        }
    }
}

impl Chart {
    /// When the last thing in it was over.
    pub fn end(&self) -> Nanos {
        self.steps.iter().map(Step::end).max().unwrap_or(Nanos::ZERO)
    }
}
