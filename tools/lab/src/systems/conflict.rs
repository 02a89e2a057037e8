//! All threads of a rack on one word, on any system.

use node::Access;
use rackmem::{Discipline, Memory, NodeId};
use sim::rack::{Rack, Setup};
use sim::system::{Random, ThreadId};
use simulated::SimulatedHandle;

use super::micro::measure;
use super::subject::Subject;
use crate::figure::measured::Measured;
use crate::figure::point::Conflict;
use crate::figure::run::{Interrupted, Watch};
use crate::sizes::Sizes;

/// Runs it. The block is hot from the beginning.
pub(super) fn run<S: Subject>(
    setup: Setup,
    system: S,
    load: Conflict,
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (shape, threads) = (system.shape(), setup.nodes * setup.threads);
    let mut seeds = Random::new(setup.seed);
    let mut rack = Rack::new(setup, system);
    let word = rack.run_one(ThreadId(0), move |handle| async move {
        let mut mem = SimulatedHandle::new(handle, shape);
        mem.alloc(8, NodeId(0), Discipline::Coherent).await.expect("there is room for a word")
    });
    rack.with_system_mut(|system| system.hot(word));
    for thread in 0..threads {
        let seed = seeds.bits();
        let id = ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads"));
        rack.spawn(id, move |handle| async move {
            let (mut mem, mut random) = (SimulatedHandle::new(handle, shape), Random::new(seed));
            loop {
                let reads = random.below(100) < u64::from(load.reads);
                let access = if reads { Access::Shared } else { Access::Modified };
                let since = mem.now();
                mem.thread().touch(word, 8, access, &mut |_| {}).await.expect("the word is allocated");
                mem.thread().finished(since);
            }
        });
    }
    measure(&mut rack, sizes, watch)
}
