//! Locks, and the data that come with the grant.
//!
//! Data are copied out when the lock is taken and copied in when it is released: what Python keeps of them longer is its own, and
//! a writer that raises has changed nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use rackmem::{GlobalAddr, HeldLock, LockMode};

use crate::calls::Shared;
use crate::errors::{Lost, Raised as _, failed};

/// Bytes in front of the data: who made it and whether it is poisoned, and its fencing number.
const HEADER: usize = 16;
const POISONED: u64 = 1;

/// A lock with data.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Locked {
    shared: Arc<Shared>,
    #[pyo3(get)]
    name: String,
    /// Without a share of the rack: it is opened for each call.
    at: (GlobalAddr, usize),
    making: u64,
}

/// A lock that is held.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Held {
    held: Mutex<Option<HeldLock>>,
    len: usize,
}

impl Locked {
    pub(crate) fn new(shared: Arc<Shared>, name: String, at: (GlobalAddr, usize), making: u64) -> Self {
        Self { shared, name, at, making }
    }
}

/// How long to wait, if not for ever.
pub(crate) struct Limit(pub(crate) Option<Duration>);

impl Limit {
    pub(crate) fn of(seconds: Option<f64>) -> PyResult<Self> {
        let limit = seconds.map(Duration::try_from_secs_f64).transpose();
        Ok(Self(limit.map_err(|why| PyValueError::new_err(format!("timeout: {why}")))?))
    }

    pub(crate) fn is_over(&self, name: &str) -> PyErr {
        PyTimeoutError::new_err(format!(
            "the lock {name:?} was not free for {:?}",
            self.0.unwrap_or_default()
        ))
    }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[index * 8..][..8].try_into().expect("8 bytes"))
}

#[pymethods]
impl Locked {
    /// Bytes of the data.
    fn __len__(&self) -> usize {
        self.at.1
    }

    /// Takes the lock; TimeoutError after so many seconds. Ctrl-C ends the wait.
    #[pyo3(signature = (write, timeout = None))]
    fn acquire(&self, py: Python<'_>, write: bool, timeout: Option<f64>) -> PyResult<Held> {
        let limit = Limit::of(timeout)?;
        let (addr, len) = self.at;
        let mode = if write { LockMode::Write } else { LockMode::Read };
        let held = self.shared.wait(py, limit.0, |handle, most| {
            let lock = handle.locked_bytes(addr, len.next_multiple_of(8));
            lock.and_then(|lock| lock.hold(handle, mode, most)).map_err(|why| why.raised())
        })?;
        let held = held.ok_or_else(|| limit.is_over(&self.name))?;
        let state = word(&held.bytes(), 0);
        if state >> 1 != self.making {
            return Err(Lost::new_err(format!("the lock {:?} was made anew: open it again", self.name)));
        }
        if state & POISONED != 0 {
            return Err(failed(format_args!("a program failed while it wrote the data of {:?}", self.name)));
        }
        Ok(Held { held: Mutex::new(Some(held)), len })
    }
}

#[pymethods]
impl Held {
    /// A copy of the data.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        Ok(PyByteArray::new(py, &self.bytes()?[HEADER..][..self.len]))
    }

    /// Grows with every write grant of this lock, and never falls: what is written elsewhere under it can be ordered by it.
    #[getter]
    fn fence(&self) -> PyResult<u64> {
        Ok(word(&self.bytes()?, 1))
    }

    /// Of a lock with copies: the node that died while one of its threads was inside to write, if nobody has written since.
    #[getter]
    fn writer_that_died(&self) -> PyResult<Option<u16>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref().ok_or_else(released)?;
        Ok(held.writer_that_died().map(|node| node.0))
    }

    /// Replaces the data, if there are some, and releases the lock.
    #[pyo3(signature = (data = None))]
    fn release(&self, data: Option<&[u8]>) -> PyResult<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut held = held.ok_or_else(released)?;
        let Some(data) = data else { return Ok(()) };
        let mut bytes = held.bytes();
        if data.len() == self.len {
            bytes[HEADER..][..self.len].copy_from_slice(data);
        }
        if data.len() == self.len && held.fill(&bytes) {
            return Ok(());
        }
        Err(failed("only a writer replaces the data, and all of them"))
    }
}

impl Held {
    fn bytes(&self) -> PyResult<Vec<u8>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(HeldLock::bytes).ok_or_else(released)
    }
}

pub(crate) fn released() -> PyErr {
    failed("the lock was released already")
}
