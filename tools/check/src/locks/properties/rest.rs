//! When nothing is in flight, the directory says what is so, and whoever has data has those of the last release.

use node::locks::LockNode;
use switch::locks::EntryView;
use wire::{GlobalAddr, Rules};

use crate::locks::{Locks, PlainLocks};
use crate::rack::Control;

pub(super) fn check<R: Rules>(locks: &Locks<R>, control: &Control) -> Result<(), String> {
    for (at, (lock, _)) in locks.locks.iter().enumerate() {
        let home = lock.home();
        if control.works(home) && locks.is_allocated(at, control.known_incarnation(home, home)) {
            check_lock(locks, control, at)?;
        }
    }
    Ok(())
}

/// One lock: one directory has it, or none, and all nodes are as that says.
fn check_lock<R: Rules>(locks: &Locks<R>, control: &Control, at: usize) -> Result<(), String> {
    let (lock, len) = locks.locks[at];
    let (home, memory) = &locks.nodes[lock.home().index()];
    let entry = match (locks.switch.entry(lock), home.entry(lock)) {
        (None, None) => return Ok(()),
        _ if home.has_lost(lock) => return Err(format!("lock {lock} is lost, and a directory has it")),
        (Some(_), Some(_)) => return Err(format!("two directories have lock {lock}")),
        (Some(entry), None) | (None, Some(entry)) => entry,
    };
    let incarnation = control.known_incarnation(lock.home(), lock.home());
    let last = locks.last_release(at, incarnation, locks.allocations.now(at, incarnation));
    let wrong = |what: &str| format!("at rest, {what}: lock {lock} {entry:?}");
    for (machine, store) in &locks.nodes {
        check_view(locks, machine, lock, &entry).map_err(wrong)?;
        check_copy(locks, (machine, store), (lock, len), last).map_err(wrong)?;
    }
    if entry.holder.is_none() && len > 0 {
        let (term, _) = home.home_of(lock).expect("what is in a directory is known to its home");
        if term != entry.term {
            return Err(wrong("nobody holds the lock, and its data are not at home"));
        }
        if memory.home.get(&lock).copied().unwrap_or(0) != last {
            return Err(wrong("the data at home are not those of the last release"));
        }
    }
    Ok(())
}

/// What a node takes itself for is what the directory takes it for.
fn check_view<R: Rules>(
    locks: &Locks<R>,
    machine: &LockNode<R>,
    lock: GlobalAddr,
    entry: &EntryView,
) -> Result<(), &'static str> {
    let Some(view) = machine.view(lock) else { return Ok(()) };
    match (&view.holding, entry.holder == Some(machine.id())) {
        (Some(holding), true) if holding.term != entry.term => Err("the holder is in another term"),
        (Some(holding), true) if !holding.known.without_all(entry.waiting).is_empty() => {
            Err("the holder knows of somebody of whom the directory does not")
        }
        (Some(_), false) => Err("somebody holds it who is not the holder"),
        // A late copy of a request may have made it the holder, and what that brought be lost: whoever asks next has it
        // ask again.
        (None, true) if !locks.rack.faults.may_lose() => Err("the holder does not know that it is"),
        _ if view.copy.is_some() && !entry.sharers.contains(machine.id()) => {
            Err("somebody has a copy of whom the directory does not know")
        }
        _ => Ok(()),
    }
}

/// A node's frame, if it has one, has the data of the last release, and lets threads in.
fn check_copy<R: Rules>(
    locks: &Locks<R>,
    (machine, store): (&LockNode<R>, &PlainLocks),
    (lock, len): (GlobalAddr, u32),
    last: u64,
) -> Result<(), &'static str> {
    let (Some(_), Some(frame)) = (machine.view(lock), store.frames.get(&lock)) else { return Ok(()) };
    let held = machine.held(lock);
    if len > 0 && held.is_some() && frame.value != last {
        return Err("a copy is not of the last release");
    }
    if held.is_some() && frame.gate != held && locks.plan.room >= locks.locks.len() {
        return Err("a gate is closed where nobody waits");
    }
    Ok(())
}
