//! A switch and node 0 that go on working in this process, in a folder of their own, and rack files with one value changed.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs};

use rackmem::rack_file::{Location, TransportKind};
use rackmem::transport::{Difference, PeerId, Reason, Terms, udp};
use rackmem::{Discipline, NodeId, PeerEvent, PeerWatch, Rack, RackFile, SwitchProcess, SwitchReport, Watch};

/// Within so much time both sides of a refusal have said it.
pub(crate) const MOST_SILENCE: Duration = Duration::from_secs(3);
/// What a busy machine may take longer for than it should.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A value that is another one than that of the rack, for each key but `id`; and a port that nobody has.
fn other(table: &str, key: &str, port: u16) -> String {
    match (table, key) {
        ("[rack]", "name") => r#""other""#.into(),
        ("[rack]", "block") => r#""8 KiB""#.into(),
        ("[rack]", "cache") => r#""2 MiB""#.into(),
        ("[rack]", "memory") => r#""16 MiB""#.into(),
        ("[rack]", "refill") => r#""10 MiB""#.into(),
        ("[rack]", "lock_copies") => r#""2 MiB""#.into(),
        ("[rack]", "lock_region") => r#""32 KiB""#.into(),
        ("[rack]", "name_nodes" | "own_first") => "1".into(),
        ("[rack]", "most_nodes") => "8".into(),
        ("[rack]", "copies") => "2".into(),
        ("[rack]", "timeout") => r#""2 s""#.into(),
        ("[rack]", "peek" | "strict") | ("[switch]", "queue" | "steer_reads" | "preload") => "true".into(),
        ("[rack]", "scheduling") => r#""realtime""#.into(),
        ("[rack]", "key") => r#""other.key""#.into(),
        ("[rack]", "mtu") => "9000".into(),
        ("[rack]", "runtime") => r#""elsewhere""#.into(),
        ("[switch]", "entries") => "8192".into(),
        ("[switch]", "lock_entries") => "128".into(),
        ("[switch]", "steering") => "200".into(),
        ("[switch]", "directory") => r#""home""#.into(),
        ("[switch]", "data_plane") => r#""kernel""#.into(),
        ("[switch]", "ports") => r#""eth1 eth2""#.into(),
        ("[switch]", "hook") => r#""xdp""#.into(),
        ("[switch]", "keep") => r#""/sys/fs/bpf/other""#.into(),
        (_, "listen" | "advertise" | "metrics") => format!(r#""127.0.0.1:{port}""#),
        // A new key belongs into this list, and into the walk, which says what becomes of a rack with two values of it.
        _ => panic!("no other value of `{key}` in {table} to try"),
    }
}

/// What stands in the file of the rack, for both transports and for one of them.
const BOTH: [(&str, &str, &str); 13] = [
    ("[rack]", "name", r#""lab""#),
    ("[rack]", "block", r#""4 KiB""#),
    ("[rack]", "cache", r#""1 MiB""#),
    ("[rack]", "memory", r#""8 MiB""#),
    ("[rack]", "lock_copies", r#""1 MiB""#),
    ("[rack]", "lock_region", r#""64 KiB""#),
    ("[rack]", "timeout", r#""1 s""#),
    ("[rack]", "runtime", r#""run""#),
    ("[switch]", "entries", "4096"),
    ("[switch]", "lock_entries", "64"),
    ("[switch]", "steering", "100"),
    ("[switch]", "directory", r#""auto""#),
    ("[switch]", "queue", "false"),
];

/// A folder with the keys of racks, and ports for one of them. It goes with this.
pub(crate) struct Folder {
    path: PathBuf,
    /// Of the switch, node 0, node 1, and nobody.
    pub(crate) ports: [u16; 4],
    /// Held, so that nobody has it.
    _nobody: UdpSocket,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("rackmem-agreement-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        for (name, digits) in [("rack.key", "0f"), ("other.key", "f0")] {
            fs::write(path.join(name), digits.repeat(32)).unwrap();
            fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let addresses = udp::unused_addresses(4).unwrap();
        let ports = [0, 1, 2, 3].map(|at| addresses[at].port());
        Self { path, ports, _nobody: UdpSocket::bind(addresses[3]).unwrap() }
    }

    /// Waits until node 0 has let go of what it has in the file system.
    pub(crate) fn until_left(&self) {
        until("node 0 has gone", || !fs::exists(self.path.join("run/node-0.lock")).unwrap());
    }

    /// The rack's file, with other values of these keys.
    pub(crate) fn file(&self, kind: TransportKind, key: bool, changes: &[(&str, &str, &str)]) -> RackFile {
        let changed = |table: &str, key: &str| {
            changes.iter().find(|change| (change.0, change.1) == (table, key)).map(|change| change.2)
        };
        let mut entries: Vec<_> = BOTH.to_vec();
        entries.extend(key.then_some(("[rack]", "key", r#""rack.key""#)));
        let known = |table, key| entries.iter().any(|entry| (entry.0, entry.1) == (table, key));
        let added: Vec<_> = changes
            .iter()
            .copied()
            .filter(|(table, key, _)| !known(table, key) && *table != "[[node]]" && *key != "listen")
            .collect();
        entries.extend(added);
        let mut text = String::new();
        for table in ["[rack]", "[switch]"] {
            text += &format!("{table}\n");
            for (_, key, value) in entries.iter().filter(|entry| entry.0 == table) {
                text += &format!("{key} = {}\n", changed(table, key).unwrap_or(value));
            }
            match (table, kind) {
                ("[rack]", _) => text += &format!("transport = \"{}\"\n", kind.name()),
                (_, TransportKind::SharedMemory) => {}
                (_, TransportKind::Udp) => {
                    let address = format!(r#""127.0.0.1:{}""#, self.ports[0]);
                    text += &format!("listen = {}\n", changed(table, "listen").unwrap_or(&address));
                }
            }
        }
        // Of the nodes, the first one's entries are changed.
        for (id, port) in [(0, self.ports[1]), (1, self.ports[2])] {
            text += &format!("[[node]]\nid = {id}\n");
            let address = format!(r#""127.0.0.1:{port}""#);
            let change = |key| changed("[[node]]", key).filter(|_| id == 0);
            if kind == TransportKind::Udp {
                text += &format!("listen = {}\n", change("listen").unwrap_or(&address));
            }
            for key in ["advertise", "metrics"] {
                text += &change(key).map_or_else(String::new, |value| format!("{key} = {value}\n"));
            }
        }
        if changed("[[node]]", "id").is_some() {
            text += "[[node]]\nid = 2\n";
            if kind == TransportKind::Udp {
                text += &format!("listen = \"127.0.0.1:{}\"\n", self.ports[3]);
            }
        }
        RackFile::parse(&self.path.join("rack.toml"), &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The same with another value of one key.
    pub(crate) fn file_with_other(
        &self,
        kind: TransportKind,
        secret: bool,
        table: &str,
        key: &str,
    ) -> RackFile {
        match (table, key) {
            ("[rack]", "transport") if kind == TransportKind::Udp => {
                self.file(TransportKind::SharedMemory, false, &[])
            }
            ("[rack]", "transport") => self.file(TransportKind::Udp, secret, &[]),
            ("[[node]]", "id") => self.file(kind, secret, &[(table, key, "2")]),
            _ => {
                let value = other(table, key, self.ports[3]);
                self.file(kind, secret, &[(table, key, &value)])
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The switch and node 0, with an application that reads and writes without end.
pub(crate) struct Running {
    pub(crate) node: Rack,
    pub(crate) said_by_switch: PeerWatch,
    reports: Watch,
    stop: Arc<AtomicBool>,
    accesses: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(file: &RackFile) -> Self {
        let mut switch = SwitchProcess::open(file, &Location::default()).unwrap();
        let (said_by_switch, reports) = (switch.peers(), switch.watch());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let switch = thread::spawn(move || {
            switch.run(&stopped);
        });
        let node = Rack::join(file, NodeId(0)).unwrap();
        let (mut here, accesses) = (node.here(), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&accesses));
        let application = thread::spawn(move || {
            let word = here.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
            let mut value = 0;
            while !stopped.load(Ordering::Relaxed) {
                assert_eq!(here.read_word(word), Ok(value));
                value += 1;
                here.write_word(word, value).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(100));
            }
        });
        let threads = vec![application, switch];
        Self { node, said_by_switch, reports, stop, accesses, threads }
    }

    /// Both sides of it have gone on, and work now.
    pub(crate) fn assert_works(&self) {
        let before = self.accesses.load(Ordering::Relaxed);
        until("the application goes on", || self.accesses.load(Ordering::Relaxed) > before + 10);
        assert!(!self.node.is_fenced());
    }

    /// What the switch says about its members, of now.
    pub(crate) fn report(&self) -> SwitchReport {
        // One that is being made now may be of before.
        thread::sleep(Duration::from_millis(400));
        self.reports.report().expect("it runs")
    }

    /// What the switch says about node 1, within the time that it may take.
    pub(crate) fn switch_says(&mut self, expected: impl Fn(&Reason) -> bool) {
        says(&mut self.said_by_switch, "the switch", |event| match event {
            PeerEvent::Refused(refusal) => {
                refusal.peer == PeerId::node(NodeId(1)) && expected(&refusal.reason)
            }
            _ => false,
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "a thread of the rack has failed");
        }
    }
}

/// Waits until this is said.
pub(crate) fn says(watch: &mut PeerWatch, who: &str, mut expected: impl FnMut(&PeerEvent) -> bool) {
    let (began, mut all) = (Instant::now(), Vec::new());
    loop {
        let events = watch.poll();
        if events.iter().any(&mut expected) {
            return;
        }
        all.extend(events.iter().map(ToString::to_string));
        assert!(began.elapsed() < MOST_SILENCE, "{who} has only said {all:#?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// That this setting differs, with both values.
pub(crate) fn names(reason: &Reason, field: &str, ours: &Terms, theirs: &Terms) -> bool {
    let value = |terms: &Terms| terms.fields().find(|(name, _)| *name == field).unwrap().1.to_owned();
    let expected = Difference { field: field.to_owned(), ours: value(ours), theirs: value(theirs) };
    assert_ne!(expected.ours, expected.theirs);
    matches!(reason, Reason::Settings(differences) if differences.contains(&expected))
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TIMEOUT, "it does not come about that {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
