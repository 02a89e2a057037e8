//! A dictionary of bytes, linearizable per key: in coherent memory, which nodes cache, or of objects, which stay where they are.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use apps::kv::{Error, KvStore};
use apps::objects::{ObjectStore, Sabres};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString};
use rackmem::{NodeHandle, block_on};

use crate::calls::Shared;
use crate::errors::Raised as _;

/// Keys and values of bytes: what they mean is Python's business.
#[pyclass(module = "rackmem._rackmem", frozen)]
pub(crate) struct Dict {
    shared: Arc<Shared>,
    #[pyo3(get)]
    name: String,
    store: Store,
}

/// Where entries are.
pub(crate) enum Store {
    /// In coherent memory.
    Cached(KvStore),
    /// In objects.
    InPlace(InPlace),
}

/// A store of objects, of which each call takes a handle of its own.
pub(crate) struct InPlace {
    first: ObjectStore<Sabres>,
    free: Mutex<Vec<ObjectStore<Sabres>>>,
}

impl InPlace {
    pub(crate) fn new(store: ObjectStore<Sabres>) -> Self {
        Self { first: store, free: Mutex::default() }
    }

    /// Bytes of the longest key and value.
    pub(crate) fn longest(&self) -> (usize, usize) {
        let config = self.first.config();
        (config.key_bytes, config.value_bytes)
    }

    fn with<R>(&self, work: impl FnOnce(&mut ObjectStore<Sabres>) -> R) -> R {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = free().pop();
        let mut store = taken.unwrap_or_else(|| self.first.clone());
        let done = work(&mut store);
        free().push(store);
        done
    }
}

impl Store {
    fn get(&self, handle: &mut NodeHandle, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        match self {
            Self::Cached(store) => block_on(store.get(handle, key, value)),
            Self::InPlace(store) => store.with(|store| store.get(handle, key, value)),
        }
    }

    fn put(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Cached(store) => block_on(store.put(handle, key, value)),
            Self::InPlace(store) => store.with(|store| store.put(handle, key, value)),
        }
    }

    fn insert(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Cached(store) => block_on(store.insert(handle, key, value)),
            Self::InPlace(store) => store.with(|store| store.insert(handle, key, value)),
        }
    }

    fn delete(&self, handle: &mut NodeHandle, key: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Cached(store) => block_on(store.delete(handle, key)),
            Self::InPlace(store) => store.with(|store| store.delete(handle, key)),
        }
    }

    fn replace(&self, handle: &mut NodeHandle, key: &[u8], old: &[u8], new: &[u8]) -> Result<bool, Error> {
        let store = match self {
            Self::Cached(store) => store,
            Self::InPlace(store) => return store.with(|store| store.replace(handle, key, (old, new))),
        };
        let (mut value, mut was) = (Vec::new(), false);
        let change = |value: &mut Vec<u8>| {
            was = value == old;
            if was {
                new.clone_into(value);
            }
        };
        Ok(block_on(store.read_modify_write(handle, key, &mut value, change))? && was)
    }

    /// The keys of a bucket, and which one is next.
    fn keys(&self, handle: &mut NodeHandle, bucket: u64) -> Result<(Vec<Vec<u8>>, Option<u64>), Error> {
        match self {
            Self::Cached(store) => block_on(store.keys(handle, bucket)),
            Self::InPlace(store) => store.with(|store| {
                let (entries, next) = store.entries(handle, bucket)?;
                Ok((entries.into_iter().map(|(key, _)| key).collect(), next))
            }),
        }
    }
}

impl Dict {
    pub(crate) fn new(shared: Arc<Shared>, name: String, store: Store) -> Self {
        Self { shared, name, store }
    }
}

/// Keys that are listed in one call, at least.
const SOME_KEYS: usize = 256;
/// What a lookup leaves allocated for the next one, at most.
const MOST_KEPT: usize = 1 << 16;

thread_local! {
    /// A key and a value of the last lookup: their memory is used again, and tells the store how long values are.
    static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> = RefCell::default();
}

/// Adds what Python has as bytes: the first one says what the others are.
fn add(value: &Bound<'_, PyAny>, packed: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        packed.push(b's');
        packed.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        packed.push(b'b');
        packed.extend_from_slice(bytes.as_bytes());
    } else if let Ok(number) = value.cast_exact::<PyInt>() {
        packed.push(b'i');
        if let Ok(number) = number.extract::<i64>() {
            let bits = u64::BITS - number.unsigned_abs().leading_zeros();
            // Those of 64 bits and no sign would need a ninth byte.
            packed.extend_from_slice(&i128::from(number).to_le_bytes()[..bits as usize / 8 + 1]);
        } else {
            let bits: usize = number.call_method0("bit_length")?.extract()?;
            let signed = PyDict::new(value.py());
            signed.set_item("signed", true)?;
            let bytes = number.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&signed))?;
            packed.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
        }
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "{kind} is neither bytes, str nor int: encode it, or, if it is a value, open the dictionary with pickle=True"
        )));
    }
    Ok(())
}

