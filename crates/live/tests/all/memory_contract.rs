//! What every store promises to the node's machines, written once against `node::Store`, and run on the live
//! ones: the cache's, and that of mapped pages.
//!
//! A store of another driver joins by implementing [`Driver`] and calling the same functions.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::memory::pages::{Addresses, DEFAULT_BASE, MappedRange, Pages};
use live::memory::{Hints, NodeMemory, StoreOf, Unpinned, contents_of};
use node::{Access, DataRef, FrameId, Pinned, Reservation, Store};
use wire::{BlockSize, BlockTag, GlobalAddr, Nanos, NodeId};

const ME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(0);

/// A rack of two nodes whose caches have one bucket of eight frames.
trait Driver {
    type Store<'a>: Store
    where
        Self: 'a;

    fn new() -> Self;
    fn store(&self, node: NodeId) -> Self::Store<'_>;
    /// What is in a block's first and last word, which the tests always write alike.
    fn look(&self, data: DataRef) -> u64;
    /// A thread's write in a frame that was pinned for it.
    fn write_pinned(&self, node: NodeId, frame: FrameId, value: u64);
    /// The end of a pin; true if an agent waits.
    fn unpin(&self, node: NodeId, frame: FrameId) -> bool;
    fn block(&self) -> BlockSize;
}

struct Live(Vec<NodeMemory>);

impl Driver for Live {
    type Store<'a> = StoreOf<'a>;

    fn new() -> Self {
        let block = BlockSize::new(256).unwrap();
        Self((0..2).map(|_| NodeMemory::new(block, 8 * 256, 1 << 16)).collect())
    }

    fn store(&self, node: NodeId) -> StoreOf<'_> {
        StoreOf::new(&self.0, node)
    }

    fn look(&self, data: DataRef) -> u64 {
        let Some(words) = contents_of(&self.0, data) else { return 0 };
        let last = words.last().unwrap();
        assert_eq!(words[0].load(Relaxed), last.load(Relaxed));
        words[0].load(Relaxed)
    }

    fn write_pinned(&self, node: NodeId, frame: FrameId, value: u64) {
        // The pin goes on when this handle on it is dropped; `unpin` adopts it again.
        let pinned = self.0[node.index()].adopt(frame);
        let window = pinned.window(0, 256);
        (0..32).for_each(|word| window.set_word(word * 8, value));
    }

    fn unpin(&self, node: NodeId, frame: FrameId) -> bool {
        self.0[node.index()].adopt(frame).unpin(true) == Unpinned::AgentWaits(frame)
    }

    fn block(&self) -> BlockSize {
        BlockSize::new(256).unwrap()
    }
}

/// A rack whose nodes have the blocks mapped, in eight pages each, at addresses that no other test has at the same time.
struct Mapped {
    rack: Live,
    ranges: Vec<MappedRange>,
    _here: MutexGuard<'static, ()>,
}

static MAPPING: Mutex<()> = Mutex::new(());

/// False where the system does not let this process map memory: containers often do not.
fn can_map() -> bool {
    live::memory::pages::can_map().inspect_err(|why| println!("SKIPPED: {why}")).is_ok()
}

impl Driver for Mapped {
    type Store<'a> = StoreOf<'a>;

