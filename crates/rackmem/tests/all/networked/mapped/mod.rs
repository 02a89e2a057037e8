//! Memory that is mapped on several nodes of one rack, each at addresses of its own: what pointers see, what calls on the same
//! blocks see, and who wins.

mod guarded;
mod litmus;
mod others;
mod programs;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use check::AtEnd;
use rackmem::{Config, Discipline, Error, GlobalAddr, MapError, MappedCounts, Mapping, NodeId, Region};

use super::rig::{Processes, until};

const PAGE: usize = 4096;

/// False where the system does not let this process map memory: containers often do not.
fn can_map() -> bool {
    rackmem::can_map().inspect_err(|why| println!("SKIPPED: {why}")).is_ok()
}

/// How memory is mapped, and which.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Faults are resolved by the threads that have them.
    in_place: bool,
    /// On so many nodes is what is allocated.
    copies: usize,
}

/// A thread of the node resolves faults, and nothing has copies.
const PLAIN: Way = Way { in_place: false, copies: 1 };

/// All ways; none where nothing can be mapped.
fn ways() -> impl Iterator<Item = Way> {
    let all: &[Way] = &[PLAIN, Way { in_place: true, ..PLAIN }, Way { copies: 2, ..PLAIN }];
    all.iter().copied().filter(|_| can_map())
}

fn rack_with(nodes: usize, faulty: bool, cache: u64, Way { in_place, copies }: Way) -> Processes {
    let config = Config { nodes, copies, memory: 8 << 20, cache, ..Config::default() };
    Processes::start_mapped(faulty, config, in_place)
}

fn rack_so(nodes: usize, faulty: bool, way: Way) -> Processes {
    rack_with(nodes, faulty, 1 << 20, way)
}

fn rack(nodes: usize, faulty: bool) -> Processes {
    rack_so(nodes, faulty, PLAIN)
}

fn alloc(rack: &Processes, home: u16, len: usize) -> GlobalAddr {
    let mut here = rack.nodes[0].here();
    here.keep_copies(rack.nodes[0].config().copies > 1).unwrap();
    here.alloc(len as u64, NodeId(home), Discipline::Coherent).unwrap()
}

fn map_everywhere(rack: &Processes, addr: GlobalAddr, len: usize) -> Vec<Mapping> {
    rack.nodes.iter().map(|node| node.map(addr, len).unwrap()).collect()
}

#[test]
fn what_one_node_stores_through_a_pointer_another_one_loads() {
    for way in ways() {
        let rack = rack_so(2, false, way);
        let addr = alloc(&rack, 1, 16 * PAGE);
        let maps = map_everywhere(&rack, addr, 16 * PAGE);
        for (index, word) in maps[0].words().iter().enumerate() {
            assert_eq!(word.load(Relaxed), 0);
            word.store(index as u64, Relaxed);
        }
        for (index, word) in maps[1].words().iter().enumerate() {
            assert_eq!(word.swap(7, Relaxed), index as u64);
        }
        assert!(maps[0].words().iter().all(|word| word.load(Relaxed) == 7));
        let mut bytes = [0; 20];
        maps[1].write(PAGE - 10, &[9; 20]);
        maps[0].read(PAGE - 10, &mut bytes);
        assert_eq!(bytes, [9; 20]);
    }
}

#[test]
fn atomics_of_the_language_count_across_nodes() {
    for way in ways() {
        const EACH: u64 = 20_000;
        for faulty in [false, true] {
            let rack = rack_so(3, faulty, way);
            let addr = alloc(&rack, 1, PAGE);
            let maps = map_everywhere(&rack, addr, PAGE);
            std::thread::scope(|scope| {
                for map in &maps {
                    scope.spawn(|| {
                        for _ in 0..EACH {
                            map.words()[9].fetch_add(1, SeqCst);
                        }
                    });
                }
            });
            assert_eq!(maps[2].words()[9].load(SeqCst), 3 * EACH);
        }
    }
}

