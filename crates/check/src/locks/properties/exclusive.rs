//! A writer that is inside excludes every other user, anywhere in the rack.

use wire::LockRules;

use crate::locks::LockRack;

pub(super) fn check<R: LockRules>(rack: &LockRack<R>) -> Result<(), String> {
    for (lock, _) in &rack.locks {
        let (mut readers, mut writers) = (0, 0);
        for (_, store) in &rack.nodes {
            if let Some(frame) = store.frames.get(lock) {
                readers += frame.users.readers;
                writers += u32::from(frame.users.writer);
            }
        }
        if writers > 1 || writers == 1 && readers > 0 {
            return Err(format!("{writers} writers and {readers} readers are inside of lock {lock}"));
        }
    }
    Ok(())
}
