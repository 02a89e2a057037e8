//! Which rack a point runs on.

use apps::tx::{Blocks as BlockLocks, Words};
use rackmem::BlockSize;
use sim::coherence::{Contents, FlowCc, FlowCcConfig};
use sim::rack::{Blocks, Setup};
use simulated::SimulatedBlockLock;

use super::coherence::FlowCcKind;
use super::{
    chains, coherence, conflict, failure, gam, graph, grappa, locks, micro, objects, programs, store,
    transactions,
};
use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Conflict, Load, Point, Store, Stressed, Subject, Transactions};
use crate::figure::run::{Interrupted, Watch};
use crate::load::store::SLOT;
use crate::sizes::Sizes;
use store::Form;

/// Operations that a point's run takes, counted or not.
pub fn operations(point: &Point, sizes: &Sizes) -> u64 {
    let warm_up = match point.load {
        Load::Stressed(load) if load.cold => micro::cold(sizes),
        Load::Transactions(_) => {
            let (warm_up, counted) = transactions::transactions(sizes);
            return warm_up + counted;
        }
        _ => sizes.warm_up,
    };
    warm_up + sizes.operations
}

/// Runs a point.
///
/// # Errors
/// [`Interrupted`] if whoever watches said so.
///
/// # Panics
/// If there is no such experiment.
pub fn measure(
    point: &Point,
    sizes: &Sizes,
    inputs: &Inputs,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let setup = Setup { threads: sizes.threads, seed, ..inputs.setup(sizes.nodes) };
    let on = (sizes, inputs);
    match point.load {
        Load::Micro(load) => on_micro(point.subject, setup, load.into(), on, watch),
        Load::Stressed(load) => on_micro(point.subject, setup, load, on, watch),
        Load::Budget(load) => {
            let setup = Setup { budget: true, blocks: blocks(point.subject), ..setup };
            on_micro(point.subject, setup, load.into(), on, watch)
        }
        Load::Conflict(load) => {
            let setup = Setup { nodes: load.nodes.into(), ..setup };
            on_one_block(point.subject, setup, load, on, watch)
        }
        Load::Failure(load) => {
            assert_eq!(point.subject, Subject::Concordia, "only this one depends on the switch");
            let room = (sizes.cache, memory_of_micro(sizes));
            let machines =
                coherence::machines(&setup, inputs.flowcc, FlowCcKind::Concordia, room, Contents::Stamps);
            failure::run(setup, machines, load, sizes, watch)
        }
        Load::Store(load) => {
            let setup = Setup { nodes: load.nodes.into(), ..setup };
            on_store(point.subject, setup, load, on, watch)
        }
        Load::Graph(load) => {
            let setup = Setup { nodes: load.nodes.into(), ..setup };
            graph::run((point.subject, load), setup, on, watch)
        }
        Load::Transactions(load) => on_tpcc(point.subject, setup, load, on, watch),
        Load::StoreBudget(load) => {
            let setup = Setup { nodes: load.nodes.into(), budget: true, ..setup };
            on_store(point.subject, Setup { blocks: blocks(point.subject), ..setup }, load, on, watch)
        }
        Load::Objects(load) => objects::run((point.subject, load), on, seed, watch),
        Load::Chains(load) => chains::run((point.subject, load), on, seed, watch),
        Load::ChainsFailure(load) => chains::fail((point.subject, load), inputs, seed, watch),
        Load::Program(_) | Load::Landing(_) | Load::Far(_) | Load::Data(_) | Load::Requests(_) => {
            programs::run((point.subject, point.load), on, watch)
        }
        Load::Contend(_) | Load::Buckets(_) => locks::run((point.subject, point.load), on, seed, watch),
    }
}

/// What becomes of blocks: they travel, but in estimates.
const fn blocks(subject: Subject) -> Blocks {
    match subject {
        Subject::PartFirst => Blocks::PartFirst(WORDS),
        Subject::Shipped => Blocks::Part(WORDS),
        _ => Blocks::Whole,
    }
}

fn no_memory(subject: Subject) -> ! {
    panic!("{subject:?} is about locks, and no memory to be measured")
}

fn on_micro(
    subject: Subject,
    setup: Setup,
    load: Stressed,
    (sizes, inputs): (&Sizes, &Inputs),
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let room = (sizes.cache, memory_of_micro(sizes));
    let blocks = sizes.places / BlockSize::DEFAULT.bytes();
    let coherence = |kind| {
        let mut machines = coherence::config(&setup, inputs.flowcc, kind, room, Contents::Stamps);
        if load.fewer > 0 {
            machines.switch_entries = (blocks / u64::from(load.fewer)) as usize;
        }
        FlowCc::new(machines)
    };
    let gam = |block| gam::machines(&setup, inputs.gam, block, room, Contents::Stamps);
    match subject {
        Subject::Concordia => micro::run(setup.clone(), coherence(FlowCcKind::Concordia), load, sizes, watch),
        Subject::HomeOnly => micro::run(setup.clone(), coherence(FlowCcKind::HomeOnly), load, sizes, watch),
        Subject::Rackmem | Subject::PartFirst | Subject::Shipped => {
            micro::run(setup.clone(), coherence(FlowCcKind::Rackmem), load, sizes, watch)
        }
        Subject::Gam => micro::run(setup.clone(), gam((None, 2)), load, sizes, watch),
        Subject::GamLarge => {
            micro::run(setup.clone(), gam((Some(BlockSize::DEFAULT), 2)), load, sizes, watch)
        }
        Subject::GamOneThread => micro::run(setup.clone(), gam((None, 1)), load, sizes, watch),
        Subject::Grappa => {
            let machines = grappa::machines(&setup, inputs.grappa, None, room.1, Contents::Stamps);
            micro::run(setup, machines, load, sizes, watch)
        }
        other => no_memory(other),
    }
}

