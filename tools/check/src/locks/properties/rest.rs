//! When nothing is under way, the directory says what is so, and whoever has data has those of the last release.

use wire::Rules;

use crate::locks::Locks;
use crate::rack::Control;

pub(super) fn check<R: Rules>(locks: &Locks<R>, control: &Control) -> Result<(), String> {
    for (at, (lock, len)) in locks.locks.iter().enumerate() {
        let home = &locks.nodes[lock.home().index()];
        if !control.works(lock.home()) {
            continue;
        }
        let life = control.life(lock.home(), lock.home());
        if !locks.is_allocated(at, life) {
            continue;
        }
        if home.0.has_lost(*lock) {
            if locks.switch.entry(*lock).is_some() || home.0.entry(*lock).is_some() {
                return Err(format!("lock {lock} is lost, and a directory has it"));
            }
            continue;
        }
        let Some(entry) = locks.switch.entry(*lock).or_else(|| home.0.entry(*lock)) else { continue };
        if locks.switch.entry(*lock).is_some() && home.0.entry(*lock).is_some() {
            return Err(format!("two directories have lock {lock}"));
        }
        let wrong = |what: &str| Err(format!("at rest, {what}: lock {lock} {entry:?}"));
        let last = locks.last_release(at, life, locks.allocations.now(at, life));
        for (machine, store) in &locks.nodes {
            let id = machine.id();
            let Some(view) = machine.view(*lock) else { continue };
            match (&view.reign, entry.holder == Some(id)) {
                (Some(reign), true) => {
                    if reign.tenure != entry.tenure {
                        return wrong("the holder reigns in another tenure");
                    }
                    if !reign.known.without_all(entry.waiting).is_empty() {
                        return wrong("the holder knows of somebody of whom the directory does not");
                    }
                }
                (None, false) => {}
                (Some(_), false) => return wrong("somebody reigns who is not the holder"),
                // A late copy of a request may have made it the holder, and what that brought be lost: whoever asks next has it
                // ask again.
                (None, true) if locks.rack.faults.may_lose() => {}
                (None, true) => return wrong("the holder does not reign"),
            }
            if view.copy.is_some() && !entry.sharers.contains(id) {
                return wrong("somebody has a copy of whom the directory does not know");
            }
            if let Some(frame) = store.frames.get(lock) {
                let has_data = machine.held(*lock).is_some();
                if *len > 0 && has_data && frame.value != last {
                    return wrong("a copy is not of the last release");
                }
                let open = machine.held(*lock);
                if open.is_some() && frame.gate != open && locks.plan.room >= locks.locks.len() {
                    return wrong("a gate is closed where nobody waits");
                }
            }
        }
        if entry.holder.is_none() && *len > 0 {
            let (tenure, _) = home.0.home_of(*lock).expect("what is in a directory is known to its home");
            if tenure != entry.tenure {
                return wrong("nobody holds the lock, and its data are not at home");
            }
            if home.1.home.get(lock).copied().unwrap_or(0) != last {
                return wrong("the data at home are not those of the last release");
            }
        }
    }
    Ok(())
}
