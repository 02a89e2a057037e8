//! What a run of all of them together is like.

use wire::Nanos;

use crate::chains::ChainPlan;
use crate::coherence::{self, BlockPlan};
use crate::locks::{self, LockPlan};
use crate::rack::{self, Knob, Knobs, Restarts};
use crate::regions::RegionsPlan;

/// What a run of all of them is like.
pub type Plan = rack::Plan<JointPlan>;

/// What blocks have, what locks have, what words and objects have, and what chains have.
#[derive(Clone, Copy, Debug)]
pub struct JointPlan {
    /// What only blocks have, and allocations of all kinds.
    pub blocks: BlockPlan,
    /// What only locks have.
    pub locks: LockPlan,
    /// What only words and objects have.
    pub words: RegionsPlan,
    /// What only chains have.
    pub chains: ChainPlan,
}

impl Knobs for JointPlan {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        let Self { blocks, locks, words, chains } = self;
        let mut knobs = blocks.knobs();
        // How many locks there may be follows from the memory.
        let locks = locks.knobs().into_iter().filter(|knob| knob.name != "locks").map(|mut knob| {
            if knob.name == "writes" {
                knob.name = "lock-writes";
            }
            knob
        });
        knobs.extend(locks);
        knobs.extend(words.knobs());
        knobs.extend(chains.knobs());
        knobs
    }
}

/// Blocks of each node's memory: so few that all disciplines meet at the same addresses. The first is never handed out.
const MEMORY: u64 = 10;
/// And as many more as a store takes with its address, where there are stores.
const ADDRESS: u64 = 1;
/// So often a packet is sent again at least where there are stores.
const RETRIES: usize = 5;
/// The world of locks looks at sets of so many.
const MOST_LOCKS: usize = 64;
/// In ten thousand steps: a recovery of everything takes up to a thousand, and what never gets to its end does no work.
const MOST_RESTARTS: u32 = 10;
/// The same where stores keep the network busy, too, and what passes in a step there: time-outs of everybody are as long as on a
/// network that carries everything else, and whoever asks again before he can be answered asks for ever.
const BUSY_RESTARTS: u32 = 3;
const BUSY_STEP: Nanos = Nanos(250);

impl Plan {
    /// The seed draws everything; places stop and start again.
    pub fn with_restarts(seed: u64) -> Self {
        let blocks = coherence::Plan::with_restarts(seed).with_options(seed);
        let locks = locks::Plan::with_restarts(seed).freeing();
        // One's conditions, or the other's.
        let mut rack = if seed.is_multiple_of(2) { blocks.rack } else { locks.rack };
        // Locks alone have recovered before the next stop even where stops are that frequent.
        let chains = ChainPlan::from_seed(seed);
        let most = if chains.stores > 0 { BUSY_RESTARTS } else { MOST_RESTARTS };
        let Restarts { switch, node, .. } = &mut rack.restarts;
        [switch, node].into_iter().for_each(|often| *often = most.min(*often));
        if chains.stores > 0 {
            rack.step = BUSY_STEP;
        }
        // A chunk has one discipline as long as its allocator lives: a block each, so that all of them get some.
        let more = if chains.stores > 0 { chains.units as u64 + ADDRESS } else { 0 };
        let memory = MEMORY + more;
        let blocks = BlockPlan { memory: (memory, 1), others: 700, ..blocks.world };
        let regions = (rack.nodes * (memory as usize - 1)).min(MOST_LOCKS);
        let locks = LockPlan { locks: regions, room: 1 + locks.world.room, ..locks.world };
        let mut words = RegionsPlan::from_seed(seed);
        if chains.stores > 0 {
            // What clients ask of metadata servers keeps the network busy: connections that break before they can be answered break
            // again and again.
            words.retries = words.retries.max(RETRIES);
        }
        Self { rack, world: JointPlan { blocks, locks, words, chains } }
    }
}
