//! Values with names: bytes in coherent memory that every node may cache, read and written whole.
#![allow(unsafe_code)]

use std::ffi::c_void;

use rackmem::ByteValue;

use crate::handles::{Align64, Slot, Turn, ask, close, kind, with};
use crate::pointer::{To, bytes, bytes_mut};
use crate::status::{Failure, RackmemStatus};

/// A value with a name. It belongs to the `rackmem_thread` that it was opened through; other threads open it by its name.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemValue {
    /// 0: null.
    pub id: u64,
}

/// An open value.
pub(crate) struct ValueHere(ByteValue);

kind!(ValueHere, 9, Align64, 1 << 16);

pub(crate) const NO_VALUE: RackmemValue = RackmemValue { id: 0 };

pub(crate) fn open(turn: &Turn, to: To<RackmemValue>, value: ByteValue) -> Result<RackmemStatus, Failure> {
    to.set(RackmemValue { id: Slot::open(ValueHere(value), Some(turn.slot()))? });
    Ok(RackmemStatus::Ok)
}

fn whole(value: &ValueHere, len: usize) -> Result<(), Failure> {
    let has = value.0.len();
    if len == has {
        return Ok(());
    }
    let text = format_args!("the value has {has} bytes, and len is {len}: it is read and written whole");
    Err(Failure::new(RackmemStatus::InvalidArgument, text))
}

/// Forgets a value here; it stays, for others. Closing null does nothing. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_value_close(value: RackmemValue) -> RackmemStatus {
    close::<ValueHere>(value.id, |_, _| Ok(()))
}

/// How many bytes a value has; 0 if there is no such handle. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_value_len(value: RackmemValue) -> usize {
    ask::<ValueHere, _>(value.id, |value| value.0.len())
}

/// Reads a value whole: `len` is its length. The OS thread that uses its thread.
///
/// # Safety
/// `len` bytes may be written at `into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_value_get(
    value: RackmemValue,
    into: *mut c_void,
    len: usize,
) -> RackmemStatus {
    with::<ValueHere>(value.id, |turn, value| {
        whole(value, len)?;
        // SAFETY: the caller promises it.
        value.0.get(turn.handle(), unsafe { bytes_mut(into, len, "into") }?)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Replaces a value: `len` is its length. The OS thread that uses its thread.
///
/// # Safety
/// There are `len` bytes at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_value_set(
    value: RackmemValue,
    from: *const c_void,
    len: usize,
) -> RackmemStatus {
    with::<ValueHere>(value.id, |turn, value| {
        whole(value, len)?;
        // SAFETY: the caller promises it.
        value.0.set(turn.handle(), unsafe { bytes(from, len, "from") }?)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Replaces a value if it is what is `expected`, byte for byte; otherwise `RACKMEM_CHANGED`: get it again. That is how a value is changed
/// by what it is. The OS thread that uses its thread.
///
/// # Safety
/// There are `len` bytes at `expected` and at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_value_set_if(
    value: RackmemValue,
    expected: *const c_void,
    from: *const c_void,
    len: usize,
) -> RackmemStatus {
    with::<ValueHere>(value.id, |turn, value| {
        whole(value, len)?;
        // SAFETY: the caller promises both.
        let (expected, from) = unsafe { (bytes(expected, len, "expected")?, bytes(from, len, "from")?) };
        if value.0.set_if(turn.handle(), expected, from)? {
            return Ok(RackmemStatus::Ok);
        }
        Err(Failure::new(RackmemStatus::Changed, "the value is not what was expected any more: get it again"))
    })
}
