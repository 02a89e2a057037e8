//! A state of the whole rack, in small numbers: every place by the number of its local state. What threads do and what
//! may still happen is the protocol's business.

use std::fmt::Debug;

/// Nodes, at most.
pub(super) const NODES: usize = 3;
/// Threads, at most.
pub(super) const THREADS: usize = 6;
const AGAIN: usize = 6;
const PACKETS: usize = 26;

/// A packet under way, as a number.
pub(super) type Item = u32;

/// A short list that is copied with the state that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Short<const N: usize> {
    len: u8,
    items: [Item; N],
}

impl<const N: usize> Short<N> {
    const EMPTY: Self = Self { len: 0, items: [0; N] };

    pub(super) fn as_slice(&self) -> &[Item] {
        &self.items[..usize::from(self.len)]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Item] {
        &mut self.items[..usize::from(self.len)]
    }

    pub(super) fn push(&mut self, item: Item) -> Result<(), String> {
        let place = self.items.get_mut(usize::from(self.len));
        *place.ok_or_else(|| format!("more than {N} packets are under way: nothing bounds them"))? = item;
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

/// What a thread is doing.
pub(super) trait Doing: Copy + Eq + Debug {
    /// Nothing: its next turn may begin.
    const IDLE: Self;

    /// As bytes, the same for equal values only.
    fn encode(self) -> [u8; 3];

    fn decode(bytes: [u8; 3]) -> Self;
}

/// What may still happen, how often.
pub(super) trait Budgets: Copy + Eq + Debug {
    /// As counts below 16.
    fn counts(self) -> [u8; 7];

    fn of(counts: [u8; 7]) -> Self;
}

/// A thread: what it does, and how many turns it has left, this one included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThreadState<D> {
    pub(super) doing: D,
    pub(super) turns: u8,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct World<D, B> {
    pub(super) nodes: [u32; NODES],
    pub(super) switch: u32,
    pub(super) threads: [ThreadState<D>; THREADS],
    pub(super) left: B,
    /// Packets between two passes through the switch, oldest first.
    pub(super) again: Short<AGAIN>,
    /// Packets under way.
    pub(super) packets: Short<PACKETS>,
}

/// How many nodes and threads there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) threads: usize,
}

impl<D: Doing, B: Budgets> World<D, B> {
    pub(super) fn new(nodes: [u32; NODES], switch: u32, turns: [u8; THREADS], left: B) -> Self {
        let threads = turns.map(|turns| ThreadState { doing: D::IDLE, turns });
        Self { nodes, switch, threads, left, again: Short::EMPTY, packets: Short::EMPTY }
    }

    /// The state as words, the same for equal states only.
    pub(super) fn encode(&self, size: Size, words: &mut Vec<u32>) {
        words.clear();
        words.extend_from_slice(&self.nodes[..size.nodes]);
        words.push(self.switch);
        words.extend(self.threads[..size.threads].iter().map(|thread| thread.encode()));
        let left = self.left.counts().into_iter().fold(0, |word, count| word << 4 | u32::from(count & 15));
        words.push(left << 4 | u32::from(self.again.len));
        words.extend_from_slice(self.again.as_slice());
        words.extend_from_slice(self.packets.as_slice());
    }

    pub(super) fn decode(size: Size, words: &[u32]) -> Self {
        let (nodes, words) = words.split_at(size.nodes);
        let (switch, words) = (words[0], &words[1..]);
        let (threads, words) = words.split_at(size.threads);
        let count = |at: usize| (words[0] >> (4 + 4 * (6 - at)) & 15) as u8;
        let left = B::of(std::array::from_fn(count));
        let (again, packets) = words[1..].split_at((words[0] & 15) as usize);
        let mut world = Self::new([0; NODES], switch, [0; THREADS], left);
        world.nodes[..nodes.len()].copy_from_slice(nodes);
        for (thread, word) in world.threads.iter_mut().zip(threads) {
            *thread = ThreadState::decode(*word);
        }
        (world.again.len, world.packets.len) = (again.len() as u8, packets.len() as u8);
        world.again.items[..again.len()].copy_from_slice(again);
        world.packets.items[..packets.len()].copy_from_slice(packets);
        world
    }
}

impl<D: Doing> ThreadState<D> {
    fn encode(self) -> u32 {
        let [a, b, c] = self.doing.encode();
        u32::from_le_bytes([self.turns, a, b, c])
    }

    fn decode(word: u32) -> Self {
        let [turns, a, b, c] = word.to_le_bytes();
        Self { doing: D::decode([a, b, c]), turns }
    }

    pub(super) fn is_done(self) -> bool {
        self.doing == D::IDLE && self.turns == 0
    }
}
