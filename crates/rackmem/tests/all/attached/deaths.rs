//! Either side dies, or stops, in the middle of something.

use std::time::{Duration, Instant};

use rackmem::attach::socket_of;
use rackmem::{AttachError, Discipline, Error, LockMode, Locked, NodeId, Rack, Retry};

use crate::attached::rig::{Daemons, as_application, ready, until};

#[test]
fn the_locks_of_an_application_that_is_killed_are_released() {
    if let Some((mut app, addr)) = as_application(Rack::attach) {
        let _lock = app.lock_block(addr, LockMode::Write).unwrap();
        ready();
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    let addr = there.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let mut app = rack.application("deaths::the_locks_of_an_application_that_is_killed_are_released", addr);
    assert!(there.try_lock_block(addr, LockMode::Read).unwrap().is_none(), "the application has it");
    app.kill();
    drop(there.lock_block(addr, LockMode::Write).unwrap());
    until("its connection is gone", || rack.service(0).counts().attached == 0);
    rack.attach(0).write_word(addr, 1).unwrap();
}

#[test]
fn what_an_application_was_changing_when_it_was_killed_stays_as_it_was() {
    if let Some((mut app, addr)) = as_application(Rack::attach) {
        let _ = app.update(addr, 8, |window| {
            window.set_word(0, 13);
            ready()
        });
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    let addr = there.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    there.write_word(addr, 12).unwrap();
    let mut app =
        rack.application("deaths::what_an_application_was_changing_when_it_was_killed_stays_as_it_was", addr);
    app.kill();
    assert_eq!(there.read_word(addr), Ok(12));
    assert_eq!(rack.attach(0).update(addr, 8, |window| window.set_word(0, 14)), Ok(()));
    assert_eq!(there.read_word(addr), Ok(14));
}

#[test]
fn what_an_application_wrote_under_a_lock_that_it_had_not_left_when_it_was_killed_never_was() {
    if let Some((mut app, addr)) = as_application(Rack::attach) {
        let value = Locked::<[u64; 3]>::at(&app, addr).unwrap();
        let mut guard = value.write(&mut app).unwrap();
        guard[1] = 13;
        ready();
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    let value = Locked::new(&mut there, NodeId(1), [12_u64; 3]).unwrap();
    let before = value.write(&mut there).unwrap().fence();
    let mut app = rack.application(
        "deaths::what_an_application_wrote_under_a_lock_that_it_had_not_left_when_it_was_killed_never_was",
        value.addr(),
    );
    assert!(value.try_read(&mut there).unwrap().is_none(), "the application has it");
    app.kill();
    assert_eq!(*value.read(&mut there).unwrap(), [12; 3], "unchanged, and not poisoned");
    let mut guard = value.write(&mut there).unwrap();
    assert!(guard.fence() > before + 1, "the number that the application had is nobody else's");
    *guard = [14; 3];
    drop(guard);
    let mut other = rack.attach(0);
    assert_eq!(*Locked::<[u64; 3]>::at(&other, value.addr()).unwrap().read(&mut other).unwrap(), [14; 3]);
}

#[test]
fn an_application_that_is_killed_while_it_stands_in_line_for_a_lock_stands_there_no_longer() {
    if let Some((mut app, addr)) = as_application(Rack::attach) {
        std::thread::scope(|scope| {
            let value = Locked::<u64>::at(&app, addr).unwrap();
            scope.spawn(move || drop(value.write(&mut app).unwrap()));
            ready();
        });
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    let value = Locked::new(&mut there, NodeId(1), 0_u64).unwrap();
    let guard = value.write(&mut there).unwrap();
    let mut app = rack.application(
        "deaths::an_application_that_is_killed_while_it_stands_in_line_for_a_lock_stands_there_no_longer",
        value.addr(),
    );
    app.kill();
    until("its connection is gone, though the lock is held", || rack.service(0).counts().attached == 0);
    drop(guard);
}

#[test]
fn an_object_that_an_application_was_changing_by_messages_when_it_was_killed_stays_whole() {
    if let Some((mut app, addr)) = as_application(Rack::attach_by_socket) {
        let objects = app.objects_at::<[u64; 40]>(addr).unwrap();
        let _ = objects.update(&mut app, 1, |words| {
            words[0] = 13;
            ready()
        });
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    let objects = there.objects::<[u64; 40]>(2, NodeId(1)).unwrap();
    objects.write(&mut there, 1, &[12; 40]).unwrap();
    let mut app = rack.application(
        "deaths::an_object_that_an_application_was_changing_by_messages_when_it_was_killed_stays_whole",
        objects.addr(),
    );
    assert_eq!(objects.update(&mut there, 1, |words| words[1] = 14), Ok(4), "nobody is kept out meanwhile");
    app.kill();
    assert_eq!(
        objects.read(&mut there, 1, Retry::Never).map(|words| words[..3].to_vec()),
        Ok(vec![12, 14, 12])
    );
}

#[test]
fn an_application_that_is_killed_while_it_waits_for_a_lock_waits_no_longer() {
    if let Some((mut app, addr)) = as_application(Rack::attach) {
        std::thread::scope(|scope| {
            scope.spawn(|| app.lock_block(addr, LockMode::Write).map(drop));
            ready();
        });
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    let addr = there.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let lock = there.lock_block(addr, LockMode::Write).unwrap();
    let mut app = rack
        .application("deaths::an_application_that_is_killed_while_it_waits_for_a_lock_waits_no_longer", addr);
    app.kill();
    until("its connection is gone, though the lock is held", || rack.service(0).counts().attached == 0);
    drop(lock);
}

#[test]
fn a_block_is_kept_for_an_application_that_stops_for_half_the_timeout_at_most() {
    let rack = Daemons::start();
    let (mut app, mut there) = (rack.attach(0), rack.nodes[1].here());
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    app.write_word(addr, 1).unwrap();
    std::thread::scope(|scope| {
        let late = app.update(addr, 8, |window| {
            window.set_word(0, 2);
            let waiting = scope.spawn(|| there.read_word(addr));
            waiting.join().unwrap()
        });
        assert_eq!(late, Err(Error::Detached), "the closure ran, and counts for nothing");
    });
    assert_eq!(rack.nodes[1].here().read_word(addr), Ok(1));
    assert_eq!(rack.service(0).counts().late, 1);
    assert_eq!(app.read_word(addr), Err(Error::Detached), "and so does everything later");
    assert_eq!(rack.attach(0).read_word(addr), Ok(1));
}

#[test]
fn a_panic_in_an_update_ends_the_connection_and_changes_nothing() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        app.update(addr, 8, |window| {
            window.set_word(0, 5);
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(app.read_word(addr), Err(Error::Detached));
    assert_eq!(rack.nodes[1].here().read_word(addr), Ok(0));
}

#[test]
fn a_daemon_that_ends_is_a_typed_error_and_its_socket_is_gone() {
    let mut rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let lock = app.lock_block(addr, LockMode::Write).unwrap();
    let began = Instant::now();
    rack.services[0] = None;
    assert!(began.elapsed() < Duration::from_secs(20), "it does not wait for applications");
    assert_eq!(app.read_word(addr), Err(Error::Detached));
    drop(lock);
    assert!(!socket_of(&rack.file, NodeId(0)).exists());
    assert!(matches!(Rack::attach(&rack.file, NodeId(0)), Err(AttachError::NoDaemon { .. })));
    drop(rack.nodes[1].here().lock_block(addr, LockMode::Write).unwrap());
    rack.services[0] = Some(rack.nodes[0].serve_applications(&rack.file, NodeId(0)).unwrap());
    assert_eq!(rack.attach(0).read_word(addr), Ok(0));
}

#[test]
fn an_application_whose_node_has_left_the_rack_is_told_so() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    assert!(rack.nodes[0].leave(Duration::from_secs(10)));
    assert_eq!(app.write_word(addr, 1), Err(Error::Fenced));
}
