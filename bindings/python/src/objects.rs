//! Objects: bytes that are read whole, with a version, and without a lock.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rackmem::{ByteObjects, Retry};

use crate::calls::Shared;
use crate::errors::Raised as _;
use crate::index::Index;

/// Slots of so many bytes.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Objects {
    shared: Arc<Shared>,
    #[pyo3(get)]
    name: String,
    objects: ByteObjects,
}

impl Objects {
    pub(crate) fn new(shared: Arc<Shared>, name: String, objects: ByteObjects) -> Self {
        Self { shared, name, objects }
    }

    fn padded(&self, bytes: &[u8]) -> Vec<u8> {
        let mut padded = bytes.to_vec();
        // One that is too long stays so, and is refused.
        if padded.len() < self.objects.object_len() {
            padded.resize(self.objects.object_len(), 0);
        }
        padded
    }
}

#[pymethods]
impl Objects {
    /// How many slots.
    fn __len__(&self) -> usize {
        self.objects.count()
    }

    /// Bytes of each.
    #[getter]
    fn size(&self) -> usize {
        self.objects.object_len()
    }

    fn _read<'py>(&self, py: Python<'py>, slot: Index) -> PyResult<(u64, Bound<'py, PyBytes>)> {
        let mut bytes = vec![0; self.objects.object_len()];
        let version =
            self.shared.call(py, |handle| self.objects.read(handle, slot.0, &mut bytes, Retry::Forever))?;
        Ok((version.map_err(|why| why.raised())?, PyBytes::new(py, &bytes)))
    }

    /// Replaces a slot; what is shorter is padded with zeroes. Returns its version from then on.
    fn write(&self, py: Python<'_>, slot: Index, data: &[u8]) -> PyResult<u64> {
        let data = self.padded(data);
        let version = self.shared.call(py, |handle| self.objects.write(handle, slot.0, 0, &data))?;
        version.map_err(|why| why.raised())
    }

    /// The same if the slot still has this version; None if it has another one, or somebody is writing it.
    fn write_if(&self, py: Python<'_>, slot: Index, version: u64, data: &[u8]) -> PyResult<Option<u64>> {
        let data = self.padded(data);
        let version = self.shared.call(py, |handle| self.objects.write_if(handle, slot.0, version, &data))?;
        version.map_err(|why| why.raised())
    }
}
