//! A rack in shared memory whose places are in this process, with daemons' service for applications, and applications in
//! processes of their own.
//!
//! A test starts its own executable again, to run the same test; told by the environment, it plays an application there
//! until it is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rackmem::rack_file::Location;
use rackmem::{AttachError, Attachments, GlobalAddr, NodeHandle, NodeId, Rack, RackFile, SwitchProcess};

/// Set in the application: the rack file, and an address.
const RACK: &str = "RACKMEM_TEST_RACK";
const ADDR: &str = "RACKMEM_TEST_ADDR";

/// The rack. What it has in the file system goes with it.
pub(crate) struct Daemons {
    directory: PathBuf,
    pub(crate) file: RackFile,
    /// The service of each node, as long as it has one.
    pub(crate) services: Vec<Option<Attachments>>,
    pub(crate) nodes: Vec<Rack>,
    stop: Arc<AtomicBool>,
    switch: Option<JoinHandle<()>>,
}

impl Daemons {
    pub(crate) fn start() -> Self {
        static RACKS: AtomicU32 = AtomicU32::new(0);
        let number = RACKS.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("rackmem-attached-{}-{number}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let path = directory.join("rack.toml");
        let text = "[rack]\nname = \"attached\"\ntransport = \"shm\"\nruntime = \"run\"\ntimeout = \"2 s\"\n\
                    cache = \"1 MiB\"\nmemory = \"16 MiB\"\n[switch]\n[[node]]\nid = 0\n[[node]]\nid = 1\n";
        fs::write(&path, text).unwrap();
        let file = RackFile::read(&path).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut switch = SwitchProcess::open(&file, &Location::default()).unwrap();
        let stopped = Arc::clone(&stop);
        let switch = thread::spawn(move || {
            switch.run(&stopped);
        });
        // Both at once: the rack waits for both before it begins.
        let nodes: Vec<Rack> = thread::scope(|scope| {
            let file = &file;
            let joining = [0, 1].map(|node| scope.spawn(move || Rack::join(file, NodeId(node)).unwrap()));
            joining.map(|thread| thread.join().unwrap()).into()
        });
        let services =
            (0..).zip(&nodes).map(|(node, rack)| Some(rack.serve_applications(&file, NodeId(node)).unwrap()));
        let services = services.collect();
        Self { directory, file, services, nodes, stop, switch: Some(switch) }
    }

    /// An application's thread on a node.
    pub(crate) fn attach(&self, node: u16) -> NodeHandle {
        self.attached(node).here()
    }

    pub(crate) fn attached(&self, node: u16) -> Rack {
        Rack::attach(&self.file, NodeId(node)).unwrap()
    }

    pub(crate) fn service(&self, node: usize) -> &Attachments {
        self.services[node].as_ref().unwrap()
    }

    /// Runs this test again, as an application, up to where it has said that it is ready.
    pub(crate) fn application(&self, test: &str, addr: GlobalAddr) -> Application {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", &format!("attached::{test}"), "--nocapture"])
            .env(RACK, &self.file.path)
            .env(ADDR, addr.bits().to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the application has ended");
        }
        Application { process, _output: output }
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        self.services.clear();
        self.nodes.clear();
        self.stop.store(true, Ordering::SeqCst);
        if let Some(switch) = self.switch.take() {
            switch.join().unwrap();
        }
        let left: Vec<_> = fs::read_dir(self.directory.join("run")).into_iter().flatten().flatten().collect();
        let _ = fs::remove_dir_all(&self.directory);
        assert!(left.is_empty() || thread::panicking(), "nothing is left behind: {left:?}");
    }
}

/// An application in a process of its own, killed at the latest when the test ends.
pub(crate) struct Application {
    process: Child,
    _output: BufReader<ChildStdout>,
}

impl Application {
    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// If this is the application's process: its handle on node 0, attached in this way, and the address.
pub(crate) fn as_application(
    attach: impl Fn(&RackFile, NodeId) -> Result<Rack, AttachError>,
) -> Option<(NodeHandle, GlobalAddr)> {
    let file = RackFile::read(Path::new(&env::var_os(RACK)?)).unwrap();
    let addr = GlobalAddr::from_bits(env::var(ADDR).unwrap().parse().unwrap());
    Some((attach(&file, NodeId(0)).unwrap().here(), addr))
}

/// Says that the application is where it shall be killed, and waits for that.
pub(crate) fn ready() -> ! {
    println!("\nready");
    std::io::stdout().flush().unwrap();
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// Looks until it is so, for a while.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not come about that {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