    fn new() -> Self {
        let here = MAPPING.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut nodes, mut ranges) = (Vec::new(), Vec::new());
        for node in [OTHER, ME] {
            let memory = NodeMemory::new(BlockSize::DEFAULT, 8 * 4096, 1 << 20);
            let base = DEFAULT_BASE + (u64::from(node.0) << 44);
            let addresses = Addresses::reserve(base, 2, node).unwrap();
            memory.map(&addresses, Instant::now()).unwrap();
            let range = MappedRange::open(memory.pages().unwrap(), GlobalAddr::new(ME, 0), 128 << 12);
            ranges.push(range.unwrap());
            nodes.push(memory);
        }
        Self { rack: Live(nodes), ranges, _here: here }
    }

    fn store(&self, node: NodeId) -> StoreOf<'_> {
        self.rack.store(node)
    }

    fn look(&self, data: DataRef) -> u64 {
        self.rack.look(data)
    }

    fn write_pinned(&self, node: NodeId, frame: FrameId, value: u64) {
        let memory = &self.rack.0[node.index()];
        let tag = self.store(node).tag_of(frame).unwrap();
        if self.store(node).lookup(tag) != Some((frame, Access::Modified)) {
            // What can only be read has its contents from elsewhere.
            let pinned = memory.adopt(frame);
            let window = pinned.window(0, 4096);
            return (0..512).for_each(|word| window.set_word(word * 8, value));
        }
        // As a thread does whose access waited; and its time is over at once.
        let pages = memory.pages().unwrap();
        assert!(pages.grant(&memory.adopt(frame), None));
        let first = tag.addr().offset() as usize / 8;
        for word in [0, 511] {
            self.ranges[node.index()].words()[first + word].store(value, Relaxed);
        }
        pages.end_holds();
    }

    fn unpin(&self, node: NodeId, frame: FrameId) -> bool {
        self.rack.unpin(node, frame)
    }

    fn block(&self) -> BlockSize {
        BlockSize::DEFAULT
    }
}

/// Runs every scenario on a fresh rack of each driver.
macro_rules! contract {
    ($($scenario:ident),* $(,)?) => {
        mod live_store {
            $(#[test] fn $scenario() { super::$scenario(&<super::Live as super::Driver>::new()); })*
        }
        mod page_store {
            $(#[test] fn $scenario() {
                if super::can_map() {
                    super::$scenario(&<super::Mapped as super::Driver>::new());
                }
            })*
        }
    };
}

contract!(
    a_reserved_frame_is_seen_by_nobody,
    a_published_frame_is_found_with_its_access,
    a_withdrawn_frame_is_gone_but_keeps_its_contents,
    a_released_frame_is_room_again,
    a_frame_published_pinned_refuses_every_agent_until_its_thread_is_done,
    several_refusals_during_one_pin_are_reported_once,
    an_unpin_reports_nothing_if_nobody_was_refused,
    an_upgrade_pins_for_the_thread_that_waited,
    an_upgrade_of_a_pinned_frame_is_refused,
    a_downgraded_frame_stays_readable_and_downgrading_it_again_changes_nothing,
    contents_travel_between_nodes,
    a_frame_filled_from_untouched_memory_holds_zeroes_whatever_it_held_before,
    a_retained_copy_outlives_its_frame,
    home_memory_starts_as_zeroes_and_keeps_what_is_written,
    a_full_bucket_offers_its_oldest_block,
    an_access_makes_a_block_young,
    frames_that_are_pinned_or_being_evicted_are_no_victims,
    a_bucket_with_no_victim_is_busy,
);

fn tag<D: Driver>(rack: &D, number: u64) -> BlockTag {
    rack.block().tag(GlobalAddr::new(ME, number * rack.block().bytes()))
}

fn reserve<D: Driver>(rack: &D, tag: BlockTag) -> FrameId {
    match rack.store(ME).reserve(tag, |_| false) {
        Reservation::Reserved(frame) => frame,
        other => panic!("no room for {tag:?}: {other:?}"),
    }
}

/// A miss fills a frame before it is published.
fn reserve_filled<D: Driver>(rack: &D, number: u64) -> FrameId {
    let frame = reserve(rack, tag(rack, number));
    rack.store(ME).fill(frame, rack.store(ME).home_contents(tag(rack, number)));
    frame
}

/// Publishes block `number` with `value` in it.
fn publish<D: Driver>(rack: &D, number: u64, access: Access, value: u64) -> FrameId {
    let frame = reserve_filled(rack, number);
    rack.store(ME).publish(frame, tag(rack, number), access, true);
    rack.write_pinned(ME, frame, value);
    assert!(!rack.unpin(ME, frame));
    frame
}

fn fill_bucket<D: Driver>(rack: &D) -> Vec<FrameId> {
    (0..8).map(|number| publish(rack, number, Access::Shared, number)).collect()
}

