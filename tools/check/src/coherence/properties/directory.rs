//! When nothing is in flight, exactly one place keeps an entry, no entry is locked, and it names exactly the
//! copies that there are; an unshared or shared block's home memory is current.

use node::coherence::home::directory::{Entry, Keeper};
use wire::{BlockTag, Copyset, Discipline, GlobalStatus, Rules};

use super::copies;
use crate::coherence::Blocks;
use crate::rack::Control;

pub(super) fn check_at_rest<R: Rules>(blocks: &Blocks<R>, control: &Control) -> Result<(), String> {
    for tag in blocks.latest.keys().filter(|tag| control.is_up(Some(tag.home()))) {
        check_entry(blocks, control, *tag)?;
        check_lock(blocks, tag.lock_entry())?;
    }
    Ok(())
}

fn entry<R: Rules>(blocks: &Blocks<R>, tag: BlockTag) -> Result<(bool, GlobalStatus, Copyset), String> {
    let home: Entry = blocks.nodes[tag.home().index()].0.directory().get(tag);
    let in_switch = blocks.switch.entry(tag);
    match (home.keeper, in_switch) {
        (Keeper::Home, None) => Ok((home.is_locked(), home.status, home.copyset)),
        (Keeper::Switch, Some(entry)) => Ok((entry.lock != 0, entry.status, entry.copyset)),
        (keeper, entry) => Err(format!("{tag:?}: the home says {keeper:?}, the switch has {entry:?}")),
    }
}

fn check_entry<R: Rules>(blocks: &Blocks<R>, control: &Control, tag: BlockTag) -> Result<(), String> {
    let (locked, status, copyset) = entry(blocks, tag)?;
    let cached: Copyset =
        copies(blocks, control).filter(|copy| copy.tag == tag).map(|copy| copy.node).collect();
    let writable =
        copies(blocks, control).any(|copy| copy.tag == tag && copy.access == node::Access::Modified);
    if locked || copyset != cached || writable != (status == GlobalStatus::Modified) {
        return Err(format!(
            "{tag:?} is {status:?} in {copyset:?}, locked {locked}; copies {cached:?}, writable {writable}"
        ));
    }
    let home = blocks.nodes[tag.home().index()].1.home_stamp(tag);
    let latest = blocks.latest[&tag];
    // A freed block's last contents are nobody's any more.
    let (machine, _) = &blocks.nodes[tag.home().index()];
    let readable = machine.discipline_of(tag) == Some(Discipline::Coherent) && !machine.has_lost(tag);
    if status != GlobalStatus::Modified && home != latest && readable {
        return Err(format!("{tag:?} is {status:?}, and its home has write {home} of {latest}"));
    }
    Ok(())
}

fn check_lock<R: Rules>(blocks: &Blocks<R>, entry: BlockTag) -> Result<(), String> {
    let home = blocks.nodes[entry.home().index()].0.directory().get(entry);
    if home.is_locked() { Err(format!("{entry:?} is locked, and nobody holds it")) } else { Ok(()) }
}
