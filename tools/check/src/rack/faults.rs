//! What goes wrong in a rack: how often it is to, and how often it did.
//!
//! What must always hold: every fault that the harness injects is counted under its kind, so that a search in which one
//! no longer happens is seen.

use std::ops::Index;

use super::Random;

/// How often things go wrong, in a thousand deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// A packet is lost.
    pub lose: u32,
    /// A packet is delivered, and once more at some other time.
    pub duplicate: u32,
    /// The next packet is any of those in flight, not the one whose turn it is.
    pub reorder: u32,
    /// A packet is put away for long: it comes back when its event is over, if that takes no longer.
    pub delay: u32,
    /// A packet is damaged: whoever gets it sees that, and drops it.
    pub corrupt: u32,
    /// Two places cannot reach each other for a while, in one direction.
    pub partition: u32,
}

impl Faults {
    /// How bad the network is, is drawn.
    pub(crate) fn drawn(random: &mut Random) -> Self {
        let mut up_to = |most: usize| random.below(most + 1) as u32;
        let [lose, duplicate, reorder, delay] = [60, 80, 600, 40].map(&mut up_to);
        Self { lose, duplicate, reorder, delay, ..Self::default() }
    }

    /// The same, and packets are damaged, and places cannot reach each other for a while.
    pub fn be_worse(&mut self, random: &mut Random) {
        self.corrupt = random.below(11) as u32;
        self.partition = random.below(5) as u32;
        self.lose = self.lose.max(3);
    }

    /// True if a packet may not arrive.
    pub const fn may_lose(&self) -> bool {
        self.lose + self.corrupt + self.partition > 0
    }
}

/// How often places stop and start again, in ten thousand steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Restarts {
    /// The switch stops, with all that it knows.
    pub switch: u32,
    /// A node dies, with its threads, its cache and its memory.
    pub node: u32,
    /// The shadow loses its table.
    pub shadow: u32,
}

impl Restarts {
    /// True if nothing ever stops.
    pub fn is_never(&self) -> bool {
        *self == Self::default()
    }
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A packet was lost.
    Lost,
    /// A packet was delivered twice.
    Duplicated,
    /// A packet passed others.
    Reordered,
    /// A packet was put away for long.
    Delayed,
    /// A packet was damaged.
    Corrupted,
    /// Two places could not reach each other for a while.
    Partition,
    /// A packet was stopped by that.
    Unreachable,
    /// The switch stopped.
    SwitchStopped,
    /// A node died.
    NodeDied,
    /// A node came back.
    NodeReturned,
    /// The shadow lost its table.
    ShadowRestarted,
    /// An epoch began.
    Epoch,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Lost,
        Self::Duplicated,
        Self::Reordered,
        Self::Delayed,
        Self::Corrupted,
        Self::Partition,
        Self::Unreachable,
        Self::SwitchStopped,
        Self::NodeDied,
        Self::NodeReturned,
        Self::ShadowRestarted,
        Self::Epoch,
    ];

    /// What reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "packets lost",
            Self::Duplicated => "packets duplicated",
            Self::Reordered => "packets reordered",
            Self::Delayed => "packets delayed",
            Self::Corrupted => "packets corrupted",
            Self::Partition => "partitions",
            Self::Unreachable => "packets stopped by partitions",
            Self::SwitchStopped => "switch stopped",
            Self::NodeDied => "nodes died",
            Self::NodeReturned => "nodes came back",
            Self::ShadowRestarted => "shadow restarted",
            Self::Epoch => "epochs",
        }
    }
}

/// How often each kind of fault has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    kinds: [u64; Fault::ALL.len()],
    total: u64,
}

impl Counts {
    /// One more.
    pub fn note(&mut self, fault: Fault) {
        self.kinds[fault as usize] += 1;
        self.total += u64::from(!matches!(fault, Fault::Reordered | Fault::Epoch));
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.kinds.iter_mut().zip(other.kinds).for_each(|(sum, n)| *sum += n);
        self.total += other.total;
    }

    /// All that broke something: packets that were lost, repeated or held up, and places that stopped or started. A
    /// partition counts once, and so does each packet that it stopped. That packets pass each other, and that an epoch begins
    /// after a stop, is nothing of its own.
    pub const fn total(&self) -> u64 {
        self.total
    }
}

impl Index<Fault> for Counts {
    type Output = u64;

    fn index(&self, fault: Fault) -> &u64 {
        &self.kinds[fault as usize]
    }
}