fn a_reserved_frame_is_seen_by_nobody<D: Driver>(rack: &D) {
    let frame = reserve(rack, tag(rack, 3));
    assert_eq!(rack.store(ME).lookup(tag(rack, 3)), None);
    assert_eq!(rack.store(ME).tag_of(frame), None);
}

fn a_published_frame_is_found_with_its_access<D: Driver>(rack: &D) {
    for (number, access) in [(3, Access::Shared), (4, Access::Modified)] {
        let frame = publish(rack, number, access, 1);
        assert_eq!(rack.store(ME).lookup(tag(rack, number)), Some((frame, access)));
        assert_eq!(rack.store(ME).tag_of(frame), Some(tag(rack, number)));
        assert_eq!(rack.store(OTHER).lookup(tag(rack, number)), None, "caches are per node");
    }
}

fn a_withdrawn_frame_is_gone_but_keeps_its_contents<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 77);
    assert_eq!(rack.store(ME).withdraw(frame), Ok(()));
    assert_eq!(rack.store(ME).lookup(tag(rack, 3)), None);
    assert_eq!(rack.store(ME).tag_of(frame), None);
    assert_eq!(rack.look(rack.store(ME).contents(frame)), 77);
}

fn a_released_frame_is_room_again<D: Driver>(rack: &D) {
    let frames = fill_bucket(rack);
    assert_eq!(rack.store(ME).withdraw(frames[5]), Ok(()));
    rack.store(ME).release(frames[5]);
    assert_eq!(reserve(rack, tag(rack, 100)), frames[5]);
}

fn a_frame_published_pinned_refuses_every_agent_until_its_thread_is_done<D: Driver>(rack: &D) {
    let frame = reserve_filled(rack, 3);
    rack.store(ME).publish(frame, tag(rack, 3), Access::Modified, true);
    assert_eq!(rack.store(ME).withdraw(frame), Err(Pinned));
    assert_eq!(rack.store(ME).downgrade(frame), Err(Pinned));
    assert_eq!(rack.store(ME).pin(frame), Err(Pinned));
    rack.write_pinned(ME, frame, 9);
    assert_eq!(rack.store(ME).lookup(tag(rack, 3)), Some((frame, Access::Modified)), "nothing has changed");
    assert!(rack.unpin(ME, frame));
    assert_eq!(rack.store(ME).withdraw(frame), Ok(()));
    assert_eq!(rack.look(rack.store(ME).contents(frame)), 9);
}

fn several_refusals_during_one_pin_are_reported_once<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 1);
    assert_eq!(rack.store(ME).pin(frame), Ok(()));
    for _ in 0..3 {
        assert_eq!(rack.store(ME).withdraw(frame), Err(Pinned));
    }
    assert!(rack.unpin(ME, frame));
    assert_eq!(rack.store(ME).pin(frame), Ok(()), "the agent has its turn");
    assert!(!rack.unpin(ME, frame));
}

fn an_unpin_reports_nothing_if_nobody_was_refused<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 1);
    assert_eq!(rack.store(ME).pin(frame), Ok(()));
    assert!(!rack.unpin(ME, frame));
}

fn an_upgrade_pins_for_the_thread_that_waited<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Shared, 1);
    assert_eq!(rack.store(ME).upgrade(frame), Ok(()));
    assert_eq!(rack.store(ME).lookup(tag(rack, 3)), Some((frame, Access::Modified)));
    assert_eq!(rack.store(ME).downgrade(frame), Err(Pinned));
    assert!(rack.unpin(ME, frame));
}

fn an_upgrade_of_a_pinned_frame_is_refused<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Shared, 1);
    assert_eq!(rack.store(ME).pin(frame), Ok(()));
    assert_eq!(rack.store(ME).upgrade(frame), Err(Pinned));
    assert_eq!(rack.store(ME).lookup(tag(rack, 3)), Some((frame, Access::Shared)));
    assert!(rack.unpin(ME, frame));
    assert_eq!(rack.store(ME).upgrade(frame), Ok(()));
}

