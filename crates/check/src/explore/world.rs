//! A state of the whole rack, in small numbers: every place by the number of its local state.

use super::shape::Item;

pub(super) const NODES: usize = 3;
pub(super) const THREADS: usize = 6;
const AGAIN: usize = 6;
const PACKETS: usize = 26;

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

    pub(super) fn remove(&mut self, at: usize) {
        self.items.copy_within(at + 1..usize::from(self.len), at);
        self.len -= 1;
    }
}

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Idle,
    /// Waiting for its operation, in this slot.
    Waiting {
        slot: u8,
        turn: u8,
        /// The block that it reads has been written since: what was read before that will do, too.
        overtaken: bool,
    },
    /// Waiting for another thread's operation.
    Joining {
        slot: u8,
    },
    /// About to access a frame that is pinned for it.
    Pinned {
        frame: u8,
        turn: u8,
    },
    /// Holding a lock.
    Holding {
        slot: u8,
        turn: u8,
    },
}

/// A thread: what it does, and how many turns it has left, this one included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThreadState {
    pub(super) doing: Doing,
    pub(super) turns: u8,
}

/// What may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budgets {
    pub(super) losses: u8,
    pub(super) duplicates: u8,
    pub(super) premature: u8,
    pub(super) adds: u8,
    pub(super) removes: u8,
    pub(super) purges: u8,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct World {
    pub(super) nodes: [u32; NODES],
    pub(super) switch: u32,
    pub(super) threads: [ThreadState; THREADS],
    pub(super) left: Budgets,
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

impl World {
    pub(super) fn new(nodes: [u32; NODES], switch: u32, turns: [u8; THREADS], left: Budgets) -> Self {
        let threads = turns.map(|turns| ThreadState { doing: Doing::Idle, turns });
        Self { nodes, switch, threads, left, again: Short::EMPTY, packets: Short::EMPTY }
    }

    /// The state as words, the same for equal states only.
    pub(super) fn encode(&self, size: Size, words: &mut Vec<u32>) {
        words.clear();
        words.extend_from_slice(&self.nodes[..size.nodes]);
        words.push(self.switch);
        words.extend(self.threads[..size.threads].iter().map(|thread| thread.encode()));
        let Budgets { losses, duplicates, premature, adds, removes, purges } = self.left;
        let left = [losses, duplicates, premature, adds, removes, purges];
        let left = left.into_iter().fold(0, |word, count| word << 4 | u32::from(count & 15));
        words.push(left << 8 | u32::from(self.again.len));
        words.extend_from_slice(self.again.as_slice());
        words.extend_from_slice(self.packets.as_slice());
    }

    pub(super) fn decode(size: Size, words: &[u32]) -> Self {
        let (nodes, words) = words.split_at(size.nodes);
        let (switch, words) = (words[0], &words[1..]);
        let (threads, words) = words.split_at(size.threads);
        let count = |at: u32| (words[0] >> (8 + 4 * (5 - at)) & 15) as u8;
        let left = Budgets {
            losses: count(0),
            duplicates: count(1),
            premature: count(2),
            adds: count(3),
            removes: count(4),
            purges: count(5),
        };
        let (again, packets) = words[1..].split_at((words[0] & 255) as usize);
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

impl ThreadState {
    fn encode(self) -> u32 {
        let (kind, a, b) = match self.doing {
            Doing::Idle => (0, 0, 0),
            Doing::Waiting { slot, turn, overtaken: false } => (1, slot, turn),
            Doing::Waiting { slot, turn, overtaken: true } => (5, slot, turn),
            Doing::Joining { slot } => (2, slot, 0),
            Doing::Pinned { frame, turn } => (3, frame, turn),
            Doing::Holding { slot, turn } => (4, slot, turn),
        };
        u32::from_le_bytes([self.turns, kind, a, b])
    }

    fn decode(word: u32) -> Self {
        let [turns, kind, a, b] = word.to_le_bytes();
        let doing = match kind {
            0 => Doing::Idle,
            1 | 5 => Doing::Waiting { slot: a, turn: b, overtaken: kind == 5 },
            2 => Doing::Joining { slot: a },
            3 => Doing::Pinned { frame: a, turn: b },
            _ => Doing::Holding { slot: a, turn: b },
        };
        Self { doing, turns }
    }

    pub(super) fn is_done(self) -> bool {
        self.doing == Doing::Idle && self.turns == 0
    }
}
