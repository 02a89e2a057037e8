//! TPC-C on any coherent memory: the engine of `crates/apps` as it is, with locks of either kind.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use apps::tpcc::{Mix, Scale, TABLES, Worker, load};
use apps::tx::{Client, Database, Locking};
use rackmem::{BlockSize, Memory};
use sim::rack::{Rack, Setup};
use sim::system::ThreadId;
use simulated::{Done, SimulatedHandle};
use wire::Nanos;

use super::micro::{advance, measured};
use super::subject::Subject;
use super::threads::on_all_threads;
use crate::figure::measured::Measured;
use crate::figure::point::Transactions;
use crate::figure::run::{Interrupted, Watch};
use crate::sizes::Sizes;

/// What is counted besides: attempts in vain.
pub(crate) const ABORTED: &str = "aborted";
/// Bytes of a client's log.
const LOG: u64 = 64 << 10;
/// Slots of a node for block locks: four clients hold some 30 each.
pub(super) const LOCK_SLOTS: usize = 256;
/// A transaction has some 200 accesses: the runs are so much shorter than those of the micro benchmark.
const SHORTER: u64 = 30;
/// Rows of TPC-C as specified, for so many keys of the key-value store.
const KEYS: u64 = 10 << 18;

/// How many warehouses there are, and how many rows: a tenth of the specified ones at full size.
pub(crate) fn scale(sizes: &Sizes) -> Scale {
    Scale { warehouses: sizes.all_threads() as u64, shrink: (KEYS / sizes.keys).clamp(1, Scale::MOST) }
}

/// Transactions to warm up, and those that count.
pub(crate) const fn transactions(sizes: &Sizes) -> (u64, u64) {
    (sizes.warm_up / SHORTER, sizes.operations / SHORTER)
}

/// Cache and memory of a node. All of the database has room in a cache, as in the paper, where it is half as large again.
pub(super) fn room(sizes: &Sizes) -> (u64, u64) {
    /// What allocators may leave over in a chunk, and what homes that were drawn by chance have more than others.
    const BESIDE: u64 = 128 << 20;
    let (warm_up, counted) = transactions(sizes);
    // Of each warehouse, and twice as many: some have more than others.
    let each = 2 * (warm_up + counted) / sizes.all_threads() as u64;
    let all = scale(sizes).bytes_needed(each, BlockSize::DEFAULT.bytes(), LOG);
    (all, all / sizes.nodes as u64 * 5 / 4 + BESIDE)
}

/// Loads a database, then runs transactions on it. Rows are locked by `L`.
pub(super) fn run<L: Default + 'static, S: Subject>(
    setup: Setup,
    system: S,
    (load_of, each_access): (Transactions, Nanos),
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted>
where
    SimulatedHandle<S>: Locking<L>,
{
    let (shape, seed, scale) = (system.shape(), setup.seed, scale(sizes));
    let threads = setup.nodes * setup.threads;
    let distribution = u64::from(load_of.distribution);
    let mut rack = Rack::new(setup, system);
    let database = rack.run_one(ThreadId(0), move |handle| async move {
        let mem = &mut SimulatedHandle::new(handle, shape);
        let size = (scale.warehouses as usize, scale.warehouses as usize);
        Database::create(mem, TABLES, size, LOG).await.expect("there is room for the database")
    });
    let (_, clients) = on_all_threads(&mut rack, watch, |handle, id| {
        let (mut mem, database) = (SimulatedHandle::new(handle, shape), database.clone());
        async move {
            let client = Client::with_locks(&mut mem, &database, id, L::default()).await;
            let mut client = client.expect("it has a log");
            let warehouse = id as u64 + 1;
            let loaded = load(&mut client, &mut mem, (scale, warehouse), seed, &AtomicU64::new(0)).await;
            loaded.expect("there is room for the rows");
            client
        }
    })?;
    let aborted = Rc::new(RefCell::new(0));
    for (id, client) in clients.into_iter().enumerate() {
        let aborted = Rc::clone(&aborted);
        let thread = ThreadId(u16::try_from(id).expect("fewer than 2^16 threads"));
        rack.spawn(thread, move |handle| async move {
            let work =
                move |_, done| if matches!(done, Done::Allocated(..)) { Nanos::ZERO } else { each_access };
            let mut mem = SimulatedHandle::new(handle, shape).with_work(Box::new(work));
            let id = id as u64;
            let mut worker = Worker::new(client, (id, 0), (scale, id + 1), distribution, seed)
                .with_mix(Mix::NewOrdersAndPayments);
            loop {
                let since = mem.now();
                let done = worker.step(&mut mem, || {}).await.expect("there is room for more rows");
                *aborted.borrow_mut() += done.conflicts.len() as u64;
                mem.thread().finished(since);
            }
        });
    }
    let (warm_up, counted) = transactions(sizes);
    advance(&mut rack, warm_up, watch)?;
    rack.measure_from_here();
    let (before, aborted_before) = (rack.with_system(Subject::tally), *aborted.borrow());
    let report = advance(&mut rack, counted, watch)?;
    let after = rack.with_system(Subject::tally);
    let aborted = *aborted.borrow() - aborted_before;
    Ok(Measured {
        counted: vec![(ABORTED.to_owned(), aborted)],
        ..measured(&report, &before, &after, threads)
    })
}
