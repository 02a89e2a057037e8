//! A part of something that is kept alive by it: a pointer where otherwise each operation would go by way of the owner.
//!
//! Unsafe code: the borrow checker cannot name a borrow from an owner beside it. What must always hold: what is pointed to was
//! borrowed from the owner's value, for as long as that is there and shared; and it is, for as long as the [`Held`] is.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A borrow of a part of `owner`, together with the owner.
pub(super) struct Held<T: ?Sized + 'static> {
    part: NonNull<T>,
    _owner: Arc<dyn Send + Sync>,
}

impl<T: ?Sized> Held<T> {
    /// What `find` borrows from the owner, however long the borrow shall be.
    pub(super) fn new<O: Send + Sync + 'static>(
        owner: Arc<O>,
        find: impl for<'a> FnOnce(&'a O) -> &'a T,
    ) -> Self {
        Self { part: NonNull::from(find(&owner)), _owner: owner }
    }
}

impl<T: ?Sized> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `find` made this of a shared borrow of the owner's value, of any length the caller likes. The value stays where
        // it is and is not dropped, as the `Arc` is here; and nobody gets more than shared borrows of it, as this `Arc`,
        // which nobody else sees, is one of its owners. So a borrow as long as that of `self` is one that `find` could have made.
        unsafe { self.part.as_ref() }
    }
}

// SAFETY: it gives out shared borrows of `T`, which threads may share, and drops its owner, which may be dropped by any thread.
unsafe impl<T: ?Sized + Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Held<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_outlives_every_other_handle_of_its_owner() {
        let owner = Arc::new(vec![1, 2, 3]);
        let former = Arc::downgrade(&owner);
        let part: Held<[i32]> = Held::new(owner, |all| &all[1..]);
        let moved = Box::new(part);
        assert_eq!(**moved, [2, 3]);
        drop(moved);
        assert!(former.upgrade().is_none(), "it keeps the owner no longer than itself");
    }
}
