//! What must hold of objects while threads of many nodes read and write them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{Discipline, ReadError, Retry};

use crate::regions::{node, rack};

#[test]
fn no_object_is_ever_read_torn() {
    // Shorter than a line, of odd length, beyond a block.
    for len in [3, 24, 63, 120, 1000, 8193] {
        let rack = rack(4);
        let objects = rack.node(node(0)).byte_objects(3, len, node(1)).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 0..3_u8 {
                let (mut node, objects, over) = (rack.node(node(u16::from(writer))), objects.clone(), &over);
                scope.spawn(move || {
                    let mut stamp = writer;
                    while !over.load(Ordering::Relaxed) {
                        // Each stamp is one writer's, until they come round.
                        stamp = stamp.wrapping_add(3);
                        for index in 0..3 {
                            objects.write(&mut node, index, 0, &vec![stamp; len]).unwrap();
                        }
                    }
                });
            }
            let readers: Vec<_> = (0..2)
                .map(|reader| {
                    let (mut node, objects) = (rack.node(node(2 + reader)), objects.clone());
                    scope.spawn(move || {
                        let (mut bytes, mut last) = (vec![0; len], [0; 3]);
                        for round in 0..6000_usize {
                            let index = round % 3;
                            let version = objects.read(&mut node, index, &mut bytes, Retry::Forever).unwrap();
                            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "two versions in one read");
                            assert!(version.is_multiple_of(2) && version >= last[index]);
                            last[index] = version;
                        }
                    })
                })
                .collect();
            let outcomes: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
            over.store(true, Ordering::Relaxed);
            outcomes.into_iter().for_each(|outcome| outcome.expect("a reader failed"));
        });
    }
}

#[test]
fn no_update_is_lost_and_each_makes_one_version() {
    const THREADS: u16 = 8;
    const ROUNDS: u64 = 5000;
    let rack = rack(4);
    let objects = rack.node(node(0)).objects::<[u64; 9]>(2, node(3)).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut node, objects) = (rack.node(node(thread % 4)), &objects);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    objects
                        .update(&mut node, 1, |value| value.iter_mut().for_each(|word| *word += 1))
                        .unwrap();
                }
            });
        }
    });
    let (mut node, mut value) = (rack.node(node(0)), [0; 9]);
    let version = objects.read_into(&mut node, 1, &mut value, Retry::Never).unwrap();
    assert_eq!((version, value), (2 * u64::from(THREADS) * ROUNDS, [u64::from(THREADS) * ROUNDS; 9]));
    assert_eq!(objects.read(&mut node, 0, Retry::Never).unwrap(), [0; 9]);
}

#[test]
fn a_reader_tries_as_often_as_it_wants_and_no_more() {
    let rack = rack(2);
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
    let objects = here.byte_objects(1, 64, node(1)).unwrap();
    let mut bytes = [0; 64];
    // From inside of an update, the object is being written for as long as one likes.
    objects
        .update(&mut here, 0, |_| {
            let mut read = |retry| objects.read(&mut there, 0, &mut bytes, retry);
            assert_eq!(read(Retry::Never), Err(ReadError::Torn { attempts: 1 }));
            assert_eq!(read(Retry::Times(99)), Err(ReadError::Torn { attempts: 100 }));
            let late = Instant::now() + Duration::from_millis(2);
            assert!(matches!(read(Retry::Until(late)), Err(ReadError::Torn { attempts: 2.. })));
            assert!(Instant::now() >= late);
        })
        .unwrap();
    assert_eq!(objects.read(&mut there, 0, &mut bytes, Retry::Never), Ok(2));
}

#[test]
fn a_writer_that_panics_leaves_an_object_that_can_be_used() {
    let rack = rack(2);
    let objects = rack.node(node(0)).objects::<[u64; 4]>(1, node(1)).unwrap();
    let mut node = rack.node(node(1));
    objects.write(&mut node, 0, &[1; 4]).unwrap();
    let outcome = thread::scope(|scope| {
        let mut other = rack.node(crate::regions::node(0));
        let objects = &objects;
        scope
            .spawn(move || {
                objects.update(&mut other, 0, |value| {
                    value[0] = 9;
                    panic!("while it is written: this is a test");
                })
            })
            .join()
    });
    assert!(outcome.is_err());
    assert_eq!(objects.read(&mut node, 0, Retry::Never).unwrap(), [1; 4], "a value is written whole or not");
    objects.write(&mut node, 0, &[2; 4]).unwrap();
    assert_eq!(objects.read(&mut node, 0, Retry::Never).unwrap(), [2; 4]);
}

#[test]
fn a_free_waits_for_the_writer_and_the_next_object_begins_with_zeroes() {
    let rack = rack(2);
    let objects = rack.node(node(0)).byte_objects(1, 5000, node(1)).unwrap();
    let (mut writer, mut freer) = (rack.node(node(0)), rack.node(node(1)));
    for _ in 0..50 {
        let objects = freer.byte_objects(1, 1000, node(1)).unwrap();
        let (begun, addr) = (AtomicBool::new(false), objects.addr());
        thread::scope(|scope| {
            let (objects, begun, writer) = (&objects, &begun, &mut writer);
            scope.spawn(move || {
                objects.update(writer, 0, |object| {
                    begun.store(true, Ordering::Release);
                    (0..1000).for_each(|byte| object.write(byte, &[0xee]));
                })
            });
            while !begun.load(Ordering::Acquire) {
                thread::yield_now();
            }
            freer.free(addr).unwrap();
            let next = freer.byte_objects(1, 1000, node(1)).unwrap();
            let mut bytes = [1; 1000];
            next.read(&mut freer, 0, &mut bytes, Retry::Never).unwrap();
            assert_eq!(bytes, [0; 1000]);
            next.free(&mut freer).unwrap();
        });
    }
    assert_eq!(objects.read(&mut freer, 0, &mut [1; 5000], Retry::Never), Ok(0));
}

#[test]
fn objects_are_the_same_wherever_they_are_opened() {
    let rack = rack(3);
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(2)));
    let objects = here.objects::<[u32; 5]>(700, node(1)).unwrap();
    for index in 0..700 {
        objects.write(&mut here, index, &[index as u32; 5]).unwrap();
    }
    let same = there.objects_at::<[u32; 5]>(objects.addr()).unwrap();
    assert_eq!(same.count(), 700);
    assert!((0..700).all(|at| same.read(&mut there, at, Retry::Never).unwrap() == [at as u32; 5]));
    let plain = here.alloc(100, node(0), Discipline::Object).unwrap();
    let plain = there.byte_objects_at(plain).unwrap();
    assert_eq!((plain.count(), plain.object_len()), (1, 100));
}
