//! How what has a name is made and taken away, by discipline: on its home.
//!
//! What must always hold: what is not made whole leaves nothing; what a value begins with says under which number it was made, so
//! nobody takes a later one for it.

use live::memory::regions::Shape;
use wire::{Discipline, GlobalAddr, Nanos, NodeId};

use super::spec::{NamedInfo, NamedSpec};
use crate::chains::{ChainsConfig, UNIT};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::locked::header::{self, Making};
use crate::locked::{fence_of, make_region, probe_region, try_free_region};

/// Bytes before a coherent value: the number under which it was made.
pub(super) const VALUE_HEADER: usize = 8;

/// A value with a name has a block of its own where blocks are not larger than this.
const OWN_BLOCK: u64 = 4096;

/// Makes something that begins with these contents: on this handle's node, or in a memory with copies.
pub(super) fn make(
    handle: &mut NodeHandle,
    (home, copies): (NodeId, usize),
    spec: &NamedSpec,
    contents: &[u8],
    (number, epoch): (u64, u32),
) -> Result<GlobalAddr, Error> {
    let NamedSpec { discipline, len, count, .. } = *spec;
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match discipline {
        Discipline::Locked => {
            fits(header::BYTES, contents, len)?;
            make_region(handle, home, (len, spec.counts()), Making::header(number, epoch), contents)
        }
        Discipline::Coherent => {
            fits(VALUE_HEADER, contents, len)?;
            let most = handle.block_size().bytes();
            let len = if spec.is_region() { most.saturating_add(spec.value_len()) } else { len };
            if len > most && !spec.is_region() {
                return Err(Error::BadSize { len, most });
            }
            // What a node that dies has changed last is lost block by block. Strangers give names here, so none shares a block.
            let own = if most <= OWN_BLOCK { len.max(most) } else { len };
            let addr = handle.alloc(own, home, discipline)?;
            let written = handle.write(addr, &[&number.to_ne_bytes()[..], contents].concat());
            written.inspect_err(|_| {
                // Nobody has seen it. That fails only if this node is over, and its memory with it.
                let _ = handle.free(addr);
            })?;
            Ok(addr)
        }
        Discipline::Word => {
            let bytes = len.saturating_mul(count);
            Ok(handle.alloc_region(Shape::Words { count: size(bytes.div_ceil(8)) }, home)?.addr())
        }
        Discipline::Object => Ok(handle.byte_objects(size(count), size(len), home)?.addr()),
        Discipline::Chain => {
            let times = |at: usize| {
                let bytes = contents.get(at..at + 8)?;
                Some(u64::from_le_bytes(bytes.try_into().expect("eight")))
            };
            let at = store_at(handle, (home, copies), len);
            let lease = times(0).filter(|lease| *lease > 0).map_or(at.lease, Nanos);
            let quarantine = times(8).filter(|rest| *rest > 0).map(Nanos);
            Ok(handle.chains(&ChainsConfig { lease, quarantine, ..at })?.addr())
        }
        // Nothing of another discipline can have a name.
        _ => Err(Error::BadSize { len, most: 0 }),
    }
}

/// A store of so many bytes, at this node and at those behind it that are there.
fn store_at(handle: &NodeHandle, (home, copies): (NodeId, usize), len: u64) -> ChainsConfig {
    let nodes = handle.inner.nodes_known() as u16;
    let ring = (0..nodes).map(|behind| NodeId((home.0 + behind) % nodes));
    let homes: Vec<_> = ring.filter(|node| handle.inner.life_of(*node).is_some()).take(copies).collect();
    let bytes = (len / UNIT).div_ceil(copies as u64) * UNIT;
    ChainsConfig { homes, copies, ..ChainsConfig::at(home, bytes) }
}

fn fits(header: usize, contents: &[u8], len: u64) -> Result<(), Error> {
    let needs = (header + contents.len()) as u64;
    if needs <= len { Ok(()) } else { Err(Error::BadSize { len: needs, most: len }) }
}

/// True if what has a name died with another node than its home, or with all that had copies of it, or was freed by its address.
pub(super) fn is_lost(handle: &mut NodeHandle, info: &NamedInfo) -> bool {
    let NamedInfo { addr, ref spec, .. } = *info;
    let found = match spec.discipline {
        Discipline::Locked => probe_region(handle, addr, (spec.len, spec.counts())),
        Discipline::Coherent => handle.read_word(addr).map(drop),
        Discipline::Chain => handle.chains_wanted(info.store(false)).map(drop),
        discipline => handle.region_at(addr, discipline).map(drop),
    };
    matches!(found, Err(Error::Lost { .. } | Error::Unallocated { .. } | Error::NodeDown { .. }))
}

/// Takes something away. The last fencing number of its lock, 0 if it has none. None: somebody is inside.
pub(super) fn take_away(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Option<u64>, Error> {
    let NamedInfo { addr, ref spec, .. } = *info;
    let gone = match spec.discipline {
        Discipline::Locked => try_free_region(handle, addr, (spec.len, spec.counts()), fence_of),
        Discipline::Chain => {
            let store = handle.chains_wanted(info.store(true));
            store.and_then(|store| store.free(handle)).map(|()| Some(0))
        }
        _ => handle.free(addr).map(|()| Some(0)),
    };
    match gone {
        // The node is gone that had it to give: of memory with copies, it stays allocated.
        Err(Error::NodeDown { .. }) if info.copies > 1 => Ok(Some(0)),
        // Somebody has freed it by its address.
        Err(Error::Unallocated { .. } | Error::NotAnAllocation { .. }) => Ok(Some(0)),
        gone => gone,
    }
}
