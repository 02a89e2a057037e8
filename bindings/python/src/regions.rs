//! A lock over several regions of bytes, which come, go and grow.
//!
//! As with records (`locked.rs`), data are copied out when the lock is taken and copied in when it is released.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use rackmem::{HeldRegions, LockMode, LockedRegions};

use crate::calls::Shared;
use crate::errors::Raised as _;
use crate::locked::{Limit, released};

/// A lock over regions.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Regions {
    shared: Arc<Shared>,
    #[pyo3(get)]
    name: String,
    lock: LockedRegions,
}

/// It is held.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct RegionsHeld(Mutex<Option<HeldRegions>>);

impl Regions {
    pub(crate) fn new(shared: Arc<Shared>, name: String, lock: LockedRegions) -> Self {
        Self { shared, name, lock }
    }
}

#[pymethods]
impl Regions {
    /// Bytes that all regions may take, and 16 for each.
    #[getter]
    fn room(&self) -> usize {
        self.lock.room()
    }

    /// Takes the lock; TimeoutError after so many seconds. Ctrl-C ends the wait.
    #[pyo3(signature = (write, timeout = None))]
    fn acquire(&self, py: Python<'_>, write: bool, timeout: Option<f64>) -> PyResult<RegionsHeld> {
        let limit = Limit::of(timeout)?;
        let mode = if write { LockMode::Write } else { LockMode::Read };
        let held = self.shared.wait(py, limit.0, |handle, most| {
            self.lock.hold(handle, mode, most).map_err(|why| why.raised())
        })?;
        Ok(RegionsHeld(Mutex::new(Some(held.ok_or_else(|| limit.is_over(&self.name))?))))
    }
}

#[pymethods]
impl RegionsHeld {
    /// Copies of the regions.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let regions = held.as_ref().ok_or_else(released)?.regions().map_err(|why| why.raised())?;
        Ok(regions.iter().map(|region| PyByteArray::new(py, region)).collect())
    }

    /// Grows with every write grant of this lock, and never falls.
    #[getter]
    fn fence(&self) -> PyResult<u64> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(held.as_ref().ok_or_else(released)?.fence())
    }

    /// Of a lock with copies: the node that died while one of its threads was inside to write, if nobody has written since.
    #[getter]
    fn writer_that_died(&self) -> PyResult<Option<u16>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(held.as_ref().ok_or_else(released)?.writer_that_died().map(|node| node.0))
    }

    /// Replaces the regions, if there are some, and releases the lock. ValueError if they do not fit: they are as they were.
    #[pyo3(signature = (data = None))]
    fn release(&self, data: Option<Vec<Vec<u8>>>) -> PyResult<()> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut held = held.ok_or_else(released)?;
        let Some(data) = data else { return Ok(()) };
        held.replace(&data).map_err(|why| why.raised())
    }
}