fn a_downgraded_frame_stays_readable_and_downgrading_it_again_changes_nothing<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 5);
    for _ in 0..2 {
        assert_eq!(rack.store(ME).downgrade(frame), Ok(()));
        assert_eq!(rack.store(ME).lookup(tag(rack, 3)), Some((frame, Access::Shared)));
        assert_eq!(rack.look(rack.store(ME).contents(frame)), 5);
    }
    assert_eq!(rack.store(ME).pin(frame), Ok(()));
    assert_eq!(rack.store(ME).downgrade(frame), Ok(()), "a pinned shared frame is only read");
    assert!(!rack.unpin(ME, frame));
}

fn contents_travel_between_nodes<D: Driver>(rack: &D) {
    let from = publish(rack, 3, Access::Modified, 11);
    let mut other = rack.store(OTHER);
    let Reservation::Reserved(to) = other.reserve(tag(rack, 3), |_| false) else { panic!("it is empty") };
    other.fill(to, rack.store(ME).contents(from));
    assert_eq!(rack.look(other.contents(to)), 11);
    // And from there home.
    rack.store(ME).write_home(tag(rack, 3), other.contents(to));
    assert_eq!(rack.look(rack.store(ME).home_contents(tag(rack, 3))), 11);
}

fn a_frame_filled_from_untouched_memory_holds_zeroes_whatever_it_held_before<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 11);
    assert_eq!(rack.store(ME).withdraw(frame), Ok(()));
    let untouched = rack.store(ME).home_contents(tag(rack, 4));
    rack.store(ME).fill(frame, untouched);
    assert_eq!(rack.look(rack.store(ME).contents(frame)), 0);
}

fn a_retained_copy_outlives_its_frame<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 21);
    let copy = rack.store(ME).retain(frame);
    assert_eq!(rack.store(ME).pin(frame), Ok(()));
    rack.write_pinned(ME, frame, 22);
    assert!(!rack.unpin(ME, frame));
    let second = rack.store(ME).retain(frame);
    assert_eq!(rack.store(ME).withdraw(frame), Ok(()));
    rack.store(ME).release(frame);
    assert_eq!((rack.look(copy), rack.look(second)), (21, 22));
    rack.store(ME).discard(copy);
    assert_eq!(rack.look(second), 22);
}

fn home_memory_starts_as_zeroes_and_keeps_what_is_written<D: Driver>(rack: &D) {
    let frame = publish(rack, 3, Access::Modified, 31);
    assert_eq!(rack.look(rack.store(ME).home_contents(tag(rack, 5))), 0);
    for number in 4..8 {
        rack.store(ME).write_home(tag(rack, number), rack.store(ME).contents(frame));
    }
    rack.store(ME).zero_home(tag(rack, 5), 2 * rack.block().bytes());
    let home = [3, 4, 5, 6, 7].map(|number| rack.look(rack.store(ME).home_contents(tag(rack, number))));
    assert_eq!(home, [0, 31, 0, 0, 31]);
}

fn victim<D: Driver>(rack: &D, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
    rack.store(ME).reserve(tag(rack, 100), is_victim)
}

fn a_full_bucket_offers_its_oldest_block<D: Driver>(rack: &D) {
    let frames = fill_bucket(rack);
    let oldest = Reservation::Evict { frame: frames[0], tag: tag(rack, 0), access: Access::Shared };
    assert_eq!(victim(rack, |_| false), oldest);
    assert_eq!(rack.store(ME).lookup(tag(rack, 0)), Some((frames[0], Access::Shared)), "it is only offered");
}

fn an_access_makes_a_block_young<D: Driver>(rack: &D) {
    let frames = fill_bucket(rack);
    for frame in [frames[0], frames[1], frames[3]] {
        assert_eq!(rack.store(ME).pin(frame), Ok(()));
        assert!(!rack.unpin(ME, frame));
    }
    assert!(matches!(victim(rack, |_| false), Reservation::Evict { frame, .. } if frame == frames[2]));
}

