//! What a run is like: everything that is not drawn step by step.

use node::{Directory, Peeks};

use super::{Faults, Random};

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

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many nodes.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// Blocks that threads allocate at most.
    pub blocks: usize,
    /// Buckets of two frames in each cache.
    pub buckets: usize,
    /// Entries of the switch.
    pub switch_entries: usize,
    /// Where entries are kept.
    pub directory: Directory,
    /// Conflicting requests wait in line.
    pub queue: bool,
    /// Which reads are done where the block is.
    pub peeks: Peeks,
    /// Entries move to the switch as soon as they are free.
    pub persistent: bool,
    /// Of a thousand accesses, those that write.
    pub writes: u32,
    /// What goes wrong on the way.
    pub faults: Faults,
    /// What stops.
    pub restarts: Restarts,
    /// Print every delivery, for finding out why a run failed.
    pub trace: bool,
}

impl Plan {
    /// The seed draws everything: sizes, where entries are kept, how bad the network is. Nothing stops.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let mut up_to = |most: usize| random.below(most + 1) as u32;
        let faults = Faults {
            lose: up_to(60),
            duplicate: up_to(80),
            reorder: up_to(600),
            delay: up_to(40),
            ..Faults::default()
        };
        let (nodes, threads) = (2 + up_to(2) as usize, 1 + up_to(2) as usize);
        Self {
            nodes,
            threads,
            blocks: 1 + up_to(5) as usize,
            buckets: 1 + up_to(1) as usize,
            switch_entries: [7, 14, 70][up_to(2) as usize],
            directory: [Directory::Auto, Directory::Switch, Directory::Home][up_to(2) as usize],
            queue: false,
            peeks: Peeks::NEVER,
            persistent: false,
            writes: 500,
            faults,
            restarts: Restarts::default(),
            trace: false,
        }
    }

    /// The same with our own options, that follow from the seed: the line, PEEK always or where it is worth it, and
    /// migration that waits.
    #[must_use]
    pub fn with_options(self, seed: u64) -> Self {
        let few = Peeks { rows: 4, ..Peeks::ALWAYS };
        let peeks = [Peeks::NEVER, Peeks::ALWAYS, few][(seed / 2 % 3) as usize];
        Self { queue: seed % 2 == 1, peeks, persistent: seed / 6 % 2 == 1, ..self }
    }

    /// The same, and places stop and start again, packets are damaged, and places cannot reach each other for
    /// a while.
    pub fn with_restarts(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xdead);
        let mut up_to = |most: u32| random.below(most as usize + 1) as u32;
        let mut plan = Self::from_seed(seed);
        plan.writes = 200 + up_to(600);
        plan.faults.corrupt = up_to(10);
        plan.faults.partition = up_to(4);
        plan.faults.lose = plan.faults.lose.max(3);
        // Now and then, or again and again while the last one is being recovered from.
        let often = [1, 2, 4, 12][up_to(3) as usize];
        plan.restarts =
            Restarts { switch: up_to(often), node: up_to(often), shadow: up_to(often.div_ceil(2)) };
        match up_to(7) {
            0 => plan.restarts.node = 0,
            1 => plan.restarts.switch = 0,
            2 => plan.faults = Faults { reorder: 300, duplicate: 20, ..Faults::default() },
            _ => {}
        }
        plan
    }
}
