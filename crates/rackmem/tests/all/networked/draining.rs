//! A node that drains before it leaves: however soon another one dies then, nothing is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use check::AtEnd;
use rackmem::{
    Config, Discipline, DrainError, Drained, Draining, Error, GlobalAddr, NodeHandle, NodeId, Rack, Rest,
};

use super::rig::{Processes, until};

const LONG: Duration = Duration::from_secs(30);
const BLOCK: usize = 4096;
/// As many as are not copied within a moment: 4 MiB, of 20 in a second.
const BLOCKS: usize = 1024;

fn rack(nodes: usize, copies: usize, faulty: bool) -> Processes {
    Processes::start_with(
        faulty,
        Config { nodes, copies, memory: 8 << 20, cache: 1 << 20, peek: faulty, ..Config::default() },
    )
}

/// Something that takes a while to copy, in the memory that this node has, and the next one.
fn fill(here: &mut NodeHandle) -> GlobalAddr {
    let addr = here.alloc_with_copies((BLOCK * BLOCKS) as u64, here.id()).unwrap();
    for block in 0..BLOCKS {
        here.write(GlobalAddr::from_bits(addr.bits() + (block * BLOCK) as u64), &[block as u8; BLOCK])
            .unwrap();
    }
    here.sync().unwrap();
    addr
}

/// Reads it all.
fn look(here: &mut NodeHandle, addr: GlobalAddr) -> Result<(), Error> {
    let mut found = vec![0; BLOCK * BLOCKS];
    here.read(addr, &mut found)?;
    for (block, found) in found.chunks(BLOCK).enumerate() {
        assert!(found.iter().all(|byte| *byte == block as u8), "block {block}");
    }
    Ok(())
}

/// Counts in a block until told to stop; returns how far, all of which is synced.
fn count(here: &mut NodeHandle, addr: GlobalAddr, stop: &AtomicBool, done: &AtomicU64) -> u64 {
    for i in 1.. {
        here.write_word(addr, i).unwrap();
        here.sync().unwrap();
        done.store(i, Ordering::SeqCst);
        if stop.load(Ordering::SeqCst) {
            return i;
        }
    }
    unreachable!("it is told to stop")
}

/// Node 2 goes while nodes 0 and 1 write, and node 3, which has what it had, dies at once. What was written at first is looked at.
fn goes_and_another_one_dies(faulty: bool, go: impl FnOnce(&Rack)) -> Result<(), Error> {
    let mut rack = rack(4, 2, faulty);
    let [mut first, mut second, mut leaver] = [0, 1, 2].map(|node| rack.nodes[node].here());
    let filled = fill(&mut leaver);
    // Near all nodes, by each of the two.
    let near =
        |here: &mut NodeHandle| [0, 1, 2, 3].map(|near| here.alloc_with_copies(8, NodeId(near)).unwrap());
    let words = [near(&mut first), near(&mut second)];
    let (stop, done) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 8]);
    let all = [0, 1].map(|node| rack.nodes[node].clone());
    std::thread::scope(|scope| {
        let stop_at_end = AtEnd(&stop);
        let writers: Vec<_> = (0..8)
            .map(|at| {
                let (mut here, addr) = (all[at / 4].here(), words[at / 4][at % 4]);
                let (stop, done) = (&stop, &done[at]);
                scope.spawn(move || count(&mut here, addr, stop, done))
            })
            .collect();
        until(|| done.iter().all(|done| done.load(Ordering::SeqCst) > 0).then_some(()));
        go(&rack.nodes[2]);
        rack.cut_off(3);
        let looked = look(&mut all[0].here(), filled);
        if looked.is_err() {
            // Then the writers' words are gone, too.
            drop(stop_at_end);
            writers.into_iter().for_each(|writer| drop(writer.join()));
            return looked;
        }
        // They go on for a while with what is left.
        let now: Vec<_> = done.iter().map(|done| done.load(Ordering::SeqCst)).collect();
        until(|| {
            done.iter().zip(&now).all(|(done, now)| done.load(Ordering::SeqCst) > now + 3).then_some(())
        });
        drop(stop_at_end);
        for (at, writer) in writers.into_iter().enumerate() {
            let written = writer.join().expect("no write fails");
            let addr = words[at / 4][at % 4];
            assert_eq!(all[1 - at / 4].here().read_word(addr), Ok(written), "word {at}");
        }
        looked
    })
}

#[test]
fn nothing_is_lost_when_another_node_dies_as_soon_as_it_has_left() {
    for faulty in [false, true] {
        let drained = goes_and_another_one_dies(faulty, |node| {
            let drained = node.drain(LONG, Rest::Keep);
            assert_eq!(drained, Ok(Drained { copies: 2, in_order: true }));
        });
        assert_eq!(drained, Ok(()));
    }
}

