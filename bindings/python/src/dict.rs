//! A dictionary of bytes in coherent memory, linearizable per key.

use std::sync::Arc;

use apps::kv::KvStore;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rackmem::block_on;

use crate::calls::Shared;
use crate::errors::Raised as _;

/// Keys and values of bytes: what they mean is Python's business.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Dict {
    shared: Arc<Shared>,
    #[pyo3(get)]
    name: String,
    store: KvStore,
}

impl Dict {
    pub(crate) fn new(shared: Arc<Shared>, name: String, store: KvStore) -> Self {
        Self { shared, name, store }
    }
}

#[pymethods]
impl Dict {
    /// The value of a key, or None.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut value = Vec::new();
        let found = self.shared.call(py, |handle| block_on(self.store.get(handle, key, &mut value)))?;
        Ok(found.map_err(|why| why.raised())?.then(|| PyBytes::new(py, &value)))
    }

    /// Sets the value of a key. True if it was there.
    fn put(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| block_on(self.store.put(handle, key, value)))?;
        done.map_err(|why| why.raised())
    }

    /// Sets the value of a key that is not there. False if it is.
    fn insert(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| block_on(self.store.insert(handle, key, value)))?;
        done.map_err(|why| why.raised())
    }

    /// Deletes a key. False if it was not there.
    fn delete(&self, py: Python<'_>, key: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| block_on(self.store.delete(handle, key)))?;
        done.map_err(|why| why.raised())
    }

    /// Sets the value of a key to `new` if it is `old`, byte for byte. False if it is another one, or the key is not there.
    fn replace(&self, py: Python<'_>, key: &[u8], old: &[u8], new: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| {
            let (mut value, mut was) = (Vec::new(), false);
            let change = |value: &mut Vec<u8>| {
                was = value == old;
                if was {
                    new.clone_into(value);
                }
            };
            block_on(self.store.read_modify_write(handle, key, &mut value, change)).map(|there| (there, was))
        })?;
        let (there, was) = done.map_err(|why| why.raised())?;
        Ok(there && was)
    }
}
