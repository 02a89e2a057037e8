//! The micro benchmark (Concordia, section 7.2): accesses of 8 bytes to data that threads share, and to data of their
//! own.
//!
//! The benchmark is GAM's (its `test/benchmark.cc`), with the parameters of the same names; the paper's numbers say so,
//! too: a working set of 8 GB over 32 threads makes 250 MB, which is what is shared. Each thread has as many *slots*,
//! one for each block of 250 MB. A slot is shared with the probability of the sharing ratio, a coin of each thread's
//! own: then it is the block of that number in the pool that all have in common, otherwise a block of the thread's own.
//! An access goes to a random word of a random slot, or, with the probability of the locality, to the next word of the
//! block of the access before.
//!
//! Written once against [`Memory`]; the driver of the rack decides how many steps a client does.
//!
//! What must always hold: a client's accesses follow from its seed alone, not from what it reads nor from time.

use std::rc::Rc;

use rackmem::{BlockSize, Discipline, Error, GlobalAddr, Memory, NodeId};
use sim::system::Random;

use crate::figure::point::{HotSet, Micro};

/// A range of bytes, spread over the homes in pieces of one length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pieces: Vec<GlobalAddr>,
    piece: u64,
}

impl Region {
    /// Allocates at least so many bytes: a piece at every home, of whole blocks of 4 KiB at least.
    ///
    /// # Errors
    /// If there is no capacity.
    pub async fn allocate<M: Memory>(mem: &mut M, bytes: u64) -> Result<Self, Error> {
        let unit = mem.block_size().bytes().max(4096);
        let piece = bytes.div_ceil(mem.nodes() as u64).next_multiple_of(unit);
        let mut pieces = Vec::with_capacity(mem.nodes());
        for home in 0..mem.nodes() {
            let home = NodeId(u16::try_from(home).expect("at most 64 nodes"));
            pieces.push(mem.alloc(piece, home, Discipline::Coherent).await?);
        }
        Ok(Self { pieces, piece })
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.pieces.len() as u64 * self.piece
    }

    /// Where a byte of it is.
    pub fn at(&self, offset: u64) -> GlobalAddr {
        self.pieces[(offset / self.piece) as usize] + offset % self.piece
    }
}

/// What is accessed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// What may be shared.
    pub pool: Region,
    /// What each thread has for itself.
    pub own: Vec<Region>,
    /// Fixes which slots are shared.
    pub coins: u64,
    /// How many, in percent.
    pub sharing: u8,
}

impl Data {
    /// Allocates all of it: so many bytes for each of so many threads, and once more for the pool.
    ///
    /// # Errors
    /// If there is no capacity.
    pub async fn allocate<M: Memory>(
        mem: &mut M,
        threads: usize,
        bytes: u64,
        (sharing, coins): (u8, u64),
    ) -> Result<Self, Error> {
        let pool = Region::allocate(mem, bytes).await?;
        let mut own = Vec::with_capacity(threads);
        for _ in 0..threads {
            own.push(Region::allocate(mem, bytes).await?);
        }
        Ok(Self { pool, own, coins, sharing })
    }

    /// Whether this slot of the thread is in the pool.
    pub fn is_shared(&self, thread: usize, slot: u64) -> bool {
        let of_thread = self.coins.wrapping_add(thread as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Random::new(of_thread ^ slot).below(100) < u64::from(self.sharing)
    }

    /// Where this slot of the thread begins.
    pub fn addr_of(&self, thread: usize, slot: u64, block: BlockSize) -> GlobalAddr {
        let region = if self.is_shared(thread, slot) { &self.pool } else { &self.own[thread] };
        region.at(slot * block.bytes())
    }
}

/// One thread of the benchmark.
#[derive(Clone, Debug)]
pub struct Client {
    data: Rc<Data>,
    thread: usize,
    block: BlockSize,
    load: Micro,
    random: Random,
    last: Option<GlobalAddr>,
    hot: HotSet,
    /// Operations so far.
    done: u64,
}

/// One place in so many is hot.
const COLDER: u64 = 64;
/// Accesses, in percent, that go to hot places.
const HEAT: u8 = 90;
/// A client's operations between two moves of the hot places.
const STAYS: u64 = 500;

impl Client {
    /// This thread of the rack.
    pub fn new(data: Rc<Data>, thread: usize, block: BlockSize, load: Micro, seed: u64) -> Self {
        Self { data, thread, block, load, random: Random::new(seed), last: None, hot: HotSet::None, done: 0 }
    }

    /// The same, with hot places.
    #[must_use]
    pub fn with_hot(self, hot: HotSet) -> Self {
        Self { hot, ..self }
    }