#[test]
fn who_copies_a_page_by_a_call_sees_one_moment_of_a_writer_that_knows_nothing_of_it() {
    for way in ways() {
        // The writer's words never differ by more than one, and fall along the page.
        const WORDS: usize = PAGE / 8;
        let rack = rack_so(3, true, way);
        let addr = alloc(&rack, 1, PAGE);
        let map = rack.nodes[0].map(addr, PAGE).unwrap();
        let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1.. {
                    for word in map.words() {
                        assert_eq!(word.swap(round, Relaxed), round - 1, "a store was lost");
                    }
                    if stop.load(Relaxed) {
                        return;
                    }
                }
            });
            // On the writer's node, and on others.
            for node in &rack.nodes {
                let (stop, seen) = (&stop, &seen);
                scope.spawn(move || {
                    let _stop = AtEnd(stop);
                    let mut here = node.here();
                    let began = Instant::now();
                    // On a full machine the writer gets on slowly.
                    while began.elapsed() < Duration::from_millis(400)
                        || seen.load(Relaxed) < 10 && began.elapsed() < Duration::from_secs(20)
                    {
                        let words: [u64; WORDS] = here.read_value(addr).unwrap();
                        assert!(words.is_sorted_by(|one, next| one >= next), "{words:?}");
                        assert!(words[0] - words[WORDS - 1] <= 1, "{words:?}");
                        seen.fetch_max(words[0], Relaxed);
                    }
                });
            }
        });
        assert!(seen.load(Relaxed) >= 10, "{seen:?} rounds");
    }
}

#[test]
fn calls_that_change_a_block_and_atomics_through_pointers_lose_nothing_of_each_other() {
    for way in ways() {
        const EACH: u64 = 2_000;
        let rack = rack_so(2, true, way);
        let addr = alloc(&rack, 0, PAGE);
        let maps = map_everywhere(&rack, addr, PAGE);
        std::thread::scope(|scope| {
            for (node, map) in rack.nodes.iter().zip(&maps) {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        map.words()[3].fetch_add(1, SeqCst);
                    }
                });
                scope.spawn(|| {
                    let mut here = node.here();
                    for _ in 0..EACH {
                        here.update(addr + 24, 8, |word| word.set_word(0, word.word(0) + 1)).unwrap();
                    }
                });
            }
        });
        assert_eq!(maps[0].words()[3].load(SeqCst), 4 * EACH);
        assert_eq!(rack.nodes[1].here().read_word(addr + 24).unwrap(), 4 * EACH);
    }
}

#[test]
fn small_reads_where_the_block_is_see_what_pointers_have_stored() {
    if !can_map() {
        return;
    }
    let config = Config { nodes: 2, memory: 8 << 20, cache: 1 << 20, peek: true, ..Config::default() };
    let rack = Processes::start_mapped(false, config, false);
    let addr = alloc(&rack, 0, PAGE);
    let map = rack.nodes[0].map(addr, PAGE).unwrap();
    let mut there = rack.nodes[1].here();
    for value in 1..2_000 {
        // The second one first: who sees the first sees it, too.
        map.words()[1].store(value, Release);
        map.words()[0].store(value, Release);
        let [first, second]: [u64; 2] = there.read_value(addr).unwrap();
        assert_eq!((first, second), (value, value));
    }
    let peeked: u64 = rack.nodes.iter().map(|node| node.counters().protocol().peeked).sum();
    assert!(peeked > 0, "no read was done there");
}

