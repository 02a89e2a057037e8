//! Slabs: blocks cut into objects of one size.
//!
//! All slabs of a node live in one arena; each home and discipline has a list of its own, per class, of the
//! slabs with room ([`Partial`]). What must always hold: a slab is in its list exactly while its block is
//! marked live at the home and some of its objects are free; a slab without a live object does not exist.
//!
//! The most recently freed-in slab is used first: it is warm, and as a rule nearly full, so that the emptier
//! ones get a chance to become empty.

use alloc::vec::Vec;

use wire::{BlockSize, GlobalAddr};

use super::classes::{Class, Classes, MAX_CLASSES};
use super::free_bits::FreeBits;

/// Ends a list.
const NONE: u32 = u32::MAX;

/// 40 bytes, and beyond 64 objects one bit an object (and one in 64) on the heap.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Slab {
    /// Of the block.
    addr: GlobalAddr,
    free: FreeBits,
    /// Objects in use; 0 only in the arena's unused slots.
    live: u32,
    previous: u32,
    /// The next slab of the list; in an unused slot, the next unused one.
    next: u32,
    class: u8,
    /// The home has marked the block.
    marked: bool,
}

/// The slabs of one home and discipline that have capacity, as the head of a list for each class.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Partial([u32; MAX_CLASSES]);

impl Default for Partial {
    fn default() -> Self {
        Self([NONE; MAX_CLASSES])
    }
}

/// An object was given back to its slab.
pub(super) struct Given {
    /// Its bytes.
    pub(super) size: u64,
    /// It was the last one: the slab is gone.
    pub(super) empty: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slabs {
    classes: Classes,
    /// Never shrinks: as many as there ever were at once.
    arena: Vec<Slab>,
    unused: u32,
}

impl Slabs {
    pub(super) fn new(block: BlockSize) -> Self {
        Self { classes: Classes::new(block), arena: Vec::new(), unused: NONE }
    }

    /// The class of allocations of `len` bytes; `None` if they get whole blocks.
    #[inline]
    pub(super) fn class_of(&self, len: u64) -> Option<usize> {
        self.classes.of(len)
    }

    /// Bytes of an object of this class.
    #[inline]
    pub(super) fn size_of(&self, class: usize) -> u64 {
        self.classes.get(class).size as u64
    }

    /// Cuts a block into objects of a class. The first of them, at the block's own address, is in use; the
    /// others are not given out before [`Slabs::mark`].
    pub(super) fn open(&mut self, addr: GlobalAddr, class: usize) -> u32 {
        let mut free = FreeBits::all(self.classes.get(class).capacity);
        assert_eq!(free.take(), Some(0), "a class has at least two objects a block");
        let class = u8::try_from(class).expect("there are fewer than 256 classes");
        let slab = Slab { addr, free, live: 1, previous: NONE, next: NONE, class, marked: false };
        if self.unused == NONE {
            self.arena.push(slab);
            return u32::try_from(self.arena.len() - 1).expect("slab numbers have 30 bits");
        }
        let index = self.unused;
        self.unused = self.arena[index as usize].next;
        self.arena[index as usize] = slab;
        index
    }

    /// Gives out an object of a slab with capacity.
    #[inline]
    pub(super) fn take(&mut self, partial: &mut Partial, class: usize) -> Option<GlobalAddr> {
        let head = partial.0[class];
        if head == NONE {
            return None;
        }
        let Class { size, capacity } = self.classes.get(class);
        let slab = &mut self.arena[head as usize];
        let object = slab.free.take().expect("a slab in the list has room");
        slab.live += 1;
        let addr = GlobalAddr::from_bits(slab.addr.bits() + (object * size) as u64);
        if slab.live as usize == capacity {
            self.unlink(partial, head);
        }
        Some(addr)
    }

    /// The home has marked the slab's block: the rest of its objects may be given out.
    pub(super) fn mark(&mut self, partial: &mut Partial, index: u32) {
        let slab = &mut self.arena[index as usize];
        if !slab.marked {
            slab.marked = true;
            self.link(partial, index);
        }
    }

