//! What must hold of words and objects, on whatever rack of three processes: tests of several kinds of racks call these.
#![allow(dead_code, reason = "each kind of rack uses its part")]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{
    ByteObjects, Discipline, Error, Nanos, NodeHandle, NodeId, Objects, Rack, Retry, WordOperation, Words,
};
use random::Random;

/// Threads of all nodes do this with the same words.
fn on_all(nodes: &[Rack], threads: u64, work: impl Fn(u64, &mut NodeHandle) + Sync) {
    std::thread::scope(|scope| {
        for (at, node) in (0..).zip(nodes) {
            for thread in 0..threads {
                let work = &work;
                scope.spawn(move || work(at * threads + thread, &mut node.here()));
            }
        }
    });
}

pub(crate) fn no_addition_is_lost_or_made_twice_however_it_is_made(nodes: &[Rack]) {
    const ROUNDS: u64 = 200;
    let addr = nodes[0].here().words::<u64>(4, NodeId(1)).unwrap().addr();
    on_all(nodes, 2, |_, here| {
        let words = here.words_at::<u64>(addr).unwrap();
        for _ in 0..ROUNDS {
            words.fetch_add(here, 0, 3).unwrap();
            words.add(here, 1, 5).unwrap();
            let pending = words.post(here, 2, WordOperation::Add(7)).unwrap();
            words.add(here, 3, 1).unwrap();
            pending.wait(here).unwrap();
        }
        here.flush().unwrap();
    });
    let mut here = nodes[2].here();
    let words = here.words_at::<u64>(addr).unwrap();
    let found = [0, 1, 2, 3].map(|index| words.load(&mut here, index).unwrap());
    assert_eq!(found, [3, 5, 7, 1].map(|each| each * 6 * ROUNDS));
}

pub(crate) fn additions_arrive_also_if_nobody_flushes_before_the_handle_goes(nodes: &[Rack]) {
    let addr = nodes[0].here().words::<u64>(1, NodeId(1)).unwrap().addr();
    on_all(nodes, 1, |_, here| {
        let words = here.words_at::<u64>(addr).unwrap();
        (0..100).for_each(|_| words.add(here, 0, 1).unwrap());
    });
    let mut here = nodes[0].here();
    assert_eq!(here.words_at::<u64>(addr).unwrap().load(&mut here, 0), Ok(300));
}

/// One after the other on one word, in both widths, some of which fetch: each gets what those before it made of the word.
pub(crate) fn additions_to_one_word_in_a_row_get_what_was_before_each(nodes: &[Rack]) {
    let mut here = nodes[0].here();
    let words = here.words::<u64>(2, NodeId(1)).unwrap();
    let halves = here.words_at::<u32>(words.addr()).unwrap();
    words.swap(&mut here, 0, u64::MAX - 2).unwrap();
    words.add(&mut here, 0, 1).unwrap();
    let first = words.post(&mut here, 0, WordOperation::Add(4)).unwrap();
    words.add(&mut here, 0, 10).unwrap();
    let second = words.post(&mut here, 0, WordOperation::Add(5)).unwrap();
    let load = words.post(&mut here, 0, WordOperation::Load).unwrap();
    let low: Vec<_> =
        [u32::MAX, 7].map(|add| halves.post(&mut here, 2, WordOperation::Add(add)).unwrap()).into();
    let high = halves.post(&mut here, 3, WordOperation::Add(9)).unwrap();
    assert_eq!(second.wait(&mut here), Ok(12), "it wraps around");
    assert_eq!(first.wait(&mut here), Ok(u64::MAX - 1));
    assert_eq!(load.wait(&mut here), Ok(17));
    let low: Vec<_> = low.into_iter().map(|posted| posted.wait(&mut here)).collect();
    assert_eq!(low, [Ok(0), Ok(u32::MAX)]);
    assert_eq!(high.wait(&mut here), Ok(0));
    here.flush().unwrap();
    assert_eq!(words.load(&mut here, 0), Ok(17));
    assert_eq!(words.load(&mut here, 1), Ok(9 << 32 | 6), "no carry from the lower half");
}

