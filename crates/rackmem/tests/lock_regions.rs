//! Regions of every size between places that talk over shared memory and over UDP, as a rack file describes them.
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rackmem::rack_file::{TransportKind, example};
use rackmem::{Discipline, Error, Locked, NodeHandle, NodeId, Rack, RackFile, SwitchProcess};

const NODES: usize = 3;

/// A rack of places with transports of their own.
struct Places {
    nodes: Vec<Rack>,
    stop: Arc<AtomicBool>,
    switch: Option<JoinHandle<()>>,
    folder: PathBuf,
}

impl Places {
    /// With these lines in `[rack]`.
    fn start(test: &str, transport: TransportKind, lines: &str) -> Self {
        // Sockets live below it, and their paths must be short.
        let folder =
            std::env::temp_dir().join(format!("rml-{}-{test}-{}", std::process::id(), transport.name()));
        std::fs::create_dir_all(&folder).unwrap();
        // All are bound at once, so that they differ; then let go for whoever they are meant for.
        let sockets: Vec<_> =
            (0..=NODES).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let addresses: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        drop(sockets);
        let text = example("locks", transport, &addresses, Some("run"))
            .replace("[rack]", &format!("[rack]\nmemory = \"8 MiB\"\n{lines}"));
        let file = RackFile::parse(&folder.join("rack.toml"), &text).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut switch = SwitchProcess::open(&file, None).unwrap();
        let stopped = Arc::clone(&stop);
        let switch = Some(std::thread::spawn(move || switch.run(&stopped)));
        let nodes = std::thread::scope(|scope| {
            let file = &file;
            let joins: Vec<_> = (0..NODES as u16)
                .map(|node| scope.spawn(move || Rack::join(file, NodeId(node)).unwrap()))
                .collect();
            joins.into_iter().map(|join| join.join().unwrap()).collect()
        });
        Self { nodes, stop, switch, folder }
    }

    fn handles(&self) -> Vec<NodeHandle> {
        self.nodes.iter().map(Rack::here).collect()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.nodes.clear();
        self.stop.store(true, Ordering::SeqCst);
        if let Some(switch) = self.switch.take() {
            switch.join().unwrap();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

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

/// Threads of all nodes add to all counters of one value, and see it whole.
fn counts(transport: TransportKind) {
    const THREADS: u64 = 2;
    const TIMES: u64 = 150;
    let rack = Places::start("counts", transport, "");
    let counter = Locked::new(&mut rack.nodes[0].here(), NodeId(1), [0_u64; 100]).unwrap();
    std::thread::scope(|scope| {
        for node in &rack.nodes {
            for _ in 0..THREADS {
                let addr = counter.addr();
                scope.spawn(move || {
                    let mut here = node.here();
                    let counter = Locked::<[u64; 100]>::at(&here, addr).unwrap();
                    for _ in 0..TIMES {
                        counter.write(&mut here).unwrap().iter_mut().for_each(|word| *word += 1);
                        let seen = counter.read(&mut here).unwrap();
                        assert!(seen.iter().all(|word| *word == seen[0]), "{:?}", *seen);
                    }
                });
            }
        }
    });
    let all = NODES as u64 * THREADS * TIMES;
    assert_eq!(*counter.read(&mut rack.nodes[0].here()).unwrap(), [all; 100]);
}

#[test]
fn a_counter_misses_no_increment_in_shared_memory() {
    counts(TransportKind::SharedMemory);
}

#[test]
fn a_counter_misses_no_increment_over_udp() {
    counts(TransportKind::Udp);
}