#[test]
fn more_is_mapped_than_is_cached_and_comes_and_goes() {
    for way in ways() {
        const PAGES: usize = 200;
        let rack = rack_with(2, true, 32 * PAGE as u64, way);
        let addr = alloc(&rack, 1, PAGES * PAGE);
        let maps = map_everywhere(&rack, addr, PAGES * PAGE);
        for (round, map) in (1..).zip([&maps[0], &maps[1], &maps[0]]) {
            // Some in a row, some not.
            for index in (0..PAGES).chain((0..PAGES).map(|index| index * 77 % PAGES)) {
                map.words()[index * PAGE / 8 + index % 512].fetch_add(round, Relaxed);
            }
        }
        for index in 0..PAGES {
            assert_eq!(maps[1].words()[index * PAGE / 8 + index % 512].load(Relaxed), 2 * (1 + 2 + 3));
        }
        let evicted: u64 = rack.nodes.iter().map(|node| node.counters().protocol().granted_accesses()).sum();
        assert!(evicted > PAGES as u64 * 4, "{evicted} misses");
        for counted in rack.nodes.iter().flat_map(|node| node.counters().nodes) {
            let MappedCounts { bytes, faults, in_place: resolved_here, ahead, .. } = counted.mapped;
            assert_eq!(bytes, (PAGES * PAGE) as u64);
            assert!(faults > PAGES as u64 && ahead > 0, "{faults} faults, {ahead} blocks ahead");
            assert_eq!(resolved_here, if way.in_place { faults } else { 0 });
        }
    }
}

#[test]
fn nodes_that_fight_for_a_page_all_get_on() {
    for way in ways() {
        let rack = rack_so(3, false, way);
        let addr = alloc(&rack, 1, PAGE);
        let maps = map_everywhere(&rack, addr, PAGE);
        let (stop, counts) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
        std::thread::scope(|scope| {
            let _stop = AtEnd(&stop);
            for (map, count) in maps.iter().zip(&counts) {
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Relaxed) {
                        map.words()[0].fetch_add(1, SeqCst);
                        count.fetch_add(1, Relaxed);
                    }
                });
            }
            until(|| counts.iter().all(|count| count.load(Relaxed) > 100).then_some(()));
        });
        assert_eq!(
            maps[0].words()[0].load(SeqCst),
            counts.iter().map(|count| count.load(Relaxed)).sum::<u64>()
        );
    }
}

#[test]
fn words_go_on_while_the_switch_is_killed_and_restarted() {
    for way in ways() {
        let mut rack = rack_so(2, true, way);
        let addr = alloc(&rack, 1, 4 * PAGE);
        let maps = map_everywhere(&rack, addr, 4 * PAGE);
        let stop = AtomicBool::new(false);
        let counts = std::thread::scope(|scope| {
            let stop_at_end = AtEnd(&stop);
            let threads: Vec<_> = maps
                .iter()
                .map(|map| {
                    let stop = &stop;
                    scope.spawn(move || {
                        let mut count = 0;
                        while !stop.load(Relaxed) {
                            map.words()[count % 4 * PAGE / 8].fetch_add(1, SeqCst);
                            count += 1;
                        }
                        count as u64
                    })
                })
                .collect();
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(300));
                rack.restart_switch();
            }
            std::thread::sleep(Duration::from_millis(300));
            drop(stop_at_end);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        });
        let sum: u64 = (0..4).map(|page| maps[0].words()[page * PAGE / 8].load(SeqCst)).sum();
        assert_eq!(sum, counts);
    }
}

#[test]
fn what_was_cached_before_it_was_mapped_and_is_unmapped_again_stays_the_same_memory() {
    if !can_map() {
        return;
    }
    let rack = rack(2, false);
    let addr = alloc(&rack, 1, 8 * PAGE);
    let mut here = rack.nodes[0].here();
    for round in 0..5_u64 {
        for page in 0..8 {
            let at = addr + page * PAGE as u64;
            here.write_word(at, value_in(round, page)).unwrap();
        }
        let map = rack.nodes[0].map(addr, 8 * PAGE).unwrap();
        for page in 0..8 {
            let word = &map.words()[page as usize * PAGE / 8];
            assert_eq!(word.load(Acquire), value_in(round, page));
            word.fetch_add(1, SeqCst);
            assert_eq!(here.read_word(addr + page * PAGE as u64).unwrap(), value_in(round, page) + 1);
        }
        drop(map);
        for page in 0..8 {
            assert_eq!(here.read_word(addr + page * PAGE as u64).unwrap(), value_in(round, page) + 1);
        }
    }
}