pub(crate) fn every_value_of_a_counter_is_handed_out_once_also_to_thousands_that_are_in_flight(
    nodes: &[Rack],
) {
    const EACH: usize = 3000;
    let addr = nodes[0].here().words::<u64>(1, NodeId(0)).unwrap().addr();
    let drawn = Mutex::new(BTreeSet::new());
    on_all(nodes, 1, |_, here| {
        let words = here.words_at::<u64>(addr).unwrap();
        let posted: Vec<_> = (0..EACH).map(|_| words.post(here, 0, WordOperation::Add(1)).unwrap()).collect();
        let mine: Vec<u64> = posted.into_iter().map(|pending| pending.wait(here).unwrap()).collect();
        assert!(mine.is_sorted(), "a thread's operations take effect in its order");
        drawn.lock().unwrap().extend(mine);
    });
    assert!(drawn.into_inner().unwrap().into_iter().eq(0..3 * EACH as u64));
}

pub(crate) fn loops_of_compare_exchange_lose_nothing_in_words_of_both_widths(nodes: &[Rack]) {
    const ROUNDS: u64 = 60;
    let addr = nodes[0].here().words::<u32>(2, NodeId(2)).unwrap().addr();
    on_all(nodes, 1, |_, here| {
        let halves: Words<u32> = here.words_at(addr).unwrap();
        for _ in 0..ROUNDS {
            let mut expected = halves.load(here, 1).unwrap();
            while let Err(found) = halves.compare_exchange(here, 1, expected, expected + 1).unwrap() {
                expected = found;
            }
            halves.fetch_add(here, 0, u32::MAX).unwrap();
        }
    });
    let mut here = nodes[0].here();
    let whole: Words<u64> = here.words_at(addr).unwrap();
    let lower = (3 * ROUNDS as u32).wrapping_neg();
    assert_eq!(whole.load(&mut here, 0).unwrap(), (3 * ROUNDS) << 32 | u64::from(lower), "no carry");
}

pub(crate) fn each_operation_does_at_a_far_home_what_its_name_says(nodes: &[Rack]) {
    let mut here = nodes[0].here();
    let words = here.words::<i64>(4, NodeId(1)).unwrap();
    assert_eq!(words.swap(&mut here, 1, 0b1100).unwrap(), 0);
    assert_eq!(words.fetch_and(&mut here, 1, 0b0110).unwrap(), 0b1100);
    assert_eq!(words.fetch_or(&mut here, 1, 0b0011).unwrap(), 0b0100);
    assert_eq!(words.fetch_xor(&mut here, 1, 0b0101).unwrap(), 0b0111);
    assert_eq!(words.fetch_min(&mut here, 1, -5).unwrap(), 0b0010);
    assert_eq!(words.fetch_max(&mut here, 1, 9).unwrap(), -5);
    assert_eq!(words.compare_exchange(&mut here, 1, 8, 1).unwrap(), Err(9));
    assert_eq!(words.compare_exchange(&mut here, 1, 9, 1).unwrap(), Ok(9));
    words.compare_store(&mut here, 1, 1, 77).unwrap();
    words.store(&mut here, 2, -1).unwrap();
    assert_eq!(words.load(&mut here, 1).unwrap(), 77);
    assert_eq!(words.load(&mut here, 2).unwrap(), -1);
    assert_eq!(words.fetch_add(&mut here, 4, 1), Err(Error::OutOfBounds { index: 4, count: 4 }));
}

pub(crate) fn what_is_read_of_an_object_is_never_of_two_writes(nodes: &[Rack]) {
    for len in [24, 1000, 20_000] {
        let addr = nodes[0].here().byte_objects(2, len, NodeId(1)).unwrap().addr();
        let until = Instant::now() + Duration::from_millis(250);
        on_all(nodes, 1, |node, here| {
            let objects = here.byte_objects_at(addr).unwrap();
            let (mut copy, mut turn, mut before) = (vec![0; len], 0_u8, 0);
            while Instant::now() < until {
                turn = turn.wrapping_add(1);
                match node {
                    0 => _ = objects.write(here, 1, 0, &vec![turn; len]).unwrap(),
                    1 => _ = objects.update(here, 1, |object| object.write(0, &vec![turn; len])).unwrap(),
                    _ => {
                        let version = objects.read(here, 1, &mut copy, Retry::Forever).unwrap();
                        assert!(copy.iter().all(|byte| *byte == copy[0]), "a mix");
                        assert!(version >= before, "objects do not go back");
                        before = version;
                    }
                }
            }
        });
    }
}