/// What Python has as bytes. TypeError if it is neither bytes, str nor int.
#[pyfunction]
pub(crate) fn pack<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut packed = Vec::new();
    add(value, &mut packed)?;
    Ok(PyBytes::new(value.py(), &packed))
}

/// The reverse; None for what is of no simple type.
#[pyfunction]
pub(crate) fn unpack<'py>(py: Python<'py>, packed: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(match packed {
        [b'b', bytes @ ..] => Some(PyBytes::new(py, bytes).into_any()),
        [b's', text @ ..] => std::str::from_utf8(text).ok().map(|text| PyString::new(py, text).into_any()),
        [b'i', rest @ .., last] if rest.len() < 8 => {
            // The last byte has the sign.
            let mut bytes = [if *last < 0x80 { 0 } else { 0xff }; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            bytes[rest.len()] = *last;
            Some(i64::from_le_bytes(bytes).into_pyobject(py)?.into_any())
        }
        [b'i', bytes @ ..] if !bytes.is_empty() => {
            let signed = PyDict::new(py);
            signed.set_item("signed", true)?;
            let number =
                py.get_type::<PyInt>().call_method("from_bytes", (bytes, "little"), Some(&signed))?;
            Some(number)
        }
        _ => None,
    })
}

#[pymethods]
impl Dict {
    /// The value of a key of Python's; None if it is not there. A tuple with its bytes, if they are not of a simple type.
    fn find<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (mut packed, mut value) = SCRATCH.take();
        packed.clear();
        add(key, &mut packed)?;
        // What is cached is not waited for.
        let found = match &self.store {
            Store::Cached(store) => self
                .shared
                .at_once(|handle| handle.at_hand(async |mem| store.get(mem, &packed, &mut value).await))?,
            Store::InPlace(_) => None,
        };
        let found = match found {
            Some(found) => found,
            None => self.shared.call(py, |handle| self.store.get(handle, &packed, &mut value))?,
        };
        let shown = match found.map_err(|why| why.raised())? {
            true => Some(match unpack(py, &value)? {
                Some(simple) => simple,
                None => (PyBytes::new(py, &value),).into_pyobject(py)?.into_any(),
            }),
            false => None,
        };
        if value.capacity() <= MOST_KEPT {
            SCRATCH.set((packed, value));
        }
        Ok(shown)
    }

    /// The value of a key, or None.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut value = Vec::new();
        let found = self.shared.call(py, |handle| self.store.get(handle, key, &mut value))?;
        Ok(found.map_err(|why| why.raised())?.then(|| PyBytes::new(py, &value)))
    }

    /// Some keys, of this bucket and those behind it, and which bucket is next; none after the last.
    fn keys<'py>(&self, py: Python<'py>, bucket: u64) -> PyResult<(Vec<Bound<'py, PyBytes>>, Option<u64>)> {
        let found = self.shared.call(py, |handle| {
            let (mut keys, mut next) = (Vec::new(), Some(bucket));
            while let Some(bucket) = next.filter(|_| keys.len() < SOME_KEYS) {
                let (more, behind) = self.store.keys(handle, bucket)?;
                keys.extend(more);
                next = behind;
            }
            Ok((keys, next))
        })?;
        let (keys, next) = found.map_err(|why: Error| why.raised())?;
        Ok((keys.iter().map(|key| PyBytes::new(py, key)).collect(), next))
    }

    /// Sets the value of a key. True if it was there.
    fn put(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| self.store.put(handle, key, value))?;
        done.map_err(|why| why.raised())
    }

    /// Sets the value of a key that is not there. False if it is.
    fn insert(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| self.store.insert(handle, key, value))?;
        done.map_err(|why| why.raised())
    }

    /// Deletes a key. False if it was not there.
    fn delete(&self, py: Python<'_>, key: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| self.store.delete(handle, key))?;
        done.map_err(|why| why.raised())
    }

    /// Sets the value of a key to `new` if it is `old`, byte for byte. False if it is another one, or the key is not there.
    fn replace(&self, py: Python<'_>, key: &[u8], old: &[u8], new: &[u8]) -> PyResult<bool> {
        let done = self.shared.call(py, |handle| self.store.replace(handle, key, old, new))?;
        done.map_err(|why| why.raised())
    }
}
