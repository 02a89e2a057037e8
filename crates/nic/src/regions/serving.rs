//! What a home does for others whose memory cannot do it alone: regions begin, are opened and end.
//!
//! What must always hold: a region begins only in memory of this incarnation of the home, which whoever begins it
//! names. Nothing here waits for anybody: what has to wait is refused as locked, and asked for again. When memory is given
//! back, the regions in it end, whether somebody ended them or not: nobody may have been told that one began.

use wire::roce::Key;
use wire::{Discipline, GlobalAddr, Incarnation, NodeId, Refusal, Rule, Rules};

use super::{Call, Reply, Shape};

/// A home: its allocator, and its driver's regions.
pub trait Home {
    /// What the driver has of a region.
    type Region;

    /// Which node it is, and the bytes of its memory.
    fn memory(&self) -> (NodeId, u64);

    /// In which incarnation it is.
    fn incarnation(&self) -> Incarnation;

    /// The discipline of the live block at this address.
    fn discipline_of(&self, addr: GlobalAddr) -> Option<Discipline>;

    /// The region that this address lies in, living or about to end: where it begins, and whether it lives.
    fn region_at(&self, addr: GlobalAddr) -> Option<(GlobalAddr, bool)>;

    /// The first region that begins in these bytes.
    fn first_in(&self, addr: GlobalAddr, bytes: u64) -> Option<GlobalAddr>;

    /// The region that begins at this address, and what it is made of.
    fn find(&self, addr: GlobalAddr) -> Option<(Self::Region, Shape)>;

    /// Makes this a region, of zeroes. There is none.
    fn begin(&mut self, addr: GlobalAddr, shape: Shape, zeroed: bool) -> Self::Region;

    /// What the device calls a region. None: it has no capacity.
    fn key_of(&mut self, region: &Self::Region) -> Option<Key>;

    /// Ends the region that begins at this address, and its key is that of one that has ended. False: somebody is still inside
    /// one of its objects, and this has to be called again; but nobody will be from now on. None: there is no such region.
    fn end(&mut self, addr: GlobalAddr) -> Option<bool>;

    /// Writes bytes into an object, as [`Call::Write`] says; returns its version.
    ///
    /// # Errors
    /// Why not.
    fn write(&mut self, call: &Call, bytes: &[u64]) -> Result<u64, Refusal>;
}

/// Does one thing that was asked for, by another node or by this one.
pub fn serve<R: Rules, H: Home>(rules: R, home: &mut H, call: &Call, bytes: &[u64]) -> Reply {
    let done = match *call {
        // What was allocated in another incarnation has died with it; here the address is somebody else's.
        Call::Begin { incarnation, .. }
            if rules.holds(Rule::RegionsBeginInTheirIncarnation) && incarnation != home.incarnation() =>
        {
            Err(Refusal::NodeDown)
        }
        Call::Begin { addr, shape, zeroed, .. } => begin(rules, home, addr, shape, zeroed),
        Call::Open { addr } => open(home, addr),
        Call::End { addr } => match home.end(addr) {
            None => Err(Refusal::NotAnAllocation),
            // A writer that is inside an object may be a thread that has no core.
            Some(false) => Err(Refusal::Locked),
            Some(true) => Ok(Reply::Done(0, 0, 0)),
        },
        Call::Write { .. } => home.write(call, bytes).map(|version| Reply::Done(version, 0, 0)),
        // Whoever asks that of its own node does not come this way.
        Call::Chain { .. } | Call::Named { .. } => Err(Refusal::NotAnAllocation),
    };
    done.unwrap_or_else(Reply::Refused)
}

fn begin<R: Rules, H: Home>(
    rules: R,
    home: &mut H,
    addr: GlobalAddr,
    shape: Shape,
    zeroed: bool,
) -> Result<Reply, Refusal> {
    let bytes = shape.bytes().ok_or(Refusal::OutOfMemory)?;
    let (me, memory) = home.memory();
    let end = addr.offset().checked_add(bytes).filter(|end| *end <= memory);
    if addr.home() != me || end.is_none() || !addr.offset().is_multiple_of(8) {
        return Err(Refusal::NotAnAllocation);
    }
    let is_allocated = |home: &H| match home.discipline_of(addr) {
        Some(discipline) if discipline == shape.discipline() => Ok(()),
        Some(_) => Err(Refusal::WrongDiscipline),
        None => Err(Refusal::Unallocated),
    };
    if rules.holds(Rule::RegionsBeginInLiveMemory) {
        is_allocated(home)?;
    }
    for inside in [addr, GlobalAddr::from_bits(addr.bits() + bytes - 1)] {
        match home.region_at(inside) {
            Some((_, true)) => return Err(Refusal::NotAnAllocation),
            // It has ended with its memory, and somebody may still be inside an object of it.
            Some((there, false)) if home.end(there) == Some(false) => return Err(Refusal::Locked),
            _ => {}
        }
    }
    let region = home.begin(addr, shape, zeroed);
    // Where the allocator runs on another thread, the memory may have been given back meanwhile; from now on it ends the region.
    if rules.holds(Rule::RegionsBeginInLiveMemory)
        && let Err(why) = is_allocated(home)
    {
        home.end(addr);
        return Err(why);
    }
    let Some(key) = home.key_of(&region) else {
        home.end(addr);
        return Err(Refusal::OutOfMemory);
    };
    Ok(Reply::of_region(key, shape))
}

fn open<H: Home>(home: &mut H, addr: GlobalAddr) -> Result<Reply, Refusal> {
    if let Some((region, shape)) = home.find(addr) {
        let key = home.key_of(&region).ok_or(Refusal::OutOfMemory)?;
        return Ok(Reply::of_region(key, shape));
    }
    if home.region_at(addr).is_some() {
        return Err(Refusal::NotAnAllocation);
    }
    match home.discipline_of(addr) {
        // Its block has others; this one was freed, or never was.
        Some(Discipline::Word | Discipline::Object | Discipline::Chain) | None => Err(Refusal::Unallocated),
        Some(_) => Err(Refusal::WrongDiscipline),
    }
}

/// Blocks of this home have ended: so do the regions that begin in them. To be called before the blocks are given out
/// again.
pub fn on_blocks_ended<R: Rules, H: Home>(rules: R, home: &mut H, first: GlobalAddr, bytes: u64) {
    if !rules.holds(Rule::RegionsEndWithTheirMemory) {
        return;
    }
    let end = first.bits() + bytes;
    let mut from = first;
    while let Some(addr) = home.first_in(from, end - from.bits()) {
        // If somebody is inside: it does not live, and whoever begins one here ends it.
        home.end(addr);
        from = GlobalAddr::from_bits(addr.bits() + 1);
    }
}