const fn value_in(round: u64, page: u64) -> u64 {
    round * 1000 + page * 10
}

#[test]
fn pointers_and_addresses_convert_into_each_other() {
    if !can_map() {
        return;
    }
    let rack = rack(2, false);
    let (node, addr) = (&rack.nodes[0], alloc(&rack, 1, 3 * PAGE));
    let before = node.pointer_to(addr);
    let map = node.map(addr, 3 * PAGE).unwrap();
    assert_eq!(before, Some(map.as_ptr()), "it is known before anything is mapped");
    assert_eq!((map.addr(), map.len()), (addr, 3 * PAGE));
    let pointer = map.as_ptr().wrapping_add(5000);
    assert_eq!(node.addr_of(pointer), Some(addr + 5000));
    assert_eq!(node.pointer_to(addr + 5000), Some(pointer));
    assert_eq!(node.addr_of(std::ptr::from_ref(&rack).cast()), None);
    // A part of a block is mapped with its block.
    let small = rack.nodes[1].here().alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    let part = node.map(small, 64).unwrap();
    assert_eq!((part.addr(), part.words().len()), (small, 8));
    part.words()[7].store(5, Relaxed);
    assert_eq!(rack.nodes[1].here().read_word(small + 56).unwrap(), 5);
}

#[test]
fn what_cannot_be_mapped_is_refused_with_what_to_do() {
    if !can_map() {
        return;
    }
    let rack = rack(2, false);
    let (node, addr) = (&rack.nodes[0], alloc(&rack, 1, 3 * PAGE));
    let refused = |addr, len: usize| node.map(addr, len).unwrap_err().to_string();
    for (addr, len, says) in [
        (addr, 0, "0"),
        (addr, 1 << 40, "leave the memory"),
        (addr + 4, 8, "multiple of 8"),
        (addr + (1 << 20), 8, "no allocation"),
        (GlobalAddr::new(NodeId(7), 0), 8, "nodes"),
    ] {
        let text = refused(addr, len);
        assert!(text.contains(says), "{text}");
    }
    let words = rack.nodes[0].here().alloc(PAGE as u64, NodeId(1), Discipline::Word).unwrap();
    assert!(matches!(
        node.map(words, PAGE),
        Err(MapError::Memory(Error::WrongDiscipline { needs: Discipline::Coherent, .. }))
    ));
    let map = node.map(addr, PAGE).unwrap();
    assert!(refused(addr + 8, 2 * PAGE).contains("mapped in this process already"));
    assert!(matches!(map.touch(0..PAGE + 1, false), Err(Error::OutOfRange { .. })));
    drop(map);
    node.map(addr + 8, 2 * PAGE).unwrap();

    // Of two nodes that have left, one has mapped nothing.
    for node in rack.nodes.iter().rev() {
        node.leave(Duration::from_secs(5));
        let text = node.map(addr, PAGE).unwrap_err().to_string();
        assert!(text.contains("left the rack") || text.contains("declared"), "{text}");
    }

    let embedded = rackmem::Rack::embedded(Config { nodes: 1, ..Config::default() }).unwrap();
    assert!(matches!(embedded.map(addr, 8), Err(MapError::Embedded)));
}

#[test]
fn addresses_that_another_node_of_the_process_has_are_named() {
    if !can_map() {
        return;
    }
    let first = rack(2, false);
    // Racks that do not map have the usual addresses: the first node of the process gets them.
    let second = Processes::start(2);
    let addr = alloc(&second, 1, PAGE);
    let maps: Vec<_> = second.nodes.iter().map(|node| node.map(addr, PAGE)).collect();
    let refused = maps.into_iter().find_map(Result::err).expect("two nodes want the same addresses");
    assert!(refused.to_string().contains("of this process"), "{refused}");
    drop(first);
}

