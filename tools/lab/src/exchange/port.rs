//! A thread's side of an exchange.
//!
//! What must always hold: all threads of a rack go through the same phases.

use sim::rack::Handle;
use sim::system::ThreadId;
use wire::Nanos;

use super::{Exchange, Item, Request, times};

/// One thread's access to all others.
pub struct Port {
    handle: Handle<Exchange>,
    /// A buffer for each thread.
    outgoing: Vec<Vec<Item>>,
    capacity: usize,
    put: Nanos,
}

impl Port {
    /// The port of this thread.
    pub fn new(handle: Handle<Exchange>) -> Self {
        let (threads, capacity, put) = handle.with_system(|system| {
            let config = system.config();
            (config.nodes * config.threads, config.capacity(), config.costs.put)
        });
        Self { handle, outgoing: vec![Vec::new(); threads], capacity, put }
    }

    /// Works for so long, sends these items meanwhile, and meets all others. Gives the sum of what they brought, and the items
    /// that they have sent to this thread.
    pub async fn phase(
        &mut self,
        work: Nanos,
        items: Vec<(ThreadId, Item)>,
        brought: u64,
    ) -> (u64, Vec<Item>) {
        let (count, mut worked) = (items.len().max(1) as u64, Nanos::ZERO);
        for (number, (to, item)) in (1..).zip(items) {
            let buffer = &mut self.outgoing[usize::from(to.0)];
            buffer.push(item);
            if buffer.len() == self.capacity {
                // The work that was done for all items so far.
                let done = Nanos(work.0 / count * number);
                self.handle.compute(done - worked);
                worked = done;
                self.send(to).await;
            }
        }
        self.handle.compute(work - worked);
        for to in 0..self.outgoing.len() {
            self.send(ThreadId(to as u16)).await;
        }
        let mut meeting = Request::Meet(brought);
        self.handle.own(&mut meeting).await.expect("an exchange refuses nothing");
        match meeting {
            Request::Met(sum, items) => (sum, items),
            other => unreachable!("a meeting ended with {other:?}"),
        }
    }

    /// Sends what there is for a thread.
    async fn send(&mut self, to: ThreadId) {
        let items = core::mem::take(&mut self.outgoing[usize::from(to.0)]);
        if items.is_empty() {
            return;
        }
        self.handle.compute(times(self.put, items.len() as u32));
        self.handle.own(&mut Request::Send(to, items)).await.expect("an exchange refuses nothing");
    }
}
