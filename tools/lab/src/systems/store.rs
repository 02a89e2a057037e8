//! The key-value store on any system.

use rackmem::Memory;
use sim::rack::{Ended, Rack, Setup, Until};
use sim::system::{Random, ThreadId};
use simulated::{Shape, SimulatedHandle};

use super::micro::measure;
use super::subject::Subject;
use crate::figure::measured::Measured;
use crate::figure::point::Store;
use crate::figure::run::{Interrupted, Watch};
use crate::load::store::{Client, Popularity, Table, value};
use crate::sizes::Sizes;

/// What the values are kept in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// The key-value store.
    Hashed,
    /// An array of slots.
    Slots,
}

/// Fills a store, then runs the benchmark on it.
pub(super) fn run<S: Subject>(
    setup: Setup,
    system: S,
    (load, form): (Store, Form),
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (shape, keys) = (system.shape(), sizes.keys);
    let mut seeds = Random::new(setup.seed);
    let threads = setup.nodes * setup.threads;
    let mut rack = Rack::new(setup, system);
    let table = rack.run_one(ThreadId(0), move |handle| async move {
        let mut mem = SimulatedHandle::new(handle, shape);
        match form {
            Form::Hashed => Table::hashed(&mut mem, keys).await,
            Form::Slots => Table::slots(&mut mem, keys).await,
        }
    });
    fill(&mut rack, shape, &table, keys, threads);
    let popularity = Popularity::new(keys);
    for thread in 0..threads {
        let (table, popularity, seed) = (table.clone(), popularity.clone(), seeds.bits());
        rack.spawn(id(thread), move |handle| async move {
            let mut mem = SimulatedHandle::new(handle, shape);
            let mut client = Client::new(table, popularity, load.gets, seed);
            loop {
                let since = mem.now();
                client.step(&mut mem).await;
                mem.thread().finished(since);
            }
        });
    }
    measure(&mut rack, sizes, watch)
}

/// Every thread puts its part of the keys.
fn fill<S: Subject>(rack: &mut Rack<S>, shape: Shape, table: &Table, keys: u64, threads: usize) {
    for thread in 0..threads {
        let table = table.clone();
        rack.spawn(id(thread), move |handle| async move {
            let mut mem = SimulatedHandle::new(handle, shape);
            for key in (thread as u64..keys).step_by(threads) {
                table.put(&mut mem, key, &value(key, 0)).await;
            }
        });
    }
    let report = rack.run(Until::WorkersDone);
    assert_eq!(report.ended, Ended::WorkersDone, "every put comes to an end");
}

fn id(thread: usize) -> ThreadId {
    ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads"))
}