fn on_one_block(
    subject: Subject,
    setup: Setup,
    load: Conflict,
    (sizes, inputs): (&Sizes, &Inputs),
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let room = (sizes.store_cache, CHUNK);
    let coherence = |kind| coherence::machines(&setup, inputs.flowcc, kind, room, Contents::Stamps);
    let gam = |block| gam::machines(&setup, inputs.gam, block, room, Contents::Stamps);
    match subject {
        Subject::Concordia => {
            conflict::run(setup.clone(), coherence(FlowCcKind::Concordia), load, sizes, watch)
        }
        Subject::HomeOnly => {
            conflict::run(setup.clone(), coherence(FlowCcKind::HomeOnly), load, sizes, watch)
        }
        Subject::Rackmem | Subject::PartFirst | Subject::Shipped => {
            conflict::run(setup.clone(), coherence(FlowCcKind::Rackmem), load, sizes, watch)
        }
        Subject::Gam => conflict::run(setup.clone(), gam((None, 2)), load, sizes, watch),
        Subject::GamLarge => {
            conflict::run(setup.clone(), gam((Some(BlockSize::DEFAULT), 2)), load, sizes, watch)
        }
        Subject::GamOneThread => conflict::run(setup.clone(), gam((None, 1)), load, sizes, watch),
        Subject::Grappa => {
            let machines = grappa::machines(&setup, inputs.grappa, None, room.1, Contents::Stamps);
            conflict::run(setup, machines, load, sizes, watch)
        }
        other => no_memory(other),
    }
}

fn on_store(
    subject: Subject,
    setup: Setup,
    load: Store,
    (sizes, inputs): (&Sizes, &Inputs),
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let memory = memory_of_store(sizes, setup.nodes as u64);
    let room = (sizes.store_cache, memory);
    let coherence = |kind| coherence::machines(&setup, inputs.flowcc, kind, room, Contents::Bytes);
    let gam = |block| gam::machines(&setup, inputs.gam, block, room, Contents::Bytes);
    let hashed = (load, Form::Hashed);
    match subject {
        Subject::Concordia => {
            store::run(setup.clone(), coherence(FlowCcKind::Concordia), hashed, sizes, watch)
        }
        Subject::HomeOnly => store::run(setup.clone(), coherence(FlowCcKind::HomeOnly), hashed, sizes, watch),
        Subject::Rackmem | Subject::PartFirst | Subject::Shipped => {
            store::run(setup.clone(), coherence(FlowCcKind::Rackmem), hashed, sizes, watch)
        }
        Subject::Gam => store::run(setup.clone(), gam((None, 2)), hashed, sizes, watch),
        Subject::GamLarge => {
            store::run(setup.clone(), gam((Some(BlockSize::DEFAULT), 2)), hashed, sizes, watch)
        }
        Subject::GamOneThread => store::run(setup.clone(), gam((None, 1)), hashed, sizes, watch),
        Subject::Grappa => {
            let block = BlockSize::new(SLOT).expect("a slot is a block");
            let machines = grappa::machines(&setup, inputs.grappa, Some(block), memory, Contents::Bytes);
            store::run(setup, machines, (load, Form::Slots), sizes, watch)
        }
        other => no_memory(other),
    }
}

fn on_tpcc(
    subject: Subject,
    setup: Setup,
    load: Transactions,
    (sizes, inputs): (&Sizes, &Inputs),
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (room, load) = (transactions::room(sizes), (load, inputs.transactions));
    let kind = match subject {
        Subject::Concordia => FlowCcKind::Concordia,
        Subject::HomeOnly => FlowCcKind::HomeOnly,
        Subject::Rackmem => FlowCcKind::Rackmem,
        Subject::GamLarge => {
            let block = (Some(BlockSize::DEFAULT), 2);
            let machines = gam::machines(&setup, inputs.gam, block, room, Contents::Bytes);
            return transactions::run::<Words, _>(setup, machines, load, sizes, watch);
        }
        other => no_memory(other),
    };
    let config = coherence::config(&setup, inputs.flowcc, kind, room, Contents::Bytes);
    if kind == FlowCcKind::Rackmem {
        return transactions::run::<Words, _>(setup, FlowCc::new(config), load, sizes, watch);
    }
    let machines = FlowCc::new(FlowCcConfig { lock_slots: transactions::LOCK_SLOTS, ..config });
    transactions::run::<BlockLocks<SimulatedBlockLock>, _>(setup, machines, load, sizes, watch)
}

/// Bytes of a message that brings the words asked for, or an operation: a packet's header and a cache line.
const WORDS: u32 = 128;

/// What allocators may leave over in a chunk.
const CHUNK: u64 = 32 << 20;

/// Memory that each node needs for its part of the working set: its share of each region, in whole chunks.
fn memory_of_micro(sizes: &Sizes) -> u64 {
    let regions = sizes.all_threads() as u64 + 1;
    regions * (sizes.places / sizes.nodes as u64 + CHUNK).next_multiple_of(CHUNK)
}

/// Memory that each node needs for its part of the keys. GAM gives every allocation blocks of its own, up to 4 KiB.
fn memory_of_store(sizes: &Sizes, nodes: u64) -> u64 {
    const MOST: u64 = 6 << 10;
    (sizes.keys.div_ceil(nodes) * MOST).next_multiple_of(CHUNK) + 8 * CHUNK
}
