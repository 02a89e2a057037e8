//! What the store's own code costs: `get` and `update_in_place` over memory that is a plain array, against a
//! `HashMap` in the same process with the same keys, values and copies. What a rack adds to this is the price
//! of its hits, two for each of these operations.
//!
//! `cargo run --release -p rackmem-apps --example kv_cost`

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use apps::kv::{KvConfig, KvStore};
use rackmem::{BlockSize, Discipline, Error, GlobalAddr, Memory, Nanos, NodeId, Window, block_on};

/// One node's memory, all of it allocated in turn, never freed.
struct Plain {
    words: Box<[AtomicU64]>,
    next: u64,
}

impl Plain {
    fn window(&self, addr: GlobalAddr, len: usize) -> Window<'_> {
        let block = BlockSize::DEFAULT;
        let first = usize::try_from(block.tag(addr).addr().offset() / 8).expect("the array fits in memory");
        Window::new(&self.words[first..first + block.words()], block.offset_in_block(addr), len)
    }
}

impl Memory for Plain {
    fn node(&self) -> NodeId {
        NodeId(0)
    }

    fn nodes(&self) -> usize {
        1
    }

    fn block_size(&self) -> BlockSize {
        BlockSize::DEFAULT
    }

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    async fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        for (index, part) in into.chunks_mut(8).enumerate() {
            self.window(addr + index as u64 * 8, part.len()).read(0, part);
        }
        Ok(())
    }

    async fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        for (index, part) in bytes.chunks(8).enumerate() {
            self.window(addr + index as u64 * 8, part.len()).write(0, part);
        }
        Ok(())
    }

    async fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        Ok(self.window(addr, 8).word(0))
    }

    async fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        self.window(addr, 8).set_word(0, value);
        Ok(())
    }

    async fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        Ok(look(&self.window(addr, len)))
    }

    async fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        Ok(change(&self.window(addr, len)))
    }

    async fn alloc(&mut self, len: u64, home: NodeId, _: Discipline) -> Result<GlobalAddr, Error> {
        let block = BlockSize::DEFAULT.bytes();
        let size = len.next_multiple_of(16);
        if size > block || self.next % block + size > block {
            self.next = self.next.next_multiple_of(block);
        }
        let addr = GlobalAddr::new(home, self.next);
        self.next += size;
        if self.next > self.words.len() as u64 * 8 {
            return Err(Error::OutOfMemory { len, home: home.0 });
        }
        Ok(addr)
    }

    async fn free(&mut self, _: GlobalAddr) -> Result<(), Error> {
        Ok(())
    }
}

const VALUE: usize = 1000;
const ROUNDS: u64 = 2_000_000;

/// Keys in an order that no prefetcher follows.
fn pick(round: u64, records: u64) -> u64 {
    round.wrapping_mul(0x9e37_79b9_7f4a_7c15) % records
}

/// Nanoseconds of one round.
fn time(mut round: impl FnMut(u64)) -> f64 {
    (0..ROUNDS / 10).for_each(&mut round);
    let start = Instant::now();
    (0..ROUNDS).for_each(&mut round);
    start.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64
}

fn main() -> Result<(), apps::kv::Error> {
    println!("{:>8} records of 23 + {VALUE} bytes: ns per operation", "");
    for records in [100, 1000, 10_000, 100_000] {
        let keys: Vec<Vec<u8>> = (0..records).map(|n| format!("user{n:019}").into_bytes()).collect();
        let key = |round| &keys[usize::try_from(pick(round, records)).expect("records fit in memory")];
        let words = usize::try_from(records * 220 + (1 << 16)).expect("records fit in memory");
        let mut mem = Plain { words: (0..words).map(|_| AtomicU64::new(0)).collect(), next: 4096 };
        let store =
            block_on(KvStore::create(&mut mem, &KvConfig { expected_keys: records, ..KvConfig::default() }))?;
        let mut map = HashMap::new();
        let mut value = vec![7; VALUE];
        for key in &keys {
            block_on(store.put(&mut mem, key, &value))?;
            map.insert(key.clone(), value.clone());
        }
        let get = time(|round| assert!(block_on(store.get(&mut mem, key(round), &mut value)) == Ok(true)));
        let update = time(|round| {
            assert!(block_on(store.update_in_place(&mut mem, key(round), 300, &[9; 100])) == Ok(true));
        });
        let map_get = time(|round| value.copy_from_slice(&map[key(round)]));
        let map_update = time(|round| {
            map.get_mut(key(round)).expect("every key is there")[300..400].copy_from_slice(&[9; 100]);
        });
        println!(
            "{records:>8} get {get:6.1} (HashMap {map_get:6.1}), update {update:6.1} (HashMap {map_update:6.1})"
        );
    }
    Ok(())
}
