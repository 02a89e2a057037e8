//! Trying, and waiting for a while only.

use std::time::{Duration, Instant};

use rackmem::Locked;

use crate::locks::{node, rack, racks};

const SHORT: Duration = Duration::from_millis(30);

#[test]
fn whoever_tries_gets_what_is_free_and_not_what_is_held() {
    for rack in racks(2) {
        let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
        let value = Locked::new(&mut here, node(0), 1_u64).unwrap();
        for other in [&mut rack.node(node(0)), &mut there] {
            let held = value.write(&mut here).unwrap();
            assert!(value.try_read(other).unwrap().is_none() && value.try_write(other).unwrap().is_none());
            drop(held);
            assert_eq!(*value.try_write(other).unwrap().unwrap(), 1);
            let held = value.read(&mut here).unwrap();
            assert!(value.try_read(other).unwrap().is_some(), "readers share");
            assert!(value.try_write(other).unwrap().is_none());
            drop(held);
            assert!(value.try_write(other).unwrap().is_some());
        }
        rack.check_invariants();
    }
}

#[test]
fn a_wait_ends_in_time_without_the_lock_and_later_waits_get_it() {
    for rack in racks(2) {
        let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
        let value = Locked::new(&mut here, node(1), 5_u64).unwrap();
        for other in [&mut rack.node(node(0)), &mut there] {
            let held = value.write(&mut here).unwrap();
            let began = Instant::now();
            assert!(value.read_timeout(other, SHORT).unwrap().is_none());
            assert!(value.write_timeout(other, SHORT).unwrap().is_none());
            assert!(began.elapsed() >= 2 * SHORT, "it waited as long as it was told to");
            drop(held);
            assert_eq!(*value.read_timeout(other, Duration::from_secs(60)).unwrap().unwrap(), 5);
            assert!(value.write_timeout(other, Duration::from_secs(60)).unwrap().is_some());
        }
        rack.check_invariants();
    }
}

#[test]
fn a_lock_that_was_waited_for_in_vain_still_goes_to_whoever_waits_on() {
    let rack = rack(3);
    let mut here = rack.node(node(0));
    let value = Locked::new(&mut here, node(0), 0_u64).unwrap();
    let held = value.write(&mut here).unwrap();
    std::thread::scope(|scope| {
        for id in [1, 2, 1, 2] {
            let (mut handle, value) = (rack.node(node(id)), &value);
            scope.spawn(move || {
                assert!(value.write_timeout(&mut handle, SHORT).unwrap().is_none());
                *value.write(&mut handle).unwrap() += 1;
            });
        }
        std::thread::sleep(3 * SHORT);
        drop(held);
    });
    assert_eq!(*value.read(&mut here).unwrap(), 4);
}
