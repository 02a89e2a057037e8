//! Application threads against an agent that takes blocks away, moves them between frames, and brings them
//! back.
//!
//! Each block's words all hold `block number << 40 | writes so far`, and every writer checks that and counts
//! on by one with the frame pinned. So a torn, foreign, lost or resurrected value shows at once or in the
//! final sums.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use live::memory::{Hints, NodeMemory, StoreOf, Unpinned, contents_of};
use node::{Access, FrameId, Pinned, Reservation, Store, Window};
use random::Random;
use wire::{BlockSize, BlockTag, GlobalAddr, NodeId};

const BLOCK: BlockSize = BlockSize::new(512).unwrap();
const WORDS: u64 = 64;
/// Blocks: twice as many as the two buckets of the cache hold.
const BLOCKS: u64 = 32;
const RUN: Duration = Duration::from_millis(1500);

struct Shared {
    all: Vec<NodeMemory>,
    stop: AtomicBool,
    /// Completed writes of each block.
    written: Vec<AtomicU64>,
}

fn tag(number: u64) -> BlockTag {
    BLOCK.tag(addr(number, 0))
}

fn addr(number: u64, word: u64) -> GlobalAddr {
    GlobalAddr::new(NodeId(0), (number * WORDS + word) * 8)
}

/// The writes that a whole block shows, if it is consistent.
fn writes_in(number: u64, window: &Window<'_>) -> Option<u64> {
    let first = window.word(0);
    let same = (1..window.len() / 8).all(|word| window.word(word * 8) == first);
    (same && first >> 40 == number).then_some(first & ((1 << 40) - 1))
}

fn set_all(window: &Window<'_>, value: u64) {
    (0..window.len() / 8).for_each(|word| window.set_word(word * 8, value));
}

