//! What a run of coherent blocks is like: everything that is not drawn step by step.

use node::{Directory, Peeks};

use crate::rack::{self, Conditions, Faults, Knob, Knobs, Order, Random, Restarts};

/// What a run of coherent blocks is like.
pub type Plan = rack::Plan<BlockPlan>;

/// What only blocks have.
#[derive(Clone, Copy, Debug)]
pub struct BlockPlan {
    /// Blocks that threads allocate at most.
    pub blocks: usize,
    /// Buckets of two frames in each cache.
    pub buckets: usize,
    /// Entries of the switch.
    pub switch_entries: usize,
    /// Where entries are kept.
    pub directory: Directory,
    /// Conflicting requests wait in a queue.
    pub queue: bool,
    /// Which reads are done where the block is.
    pub peeks: Peeks,
    /// Entries move to the switch as soon as they are free.
    pub persistent: bool,
    /// Of a thousand accesses, those that write.
    pub writes: u32,
    /// Blocks of each node's memory, and of a chunk of it.
    pub memory: (u64, u64),
    /// Of a thousand allocations, those of other disciplines.
    pub others: u32,
}

impl Knobs for BlockPlan {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        vec![
            Knob::size("blocks", &mut self.blocks, 1, 32),
            Knob::size("buckets", &mut self.buckets, 1, 64),
            Knob::rate("writes", &mut self.writes, 1000),
        ]
    }
}

impl Plan {
    /// The seed draws everything: sizes, where entries are kept, how bad the network is. Nothing stops.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let faults = Faults::drawn(&mut random);
        let mut up_to = |most: usize| random.below(most + 1);
        let rack = Conditions { faults, ..Conditions::drawn(&mut up_to, Order::Oldest) };
        let world = BlockPlan {
            blocks: 1 + up_to(5),
            buckets: 1 + up_to(1),
            switch_entries: [7, 14, 70][up_to(2)],
            directory: [Directory::Auto, Directory::Switch, Directory::Home][up_to(2)],
            queue: false,
            peeks: Peeks::NEVER,
            persistent: false,
            writes: 500,
            memory: (64, 4),
            others: 0,
        };
        Self { rack, world }
    }

    /// The same with our own options, that follow from the seed: the queue, PEEK always or where it is worth it, and
    /// migration that waits.
    #[must_use]
    pub fn with_options(mut self, seed: u64) -> Self {
        let few = Peeks { rows: 4, ..Peeks::ALWAYS };
        self.world.peeks = [Peeks::NEVER, Peeks::ALWAYS, few][(seed / 2 % 3) as usize];
        self.world.queue = seed % 2 == 1;
        self.world.persistent = seed / 6 % 2 == 1;
        self
    }

    /// The same as with restarts, and half of what is allocated has copies.
    pub fn with_copies(seed: u64) -> Self {
        let mut plan = Self::with_restarts(seed).with_options(seed);
        let mut random = Random::new(seed ^ 0xc091e5);
        plan.rack.nodes = plan.rack.nodes.max(2);
        plan.rack.copies = 2 + random.below(2.min(plan.rack.nodes - 1));
        // Nodes have several blocks of their own, so that batches are more than one.
        plan.world.blocks += 4;
        plan.world.buckets += random.below(4);
        // Not so many that nothing is copied again before the next one.
        plan.rack.restarts.node = 1 + random.below(3) as u32;
        plan
    }

    /// Three nodes and four blocks, of which half have two copies, on a network that only reorders: for runs in which a node dies at
    /// every step.
    pub fn of_three_with_copies(seed: u64) -> Self {
        let mut plan = Self::from_seed(seed);
        plan.rack = Conditions { nodes: 3, threads: 1, copies: 2, ..plan.rack };
        plan.rack.faults = Faults { reorder: 200, ..Faults::default() };
        plan.world =
            BlockPlan { blocks: 4, buckets: 4, writes: 600, directory: Directory::Home, ..plan.world };
        plan
    }

    /// The same, and places stop and start again, packets are damaged, and places cannot reach each other for
    /// a while.
    pub fn with_restarts(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xdead);
        let mut plan = Self::from_seed(seed);
        plan.world.writes = 200 + random.below(601) as u32;
        plan.rack.faults.be_worse(&mut random);
        let mut up_to = |most: u32| random.below(most as usize + 1) as u32;
        // Now and then, or again and again while the last one is being recovered from.
        let often = [1, 2, 4, 12][up_to(3) as usize];
        let restarts = &mut plan.rack.restarts;
        *restarts = Restarts { switch: up_to(often), node: up_to(often), shadow: up_to(often.div_ceil(2)) };
        match up_to(7) {
            0 => restarts.node = 0,
            1 => restarts.switch = 0,
            2 => plan.rack.faults = Faults { reorder: 300, duplicate: 20, ..Faults::default() },
            _ => {}
        }
        plan
    }
}
