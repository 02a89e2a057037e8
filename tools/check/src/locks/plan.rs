//! What a run of locks is like: everything that is not drawn step by step.

use crate::rack::{self, Conditions, Faults, Knob, Knobs, Order, Random, Restarts};

/// What a run of locks is like.
pub type Plan = rack::Plan<LockPlan>;

/// What only locks have.
#[derive(Clone, Copy, Debug)]
pub struct LockPlan {
    /// Locks. Every third has no data.
    pub locks: usize,
    /// Copies that each node has capacity for.
    pub room: usize,
    /// Entries of the switch; 0: their homes keep them all.
    pub switch_entries: usize,
    /// Threads of the holder that may go first.
    pub preference: u32,
    /// Of a thousand threads that want a lock, those that want to write.
    pub writes: u32,
    /// Those that do not want to wait.
    pub once: u32,
    /// Of a thousand turns of a thread that waits, those in which it gives up.
    pub cancel: u32,
    /// Of a thousand turns of a thread that is inside to write, or was told that the lock is lost, those in which it frees it.
    pub frees: u32,
    /// What stays unanswered is sent again.
    pub repeats: bool,
}

impl Knobs for LockPlan {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        vec![
            Knob::size("locks", &mut self.locks, 1, 32),
            Knob::size("room", &mut self.room, 1, 32),
            Knob::rate("preference", &mut self.preference, 64),
            Knob::rate("writes", &mut self.writes, 1000),
            Knob::rate("once", &mut self.once, 1000),
            Knob::rate("cancel", &mut self.cancel, 1000),
            Knob::rate("frees", &mut self.frees, 1000),
        ]
    }
}

impl Plan {
    /// Nothing is lost or comes twice, and nothing is sent again: what a rack inside one process relies on.
    pub fn lossless(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x10c4);
        let mut up_to = |most: usize| random.below(most + 1);
        let locks = 1 + up_to(2);
        let mut rack = Conditions { told_at_once: true, ..Conditions::drawn(&mut up_to, Order::None) };
        let world = LockPlan {
            locks,
            room: 1 + up_to(locks - 1),
            switch_entries: [0, 2, 64][up_to(2)],
            preference: [0, 0, 1, 3][up_to(3)],
            writes: [500, 100, 900, 1000][up_to(3)],
            once: [0, 0, 200][up_to(2)],
            cancel: [0, 0, 30][up_to(2)],
            frees: 0,
            repeats: false,
        };
        if up_to(1) == 0 {
            rack.order = Order::OfEachPair;
        }
        Self { rack, world }
    }

    /// The seed draws everything: sizes, who keeps the entries, how bad the network is.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5eed_10c4);
        let faults = Faults::drawn(&mut random);
        let faults = match random.below(5) {
            0 => Faults { lose: 0, ..faults },
            1 => Faults { duplicate: 0, delay: 0, ..faults },
            _ => faults,
        };
        let mut plan = Self::lossless(seed);
        plan.world.repeats = true;
        plan.rack = Conditions { faults, order: Order::OfEachPair, told_at_once: false, ..plan.rack };
        plan
    }

    /// The same, and the switch and nodes stop and start again: now and then, or while the last time is being recovered
    /// from; packets are damaged, and places cannot reach each other for a while.
    pub fn with_restarts(seed: u64) -> Self {
        let mut plan = Self::from_seed(seed);
        plan.rack.restarts = Self::restarts(seed);
        plan.rack.faults.be_worse(&mut Random::new(seed ^ 0xbad_10c4));
        plan
    }

    /// Places stop and start again, and nothing else goes wrong: all hear of it before anything is delivered.
    pub fn lossless_with_restarts(seed: u64) -> Self {
        let mut plan = Self::lossless(seed);
        plan.rack.restarts = Self::restarts(seed);
        plan
    }

    /// The same, and locks end, and begin anew.
    #[must_use]
    pub fn freeing(mut self) -> Self {
        self.world.frees = 100;
        self
    }

    fn restarts(seed: u64) -> Restarts {
        let mut random = Random::new(seed ^ 0xdead_10c4);
        let often = [10, 20, 40, 100][random.below(4)];
        let mut up_to = |most: usize| random.below(most + 1) as u32;
        let restarts = Restarts { switch: up_to(often), node: up_to(often), shadow: 0 };
        match up_to(4) {
            0 => Restarts { node: 0, ..restarts },
            1 => Restarts { switch: 0, ..restarts },
            _ => restarts,
        }
    }
}
