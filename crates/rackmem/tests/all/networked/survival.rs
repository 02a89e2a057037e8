//! Memory with copies: what a node has written outlives it, as far as it has synced and others have seen, and in its order.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use check::AtEnd;
use rackmem::{Config, Discipline, Error, GlobalAddr, Mapping, NodeHandle, NodeId};

use super::rig::{Processes, until};

fn rack(nodes: usize, copies: usize, faulty: bool) -> Processes {
    let shape = Config { nodes, copies, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    Processes::start_with(faulty, Config { peek: faulty, ..shape })
}

#[test]
fn what_was_synced_outlives_writer_and_home() {
    let mut rack = rack(3, 2, false);
    // Node 0 serves the memory, node 1 has the other copy.
    let (addr, never) = {
        let mut first = rack.nodes[0].here();
        let addr = first.alloc_with_copies(5000, NodeId(0)).unwrap();
        first.write(addr, &[7; 5000]).unwrap();
        first.sync().unwrap();
        (addr, first.alloc_with_copies(8, NodeId(0)).unwrap())
    };
    let (second, third) = (rack.nodes[1].clone(), rack.nodes[2].clone());
    rack.kill(0);
    let mut third = third.here();
    let mut found = vec![0; 5000];
    third.read(addr, &mut found).unwrap();
    assert_eq!(found, [7; 5000]);
    assert_eq!(third.read_word(never).unwrap(), 0, "it was allocated, and reads as zeroes");
    third.write_word(addr, 8).unwrap();
    assert_eq!(second.here().read_word(addr).unwrap(), 8);
    assert_eq!(third.free(addr), Err(Error::NodeDown { addr }), "whose allocator has it is gone");
    let again = third.alloc_with_copies(64, NodeId(0)).unwrap();
    third.write_word(again, 9).unwrap();
    third.free(again).unwrap();
}

/// One node after the other dies and comes back, until nobody is left who was there at first.
fn all_die_one_after_the_other(nodes: usize, copies: usize, faulty: bool) {
    let mut rack = rack(nodes, copies, faulty);
    let mut addrs: Vec<GlobalAddr> = Vec::new();
    for round in 0..2 * nodes {
        let dies = round % nodes;
        {
            // Whoever dies next writes last; what others wrote before, and what is in no cache, is there, too.
            let mut here = rack.nodes[dies].here();
            let near = |i: usize| NodeId((i % nodes) as u16);
            addrs.extend((0..3).map(|i| here.alloc_with_copies(9000, near(round + i)).unwrap()));
            for (i, addr) in addrs.iter().enumerate() {
                here.write(*addr, &[(round + i) as u8; 9000]).unwrap();
            }
            here.sync().unwrap();
        }
        rack.cut_off(dies);
        let reader = (dies + 1) % nodes;
        let mut found = vec![0; 9000];
        for (i, addr) in addrs.iter().enumerate() {
            rack.nodes[reader].here().read(*addr, &mut found).unwrap();
            assert_eq!(found, [(round + i) as u8; 9000], "round {round}, allocation {i}");
        }
        rack.rejoin(dies);
        until(|| rack.has_all_copies().then_some(()));
    }
}

#[test]
fn nothing_is_lost_when_all_nodes_die_one_after_the_other() {
    all_die_one_after_the_other(3, 2, false);
}

#[test]
fn nothing_is_lost_when_all_nodes_die_one_after_the_other_on_a_bad_network() {
    all_die_one_after_the_other(4, 3, true);
}

#[test]
fn a_memory_goes_to_another_node_when_one_does_not_come_back() {
    let mut rack = rack(4, 2, false);
    let addr = rack.nodes[3].here().alloc_with_copies(5000, NodeId(0)).unwrap();
    rack.nodes[3].here().write(addr, &[7; 5000]).unwrap();
    rack.nodes[3].here().sync().unwrap();
    // It is on nodes 0 and 1, and then on 1 and 2.
    rack.kill(0);
    assert_eq!(rack.nodes[2].here().read_word(addr), Ok(0x0707_0707_0707_0707));
    until(|| rack.has_all_copies().then_some(()));
    rack.kill(0);
    let mut found = vec![0; 5000];
    rack.nodes[1].here().read(addr, &mut found).unwrap();
    assert_eq!(found, [7; 5000]);
}

/// How the writer writes.
enum Reach<'a> {
    Calls(&'a [GlobalAddr]),
    /// Who is taken for dead must not, or the process ends.
    Pointers(&'a [Mapping]),
}

impl Reach<'_> {
    /// The writer counts: its `i`th write is `i`, to the blocks in turn.
    fn count(&self, here: &mut NodeHandle, mut numbers: RangeInclusive<u64>) -> Result<(), Error> {
        match self {
            Self::Calls(blocks) => {
                numbers.try_for_each(|i| here.write_word(blocks[i as usize % blocks.len()], i))
            }
            Self::Pointers(maps) => {
                numbers.for_each(|i| maps[i as usize % maps.len()].words()[0].store(i, Ordering::Relaxed));
                Ok(())
            }
        }
    }
}

/// What is found, if it is a prefix: the last write that survived.
fn prefix_of(found: &[u64]) -> u64 {
    let last = *found.iter().max().unwrap();
    let blocks = found.len() as u64;
    for (at, value) in found.iter().enumerate() {
        // The latest number up to the last one that belongs there.
        let want = (0..blocks).map(|back| last.saturating_sub(back)).find(|i| i % blocks == at as u64);
        assert_eq!(Some(*value), want, "block {at} of {found:?}");
    }
    last
}

fn a_prefix_survives(mut rack: Processes, mapped: bool, seed: u64) {
    const NODES: u16 = 4;
    let blocks: Vec<GlobalAddr> = {
        let mut last = rack.nodes[usize::from(NODES) - 1].here();
        (0..7u16).map(|i| last.alloc_with_copies(4096, NodeId(i % NODES)).unwrap()).collect()
    };
    let maps = blocks.iter().filter(|_| mapped).map(|addr| rack.nodes[0].map(*addr, 4096).unwrap());
    let maps: Vec<_> = maps.collect();
    let reach = if mapped { Reach::Pointers(&maps) } else { Reach::Calls(&blocks) };
    let (seen, synced, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let (writer, heir, reader) = (rack.nodes[0].clone(), rack.nodes[1].clone(), rack.nodes[2].clone());
    let dies = Duration::from_millis(150 + seed * 37);
    std::thread::scope(|scope| {
        let _stop = AtEnd(&stop);
        let writing = scope.spawn(|| {
            let (mut here, mut next) = (writer.here(), 1);
            loop {
                let upto = next + 3 + seed % 5;
                if reach.count(&mut here, next..=upto).is_err() || stop.load(Ordering::SeqCst) {
                    return upto;
                }
                if upto.is_multiple_of(3) {
                    if here.sync().is_err() {
                        return upto;
                    }
                    synced.store(upto, Ordering::SeqCst);
                }
                next = upto + 1;
            }
        });
        let reading = scope.spawn(|| {
            let mut here = reader.here();
            let begun = std::time::Instant::now();
            let works = || synced.load(Ordering::SeqCst) > 0 && seen.load(Ordering::SeqCst) > 0;
            while begun.elapsed() < dies || !works() {
                assert!(begun.elapsed() < Duration::from_secs(30), "the writer works, and is looked at");
                for addr in &blocks {
                    let value = here.read_word(*addr).expect("a copy is left");
                    seen.fetch_max(value, Ordering::SeqCst);
                }
            }
        });
        reading.join().unwrap();
        stop.store(mapped, Ordering::SeqCst);
        while mapped && !writing.is_finished() {
            std::thread::yield_now();
        }
        rack.cut_off(0);
        let mut here = heir.here();
        let found: Vec<u64> =
            blocks.iter().map(|addr| here.read_word(*addr).expect("a copy is left")).collect();
        let last = prefix_of(&found);
        // It hears that the others have gone on without it.
        rack.reconnect(0);
        let made = writing.join().unwrap();
        let (seen, synced) = (seen.load(Ordering::SeqCst), synced.load(Ordering::SeqCst));
        println!("seed {seed}: {made} writes made, {synced} synced, {seen} seen, {last} survived");
        assert!(
            last >= synced && last >= seen && last <= made,
            "{last} of {made}: {synced} synced, {seen} seen"
        );
    });
}

#[test]
fn a_prefix_of_what_was_written_survives() {
    (0..3).for_each(|seed| a_prefix_survives(rack(4, 2, false), false, seed));
}

#[test]
fn a_prefix_of_what_was_written_survives_on_a_bad_network() {
    (3..5).for_each(|seed| a_prefix_survives(rack(4, 2, true), false, seed));
}

#[test]
fn a_prefix_of_what_was_stored_through_pointers_survives() {
    for seed in (5..9).filter(|_| rackmem::can_map().is_ok()) {
        let (faulty, in_place) = (seed % 2 == 0, seed > 6);
        let shape = Config { nodes: 4, copies: 2, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
        a_prefix_survives(Processes::start_mapped(faulty, shape, in_place), true, seed);
    }
}

#[test]
fn who_syncs_while_memory_with_copies_is_pinned_to_be_written_is_told_so() {
    if rackmem::can_map().is_err() {
        return;
    }
    let shape = Config { nodes: 2, copies: 2, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    let rack = Processes::start_mapped(false, shape, false);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[1].here());
    let addr = here.alloc_with_copies(4096, NodeId(1)).unwrap();
    let mut map = rack.nodes[0].map(addr, 4096).unwrap();
    let mut pinned = map.pin_bytes(0..8).unwrap();
    pinned.copy_from_slice(&7_u64.to_le_bytes());
    assert_eq!(here.sync(), Err(Error::PinnedToWrite { addr }));
    // One who only waits for another's is not.
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| rack.nodes[0].here().sync());
        std::thread::sleep(Duration::from_millis(100));
        drop(pinned);
        assert_eq!(syncing.join().unwrap(), Ok(()));
    });
    assert_eq!(there.read_word(addr), Ok(7));
    let reading = map.pin(0..8, false).unwrap();
    assert_eq!(here.sync(), Ok(()), "what nobody may write is protected");
    drop(reading);
}

