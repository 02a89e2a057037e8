//! Coherent memory under a name: mapped, so that NumPy makes arrays of it, or by calls where nothing can be mapped.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use rackmem::{GlobalAddr, Mapping, PinnedRange};

use crate::calls::{Open, Shared};
use crate::errors::{MapError, Raised as _};

/// The memory of an array. As long as it is there, so is this process's node.
#[pyclass(module = "rackmem._rackmem", frozen, weakref)]
pub(crate) struct Memory {
    shared: Arc<Shared>,
    mapped: Option<Arc<Mapping>>,
    addr: GlobalAddr,
    len: usize,
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    rack_file: Option<PathBuf>,
    /// Dropped last.
    _open: Arc<Open>,
}

/// Memory that is kept here.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Pinned {
    range: Mutex<Option<PinnedRange<Arc<Mapping>>>>,
}

#[pymethods]
impl Pinned {
    /// Others may have it.
    fn end(&self, py: Python<'_>) {
        let range = self.range.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(range));
    }
}

impl Memory {
    pub(crate) fn new(
        shared: Arc<Shared>,
        open: Arc<Open>,
        (name, rack_file): (String, Option<PathBuf>),
        (addr, len): (GlobalAddr, usize),
        mapped: Option<Arc<Mapping>>,
    ) -> Self {
        Self { shared, mapped, addr, len, name, rack_file, _open: open }
    }

    fn mapping(&self) -> PyResult<&Mapping> {
        self.mapped.as_deref().ok_or_else(|| {
            MapError::new_err(
                "an attached process cannot map memory: use rack.bulk_array, which loads and stores",
            )
        })
    }

    fn check(&self, at: usize, len: usize) -> PyResult<()> {
        let fits = at.checked_add(len).is_some_and(|end| end <= self.len);
        let text = || format!("bytes {at}+{len} are not all in the {} of {:?}", self.len, self.name);
        if fits { Ok(()) } else { Err(PyIndexError::new_err(text())) }
    }
}

#[pymethods]
impl Memory {
    /// How many bytes.
    fn __len__(&self) -> usize {
        self.len
    }

    /// Where it begins, in every process that maps it.
    #[getter]
    fn address(&self) -> PyResult<usize> {
        Ok(self.mapping()?.as_ptr() as usize)
    }

    /// NumPy makes an array of its bytes, which keeps it.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("shape", (self.len,))?;
        interface.set_item("data", (self.address()?, false))?;
        Ok(interface)
    }

    /// Gets the blocks of a range of bytes, to be read or also written: raises what would end the process if they were accessed.
    fn touch(&self, py: Python<'_>, at: usize, len: usize, write: bool) -> PyResult<()> {
        self.check(at, len)?;
        let mapping = self.mapping()?;
        py.detach(|| mapping.touch(at..at + len, write)).map_err(|why| why.raised())
    }

    /// Gets the same together, as a hint that they will be used.
    fn prefetch(&self, py: Python<'_>, at: usize, len: usize, write: bool) -> PyResult<()> {
        self.check(at, len)?;
        let mapping = self.mapping()?;
        py.detach(|| mapping.prefetch(at..at + len, write)).map_err(|why| why.raised())
    }

    /// Gets the same, and keeps it until that ends: no other node writes it meanwhile.
    fn pin(&self, py: Python<'_>, at: usize, len: usize, write: bool) -> PyResult<Pinned> {
        self.check(at, len)?;
        self.mapping()?;
        let mapping = self.mapped.as_ref().expect("looked at just now");
        let range = py.detach(|| mapping.pin_shared(at..at + len, write)).map_err(|why| why.raised())?;
        Ok(Pinned { range: Mutex::new(Some(range)) })
    }

    /// A copy of bytes, by calls.
    fn load<'py>(&self, py: Python<'py>, at: usize, len: usize) -> PyResult<Bound<'py, PyByteArray>> {
        self.check(at, len)?;
        let addr = self.addr + at as u64;
        let mut bytes = vec![0; len];
        self.shared.call(py, |handle| handle.read(addr, &mut bytes))?.map_err(|why| why.raised())?;
        Ok(PyByteArray::new(py, &bytes))
    }

    /// Replaces bytes, by calls.
    fn store(&self, py: Python<'_>, at: usize, bytes: &Bound<'_, PyBytes>) -> PyResult<()> {
        let bytes = bytes.as_bytes();
        self.check(at, bytes.len())?;
        let addr = self.addr + at as u64;
        self.shared.call(py, |handle| handle.write(addr, bytes))?.map_err(|why| why.raised())
    }
}
