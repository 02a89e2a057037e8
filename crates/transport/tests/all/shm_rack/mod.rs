//! A rack in shared memory, with a directory of its own that goes with it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use transport::shm::{ShmConfig, ShmTransport};
use transport::{PeerId, Terms, Transport};

use crate::conformance::Rack;

pub(crate) struct ShmRack {
    dir: PathBuf,
    /// Whoever made the directory removes it.
    made: bool,
}

impl ShmRack {
    /// The rack that another process has made.
    #[allow(dead_code, reason = "not every test has several processes")]
    pub(crate) const fn at(dir: PathBuf) -> Self {
        Self { dir, made: false }
    }

    #[allow(dead_code, reason = "as above")]
    pub(crate) fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    fn config(&self, me: PeerId) -> ShmConfig {
        ShmConfig { dir: self.dir.clone(), me, block: 1 << 20, ring_bytes: None, terms: Terms::default() }
    }
}

impl Rack for ShmRack {
    const IN_ORDER: bool = true;
    const LOSSLESS: bool = true;
    const COUNTS_NO_ROOM: bool = true;

    fn new() -> Self {
        static RACKS: AtomicU32 = AtomicU32::new(0);
        let name = format!("rackmem-shm-{}-{}", std::process::id(), RACKS.fetch_add(1, Relaxed));
        Self { dir: std::env::temp_dir().join(name), made: true }
    }

    fn open(&self, peer: PeerId) -> Box<dyn Transport> {
        Box::new(ShmTransport::open(&self.config(peer)).expect("opening a peer"))
    }
}

impl Drop for ShmRack {
    fn drop(&mut self) {
        if !self.made {
            return;
        }
        let left: Vec<_> = std::fs::read_dir(&self.dir).into_iter().flatten().flatten().collect();
        let _ = std::fs::remove_dir_all(&self.dir);
        assert!(left.is_empty() || std::thread::panicking(), "a rack leaves nothing behind: {left:?}");
    }
}
