//! Regions of every size, between places.

use rackmem::rack_file::TransportKind;
use rackmem::{Discipline, Error, NodeHandle, NodeId};

use crate::places::rig::{NODES, Places};

/// Each node in turn checks what the one before wrote, and writes something else, all of it.
fn goes_round(handles: &mut [NodeHandle], home: u16, len: usize) {
    let addr = handles[0].alloc(len.max(1) as u64, NodeId(home), Discipline::Locked).unwrap();
    let byte = |at: usize, turn: usize| (at * 31 + at / 251 + turn * 7) as u8;
    for turn in 0..7 {
        let handle = &mut handles[turn % NODES];
        let lock = handle.rwlock(addr, len).unwrap();
        let mut guard = lock.write(handle).unwrap();
        assert_eq!(guard.len(), len);
        if let Some(last) = turn.checked_sub(1) {
            let wrong = guard.iter().enumerate().find(|(at, found)| **found != byte(*at, last));
            assert_eq!(wrong, None, "{len} bytes, turn {turn}");
        }
        guard.iter_mut().enumerate().for_each(|(at, to)| *to = byte(at, turn));
    }
    // And all of them have copies to read.
    for handle in handles.iter_mut() {
        let lock = handle.rwlock(addr, len).unwrap();
        let guard = lock.read(handle).unwrap();
        assert!(guard.iter().enumerate().all(|(at, found)| *found == byte(at, 6)), "{len} bytes");
    }
    handles[0].rwlock(addr, len).unwrap().end(&mut handles[0]).unwrap();
    handles[0].free(addr).unwrap();
}

fn regions_of_every_size(transport: TransportKind) {
    // Small blocks, so that a region is many of them.
    let rack = Places::start("sizes", transport, "block = \"64 B\"\nlock_region = \"1 MiB\"");
    let mut handles = rack.handles();
    for len in [0, 1, 8, 64, 65, 1_000, 4_096, 65_536, 100_001, 1 << 20] {
        for home in [0, 2] {
            goes_round(&mut handles, home, len);
        }
    }
}

#[test]
fn regions_of_nothing_to_many_blocks_go_round_in_shared_memory() {
    regions_of_every_size(TransportKind::SharedMemory);
}

#[test]
fn regions_of_nothing_to_many_blocks_go_round_over_udp() {
    regions_of_every_size(TransportKind::Udp);
}

#[test]
fn a_region_longer_than_the_file_allows_is_refused_before_anything_is_sent() {
    for transport in [TransportKind::SharedMemory, TransportKind::Udp] {
        let rack = Places::start("refused", transport, "lock_region = \"8 KiB\"");
        let mut here = rack.nodes[0].here();
        let addr = here.alloc(16 << 10, NodeId(1), Discipline::Locked).unwrap();
        let refused = here.rwlock(addr, (8 << 10) + 1).err();
        assert_eq!(refused, Some(Error::RegionTooLong { len: (8 << 10) + 1, most: 8 << 10 }));
        goes_round(&mut rack.handles(), 1, 8 << 10);
    }
}

#[test]
fn a_region_may_be_the_last_of_a_nodes_memory() {
    let rack = Places::start("last", TransportKind::SharedMemory, "block = \"64 B\"");
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[2].here());
    // All of it, so that the last allocation ends where the memory does.
    let mut last = None;
    for len in [1 << 16, 4096, 64] {
        while let Ok(addr) = here.alloc(len, NodeId(1), Discipline::Locked) {
            last = last.max(Some(addr + (len - 64)));
        }
    }
    let addr = last.expect("there is memory") + 56;
    for turn in 0..4_u8 {
        for handle in [&mut here, &mut there] {
            let lock = handle.rwlock(addr, 8).unwrap();
            let mut guard = lock.write(handle).unwrap();
            assert!(turn == 0 || guard[7] > 0, "somebody has written");
            guard[7] += 1;
        }
    }
}