/// Ends the run when the test's own thread is through, or panics.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl Shared {
    fn new(cache_frames: u64) -> Self {
        let all = vec![NodeMemory::new(BLOCK, cache_frames * BLOCK.bytes(), BLOCKS * BLOCK.bytes())];
        let mut store = StoreOf::new(&all, NodeId(0));
        for number in 0..BLOCKS {
            let Reservation::Reserved(frame) = store.reserve(tag(number), |_| false) else { panic!("empty") };
            store.publish(frame, tag(number), Access::Modified, true);
            let pinned = all[0].adopt(frame);
            set_all(&pinned.window(0, BLOCK.len()), number << 40);
            assert_eq!(pinned.unpin(true), Unpinned::Quiet);
            store.withdraw(frame).expect("nobody else is here");
            store.write_home(tag(number), store.contents(frame));
            store.release(frame);
        }
        let written = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
        Self { all, stop: AtomicBool::new(false), written }
    }

    fn running(&self) -> bool {
        !self.stop.load(SeqCst)
    }

    /// Reads words: never of another block, never older than what this thread has seen of the block.
    fn read_words(&self, seed: u64) -> u64 {
        let (mut dice, mut hints) = (Random::new(seed), Hints::new());
        let mut seen = vec![0; BLOCKS as usize];
        while self.running() {
            let number = dice.below(BLOCKS);
            for _ in 0..8 {
                let at = addr(number, dice.below(WORDS));
                let Some(word) = self.all[0].cache.load_word(&mut hints, at) else { break };
                assert_eq!(word >> 40, number, "a word of another block");
                let writes = word & ((1 << 40) - 1);
                let before = std::mem::replace(&mut seen[number as usize], writes);
                assert!(writes >= before, "block {number} went back from write {before} to {writes}");
            }
        }
        hints.hits()
    }

    /// Inspects whole blocks: all words alike, and never older than before.
    fn inspect(&self, seed: u64, reports: &Sender<FrameId>) -> u64 {
        let (mut dice, mut hints) = (Random::new(seed), Hints::new());
        let mut seen = vec![0; BLOCKS as usize];
        while self.running() {
            let number = dice.below(BLOCKS);
            let report = |frame| reports.send(frame).unwrap();
            let look = |window: &Window<'_>| writes_in(number, window);
            let cache = &self.all[0].cache;
            if let Some(found) = cache.inspect(&mut hints, addr(number, 0), BLOCK.len(), look, report) {
                let writes = found.expect("all words are of one write of this block");
                assert!(writes >= seen[number as usize], "block {number} went back");
                seen[number as usize] = writes;
            }
        }
        hints.hits()
    }

    /// Counts whole blocks on.
    fn write(&self, seed: u64, reports: &Sender<FrameId>) -> u64 {
        let (mut dice, mut hints) = (Random::new(seed), Hints::new());
        while self.running() {
            let number = dice.below(BLOCKS);
            let Some(pinned) = self.all[0].cache.pin_for_write(&mut hints, addr(number, 0)) else { continue };
            let window = pinned.window(0, BLOCK.len());
            let writes = writes_in(number, &window).expect("a pinned block is whole");
            set_all(&window, number << 40 | (writes + 1));
            if let Unpinned::AgentWaits(frame) = pinned.unpin(true) {
                reports.send(frame).unwrap();
            }
            self.written[number as usize].fetch_add(1, SeqCst);
        }
        hints.hits()
    }

    /// Withdraws; on a refusal waits for the one report that it is owed. Returns the refusals.
    fn withdraw(&self, frame: FrameId, reports: &Receiver<FrameId>) -> u64 {
        let mut store = StoreOf::new(&self.all, NodeId(0));
        let mut refusals = 0;
        while store.withdraw(frame) == Err(Pinned) {
            refusals += 1;
            let report = reports.recv_timeout(Duration::from_secs(10)).expect("every refusal is reported");
            assert_eq!(report, frame, "and nothing else");
        }
        refusals
    }

    fn evict(&self, frame: FrameId, tag: BlockTag, reports: &Receiver<FrameId>) -> u64 {
        let mut store = StoreOf::new(&self.all, NodeId(0));
        let refusals = self.withdraw(frame, reports);
        let words = contents_of(&self.all, store.contents(frame)).unwrap();
        let number = tag.addr().offset() / BLOCK.bytes();
        assert!(
            writes_in(number, &Window::new(words, 0, BLOCK.len())).is_some(),
            "a withdrawn block is whole"
        );
        store.write_home(tag, store.contents(frame));
        // What a straggler could still read or write here must not be taken for the block.
        set_all(&Window::new(words, 0, BLOCK.len()), u64::MAX);
        store.release(frame);
        refusals
    }

    /// Takes blocks away and brings blocks back until the time is over. Returns evictions and refusals.
    fn agent(&self, seed: u64, reports: &Receiver<FrameId>) -> (u64, u64) {
        let (mut dice, mut store) = (Random::new(seed), StoreOf::new(&self.all, NodeId(0)));
        let (mut evictions, mut refusals) = (0, 0);
        let _stop = StopAtEnd(&self.stop);
        let end = Instant::now() + RUN;
        while Instant::now() < end {
            let number = dice.below(BLOCKS);
            match store.lookup(tag(number)) {
                Some((frame, Access::Shared)) if dice.below(4) == 0 => match store.upgrade(frame) {
                    Ok(()) => assert_eq!(self.all[0].adopt(frame).unpin(false), Unpinned::Quiet),
                    Err(Pinned) => {
                        refusals += 1;
                        assert_eq!(reports.recv_timeout(Duration::from_secs(10)).unwrap(), frame);
                    }
                },
                Some((frame, Access::Modified)) if dice.below(4) == 0 => {
                    if store.downgrade(frame) == Err(Pinned) {
                        refusals += 1;
                        assert_eq!(reports.recv_timeout(Duration::from_secs(10)).unwrap(), frame);
                    }
                }
                Some((frame, _)) => {
                    refusals += self.evict(frame, tag(number), reports);
                    evictions += 1;
                }
                None => match store.reserve(tag(number), |_| false) {
                    Reservation::Reserved(frame) => {
                        store.fill(frame, store.home_contents(tag(number)));
                        let access = if dice.below(3) == 0 { Access::Shared } else { Access::Modified };
                        store.publish(frame, tag(number), access, false);
                    }
                    Reservation::Evict { frame, tag, .. } => {
                        refusals += self.evict(frame, tag, reports);
                        evictions += 1;
                    }
                    Reservation::Busy => {}
                },
            }
        }
        (evictions, refusals)
    }
}

#[test]
fn nothing_is_torn_lost_mixed_up_or_unreported_while_blocks_come_and_go() {
    let rack = Shared::new(16);
    let (sender, reports) = channel();
    let (evictions, refusals) = thread::scope(|scope| {
        for seed in [1, 2] {
            let (rack, writer, inspector) = (&rack, sender.clone(), sender.clone());
            scope.spawn(move || assert!(rack.read_words(seed) > 0));
            scope.spawn(move || assert!(rack.write(10 + seed, &writer) > 0));
            scope.spawn(move || assert!(rack.inspect(20 + seed, &inspector) > 0));
        }
        rack.agent(99, &reports)
    });
    assert!(evictions > 100, "{evictions} evictions");
    assert!(reports.try_recv().is_err(), "more reports than the {refusals} refusals");

    // No write was lost: what is cached or at home now shows them all.
    let store = StoreOf::new(&rack.all, NodeId(0));
    for number in 0..BLOCKS {
        if let Some((frame, _)) = store.lookup(tag(number)) {
            assert_eq!(rack.evict(frame, tag(number), &reports), 0);
        }
        let words = contents_of(&rack.all, store.home_contents(tag(number))).unwrap();
        let writes = writes_in(number, &Window::new(words, 0, BLOCK.len()));
        assert_eq!(writes, Some(rack.written[number as usize].load(SeqCst)), "block {number}");
    }
    assert!(rack.written.iter().map(|n| n.load(SeqCst)).sum::<u64>() > 1000);
}

