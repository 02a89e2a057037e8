//! Applications beside the places: what holds of handles of processes that have joined holds of theirs, alone and together with
//! those, where homes are within reach of their daemons and where they are not; with words and objects where they are, and
//! through the socket alone.

use rackmem::rack_file::TransportKind;
use rackmem::{NodeId, Rack};

use crate::chains_everywhere::Nodes;
use crate::places::rig::{Attach, Places};

/// All nodes by applications, or only the first.
fn racks(body: &dyn Fn(&[Rack])) {
    let near = TransportKind::SharedMemory;
    let ways: [(_, Attach); 3] =
        [(near, Rack::attach), (near, Rack::attach_by_socket), (TransportKind::Udp, Rack::attach)];
    for (transport, attach) in ways {
        let mut places = Places::start("attached", transport, "");
        let attached = places.attached(attach);
        body(&attached);
        let [joined, third] = [1, 2].map(|node| places.nodes[node].clone());
        body(&[attached[0].clone(), joined, third]);
    }
}

fn regions(body: fn(&[Rack])) {
    racks(&|nodes| body(nodes));
}

fn handles(body: fn(Nodes<'_>)) {
    racks(&|nodes| body(&|node| nodes[usize::from(node)].here()));
}

mod one_sided {
    use super::*;

    crate::regions_everywhere::everywhere!(regions);
}

mod locks {
    use super::*;

    crate::locks_everywhere::everywhere!(handles);
}

mod locks_with_copies {
    use rackmem::{Error, GlobalAddr, LockMode, Locked, LockedRegions};

    use super::*;

    fn mixed(body: fn(Nodes<'_>)) {
        let mut places = Places::start("attached", TransportKind::SharedMemory, "copies = 2");
        let attached = places.attached(Rack::attach);
        body(&|node| {
            let racks = [&attached[0], &places.nodes[1], &attached[2]];
            let mut here = racks[usize::from(node)].here();
            here.keep_copies(true).unwrap();
            here
        });
    }

    crate::locks_everywhere::everywhere!(mixed, with copies, too);

    #[test]
    fn an_application_is_told_of_a_writer_that_died_with_a_block_lock_too() {
        let mut places = Places::start("attached", TransportKind::SharedMemory, "copies = 2");
        let mut app = places.attached(Rack::attach)[0].here();
        let addr = app.alloc_with_copies(64, NodeId(1)).unwrap();
        // What an earlier life of node 2 has left: a table, with a mark in it.
        let table = app.alloc_with_copies(8 * 64, NodeId(1)).unwrap();
        let block = app.block_size().tag(addr).addr();
        app.write_value(table, &[0, 2 << 32 | 1, block.bits()]).unwrap();
        app.write_word(GlobalAddr::new(addr.home(), 32), table.bits()).unwrap();
        for mode in [LockMode::Read, LockMode::Write] {
            assert_eq!(app.lock_block(addr, mode).unwrap().writer_that_died(), Some(NodeId(2)));
        }
        assert_eq!(app.lock_block(addr, LockMode::Read).unwrap().writer_that_died(), None);
    }

    #[test]
    fn an_application_is_told_of_a_writer_that_died_too() {
        let mut places = Places::start("attached", TransportKind::SharedMemory, "copies = 2");
        let mut app = places.attached(Rack::attach)[0].here();
        app.keep_copies(true).unwrap();
        let lock = Locked::new(&mut app, NodeId(1), 7_u64).unwrap();
        let jobs = app.named::<LockedRegions>("jobs").with_copies().create(1000).unwrap();
        assert!(app.has_copies(lock.addr()));
        // The mark that a writer of node 2 has left there. It is of the fourth word.
        for addr in [lock.addr(), jobs.addr()] {
            app.write_word(GlobalAddr::from_bits(addr.bits() + 24), 3).unwrap();
        }
        assert_eq!(lock.read(&mut app).unwrap().writer_that_died(), Some(NodeId(2)));
        let mut guard = lock.write(&mut app).unwrap();
        assert_eq!((*guard, guard.writer_that_died()), (7, Some(NodeId(2))));
        *guard = 8;
        drop(guard);
        assert_eq!(lock.write(&mut app).unwrap().writer_that_died(), None);
        assert_eq!(jobs.read(&mut app).unwrap().writer_that_died(), Some(NodeId(2)));
        assert_eq!(jobs.write(&mut app).unwrap().writer_that_died(), Some(NodeId(2)));
        assert_eq!(jobs.write(&mut app).unwrap().writer_that_died(), None);
        // What the daemon does not know of is refused there.
        let longer = Locked::<[u64; 2]>::at(&app, lock.addr()).unwrap();
        assert_eq!(
            longer.read(&mut app).map(drop).unwrap_err().failure(),
            Some(Error::WrongLength { addr: lock.addr(), len: 32 })
        );
    }
}

mod chains {
    use super::*;

    /// Chains take their time: each kind of rack once.
    fn some(body: fn(Nodes<'_>)) {
        let mut places = Places::start("attached", TransportKind::SharedMemory, "");
        let attached = places.attached(Rack::attach);
        body(&|node| attached[usize::from(node)].here());
        let mut places = Places::start("attached", TransportKind::Udp, "");
        let attached = places.attached(Rack::attach);
        body(&|node| [&attached[0], &places.nodes[1], &attached[2]][usize::from(node)].here());
    }

    crate::chains_everywhere::everywhere!(some);
}

mod names {
    use super::*;

    crate::names_everywhere::everywhere!(handles);
}

#[test]
fn with_strict_leases_nothing_is_mapped() {
    let mut places = Places::start("strict", TransportKind::SharedMemory, "strict = true");
    let mut app = places.attached(Rack::attach)[0].here();
    let words = app.words::<u64>(8, NodeId(1)).unwrap();
    let before = places.services[0].counts().operations;
    assert_eq!(words.fetch_add(&mut app, 0, 1), Ok(0));
    assert_eq!(places.services[0].counts().operations, before + 1);
}