/// What the test above is worth: without it, this is what happens.
#[test]
fn it_is_when_it_only_leaves() {
    let left = goes_and_another_one_dies(false, |node| assert!(node.leave(LONG)));
    assert!(matches!(left, Err(Error::NodeDown { .. } | Error::Unallocated { .. })), "{left:?}");
}

#[test]
fn a_node_that_dies_while_it_drains_takes_nothing_along() {
    let mut rack = rack(4, 2, false);
    let mut leaver = rack.nodes[2].here();
    let addr = fill(&mut leaver);
    assert!(matches!(rack.nodes[2].begin_drain(Rest::Keep), Ok(Draining::Moving { .. })));
    rack.cut_off(2);
    look(&mut rack.nodes[0].here(), addr).unwrap();
    until(|| rack.has_all_copies().then_some(()));
}

#[test]
fn another_death_makes_it_wait_for_what_that_takes() {
    let mut rack = rack(4, 2, false);
    let addr = fill(&mut rack.nodes[2].here());
    assert!(matches!(rack.nodes[2].begin_drain(Rest::Keep), Ok(Draining::Moving { .. })));
    // The other one that has the memory: only the one that drains is left with it.
    rack.cut_off(3);
    assert_eq!(rack.nodes[2].drain(LONG, Rest::Keep), Ok(Drained { copies: 2, in_order: true }));
    rack.cut_off(0);
    look(&mut rack.nodes[1].here(), addr).unwrap();
}

#[test]
fn what_has_no_copies_holds_it_unless_it_may_be_lost() {
    let rack = rack(3, 2, false);
    let mut here = rack.nodes[0].here();
    for discipline in [Discipline::Coherent, Discipline::Word, Discipline::Object] {
        let addr = match discipline {
            Discipline::Word => here.words::<u64>(4, NodeId(2)).unwrap().addr(),
            Discipline::Object => here.byte_objects(4, 100, NodeId(2)).unwrap().addr(),
            other => here.alloc(100, NodeId(2), other).unwrap(),
        };
        let refused = rack.nodes[2].drain(LONG, Rest::Keep);
        assert!(
            matches!(refused, Err(DrainError::Homed { bytes, copies: 2 }) if bytes >= 100),
            "{discipline:?}: {refused:?}"
        );
        assert!(matches!(rack.nodes[2].draining(), Ok(Draining::Refused { .. })));
        here.free(addr).unwrap();
    }
    // One that comes while it drains is noticed, too.
    assert!(matches!(rack.nodes[2].begin_drain(Rest::Keep), Ok(Draining::Moving { .. })));
    let addr = here.alloc(100, NodeId(2), Discipline::Coherent).unwrap();
    until(|| matches!(rack.nodes[2].draining(), Ok(Draining::Refused { .. })).then_some(()));
    assert!(rack.nodes[2].drain(LONG, Rest::Lose).is_ok());
    assert_eq!(here.read_word(addr), Err(Error::NodeDown { addr }));
}

#[test]
fn it_says_what_it_waits_for_and_stays_when_told_to() {
    let rack = rack(2, 2, false);
    fill(&mut rack.nodes[0].here());
    // If both go, nobody is left who could take anything.
    let both = [0, 1].map(|node| rack.nodes[node].begin_drain(Rest::Keep));
    assert!(both.iter().all(|state| matches!(state, Ok(Draining::Moving { .. }))), "{both:?}");
    until(|| matches!(rack.nodes[0].draining(), Ok(Draining::Moving { staying: Some(0), .. })).then_some(()));
    let late = rack.nodes[0].drain(Duration::from_millis(500), Rest::Keep);
    let Err(DrainError::Late { memories: 2, bytes, staying: Some(0) }) = late else { panic!("{late:?}") };
    assert!(bytes >= (BLOCK * BLOCKS) as u64);
    assert!(late.unwrap_err().to_string().starts_with("no node stays"));
    assert_eq!(rack.nodes[1].stop_drain(), Ok(Draining::No));
    // The other one has all, and there are no more nodes.
    assert_eq!(rack.nodes[0].drain(LONG, Rest::Keep), Ok(Drained { copies: 1, in_order: true }));
    assert!(matches!(rack.nodes[0].draining(), Ok(Draining::Left { staying: 1, in_order: true })));
}

#[test]
fn on_a_rack_without_copies_it_goes_if_nothing_is_there() {
    let rack = Processes::start(3);
    let addr = rack.nodes[0].here().alloc(100, NodeId(2), Discipline::Coherent).unwrap();
    let refused = rack.nodes[2].drain(LONG, Rest::Keep).unwrap_err();
    assert!(refused.to_string().contains("the rack keeps no copies"), "{refused}");
    rack.nodes[0].here().free(addr).unwrap();
    assert_eq!(rack.nodes[2].drain(LONG, Rest::Keep), Ok(Drained { copies: 1, in_order: true }));
}
