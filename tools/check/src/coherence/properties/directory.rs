//! When nothing is in flight, exactly one place keeps an entry, no entry is locked, and it names exactly the
//! copies that there are; an unshared or shared block's home memory is current.

use node::coherence::home::directory::{Entry, Keeper};
use wire::{BlockTag, Copyset, Discipline, GlobalStatus, NodeId, Rules};

use super::copies;
use crate::coherence::Blocks;
use crate::rack::Control;

pub(super) fn check_at_rest<R: Rules>(blocks: &mut Blocks<R>, control: &Control) -> Result<(), String> {
    let tags: Vec<BlockTag> = blocks.latest.keys().copied().collect();
    for tag in tags {
        let Some(server) = Blocks::<R>::server(control, tag).filter(|node| control.is_up(Some(*node))) else {
            continue;
        };
        check_entry(blocks, control, tag, server)?;
        check_lock(blocks, tag.lock_entry(), server)?;
    }
    Ok(())
}

fn entry<R: Rules>(
    blocks: &Blocks<R>,
    tag: BlockTag,
    server: NodeId,
) -> Result<(bool, GlobalStatus, Copyset), String> {
    let home: Entry = blocks.nodes[server.index()].0.entry(tag).expect("it serves that");
    let in_switch = blocks.switch.entry(tag);
    match (home.keeper, in_switch) {
        (Keeper::Home, None) => Ok((home.is_locked(), home.status, home.copyset)),
        (Keeper::Switch, Some(entry)) => Ok((entry.lock != 0, entry.status, entry.copyset)),
        (keeper, entry) => Err(format!("{tag:?}: the home says {keeper:?}, the switch has {entry:?}")),
    }
}

fn check_entry<R: Rules>(
    blocks: &mut Blocks<R>,
    control: &Control,
    tag: BlockTag,
    server: NodeId,
) -> Result<(), String> {
    let (locked, status, copyset) = entry(blocks, tag, server)?;
    let cached: Copyset =
        copies(blocks, control).filter(|copy| copy.tag == tag).map(|copy| copy.node).collect();
    let writable =
        copies(blocks, control).any(|copy| copy.tag == tag && copy.access == node::Access::Modified);
    if locked || copyset != cached || writable != (status == GlobalStatus::Modified) {
        return Err(format!(
            "{tag:?} is {status:?} in {copyset:?}, locked {locked}; copies {cached:?}, writable {writable}"
        ));
    }
    let home = blocks.nodes[server.index()].1.home_stamp(tag);
    // A freed block's last contents are nobody's any more.
    let (machine, _) = &blocks.nodes[server.index()];
    let readable = machine.discipline_of(tag) == Some(Discipline::Coherent) && !machine.has_lost(tag);
    if status != GlobalStatus::Modified && readable {
        blocks.find(tag, home, None)?;
    }
    let latest = blocks.latest[&tag];
    // A dead node's allocation may be half made: then nobody was told of it.
    check_copies(blocks, control, tag, readable && blocks.live.contains(&tag.addr()))?;
    if status != GlobalStatus::Modified && home != latest && readable {
        return Err(format!("{tag:?} is {status:?}, and its home has write {home} of {latest}"));
    }
    Ok(())
}

/// All that keep a block's memory have the same in it.
fn check_copies<R: Rules>(
    blocks: &Blocks<R>,
    control: &Control,
    tag: BlockTag,
    readable: bool,
) -> Result<(), String> {
    let Some(nth) = tag.home().index().checked_sub(blocks.nodes.len()).filter(|_| readable) else {
        return Ok(());
    };
    let stamps: Vec<(NodeId, u64)> =
        control.view().hosts(nth).map(|node| (node, blocks.nodes[node.index()].1.home_stamp(tag))).collect();
    if stamps.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        return Err(format!("the copies of {tag:?} differ: {stamps:?}"));
    }
    Ok(())
}

fn check_lock<R: Rules>(blocks: &Blocks<R>, entry: BlockTag, server: NodeId) -> Result<(), String> {
    let home = blocks.nodes[server.index()].0.entry(entry).expect("it serves that");
    if home.is_locked() { Err(format!("{entry:?} is locked, and nobody holds it")) } else { Ok(()) }
}
