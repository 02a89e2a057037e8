//! A rack in a program of tokio: the program of `docs/tokio.md`.

use std::sync::{Arc, Mutex};

use rackmem::{Config, Locked, NodeHandle, NodeId, Rack, Words};
use tokio::task::{JoinSet, spawn_blocking};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Handles that tasks borrow. A handle is for one thread at a time, and there are as many as were ever needed at once.
#[derive(Clone)]
struct Handles {
    rack: Arc<Rack>,
    free: Arc<Mutex<Vec<NodeHandle>>>,
}

impl Handles {
    fn new(rack: Rack) -> Self {
        Self { rack: Arc::new(rack), free: Arc::default() }
    }

    /// For what takes microseconds at most: words, cached reads and writes. It runs where it is called.
    fn now<R>(&self, work: impl FnOnce(&mut NodeHandle) -> R) -> R {
        let free = self.free.lock().expect("nobody panics with it").pop();
        let mut handle = free.unwrap_or_else(|| self.rack.node(NodeId(0)));
        let result = work(&mut handle);
        self.free.lock().expect("nobody panics with it").push(handle);
        result
    }

    /// For what may wait for others: locks, names, allocation, whatever may miss. It runs on a thread that may block.
    /// Once begun it runs to its end, also if nobody waits for it any more.
    async fn wait<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut NodeHandle) -> R + Send + 'static,
    ) -> Result<R, Failure> {
        let handles = self.clone();
        Ok(spawn_blocking(move || handles.now(work)).await?)
    }
}

/// A hundred tasks count under a lock, and without one.
#[tokio::main(worker_threads = 2)]
pub async fn main() -> Result<(), Failure> {
    let config = Config { nodes: 2, cache: 1 << 20, memory: 16 << 20, ..Config::default() };
    // `Rack::join` and `Rack::attach` wait for the rack: call them in `spawn_blocking`, too.
    let handles = Handles::new(spawn_blocking(move || Rack::embedded(config)).await??);
    let quota = handles.wait(|here| here.named::<Locked<u64>>("quota").open_or(|| 0)).await??;
    let hits = Arc::new(handles.wait(|here| here.named::<Words<u64>>("hits").open_or(|| 1)).await??);

    let quota = Arc::new(quota);
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let (handles, quota, hits) = (handles.clone(), Arc::clone(&quota), Arc::clone(&hits));
        tasks.spawn(async move {
            handles.now(|here| hits.fetch_add(here, 0, 1))?;
            // The guard lives and dies inside: it cannot be kept over an `await`.
            handles.wait(move |here| quota.write(here).map(|mut quota| *quota += 2)).await??;
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let total = {
        let quota = Arc::clone(&quota);
        handles.wait(move |here| quota.read(here).map(|quota| *quota)).await??
    };
    let seen = handles.now(|here| hits.load(here, 0))?;
    println!("{seen} hits, quota {total}");
    assert_eq!((seen, total), (100, 200));
    Ok(())
}
