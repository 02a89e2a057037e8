//! A writer that is inside excludes every other user, anywhere in the rack, as long as the lock's home lives.

use std::collections::BTreeMap;

use wire::{LockRules, Mode};

use crate::locks::{Locks, Thread};

pub(super) fn check<R: LockRules>(locks: &Locks<R>) -> Result<(), String> {
    let mut users = BTreeMap::<_, (u32, u32)>::new();
    for thread in &locks.threads {
        let (Thread::Inside(want, _) | Thread::Ending(want)) = thread else { continue };
        let (readers, writers) = users.entry((want.lock, want.life)).or_default();
        *(if want.mode == Mode::Write { writers } else { readers }) += 1;
    }
    for ((lock, life), (readers, writers)) in users {
        if writers > 1 || writers == 1 && readers > 0 {
            return Err(format!(
                "{writers} writers and {readers} readers are inside of lock {lock}, {life:?}"
            ));
        }
    }
    Ok(())
}
