//! What comes from C: pointers, checked as far as they can be.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use crate::status::{Failure, RackmemStatus};

fn null(what: &str) -> Failure {
    Failure::new(RackmemStatus::InvalidArgument, format_args!("{what} is null"))
}

/// What a pointer points to.
///
/// # Safety
/// It is null, or points to a `T` that lives and is not changed for as long as `'a`.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises the rest; null is refused.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// The same, for the calling thread alone.
///
/// # Safety
/// It is null, or points to a `T` that lives, and that nobody else uses, for as long as `'a`.
pub(crate) unsafe fn unique<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller promises the rest; null is refused.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Takes back what [`give`] gave.
///
/// # Safety
/// It is null, or comes from [`give`], and nobody uses it any more.
pub(crate) unsafe fn take_back<T>(pointer: *mut T, what: &str) -> Result<Box<T>, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises that it was a box.
    Ok(unsafe { Box::from_raw(pointer) })
}

/// Somewhere to write a result to: null until there is one.
///
/// # Safety
/// It is null, or points to a pointer that may be written.
pub(crate) unsafe fn result<'a, T>(pointer: *mut *mut T, what: &str) -> Result<&'a mut *mut T, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises that it may be written. Written before it is borrowed: C need not have initialized it.
    unsafe {
        pointer.write(std::ptr::null_mut());
        Ok(&mut *pointer)
    }
}

/// Gives something to C.
pub(crate) fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// A text.
///
/// # Safety
/// It is null, or ends with a zero and does not change for as long as `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises that it ends with a zero.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::new(RackmemStatus::InvalidArgument, format_args!("{what} is not UTF-8 text")))
}