    /// Takes back the object at `offset` of the slab's block. `None` if no live object starts there: then
    /// nothing has changed.
    #[inline]
    pub(super) fn give(&mut self, partial: &mut Partial, index: u32, offset: usize) -> Option<Given> {
        let slab = &mut self.arena[index as usize];
        let Class { size, capacity } = self.classes.get(usize::from(slab.class));
        let object = offset / size;
        if object * size != offset || object >= capacity || !slab.free.give(object) {
            return None;
        }
        slab.live -= 1;
        let empty = slab.live == 0;
        let was_full = slab.live as usize == capacity - 1;
        let listed = slab.marked && !was_full;
        if empty {
            if listed {
                self.unlink(partial, index);
            }
            self.close(index);
        } else if was_full {
            self.link(partial, index);
        }
        Some(Given { size: size as u64, empty })
    }

    /// The slab's block is gone. Says how many objects, of how many bytes together, lived in it. The caller
    /// drops the lists that it may be in.
    pub(super) fn abandon(&mut self, index: u32) -> (u64, u64) {
        let slab = &mut self.arena[index as usize];
        let objects = u64::from(slab.live);
        slab.live = 0;
        let size = self.classes.get(usize::from(slab.class)).size as u64;
        self.close(index);
        (objects, objects * size)
    }

    fn close(&mut self, index: u32) {
        let slab = &mut self.arena[index as usize];
        slab.free = FreeBits::Few(0);
        slab.next = self.unused;
        self.unused = index;
    }

    fn link(&mut self, partial: &mut Partial, index: u32) {
        let slab = &mut self.arena[index as usize];
        let head = &mut partial.0[usize::from(slab.class)];
        slab.previous = NONE;
        slab.next = *head;
        let next = *head;
        *head = index;
        if next != NONE {
            self.arena[next as usize].previous = index;
        }
    }

    fn unlink(&mut self, partial: &mut Partial, index: u32) {
        let Slab { previous, next, class, .. } = self.arena[index as usize];
        match previous {
            NONE => partial.0[usize::from(class)] = next,
            previous => self.arena[previous as usize].next = next,
        }
        if next != NONE {
            self.arena[next as usize].previous = previous;
        }
    }

    /// Checks one slab and says how many objects, of how many bytes together, live in it.
    pub(super) fn assert_slab(&self, index: u32, addr: GlobalAddr) -> (u64, u64) {
        let slab = &self.arena[index as usize];
        let Class { size, capacity } = self.classes.get(usize::from(slab.class));
        assert_eq!(slab.addr, addr, "slab {index} is where the chunk says");
        assert_eq!(slab.live as usize + slab.free.count(), capacity, "objects of the slab at {addr}");
        assert!(slab.live > 0, "the slab at {addr} is empty");
        (u64::from(slab.live), u64::from(slab.live) * size as u64)
    }

    /// Whether a slab has to be in its list.
    pub(super) fn has_capacity(&self, index: u32) -> bool {
        let slab = &self.arena[index as usize];
        slab.marked && slab.free.count() > 0
    }

    /// Checks the lists of one home and discipline and names the slabs in them.
    pub(super) fn assert_lists(&self, partial: &Partial) -> Vec<u32> {
        let mut listed = Vec::new();
        for (class, &head) in partial.0.iter().enumerate() {
            let (mut previous, mut at) = (NONE, head);
            while at != NONE {
                let slab = &self.arena[at as usize];
                assert_eq!(usize::from(slab.class), class, "slab {at} is in the list of its class");
                assert_eq!(slab.previous, previous, "slab {at} knows the one before it");
                assert!(listed.len() < self.arena.len(), "the list of class {class} is a ring");
                listed.push(at);
                (previous, at) = (at, slab.next);
            }
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_costs_40_bytes_plus_a_bit_an_object_beyond_64() {
        assert_eq!(size_of::<Slab>(), 40);
        let FreeBits::Many(bits) = FreeBits::all(256) else { panic!("256 objects do not fit one word") };
        assert_eq!(bits.len() * 8, 40, "4 KiB of 16 B objects");
    }

    #[test]
    fn slots_of_slabs_that_are_gone_are_used_again() {
        let mut slabs = Slabs::new(BlockSize::DEFAULT);
        let mut partial = Partial::default();
        for round in 1..4u64 {
            let opened: Vec<_> =
                (0..5).map(|nth| slabs.open(GlobalAddr::from_bits((nth + round) << 12), 0)).collect();
            assert_eq!(slabs.arena.len(), 5, "round {round}");
            for index in opened {
                assert!(slabs.give(&mut partial, index, 0).unwrap().empty);
                let slot = &slabs.arena[index as usize];
                assert!(matches!(slot.free, FreeBits::Few(0)), "an unused slot keeps nothing on the heap");
            }
        }
    }
}