pub(crate) fn updates_of_an_object_by_all_nodes_are_all_counted(nodes: &[Rack]) {
    const ROUNDS: u64 = 40;
    let addr = nodes[0].here().objects::<[u64; 20]>(3, NodeId(2)).unwrap().addr();
    on_all(nodes, 2, |_, here| {
        let objects: Objects<[u64; 20]> = here.objects_at(addr).unwrap();
        for _ in 0..ROUNDS {
            objects.update(here, 2, |words| words.iter_mut().for_each(|word| *word += 1)).unwrap();
        }
    });
    let mut here = nodes[0].here();
    let objects: Objects<[u64; 20]> = here.objects_at(addr).unwrap();
    assert_eq!(objects.read(&mut here, 2, Retry::Forever).unwrap(), [6 * ROUNDS; 20]);
    assert_eq!(objects.read(&mut here, 1, Retry::Forever).unwrap(), [0; 20]);
}

pub(crate) fn bytes_of_words_are_read_and_written_as_they_are_and_behind_what_was_begun_before(
    nodes: &[Rack],
) {
    let (mut here, mut there) = (nodes[0].here(), nodes[1].here());
    let words = here.words::<u64>(700, NodeId(1)).unwrap();
    let same = there.words_at::<u64>(words.addr()).unwrap();
    let bytes: Vec<u8> = (0..5000_u32).map(|at| (at * 7) as u8).collect();
    words.store(&mut here, 3, 1).unwrap();
    words.store(&mut here, 640, u64::MAX).unwrap();
    words.write_bytes(&mut here, 3, &bytes).unwrap();
    // The store came before, and is overwritten; of a word that is written in part the rest stays.
    let mut found = vec![0; 5000];
    same.read_bytes(&mut there, 3, &mut found).unwrap();
    assert_eq!(found, bytes);
    assert_eq!(same.load(&mut there, 640).unwrap(), u64::MAX);
    same.write_bytes(&mut there, 639, &[1, 2, 3]).unwrap();
    assert_eq!(same.load(&mut there, 639).unwrap(), 0x03_0201);
    words.add(&mut here, 640, 2).unwrap();
    words.read_bytes(&mut here, 638, &mut found[..24]).unwrap();
    assert_eq!(
        found[8..24],
        [1, 2, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        "what was begun is done before"
    );
    words.read_bytes(&mut here, 700, &mut []).unwrap();
    for (at, len) in [(700, 1), (699, 9), (0, 5601), (usize::MAX, 8), (1 << 60, 16)] {
        let mut room = vec![0; len];
        let beyond = |error| matches!(error, Error::OutOfBounds { count: 700, .. });
        assert!(words.read_bytes(&mut here, at, &mut room).is_err_and(beyond), "{len} bytes at {at}");
        assert!(words.write_bytes(&mut here, at, &room).is_err_and(beyond), "{len} bytes at {at}");
    }
    let most = Words::<u64>::MOST_BYTES as u64;
    let long = words.read_bytes(&mut here, 0, &mut vec![0; most as usize + 1]);
    assert_eq!(long, Err(Error::BadSize { len: most + 1, most }));
    words.read_bytes(&mut here, 3, &mut found).unwrap();
    assert_eq!(found, bytes, "and everything works as before");
}

pub(crate) fn an_object_is_written_only_in_the_version_that_was_read(nodes: &[Rack]) {
    let (mut here, mut there) = (nodes[0].here(), nodes[1].here());
    let objects = here.byte_objects(3, 3000, NodeId(1)).unwrap();
    let same = there.byte_objects_at(objects.addr()).unwrap();
    let mut copy = vec![0; 3000];
    let version = objects.read(&mut here, 2, &mut copy, Retry::Forever).unwrap();
    let next = objects.write_if(&mut here, 2, version, &[1; 3000]).unwrap().expect("nobody has written it");
    assert!(next > version);
    for former in [version, next + 2] {
        assert_eq!(objects.write_if(&mut here, 2, former, &[2; 3000]).unwrap(), None);
        assert_eq!(same.write_if(&mut there, 2, former, &[2; 3000]).unwrap(), None);
    }
    assert_eq!(same.read(&mut there, 2, &mut copy, Retry::Forever).unwrap(), next);
    assert_eq!(copy, [1; 3000]);
    let short = Error::WrongLength { addr: objects.addr(), len: 2 };
    assert_eq!(objects.write_if(&mut here, 2, next, &[3; 2]), Err(short));
    let beyond = Error::OutOfBounds { index: 3, count: 3 };
    assert_eq!(objects.write_if(&mut here, 3, 0, &[3; 3000]), Err(beyond));
}

pub(crate) fn of_all_who_write_an_object_in_one_version_one_does(nodes: &[Rack]) {
    const ROUNDS: u64 = 60;
    let addr = nodes[0].here().byte_objects(1, 80, NodeId(2)).unwrap().addr();
    on_all(nodes, 2, |_, here| {
        let objects = here.byte_objects_at(addr).unwrap();
        for _ in 0..ROUNDS {
            loop {
                let mut copy = [0; 80];
                let version = objects.read(here, 0, &mut copy, Retry::Forever).unwrap();
                let sum = u64::from_le_bytes(*copy.first_chunk().unwrap()) + 1;
                copy.as_chunks_mut::<8>().0.fill(sum.to_le_bytes());
                if objects.write_if(here, 0, version, &copy).unwrap().is_some() {
                    break;
                }
            }
        }
    });
    let (mut here, mut copy) = (nodes[1].here(), [0; 80]);
    let objects = here.byte_objects_at(addr).unwrap();
    objects.read(&mut here, 0, &mut copy, Retry::Forever).unwrap();
    assert!(copy.as_chunks::<8>().0.iter().all(|word| u64::from_le_bytes(*word) == 6 * ROUNDS));
}

pub(crate) fn what_was_freed_is_refused_from_then_on_everywhere_and_nothing_else_suffers(nodes: &[Rack]) {
    let (mut here, mut there) = (nodes[0].here(), nodes[1].here());
    let kept = here.words::<u64>(2, NodeId(1)).unwrap();
    for _ in 0..3 {
        let words = here.words::<u64>(8, NodeId(1)).unwrap();
        let objects = here.byte_objects(4, 100, NodeId(1)).unwrap();
        let (addr, at) = (words.addr(), objects.addr());
        let (former, gone): (Words<u64>, ByteObjects) = (words.clone(), objects.clone());
        objects.write(&mut here, 1, 3, b"abc").unwrap();
        words.add(&mut here, 7, 5).unwrap();
        words.free(&mut there).unwrap();
        objects.free(&mut there).unwrap();
        // One that is dead, one that lives, in one packet.
        let begun = former.add(&mut here, 0, 1);
        kept.add(&mut here, 0, 1).unwrap();
        assert_eq!(begun.and(here.flush()), Err(Error::Unallocated { addr }));
        assert_eq!(former.fetch_add(&mut here, 0, 1), Err(Error::Unallocated { addr }));
        assert_eq!(gone.write(&mut here, 1, 0, b"abc"), Err(Error::Unallocated { addr: at }));
        let read = gone.read(&mut here, 1, &mut [0; 100], Retry::Forever);
        assert_eq!(read, Err(Error::Unallocated { addr: at }.into()));
        assert!(here.words_at::<u64>(addr).is_err() && there.words_at::<u64>(addr).is_err());
    }
    assert_eq!(kept.load(&mut here, 0).unwrap(), 3);
}

pub(crate) fn addresses_that_begin_no_such_thing_are_refused_with_why(nodes: &[Rack]) {
    let mut here = nodes[0].here();
    for home in [0, 1] {
        let words = here.words::<u64>(8, NodeId(home)).unwrap();
        let coherent = here.alloc(64, NodeId(home), Discipline::Coherent).unwrap();
        let inside = rackmem::GlobalAddr::from_bits(words.addr().bits() + 8);
        let (addr, needs) = (words.addr(), Discipline::Object);
        assert_eq!(here.byte_objects_at(addr).err(), Some(Error::WrongDiscipline { addr, needs }));
        assert_eq!(here.words_at::<u64>(inside).err(), Some(Error::NotAnAllocation { addr: inside }));
        let needs = Discipline::Word;
        let wrong = Error::WrongDiscipline { addr: coherent, needs };
        assert_eq!(here.words_at::<u64>(coherent).err(), Some(wrong));
    }
}

/// What clients on all nodes did to a few words, or objects, of which they began all with 0.
pub(crate) fn history(
    nodes: &[Rack],
    each: u64,
    open: impl Fn(&mut NodeHandle) -> Box<dyn FnMut(&mut NodeHandle, &mut Random, u64, u64) -> Op> + Sync,
) -> Vec<Operation<u64>> {
    const KEYS: u64 = 4;
    let (all, began) = (Mutex::new(Vec::new()), Instant::now());
    let now = || Nanos(1 + u64::try_from(began.elapsed().as_nanos()).unwrap());
    on_all(nodes, 2, |client, here| {
        let (mut dice, mut mine, mut act) = (Random::new(client + 1), Vec::new(), open(here));
        for round in 0..each {
            let (key, value) = (dice.below(KEYS), 1 + client * 1_000_000_000 + round);
            let invoke = now();
            let op = act(here, &mut dice, key, value);
            mine.push(Operation { client, key, op, invoke, ret: Some(now()) });
        }
        all.lock().unwrap().extend(mine);
    });
    let mut all = all.into_inner().unwrap();
    for key in 0..KEYS {
        let (invoke, ret) = (Nanos(0), Some(Nanos(0)));
        all.push(Operation { client: 99, key, op: Op::Insert { value: 0 }, invoke, ret });
    }
    all
}

pub(crate) fn assert_linearizable(history: &[Operation<u64>]) {
    match check_history(history, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
        other => panic!("{other:?}"),
    }
}

/// Clients on all nodes operate on words in every way.
pub(crate) fn history_of_words(nodes: &[Rack], each: u64) -> Vec<Operation<u64>> {
    let addr = nodes[0].here().words::<u64>(4, NodeId(1)).unwrap().addr();
    history(nodes, each, |here| {
        let words = here.words_at::<u64>(addr).unwrap();
        let mut known = [0; 4];
        Box::new(move |here, dice, key, new| {
            let at = key as usize;
            match dice.below(5) {
                0 => {
                    words.store(here, at, new).unwrap();
                    here.flush().unwrap();
                    Op::Insert { value: new }
                }
                1 => Op::Rmw { value: Some(words.swap(here, at, new).unwrap()), new },
                2 => match words.compare_exchange(here, at, known[at], new).unwrap() {
                    Ok(old) => Op::Rmw { value: Some(old), new },
                    Err(found) => Op::Read { value: Some(found) },
                },
                3 => {
                    let pending = words.post(here, at, WordOperation::Swap(new)).unwrap();
                    Op::Rmw { value: Some(pending.wait(here).unwrap()), new }
                }
                _ => {
                    known[at] = words.load(here, at).unwrap();
                    Op::Read { value: Some(known[at]) }
                }
            }
        })
    })
}

pub(crate) fn histories_of_words_are_linearizable(nodes: &[Rack]) {
    assert_linearizable(&history_of_words(nodes, 150));
}

pub(crate) fn histories_of_objects_are_linearizable(nodes: &[Rack]) {
    let addr = nodes[0].here().objects::<[u64; 30]>(4, NodeId(2)).unwrap().addr();
    assert_linearizable(&history(nodes, 120, |here| {
        let objects: Objects<[u64; 30]> = here.objects_at(addr).unwrap();
        Box::new(move |here, dice, key, new| {
            let at = key as usize;
            match dice.below(3) {
                0 => {
                    objects.write(here, at, &[new; 30]).unwrap();
                    Op::Insert { value: new }
                }
                1 => {
                    let mut old = 0;
                    let swap = |words: &mut [u64; 30]| old = std::mem::replace(words, [new; 30])[17];
                    objects.update(here, at, swap).unwrap();
                    Op::Rmw { value: Some(old), new }
                }
                _ => {
                    let found = objects.read(here, at, Retry::Forever).unwrap();
                    assert_eq!(found, [found[0]; 30]);
                    Op::Read { value: Some(found[0]) }
                }
            }
        })
    }));
}

/// One test for each of them.
macro_rules! everywhere {
    ($nodes:ident) => {
        #[test]
        fn no_addition_is_lost_or_made_twice_however_it_is_made() {
            $nodes(crate::regions_everywhere::no_addition_is_lost_or_made_twice_however_it_is_made);
        }

        #[test]
        fn additions_arrive_also_if_nobody_flushes_before_the_handle_goes() {
            $nodes(crate::regions_everywhere::additions_arrive_also_if_nobody_flushes_before_the_handle_goes);
        }

        #[test]
        fn additions_to_one_word_in_a_row_get_what_was_before_each() {
            $nodes(crate::regions_everywhere::additions_to_one_word_in_a_row_get_what_was_before_each);
        }

        #[test]
        fn every_value_of_a_counter_is_handed_out_once_also_to_thousands_that_are_in_flight() {
            $nodes(crate::regions_everywhere::every_value_of_a_counter_is_handed_out_once_also_to_thousands_that_are_in_flight);
        }

        #[test]
        fn loops_of_compare_exchange_lose_nothing_in_words_of_both_widths() {
            $nodes(crate::regions_everywhere::loops_of_compare_exchange_lose_nothing_in_words_of_both_widths);
        }

        #[test]
        fn each_operation_does_at_a_far_home_what_its_name_says() {
            $nodes(crate::regions_everywhere::each_operation_does_at_a_far_home_what_its_name_says);
        }

        #[test]
        fn what_is_read_of_an_object_is_never_of_two_writes() {
            $nodes(crate::regions_everywhere::what_is_read_of_an_object_is_never_of_two_writes);
        }

        #[test]
        fn updates_of_an_object_by_all_nodes_are_all_counted() {
            $nodes(crate::regions_everywhere::updates_of_an_object_by_all_nodes_are_all_counted);
        }

        #[test]
        fn bytes_of_words_are_read_and_written_as_they_are_and_behind_what_was_begun_before() {
            $nodes(crate::regions_everywhere::bytes_of_words_are_read_and_written_as_they_are_and_behind_what_was_begun_before);
        }

        #[test]
        fn an_object_is_written_only_in_the_version_that_was_read() {
            $nodes(crate::regions_everywhere::an_object_is_written_only_in_the_version_that_was_read);
        }

        #[test]
        fn of_all_who_write_an_object_in_one_version_one_does() {
            $nodes(crate::regions_everywhere::of_all_who_write_an_object_in_one_version_one_does);
        }

        #[test]
        fn what_was_freed_is_refused_from_then_on_everywhere_and_nothing_else_suffers() {
            $nodes(crate::regions_everywhere::what_was_freed_is_refused_from_then_on_everywhere_and_nothing_else_suffers);
        }

        #[test]
        fn addresses_that_begin_no_such_thing_are_refused_with_why() {
            $nodes(crate::regions_everywhere::addresses_that_begin_no_such_thing_are_refused_with_why);
        }

        #[test]
        fn histories_of_words_are_linearizable() {
            $nodes(crate::regions_everywhere::histories_of_words_are_linearizable);
        }

        #[test]
        fn histories_of_objects_are_linearizable() {
            $nodes(crate::regions_everywhere::histories_of_objects_are_linearizable);
        }
    };
}
pub(crate) use everywhere;