#[test]
fn blocks_smaller_than_a_page_cannot_be_mapped_and_larger_ones_can() {
    if !can_map() {
        return;
    }
    let shape =
        |block_size| Config { nodes: 2, memory: 8 << 20, cache: 4 << 20, block_size, ..Config::default() };
    let small = Processes::start_mapped(false, shape(rackmem::BlockSize::new(1024).unwrap()), false);
    let addr = alloc(&small, 1, 1024);
    let refused = small.nodes[0].map(addr, 1024).unwrap_err().to_string();
    assert!(refused.contains("smaller than a page"), "{refused}");
    drop(small);
    for bytes in [64 << 10, 256 << 10] {
        let rack = Processes::start_mapped(false, shape(rackmem::BlockSize::new(bytes).unwrap()), false);
        let len = 2 * bytes as usize;
        let addr = alloc(&rack, 1, len);
        let maps = map_everywhere(&rack, addr, len);
        maps[0].words().iter().for_each(|word| word.store(3, Relaxed));
        assert!(maps[1].words().iter().all(|word| word.fetch_add(1, Relaxed) == 3));
        assert_eq!(rack.nodes[0].here().read_word(addr + 8).unwrap(), 4);
    }
}

#[test]
fn touch_and_prefetch_say_what_a_pointer_could_not() {
    if !can_map() {
        return;
    }
    let mut rack = rack(3, false);
    let (addr, lost) = (alloc(&rack, 1, 32 * PAGE), alloc(&rack, 2, 2 * PAGE));
    let map = rack.nodes[0].map(addr, 32 * PAGE).unwrap();
    let doomed = rack.nodes[0].map(lost, 2 * PAGE).unwrap();
    map.prefetch(0..32 * PAGE, true).unwrap();
    let misses = || rack.nodes[0].counters().protocol().granted_accesses();
    let before = misses();
    map.touch(0..32 * PAGE, true).unwrap();
    map.words().iter().for_each(|word| word.store(1, Relaxed));
    assert_eq!(misses(), before, "all was there");
    rack.nodes[1].here().free(addr).unwrap();
    assert!(matches!(map.touch(0..8, false), Err(Error::Unallocated { .. })));
    doomed.touch(0..2 * PAGE, true).unwrap();
    rack.kill(2);
    until(|| (!rack.nodes[0].is_up(NodeId(2))).then_some(()));
    assert!(matches!(doomed.touch(0..8, false), Err(Error::NodeDown { .. })));
    assert!(doomed.pin(0..8, true).is_err());
}

/// The handler of the signal runs there.
#[test]
fn a_thread_with_a_small_stack_resolves_its_faults() {
    if !can_map() {
        return;
    }
    let rack = rack_so(2, true, Way { in_place: true, ..PLAIN });
    let addr = alloc(&rack, 1, 64 * PAGE);
    let map = rack.nodes[0].map(addr, 64 * PAGE).unwrap();
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let store = || map.words().iter().step_by(PAGE / 8).for_each(|word| word.store(5, SeqCst));
        small.spawn_scoped(scope, store).unwrap();
    });
    for page in 0..64 {
        assert_eq!(rack.nodes[1].here().read_word(addr + page * PAGE as u64).unwrap(), 5);
    }
}

