//! What comes from C beside handles: pointers, checked as far as they can be.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};

use crate::status::{Failure, RackmemStatus};

fn refused(what: &str, why: &str) -> Failure {
    Failure::new(RackmemStatus::InvalidArgument, format_args!("{what} {why}"))
}

/// Somewhere to write a result to.
pub(crate) struct To<T>(*mut T);

impl<T: Copy> To<T> {
    /// Somewhere.
    ///
    /// # Safety
    /// It is null, or points to where a `T` may be written until this was used.
    pub(crate) unsafe fn at(pointer: *mut T, what: &str) -> Result<Self, Failure> {
        if pointer.is_null() {
            Err(refused(what, "is null: say where to write it"))
        } else {
            Ok(Self(pointer))
        }
    }

    /// The same, where something is written at once that says that there is no result.
    ///
    /// # Safety
    /// As for [`To::at`].
    pub(crate) unsafe fn cleared(pointer: *mut T, what: &str, none: T) -> Result<Self, Failure> {
        // SAFETY: passed on.
        let to = unsafe { Self::at(pointer, what) }?;
        // SAFETY: the caller promises that it may be written.
        unsafe { pointer.write(none) };
        Ok(to)
    }

    pub(crate) fn set(self, value: T) {
        // SAFETY: whoever made this has promised that it may be written.
        unsafe { self.0.write(value) };
    }
}

/// Writes a result where one is wanted.
///
/// # Safety
/// It is null, or a `T` may be written there.
pub(crate) unsafe fn set_if_wanted<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: the caller promises it.
        unsafe { pointer.write(value) };
    }
}

fn checked(is_null: bool, len: usize, what: &str) -> Result<bool, Failure> {
    if len > isize::MAX.cast_unsigned() {
        return Err(refused(what, "cannot have so many bytes"));
    }
    match (is_null, len) {
        (true, 0) => Ok(false),
        (true, _) => Err(refused(what, "is null, and its length is not 0")),
        _ => Ok(true),
    }
}

/// Bytes to be read.
///
/// # Safety
/// They are there, and nobody changes them for as long as `'a`; or there are none.
pub(crate) unsafe fn bytes<'a>(pointer: *const c_void, len: usize, what: &str) -> Result<&'a [u8], Failure> {
    if !checked(pointer.is_null(), len, what)? {
        return Ok(&[]);
    }
    // SAFETY: the caller promises it; the length was looked at.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), len) })
}

/// Bytes to be written.
///
/// # Safety
/// They are there, and nobody else uses them for as long as `'a`; or there are none.
pub(crate) unsafe fn bytes_mut<'a>(
    pointer: *mut c_void,
    len: usize,
    what: &str,
) -> Result<&'a mut [u8], Failure> {
    if !checked(pointer.is_null(), len, what)? {
        return Ok(&mut []);
    }
    // SAFETY: the caller promises it; the length was looked at. Bytes that C has not initialized are bytes all the same.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), len) })
}

/// Values in a row.
///
/// # Safety
/// As for [`bytes`]; the pointer is aligned.
pub(crate) unsafe fn values<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    let bytes = count.saturating_mul(size_of::<T>());
    if !checked(pointer.is_null(), bytes, what)? {
        return Ok(&[]);
    }
    // SAFETY: the caller promises it; the length was looked at.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// What a pointer points to.
///
/// # Safety
/// It is null, or points to a `T` that is not changed for as long as `'a`.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises the rest; null is refused.
    unsafe { pointer.as_ref() }.ok_or_else(|| refused(what, "is null"))
}

/// A text.
///
/// # Safety
/// It is null, or ends with a zero and does not change for as long as `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(refused(what, "is null"));
    }
    // SAFETY: the caller promises that it ends with a zero.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| refused(what, "is not UTF-8 text"))
}