/// Long reads take the pin where writers are many: a block that is read so is committed all the same, and given away.
#[test]
fn blocks_that_threads_read_and_write_all_the_time_are_committed() {
    const BYTES: usize = 4096;
    /// What a thread does over and over, told how often it has done it.
    type Work<'a> = &'a (dyn Fn(&mut NodeHandle, u64) + Sync);
    let rack = rack(2, 2, false);
    let addr = rack.nodes[0].here().alloc_with_copies(BYTES as u64, NodeId(0)).unwrap();
    let stop = AtomicBool::new(false);
    let looped = |node: usize, work: Work| {
        let mut here = rack.nodes[node].here();
        (0..).take_while(|_| !stop.load(Ordering::Relaxed)).map(|i| work(&mut here, i)).count()
    };
    let write = |here: &mut NodeHandle, i: u64| here.write(addr, &[i as u8; BYTES]).unwrap();
    let sync = |here: &mut NodeHandle, _| here.sync().unwrap();
    let read = |here: &mut NodeHandle, _| {
        let mut found = [0; BYTES];
        here.read(addr, &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == found[0]), "half of a write");
    };
    std::thread::scope(|scope| {
        let stop_at_end = AtEnd(&stop);
        let threads: [(usize, Work); 5] = [(0, &write), (0, &read), (0, &sync), (1, &read), (1, &write)];
        let threads = threads.map(|(node, work)| scope.spawn(move || looped(node, work)));
        std::thread::sleep(Duration::from_millis(1500));
        drop(stop_at_end);
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() > 0));
    });
}

#[test]
fn a_handle_that_keeps_copies_allocates_nothing_coherent_without() {
    let rack = rack(3, 2, false);
    let mut here = rack.nodes[0].here();
    let home = |here: &mut NodeHandle, discipline| here.alloc(64, NodeId(1), discipline).unwrap().home();
    here.keep_copies(true).unwrap();
    assert_eq!(home(&mut here, Discipline::Coherent), NodeId(4));
    assert_eq!(home(&mut here.clone(), Discipline::Coherent), NodeId(4));
    assert_eq!(home(&mut here, Discipline::Word), NodeId(1));
    here.keep_copies(false).unwrap();
    assert_eq!(home(&mut here, Discipline::Coherent), NodeId(1));
}

#[test]
fn racks_without_copies_say_so() {
    let rack = Processes::start(2);
    assert_eq!(rack.nodes[0].here().keep_copies(true), Err(Error::NoCopies));
    assert_eq!(rack.nodes[0].here().keep_copies(false), Ok(()));
    assert_eq!(rack.nodes[0].here().alloc_with_copies(8, NodeId(0)), Err(Error::NoCopies));
    assert_eq!(rack.nodes[0].here().sync(), Ok(()));
}