fn frames_that_are_pinned_or_being_evicted_are_no_victims<D: Driver>(rack: &D) {
    let frames = fill_bucket(rack);
    assert_eq!(rack.store(ME).pin(frames[0]), Ok(()));
    let found = victim(rack, |frame| frame == frames[1]);
    assert!(matches!(found, Reservation::Evict { frame, .. } if frame == frames[2]), "{found:?}");
    assert!(!rack.unpin(ME, frames[0]), "looking for a victim asks nobody to leave");
}

fn a_bucket_with_no_victim_is_busy<D: Driver>(rack: &D) {
    let frames = fill_bucket(rack);
    assert_eq!(rack.store(ME).pin(frames[0]), Ok(()));
    assert_eq!(rack.store(ME).withdraw(frames[1]), Ok(()));
    assert_eq!(victim(rack, |frame| frame.0 >= frames[2].0), Reservation::Busy);
}

/// The handle is the live driver's own: with it, the store's promises as threads see them.
#[test]
fn a_live_thread_reads_and_writes_what_the_store_published() {
    let rack = Live::new();
    publish(&rack, 3, Access::Shared, 8);
    let (cache, mut hints) = (&rack.0[ME.index()].cache, Hints::new());
    let at = tag(&rack, 3).addr() + 16;
    assert_eq!(cache.load_word(&mut hints, at), Some(8));
    assert_eq!(cache.store_word(&mut hints, at, 9), None, "it is only shared");
    assert_eq!(hints.hits(), 1);
}

#[test]
fn a_granted_page_stays_for_its_hold_and_the_agent_is_told_when_it_is_over() {
    if !can_map() {
        return;
    }
    for _ in 0..100 {
        let rack = Mapped::new();
        let frame = reserve_filled(&rack, 3);
        rack.store(ME).publish(frame, tag(&rack, 3), Access::Modified, true);
        let memory = &rack.rack.0[ME.index()];
        let pages = memory.pages().unwrap();
        assert!(pages.grant(&memory.adopt(frame), None));
        assert!(!rack.unpin(ME, frame));
        if rack.store(ME).withdraw(frame) == Ok(()) {
            // This thread was away for longer than that.
            continue;
        }
        assert_eq!(pages.due(Nanos::ZERO), []);
        let until = pages.deadline();
        assert!(until < Nanos::MAX);
        std::thread::sleep(Duration::from_nanos(Pages::HOLD.0));
        assert_eq!(pages.due(until), [frame]);
        assert_eq!(pages.deadline(), Nanos::MAX);
        assert_eq!(rack.store(ME).downgrade(frame), Ok(()));
        return;
    }
    panic!("no page was held");
}

#[test]
fn a_page_comes_back_to_its_place_after_its_slot_was_for_another_block() {
    if !can_map() {
        return;
    }
    let rack = Mapped::new();
    fill_bucket(&rack);
    let Reservation::Evict { frame, tag: old, .. } = victim(&rack, |_| false) else { panic!("it is full") };
    assert_eq!(rack.store(ME).withdraw(frame), Ok(()));
    rack.store(ME).assign(frame, tag(&rack, 50));
    rack.store(ME).fill(frame, rack.store(ME).home_contents(tag(&rack, 50)));
    rack.store(ME).publish(frame, tag(&rack, 50), Access::Modified, true);
    rack.write_pinned(ME, frame, 50);
    assert!(!rack.unpin(ME, frame));
    assert_eq!(rack.store(ME).lookup(old), None);
    assert_eq!(rack.ranges[ME.index()].words()[50 * 512].load(Relaxed), 50);
    assert_eq!(rack.store(ME).withdraw(frame), Ok(()));
    rack.store(ME).assign(frame, old);
    rack.store(ME).fill(frame, rack.store(ME).home_contents(old));
    rack.store(ME).publish(frame, old, Access::Shared, false);
    assert_eq!(rack.look(rack.store(ME).contents(frame)), 0, "what was there has left");
}

