//! Where the workers of a rack wait for each other, and add numbers up.
//!
//! Two blocks at node 0: one in which workers arrive, one that says how often all of them did. Who waits reads the
//! second one, so it does not disturb those who arrive: it is cached, and the last to arrive takes the copies away.
//!
//! What must always hold: nobody leaves before all have arrived. A worker that fails abandons the barrier, so that
//! nobody waits for it; after that the barrier is of no use.

use rackmem::{GlobalAddr, Memory};

use super::error::Error;

/// How often all arrived, when nobody may wait any more.
const ABANDONED: u64 = u64::MAX;
/// Looks before the thread lets others have its core.
const LOOKS: u32 = 64;

/// One worker's view of the barrier.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    /// Two blocks.
    at: GlobalAddr,
    block: u64,
    workers: u64,
    /// How often this worker was here.
    times: u64,
}

impl Barrier {
    /// In two blocks of zeroes.
    pub(super) fn new(at: GlobalAddr, block: u64, workers: usize) -> Self {
        Self { at, block, workers: workers as u64, times: 0 }
    }

    /// Waits for all; gives the sum of what they brought.
    pub(super) async fn wait<M: Memory>(&mut self, mem: &mut M, brought: u64) -> Result<u64, Error> {
        self.times += 1;
        let (times, workers, released) = (self.times, self.workers, self.at + self.block);
        let last = mem
            .update(self.at, 16, |window| {
                let (arrived, sum) = (window.word(0) + 1, window.word(8) + brought);
                let last = arrived == workers;
                window.set_word(0, if last { 0 } else { arrived });
                window.set_word(8, if last { 0 } else { sum });
                last.then_some(sum)
            })
            .await?;
        if let Some(sum) = last {
            let release = |window: &rackmem::Window<'_>| {
                // Who gave up meanwhile is not forgotten.
                if window.word(0) != ABANDONED {
                    window.set_word(0, times);
                    window.set_word(8, sum);
                }
            };
            mem.update(released, 16, release).await?;
        }
        let mut looks = 0;
        loop {
            let (all, sum) = mem.inspect(released, 16, |window| (window.word(0), window.word(8))).await?;
            if all == ABANDONED {
                return Err(Error::Abandoned);
            }
            if all == times {
                return Ok(sum);
            }
            looks += 1;
            if looks % LOOKS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// Nobody may wait for this worker. What fails here has failed before.
    pub(super) async fn abandon<M: Memory>(&self, mem: &mut M) {
        let _ = mem.update(self.at + self.block, 8, |window| window.set_word(0, ABANDONED)).await;
    }
}