/// The hardest case for the turn of an agent and for readers: everybody wants one block.
#[test]
fn readers_and_the_agent_get_their_turn_under_a_stream_of_writers_of_one_block() {
    const LOOKS: u64 = 300;
    const TURNS: u64 = 300;
    let rack = Shared::new(64);
    let mut store = StoreOf::new(&rack.all, NodeId(0));
    let Reservation::Reserved(frame) = store.reserve(tag(0), |_| false) else { panic!("empty") };
    store.fill(frame, store.home_contents(tag(0)));
    store.publish(frame, tag(0), Access::Modified, false);
    let (sender, reports) = channel();
    thread::scope(|scope| {
        let _stop = StopAtEnd(&rack.stop);
        for _ in 0..3 {
            let (rack, sender) = (&rack, sender.clone());
            scope.spawn(move || {
                let mut hints = Hints::new();
                while rack.running() {
                    let Some(pinned) = rack.all[0].cache.pin_for_write(&mut hints, addr(0, 0)) else {
                        continue;
                    };
                    let window = pinned.window(0, BLOCK.len());
                    let writes = writes_in(0, &window).expect("a pinned block is whole");
                    set_all(&window, writes + 1);
                    if let Unpinned::AgentWaits(frame) = pinned.unpin(true) {
                        sender.send(frame).unwrap();
                    }
                }
            });
        }
        let looker = {
            let (rack, sender) = (&rack, sender.clone());
            scope.spawn(move || {
                let (mut hints, mut looks) = (Hints::new(), 0);
                while looks < LOOKS && rack.running() {
                    let report = |frame| sender.send(frame).unwrap();
                    let look = |window: &Window<'_>| writes_in(0, window);
                    let cache = &rack.all[0].cache;
                    if let Some(found) = cache.inspect(&mut hints, addr(0, 0), BLOCK.len(), look, report) {
                        found.expect("all words are of one write");
                        looks += 1;
                    }
                    looks += u64::from(cache.load_word(&mut hints, addr(0, 9)).is_some()) / 2;
                }
            })
        };
        let mut refusals = 0;
        for _ in 0..TURNS {
            refusals += rack.withdraw(frame, &reports);
            store.publish(frame, tag(0), Access::Modified, false);
            thread::yield_now();
        }
        looker.join().unwrap();
        assert!(refusals < 10 * TURNS, "{refusals} refusals for {TURNS} turns");
    });
    assert!(reports.try_recv().is_err(), "every report was for a refusal");
}

/// An inspection that cannot get through in place pins the frame for its copy; a block of 1 MiB makes that
/// long enough for an agent to run into it.
#[test]
fn an_agent_refused_by_an_inspection_is_reported_by_it() {
    const TRIES: usize = 60_000;
    let block = BlockSize::MAX;
    let all = vec![NodeMemory::new(block, 8 << 20, 0)];
    let mut store = StoreOf::new(&all, NodeId(0));
    let at = GlobalAddr::new(NodeId(0), 1 << 20);
    let Reservation::Reserved(frame) = store.reserve(block.tag(at), |_| false) else { panic!("empty") };
    store.publish(frame, block.tag(at), Access::Modified, false);
    let (sender, reports) = channel();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| {
            let (sender, cache, mut hints, mut other) = (sender, &all[0].cache, Hints::new(), Hints::new());
            while !stop.load(SeqCst) {
                // Each look is disturbed by a write, so the copy is needed every time.
                let mut look = |_: &Window<'_>| {
                    if let Some(Unpinned::AgentWaits(frame)) = cache.store_word(&mut other, at, 1) {
                        sender.send(frame).unwrap();
                    }
                };
                let report = |frame| sender.send(frame).unwrap();
                let _ = cache.inspect(&mut hints, at, block.len(), &mut look, report);
            }
        });
        let mut refusals = 0;
        // Beside other work the two seldom run at the same time.
        for _ in 0..TRIES {
            thread::sleep(Duration::from_millis(1));
            match store.withdraw(frame) {
                Ok(()) => store.publish(frame, block.tag(at), Access::Modified, false),
                Err(Pinned) => {
                    let report = reports.recv_timeout(Duration::from_secs(10));
                    assert_eq!(report, Ok(frame), "the refusal is reported");
                    refusals += 1;
                }
            }
            if refusals == 5 {
                return;
            }
        }
        panic!("only {refusals} refusals in {TRIES} tries");
    });
}
