//! Places that talk over shared memory or UDP, as a rack file describes them: threads for processes, with transports of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use rackmem::rack_file::{Given, Location, TransportKind, example};
use rackmem::transport::udp;
use rackmem::{AttachError, Attachments, Nanos, NodeHandle, NodeId, Rack, RackFile, SwitchProcess};

pub(crate) const NODES: usize = 3;

/// How an application attaches.
pub(crate) type Attach = fn(&RackFile, NodeId) -> Result<Rack, AttachError>;

/// On a machine with many more threads than processors a living node must not be taken for dead.
const TIMEOUT: Nanos = Nanos::from_millis(2000);

/// A rack of places with transports of their own.
pub(crate) struct Places {
    pub(crate) nodes: Vec<Rack>,
    /// What serves applications, if something does.
    pub(crate) services: Vec<Attachments>,
    stop: Arc<AtomicBool>,
    switch: Option<JoinHandle<()>>,
    folder: PathBuf,
}

impl Places {
    /// With these lines in `[rack]`.
    pub(crate) fn start(test: &str, transport: TransportKind, lines: &str) -> Self {
        Self::start_some(test, transport, lines, NODES as u16)
    }

    /// So many of its nodes are here; others may join in processes of their own, by the rack file.
    pub(crate) fn start_some(test: &str, transport: TransportKind, lines: &str, here: u16) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        // Sockets live below it, and their paths must be short.
        let folder = std::env::temp_dir().join(format!("rml-{}-{number}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let addresses = udp::unused_addresses(NODES + 1).unwrap();
        let (rack, switch) = lines.split_once("[switch]\n").unwrap_or((lines, ""));
        let given =
            Given { runtime: Some("run"), memory: Some(8 << 20), timeout: Some(TIMEOUT), ..Given::default() };
        let text = example("places", transport, &addresses, given)
            .replace("[rack]", &format!("[rack]\n{rack}"))
            .replace("[switch]", &format!("[switch]\n{switch}"));
        let path = folder.join("rack.toml");
        std::fs::write(&path, &text).unwrap();
        let file = RackFile::parse(&path, &text).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut switch = SwitchProcess::open(&file, &Location::default()).unwrap();
        let stopped = Arc::clone(&stop);
        let switch = Some(std::thread::spawn(move || {
            switch.run(&stopped);
        }));
        let nodes = std::thread::scope(|scope| {
            let file = &file;
            let joins: Vec<_> =
                (0..here).map(|node| scope.spawn(move || Rack::join(file, NodeId(node)).unwrap())).collect();
            joins.into_iter().map(|join| join.join().unwrap()).collect()
        });
        Self { nodes, services: Vec::new(), stop, switch, folder }
    }

    /// Where its rack file is.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("rack.toml")
    }

    /// Serves applications on all nodes here, and attaches to each, in this way.
    pub(crate) fn attached(&mut self, attach: Attach) -> Vec<Rack> {
        let file = RackFile::read(self.file()).unwrap();
        std::fs::create_dir_all(&file.runtime).unwrap();
        for (node, rack) in file.nodes().zip(&self.nodes) {
            self.services.push(rack.serve_applications(&file, node).unwrap());
        }
        file.nodes().map(|node| attach(&file, node).unwrap()).collect()
    }

    pub(crate) fn handles(&self) -> Vec<NodeHandle> {
        self.nodes.iter().map(Rack::here).collect()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.services.clear();
        self.nodes.clear();
        self.stop.store(true, Ordering::SeqCst);
        if let Some(switch) = self.switch.take() {
            switch.join().unwrap();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