    /// The number of a random place.
    fn random_slot(&mut self, places: u64) -> u64 {
        let (some, moves) = ((places / COLDER).max(1), self.done / STAYS);
        self.done += 1;
        let hot = if self.hot == HotSet::None || !self.percent(HEAT) { HotSet::None } else { self.hot };
        match hot {
            HotSet::None => self.random.below(places),
            HotSet::Still => self.random.below(some),
            HotSet::Moving => (moves * some + self.random.below(some)) % places,
        }
    }

    /// One operation.
    ///
    /// # Errors
    /// What the memory says.
    pub async fn step<M: Memory>(&mut self, mem: &mut M) -> Result<(), Error> {
        let addr = self.next_word();
        if self.percent(self.load.reads) {
            mem.read_word(addr).await.map(|_| ())
        } else {
            mem.write_word(addr, addr.bits()).await
        }
    }

    /// Where the next operation goes.
    fn next_word(&mut self) -> GlobalAddr {
        let block = self.block.bytes();
        let stays = self.percent(self.load.locality);
        let word = match self.last.filter(|_| stays) {
            Some(last) => {
                let next = (self.block.offset_in_block(last) as u64 + 8) % block;
                self.block.tag(last).addr() + next
            }
            None => {
                let slots = self.data.pool.bytes() / block;
                let slot = self.random_slot(slots);
                let slot = self.data.addr_of(self.thread, slot, self.block);
                slot + self.random.below(block / 8) * 8
            }
        };
        self.last = Some(word);
        word
    }

    fn percent(&mut self, percent: u8) -> bool {
        self.random.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::{Config, Rack, block_on};

    /// A rack of two nodes, and slots for three threads.
    fn data(sharing: u8) -> Rc<Data> {
        let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 24, cache: 1 << 20, ..Config::default() })
            .unwrap();
        let mut mem = rack.node(NodeId(0));
        Rc::new(block_on(Data::allocate(&mut mem, 3, 1 << 20, (sharing, 5))).unwrap())
    }

    fn client(sharing: u8, locality: u8) -> Client {
        let load = Micro { sharing, reads: 50, locality };
        Client::new(data(sharing), 1, BlockSize::DEFAULT, load, 9)
    }

    fn is_in(region: &Region, addr: GlobalAddr) -> bool {
        region.pieces.iter().any(|piece| {
            piece.home() == addr.home()
                && (piece.offset()..piece.offset() + region.piece).contains(&addr.offset())
        })
    }

    #[test]
    fn most_accesses_go_to_the_hot_places_and_these_move_only_if_they_are_to() {
        let places = 64 * 10;
        let share = |hot, window: std::ops::Range<u64>| {
            let mut client = client(100, 0).with_hot(hot);
            for _ in 0..STAYS {
                client.random_slot(places);
            }
            (0..STAYS).filter(|_| window.contains(&client.random_slot(places))).count() as u64 * 100 / STAYS
        };
        assert!(share(HotSet::None, 0..10) < 5);
        assert!(share(HotSet::Still, 0..10) > 80 && share(HotSet::Moving, 0..10) < 5);
        assert!(share(HotSet::Moving, 10..20) > 80);
    }

    #[test]
    fn as_many_accesses_are_shared_as_asked_for_and_the_others_are_the_threads_own() {
        let mut client = client(30, 0);
        let mut shared = 0;
        for _ in 0..10_000 {
            let word = client.next_word();
            let in_pool = is_in(&client.data.pool, word);
            assert!(in_pool != is_in(&client.data.own[1], word), "{word}");
            shared += u32::from(in_pool);
        }
        // The coins of 256 slots: 30 % of them, give or take three standard deviations.
        assert!((2100..3900).contains(&shared), "{shared}");
    }

    #[test]
    fn locality_keeps_an_access_in_the_block_of_the_one_before() {
        let mut client = client(50, 90);
        let tags: Vec<_> = (0..10_000).map(|_| BlockSize::DEFAULT.tag(client.next_word())).collect();
        let stayed = tags.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((8900..9200).contains(&stayed), "{stayed}");
    }

    #[test]
    fn threads_toss_coins_of_their_own() {
        let data = data(50);
        let shared = |thread| (0..256).filter(|slot| data.is_shared(thread, *slot)).collect::<Vec<_>>();
        assert_ne!(shared(0), shared(1));
    }

    #[test]
    fn the_benchmark_runs_on_a_live_rack() {
        let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 24, cache: 1 << 20, ..Config::default() })
            .unwrap();
        let mut mem = rack.node(NodeId(1));
        let data = Rc::new(block_on(Data::allocate(&mut mem, 2, 1 << 20, (40, 1))).unwrap());
        let mut client =
            Client::new(data, 1, BlockSize::DEFAULT, Micro { sharing: 40, reads: 50, locality: 50 }, 3);
        for _ in 0..1000 {
            block_on(client.step(&mut mem)).unwrap();
        }
        assert!(rack.counters().misses() > 100);
    }
}
