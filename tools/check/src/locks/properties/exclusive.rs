//! A writer that is inside excludes every other user, anywhere in the rack, as long as the lock's home lives.

use wire::{Mode, Rules};

use crate::locks::{Locks, Thread};

pub(super) fn check<R: Rules>(locks: &Locks<R>) -> Result<(), String> {
    let inside = || {
        locks.threads.iter().enumerate().filter_map(|(thread, doing)| match doing {
            Thread::Inside(want, _) | Thread::Returning(want, ..) | Thread::Ending(want) => {
                Some((thread, want))
            }
            _ => None,
        })
    };
    for (writer, want) in inside().filter(|(_, want)| want.mode == Mode::Write) {
        let same = |(thread, other): &(usize, &crate::locks::Want)| {
            // Whoever has freed the region, and has not heard that, has nothing any more: an epoch ends the lock for him.
            let is_same = !locks.allocations.real || other.allocation == want.allocation;
            *thread != writer && (other.lock, other.incarnation) == (want.lock, want.incarnation) && is_same
        };
        if let Some((other, with)) = inside().find(same) {
            return Err(format!(
                "thread {writer} is inside of lock {} to write, and thread {other} is beside it: {want:?} {with:?}",
                want.lock
            ));
        }
    }
    Ok(())
}
