//! Positions of words and slots: from 0 on.

use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;

/// A position. Those of Python that count from the end are refused: another process would have to guess which one is meant.
#[derive(Clone, Copy)]
pub(crate) struct Index(pub(crate) usize);

impl FromPyObject<'_, '_> for Index {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match given.extract::<usize>() {
            Ok(index) => Ok(Self(index)),
            // A number that is none of 64 bits.
            Err(why) if why.is_instance_of::<PyOverflowError>(given.py()) => {
                let index = given.repr()?;
                Err(PyIndexError::new_err(format!("{index} is no position here: they count from 0 on")))
            }
            Err(why) => Err(why),
        }
    }
}
