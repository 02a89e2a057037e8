//! Applications that are attached to a daemon's node: what they can do, and that whatever they do, or whatever becomes of
//! either side, the rack goes on.

mod deaths;
mod histories;
mod malformed;
mod mapped;
mod rig;

use rackmem::{Discipline, Error, GlobalAddr, LockMode, NodeId, Rack};

use crate::attached::rig::{Daemons, until};

const BLOCK: u64 = 4096;

#[test]
fn what_an_application_writes_every_node_reads_and_the_other_way() {
    let rack = Daemons::start();
    let (mut app, mut there) = (rack.attach(0), rack.nodes[1].here());
    let addr = app.alloc(4 * BLOCK, NodeId(1), Discipline::Coherent).unwrap();
    app.write_word(addr, 41).unwrap();
    assert_eq!(there.read_word(addr).unwrap(), 41);
    assert_eq!(there.update(addr, 8, |window| window.set_word(0, window.word(0) + 1)), Ok(()));
    assert_eq!(app.read_word(addr), Ok(42));
    // Unaligned, and over the end of a block.
    let text: Vec<u8> = (0..3 * BLOCK).map(|at| at as u8).collect();
    app.write(addr + 3, &text).unwrap();
    let mut read = vec![0; text.len()];
    there.read(addr + 3, &mut read).unwrap();
    assert_eq!(read, text);
    let mut read = vec![0; text.len()];
    app.read(addr + 3, &mut read).unwrap();
    assert_eq!(read, text);
    assert_eq!(app.inspect(addr + 8, 8, |window| window.word(0)), Ok(there.read_word(addr + 8).unwrap()));
    let old = app.update(addr + 13, 5, |window| {
        let mut old = [0; 5];
        window.read(0, &mut old);
        window.write(0, b"after");
        old
    });
    assert_eq!(old, Ok([10, 11, 12, 13, 14]));
    let mut read = [0; 7];
    there.read(addr + 12, &mut read).unwrap();
    assert_eq!(&read, b"\x09after\x0f");
    app.free(addr).unwrap();
    assert_eq!(there.read_word(addr), Err(Error::Unallocated { addr }));
}

#[test]
fn operations_that_cannot_be_fail_as_on_the_node_itself() {
    let rack = Daemons::start();
    let (mut app, mut here) = (rack.attach(0), rack.nodes[0].here());
    let addr = app.alloc(BLOCK, NodeId(0), Discipline::Coherent).unwrap();
    let locks = app.alloc(8, NodeId(0), Discipline::LockOnly).unwrap();
    let nobodys = addr + 8 * BLOCK;
    for addr in [nobodys, addr + 4, GlobalAddr::new(NodeId(9), 64), locks, GlobalAddr::from_bits(u64::MAX)] {
        assert_eq!(app.read_word(addr), here.read_word(addr), "{addr:?}");
        assert_eq!(app.write_word(addr, 1), here.write_word(addr, 1), "{addr:?}");
    }
    for addr in [nobodys, addr + 16, GlobalAddr::new(NodeId(9), 64)] {
        assert_eq!(app.free(addr), here.free(addr), "{addr:?}");
    }
    let mut bytes = vec![0; 64];
    let end = GlobalAddr::new(NodeId(0), (16 << 20) - 8);
    assert_eq!(app.read(end, &mut bytes), here.read(end, &mut bytes));
    assert_eq!(app.inspect(addr + 4000, 100, |_| ()), here.inspect(addr + 4000, 100, |_| ()));
    assert_eq!(app.update(locks, 8, |_| ()), here.update(locks, 8, |_| ()));
    for (len, home) in [(0, 0), (1 << 40, 0), (8, 5), (8, u16::MAX)] {
        let coherent = Discipline::Coherent;
        assert_eq!(app.alloc(len, NodeId(home), coherent), here.alloc(len, NodeId(home), coherent));
    }
}

#[test]
fn locks_exclude_applications_and_nodes_alike() {
    let rack = Daemons::start();
    let (mut app, mut other, mut there) = (rack.attach(0), rack.attach(0), rack.nodes[1].here());
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let lock = app.lock_block(addr, LockMode::Write).unwrap();
    assert!(other.try_lock_block(addr, LockMode::Read).unwrap().is_none());
    assert!(there.try_lock_block(addr, LockMode::Read).unwrap().is_none());
    app.write_word(addr, 7).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.lock_block(addr, LockMode::Write).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waiting.is_finished(), "somebody has it");
        // Released in the middle of an update: after it.
        app.update(addr, 8, move |_| drop(lock)).unwrap();
        waiting.join().unwrap().unwrap();
    });
    until("the lock is free", || there.try_lock_block(addr, LockMode::Write).unwrap().is_some());
}

#[test]
fn more_threads_than_a_daemon_serves_are_refused_and_say_so() {
    let rack = Daemons::start();
    let attached = rack.attached(0);
    let addr = rack.nodes[0].here().alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    // Each has a connection from its first operation on.
    let mut used: Vec<_> = (0..rackmem::attach::MOST_ATTACHED).map(|_| attached.here()).collect();
    used.iter_mut().for_each(|handle| assert_eq!(handle.read_word(addr), Ok(0)));
    let mut one_more = attached.here();
    let most = rackmem::attach::MOST_ATTACHED;
    assert_eq!(one_more.read_word(addr), Err(Error::TooManyAttached { most }));
    let refused = Rack::attach(&rack.file, NodeId(0)).map(drop).unwrap_err();
    assert!(refused.to_string().contains("already"), "{refused}");
    assert_eq!(rack.service(0).counts().refused, 2);
    drop(used.pop());
    until("there is room for another one", || one_more.read_word(addr) == Ok(0));
}
