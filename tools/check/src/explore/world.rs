//! A state of the whole rack, in small numbers: every place, and what is outside of all places, by the number of its
//! state; and packets, by theirs.

use std::fmt::Debug;

/// Nodes, at most.
pub(super) const NODES: usize = 3;
/// Threads, at most.
pub(super) const THREADS: usize = 6;
const AGAIN: usize = 6;
const PACKETS: usize = 26;

/// A packet in flight, as a number.
pub(super) type Item = u32;

/// A short list that is copied with the state that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Short<const N: usize> {
    len: u8,
    items: [Item; N],
}

impl<const N: usize> Short<N> {
    const EMPTY: Self = Self { len: 0, items: [0; N] };

    fn of(items: &[Item]) -> Self {
        let mut it = Self { len: items.len() as u8, ..Self::EMPTY };
        it.as_mut_slice().copy_from_slice(items);
        it
    }

    pub(super) fn as_slice(&self) -> &[Item] {
        &self.items[..usize::from(self.len)]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Item] {
        &mut self.items[..usize::from(self.len)]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, item: Item) -> Result<(), String> {
        let place = self.items.get_mut(usize::from(self.len));
        *place.ok_or_else(|| format!("more than {N} packets are in flight: nothing bounds them"))? = item;
        self.len += 1;
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.items.copy_within(at + 1..usize::from(self.len), at);
        self.len -= 1;
    }
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct World {
    pub(super) nodes: [u32; NODES],
    pub(super) switch: u32,
    /// What is outside of all places.
    pub(super) outside: u32,
    /// Packets between two passes through the switch, oldest first.
    pub(super) again: Short<AGAIN>,
    /// Packets in flight.
    pub(super) packets: Short<PACKETS>,
}

impl World {
    pub(super) fn new(nodes: [u32; NODES], switch: u32, outside: u32) -> Self {
        Self { nodes, switch, outside, again: Short::EMPTY, packets: Short::EMPTY }
    }

    /// The state of so many nodes as words, the same for equal states only.
    pub(super) fn encode(&self, nodes: usize, words: &mut Vec<u32>) {
        words.clear();
        words.extend_from_slice(&self.nodes[..nodes]);
        assert!(self.outside < 1 << 28, "outside, there are fewer states than that");
        words.extend_from_slice(&[self.switch, self.outside << 4 | u32::from(self.again.len)]);
        words.extend_from_slice(self.again.as_slice());
        words.extend_from_slice(self.packets.as_slice());
    }

    pub(super) fn decode(nodes: usize, words: &[u32]) -> Self {
        let (at, words) = words.split_at(nodes);
        let (again, packets) = words[2..].split_at((words[1] & 15) as usize);
        let mut world = Self::new([0; NODES], words[0], words[1] >> 4);
        world.nodes[..nodes].copy_from_slice(at);
        Self { again: Short::of(again), packets: Short::of(packets), ..world }
    }
}

/// A thread: what it does, in which of its turns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ThreadState<D> {
    pub(super) doing: D,
    pub(super) turn: u8,
}

/// What is outside of all places: what threads do, what may still happen, and whatever a protocol has beside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Outside<D, M> {
    pub(super) threads: [ThreadState<D>; THREADS],
    pub(super) left: Left,
    pub(super) more: M,
}

/// Something that may happen a few times, by its place among a protocol's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault(pub(super) u8);

/// What all protocols have: a packet is lost, or comes twice.
pub(super) const LOSS: Fault = Fault(0);
pub(super) const DUPLICATE: Fault = Fault(1);

/// What may still happen, how often: below 16 times each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Left(u32);

impl Left {
    pub(super) fn of(faults: &[(Fault, u8)]) -> Self {
        faults.iter().fold(Self(0), |left, (fault, times)| left.with(*fault, *times))
    }

    /// So many of these, and of all others as many as before.
    pub(super) fn with(self, Fault(at): Fault, times: u8) -> Self {
        assert!(times < 16 && at < 8, "few things happen, few times");
        Self(self.0 & !(15 << (4 * at)) | u32::from(times) << (4 * at))
    }

    pub(super) fn times(self, Fault(at): Fault) -> u8 {
        (self.0 >> (4 * at) & 15) as u8
    }

    /// One less of these, if there are any.
    pub(super) fn without(self, fault: Fault) -> Option<Self> {
        Some(self.with(fault, self.times(fault).checked_sub(1)?))
    }
}