#[test]
fn what_is_pinned_stays_and_is_lent_as_plain_bytes() {
    if !can_map() {
        return;
    }
    let rack = rack(2, false);
    let addr = alloc(&rack, 1, 4 * PAGE);
    let mut map = rack.nodes[0].map(addr, 4 * PAGE).unwrap();
    let other = rack.nodes[1].map(addr, 4 * PAGE).unwrap();
    other.words().iter().zip((0..10_000).rev()).for_each(|(word, value)| word.store(value, Relaxed));
    let mut bytes = map.pin_bytes(0..4 * PAGE).unwrap();
    let stored = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other.words()[0].store(77, SeqCst);
            stored.store(true, SeqCst);
        });
        std::thread::sleep(Duration::from_millis(50));
        bytes.sort_unstable();
        assert!(!stored.load(SeqCst), "the page was taken from whoever has it pinned");
        assert!(bytes.is_sorted());
        drop(bytes);
    });
    assert!(stored.load(SeqCst));
    assert_eq!(other.words()[0].load(SeqCst), 77);
    drop(map);
    // A quarter of what the node caches, 256 pages, and no more.
    let much = alloc(&rack, 1, 100 * PAGE);
    let map = rack.nodes[0].map(much, 100 * PAGE).unwrap();
    assert!(matches!(map.pin(0..100 * PAGE, false), Err(Error::TooManyPinned { most: 64 })));
    drop(map.pin(0..64 * PAGE, false).unwrap());
}

#[test]
fn random_atomics_beside_calls_lose_no_count() {
    for way in ways() {
        // Every node adds to words by pointers and by calls; what each added is known.
        let rack = rack_so(3, true, way);
        let addr = alloc(&rack, 2, 8 * PAGE);
        let maps = map_everywhere(&rack, addr, 8 * PAGE);
        let totals = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6_u64)
                .map(|thread| {
                    let (node, map) = (&rack.nodes[thread as usize % 3], &maps[thread as usize % 3]);
                    scope.spawn(move || {
                        let (mut dice, mut here) = (random::Random::new(thread), node.here());
                        let mut added = BTreeMap::new();
                        for _ in 0..800 {
                            let (word, by) = (dice.below(8) * 512 + dice.below(3), 1 + dice.below(9));
                            if dice.below(3) == 0 {
                                let add =
                                    |window: &rackmem::Window<'_>| window.set_word(0, window.word(0) + by);
                                here.update(addr + word * 8, 8, add).unwrap();
                            } else {
                                map.words()[word as usize].fetch_add(by, SeqCst);
                            }
                            *added.entry(word).or_insert(0) += by;
                        }
                        added
                    })
                })
                .collect();
            let mut totals = BTreeMap::new();
            for (word, by) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
                *totals.entry(word).or_insert(0) += by;
            }
            totals
        });
        let found: BTreeMap<u64, u64> =
            totals.keys().map(|word| (*word, maps[1].words()[*word as usize].load(SeqCst))).collect();
        assert_eq!(found, totals);
    }
}

#[test]
fn memory_with_a_name_is_mapped_by_whoever_knows_it() {
    if !can_map() {
        return;
    }
    let rack = rack(3, false);
    let open = |node: usize| rack.nodes[node].here().named::<Region>("table").open_or(|| 5 * PAGE).unwrap();
    let [first, second] = [open(0), open(1)];
    assert_eq!((first.addr(), first.len()), (second.addr(), 5 * PAGE));
    let maps = [first.map(&rack.nodes[0]).unwrap(), second.map(&rack.nodes[1]).unwrap()];
    maps[0].words()[5 * 512 - 1].store(7, SeqCst);
    assert_eq!(maps[1].words()[5 * 512 - 1].load(SeqCst), 7);
    let mut third = rack.nodes[2].here();
    let info = third.name_info("table").unwrap();
    assert_eq!(info.spec.value_len(), 5 * PAGE as u64);
    assert_eq!(third.read_word(first.addr() + (5 * PAGE - 8) as u64).unwrap(), 7);
    // Under its name there is something else by now.
    drop(maps);
    third.remove_name("table").unwrap();
    open(2);
    assert!(matches!(
        first.map(&rack.nodes[0]),
        Err(MapError::Memory(Error::Lost { .. } | Error::Unallocated { .. }))
    ));
    let much = third.named::<Region>("much").open_or(|| 1 << 30);
    assert!(much.unwrap_err().to_string().contains("bytes"));
}
