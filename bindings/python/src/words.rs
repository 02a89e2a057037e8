//! Words: counters and flags that every node changes atomically, without a copy.

use std::sync::Arc;

use pyo3::prelude::*;
use rackmem::WordOperation;

use crate::calls::Shared;
use crate::errors::Raised as _;
use crate::index::Index;

/// Words of 64 bits, from 0 to 2**64 - 1.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Words {
    shared: Arc<Shared>,
    #[pyo3(get)]
    name: String,
    words: rackmem::Words<u64>,
}

impl Words {
    pub(crate) fn new(shared: Arc<Shared>, name: String, words: rackmem::Words<u64>) -> Self {
        Self { shared, name, words }
    }

    fn run(&self, py: Python<'_>, index: Index, operation: WordOperation<u64>) -> PyResult<u64> {
        let open = self.shared.open()?;
        // Within reach it takes less time than to let other threads run.
        if let Some(old) = open.with_handle(|handle| self.words.run_here(handle, index.0, operation)) {
            return Ok(old);
        }
        let done = py
            .detach(|| open.with_handle(|handle| self.words.post(handle, index.0, operation)?.wait(handle)));
        done.map_err(|why| why.raised())
    }
}

#[pymethods]
impl Words {
    /// How many there are.
    fn __len__(&self) -> usize {
        self.words.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: Index) -> PyResult<u64> {
        self.load(py, index)
    }

    fn __setitem__(&self, py: Python<'_>, index: Index, value: u64) -> PyResult<()> {
        self.store(py, index, value)
    }

    /// The word.
    fn load(&self, py: Python<'_>, index: Index) -> PyResult<u64> {
        self.run(py, index, WordOperation::Load)
    }

    /// Replaces the word.
    fn store(&self, py: Python<'_>, index: Index, value: u64) -> PyResult<()> {
        self.run(py, index, WordOperation::Swap(value)).map(drop)
    }

    /// Replaces the word; returns what it was.
    fn swap(&self, py: Python<'_>, index: Index, value: u64) -> PyResult<u64> {
        self.run(py, index, WordOperation::Swap(value))
    }

    /// Adds, modulo 2**64 (what is added may be negative); returns what the word was.
    fn fetch_add(&self, py: Python<'_>, index: Index, value: i128) -> PyResult<u64> {
        self.run(py, index, WordOperation::Add(value as u64))
    }

    /// Keeps the bits that both have; returns what the word was.
    fn fetch_and(&self, py: Python<'_>, index: Index, value: u64) -> PyResult<u64> {
        self.run(py, index, WordOperation::And(value))
    }

    /// Sets bits; returns what the word was.
    fn fetch_or(&self, py: Python<'_>, index: Index, value: u64) -> PyResult<u64> {
        self.run(py, index, WordOperation::Or(value))
    }

    /// Inverts bits; returns what the word was.
    fn fetch_xor(&self, py: Python<'_>, index: Index, value: u64) -> PyResult<u64> {
        self.run(py, index, WordOperation::Xor(value))
    }

    /// Stores `new` if the word is `expected`. Returns what it was: that, if it was stored.
    fn compare_exchange(&self, py: Python<'_>, index: Index, expected: u64, new: u64) -> PyResult<u64> {
        self.run(py, index, WordOperation::CompareExchange { expected, new })
    }
}