#[test]
fn nothing_is_granted_while_what_is_cached_does_not_count() {
    if !can_map() {
        return;
    }
    let rack = Mapped::new();
    let frame = publish(&rack, 3, Access::Modified, 7);
    let memory = &rack.rack.0[ME.index()];
    let pages = memory.pages().unwrap();
    assert_eq!(rack.store(ME).pin(frame), Ok(()));
    assert!(pages.grant(&memory.adopt(frame), None));
    pages.suspend();
    assert!(!pages.grant(&memory.adopt(frame), None));
    // A thread waits, though the page is pinned for somebody.
    std::thread::scope(|scope| {
        let words = rack.ranges[ME.index()].words();
        let loads = scope.spawn(|| words[3 * 512].load(Relaxed));
        let waits = loop {
            if let Some(faulted) = pages.faulted().pop() {
                break faulted;
            }
            pages.wait(Duration::from_secs(1));
        };
        assert_eq!((waits.addr, waits.access), (tag(&rack, 3).addr(), Access::Shared));
        assert!(!pages.is_granted(&waits) && pages.grant_kept(&waits).is_none());
        pages.keep(frame, true);
        assert_eq!(pages.grant_kept(&waits), Some(false));
        pages.resume();
        assert_eq!(pages.grant_kept(&waits), Some(true));
        assert_eq!(loads.join().unwrap(), 7);
    });
    assert!(!rack.unpin(ME, frame));
}

/// Stores 55 into block 5 through its pointer. True if that was a fault, which is resolved for the frame.
fn faults_to_store(rack: &Mapped, frame: FrameId) -> bool {
    let memory = &rack.rack.0[ME.index()];
    let pages = memory.pages().unwrap();
    let words = rack.ranges[ME.index()].words();
    std::thread::scope(|scope| {
        let stores = scope.spawn(|| [0, 511].map(|word| words[5 * 512 + word].store(55, Relaxed)));
        let waits = loop {
            if let Some(faulted) = pages.faulted().pop() {
                break Some(faulted);
            }
            if stores.is_finished() {
                break None;
            }
            pages.wait(Duration::from_millis(1));
        };
        if let Some(waits) = waits {
            assert_eq!((waits.addr, waits.access), (tag(rack, 5).addr(), Access::Modified));
            assert_eq!(rack.store(ME).pin(frame), Ok(()));
            assert!(pages.grant(&memory.adopt(frame), Some(&waits)));
            assert!(!rack.unpin(ME, frame));
        }
        waits.is_some()
    })
}

/// Blocks 3 to 7, which the application writes.
fn publish_five(rack: &Mapped) -> Vec<FrameId> {
    (3..8).map(|number| publish(rack, number, Access::Modified, number)).collect()
}

#[test]
fn pages_asked_for_in_a_row_are_protected_ahead_and_no_store_is_lost() {
    if !can_map() {
        return;
    }
    for kept in [false, true] {
        let rack = Mapped::new();
        let frames = publish_five(&rack);
        let pages = rack.rack.0[ME.index()].pages().unwrap();
        pages.keep(frames[2], kept);
        for frame in &frames[..2] {
            assert_eq!(rack.store(ME).downgrade(*frame), Ok(()));
        }
        // Two in a row: the next two cannot be written either, unless the application keeps one.
        assert_eq!(faults_to_store(&rack, frames[2]), !kept);
        pages.end_holds();
        assert_eq!(rack.store(ME).downgrade(frames[2]), Ok(()));
        assert_eq!(rack.look(rack.store(ME).contents(frames[2])), 55);
    }
}

#[test]
fn a_page_that_is_held_is_not_protected_ahead() {
    if !can_map() {
        return;
    }
    for _ in 0..100 {
        let rack = Mapped::new();
        let frames = publish_five(&rack);
        let memory = &rack.rack.0[ME.index()];
        rack.store(ME).pin(frames[2]).unwrap();
        assert!(memory.pages().unwrap().grant(&memory.adopt(frames[2]), None));
        assert!(!rack.unpin(ME, frames[2]));
        for frame in &frames[..2] {
            assert_eq!(rack.store(ME).downgrade(*frame), Ok(()));
        }
        if rack.store(ME).downgrade(frames[2]).is_err() {
            return assert!(!faults_to_store(&rack, frames[2]), "it was held all the time");
        }
        // This thread was away for longer than that.
    }
    panic!("no page was held");
}
