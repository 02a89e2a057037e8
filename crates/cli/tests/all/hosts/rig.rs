//! A rack whose places are on hosts of their own: the switch on host 0, node n on host n + 1, and unknown peers behind them.
//!
//! A host is a network namespace and a folder, with copies of the rack's file and key, as somebody would put them on
//! several machines. Daemons are processes there. Applications are threads of this process there, so that a test can look
//! at what they get.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rackmem::{NodeId, Rack, RackFile, StartError};
use serde_json::Value;

use super::network::{Hub, Network};
use crate::shell::can_have_kernel;

/// Longer than anything here takes on a busy machine.
const MOST_WAIT: Duration = Duration::from_secs(60);
/// Where the switch tells other hosts how the rack is.
const METRICS: u16 = 9400;
/// Where places listen.
const PORT: u16 = 7400;
/// The host of the switch.
pub(crate) const SWITCH: usize = 0;

/// The host of a node.
pub(crate) const fn host(node: usize) -> usize {
    node + 1
}

/// Waits until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + MOST_WAIT;
    while !is_so() {
        assert!(Instant::now() < until, "it does not come about that {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Does something that could wait for ever, on another thread.
pub(crate) fn finishes<R: Send + 'static>(what: &str, run: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, waiting) = mpsc::channel();
    // The result of one that comes too late is of no use to anybody.
    thread::spawn(move || drop(done.send(run())));
    waiting.recv_timeout(MOST_WAIT).unwrap_or_else(|why| panic!("{what}: {why}"))
}

/// What a rack is like.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) hub: Hub,
    pub(crate) nodes: usize,
    /// Hosts without a place in the rack.
    pub(crate) unknown_peers: usize,
    /// As they stand in the rack file.
    pub(crate) block: &'static str,
    pub(crate) timeout: &'static str,
    pub(crate) mtu: u32,
    /// The switch's programs are in the kernel of its host.
    pub(crate) kernel: bool,
}

impl Shape {
    /// The same, with the switch's programs in the kernel. Nothing if this machine does not take them.
    pub(crate) fn in_kernel() -> Option<Self> {
        can_have_kernel().then_some(Self { kernel: true, ..Self::usual() })
    }

    /// Three nodes on one Ethernet.
    pub(crate) const fn usual() -> Self {
        let hub = Hub::Bridge { mtu: 1500 };
        Self { hub, nodes: 3, unknown_peers: 0, block: "4 KiB", timeout: "2 s", mtu: 1500, kernel: false }
    }
}

/// A process of the rack. It is killed with the rig.
struct Daemon {
    host: usize,
    process: Child,
    log: PathBuf,
}

/// The hosts, their folders, and the daemons there.
pub(crate) struct Rig {
    daemons: Vec<Daemon>,
    folder: PathBuf,
    pub(crate) network: Network,
    nodes: usize,
}

impl Rig {
    /// Hosts with the file and the key of a rack, and nobody running there yet. Nothing if this machine does not permit
    /// it: then the reason has been printed.
    pub(crate) fn new(name: &str, shape: &Shape) -> Option<Self> {
        let hosts = 1 + shape.nodes + shape.unknown_peers;
        let network = Network::new(shape.hub, hosts)?;
        let folder = std::env::temp_dir().join(format!("rackmem-hosts-{}-{name}", process::id()));
        fs::create_dir(&folder).unwrap();
        let rig = Self { daemons: Vec::new(), folder, network, nodes: shape.nodes };
        rig.new_key("rack.key");
        let file = rig.rack_file(shape);
        for host in 0..hosts {
            fs::create_dir(rig.home(host)).unwrap();
            fs::write(rig.home(host).join("rack.toml"), &file).unwrap();
            rig.give_key("rack.key", host);
        }
        Some(rig)
    }

    fn rack_file(&self, shape: &Shape) -> String {
        let Shape { block, timeout, mtu, nodes, .. } = shape;
        let switch = self.address(SWITCH);
        let mut file = format!(
            "[rack]\nname = \"hosts\"\ntransport = \"udp\"\nblock = \"{block}\"\ncache = \"4 MiB\"\n\
             memory = \"16 MiB\"\ntimeout = \"{timeout}\"\nstrict = true\nkey = \"rack.key\"\nmtu = {mtu}\n\
             runtime = \"run\"\n\n[switch]\nlisten = \"{switch}:{PORT}\"\nentries = 4096\n\
             metrics = \"{switch}:{METRICS}\"\n"
        );
        if shape.kernel {
            file.push_str("data_plane = \"kernel\"\nports = \"eth0\"\n");
        }
        for node in 0..*nodes {
            let address = self.address(host(node));
            // Every other one listens at all its addresses.
            let listen = match node % 2 {
                0 => format!("listen = \"{address}:{PORT}\""),
                _ => format!("listen = \"0.0.0.0:{PORT}\"\nadvertise = \"{address}:{PORT}\""),
            };
            file.push_str(&format!("\n[[node]]\nid = {node}\n{listen}\n"));
        }
        file
    }

    fn home(&self, host: usize) -> PathBuf {
        self.folder.join(host.to_string())
    }

    fn address(&self, host: usize) -> Ipv4Addr {
        self.network.address(host)
    }

    /// Where the switch listens.
    pub(crate) fn switch_address(&self) -> (Ipv4Addr, u16) {
        (self.address(SWITCH), PORT)
    }

    /// A key, on no host yet.
    pub(crate) fn new_key(&self, name: &str) {
        let made = Command::new(crate::COMMAND).arg("key").arg(self.folder.join(name)).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Puts a key on a host, as the one of its rack.
    pub(crate) fn give_key(&self, name: &str, host: usize) {
        fs::copy(self.folder.join(name), self.home(host).join("rack.key")).unwrap();
    }

    /// Nodes are known by name from now on: `node-0` and so on. No name leads anywhere yet.
    pub(crate) fn name_nodes(&self, hosts: usize) {
        for host in 0..hosts {
            let path = self.home(host).join("rack.toml");
            let mut text = fs::read_to_string(&path).unwrap();
            for node in 0..self.nodes {
                let address = format!("\"{}:{PORT}\"", self.address(self::host(node)));
                let named = format!("\"0.0.0.0:{PORT}\"\nadvertise = \"node-{node}:{PORT}\"");
                let advertised = format!("\"0.0.0.0:{PORT}\"\nadvertise = {address}");
                text = text
                    .replace(&advertised, &named)
                    .replace(&format!("listen = {address}"), &format!("listen = {named}"));
            }
            fs::write(path, text).unwrap();
            self.lead(host, &[]);
        }
    }

    /// Where the names of nodes lead from now on, on this host: to these hosts.
    pub(crate) fn lead(&self, host: usize, to: &[usize]) {
        let mut names = "127.0.0.1 localhost\n".to_owned();
        for (node, to) in to.iter().enumerate() {
            names.push_str(&format!("{} node-{node}\n", self.address(*to)));
        }
        // The same file, so that those who have it mounted see it.
        fs::write(self.home(host).join("hosts"), names).unwrap();
    }

    fn command(&self, host: usize, args: &[&str]) -> Command {
        const NAMED: &str = "mount --bind hosts /etc/hosts && exec \"$0\" \"$@\"";
        let rackmem = crate::COMMAND;
        let named = self.home(host).join("hosts").exists();
        let mut command = Command::new(if named { "unshare" } else { rackmem });
        if named {
            // With a file of hosts of its own.
            command.args(["--mount", "sh", "-c", NAMED, rackmem]);
        }
        command.args(args).current_dir(self.home(host)).stdin(Stdio::null());
        command
    }

    /// Starts another program on a host, where the rack's file is.
    pub(crate) fn spawn(&self, host: usize, mut program: Command) -> Child {
        program.current_dir(self.home(host));
        self.network.on(host, || program.spawn().unwrap())
    }

    /// Starts a daemon on a host.
    pub(crate) fn start(&mut self, host: usize, args: &[&str]) {
        let log = self.home(host).join(format!("log{}", self.daemons.len()));
        let mut command = self.command(host, args);
        command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
        let process = self.network.on(host, || command.spawn().unwrap());
        self.daemons.push(Daemon { host, process, log });
    }

    /// `rackmem switch`.
    pub(crate) fn start_switch(&mut self) {
        self.start(SWITCH, &["switch"]);
    }

    /// `rackmem node`.
    pub(crate) fn start_node(&mut self, node: usize) {
        self.start(host(node), &["node", "--id", &node.to_string()]);
    }

    /// Asks the daemon on a host politely to end. Says how it has ended, and what it has said.
    pub(crate) fn end(&mut self, host: usize) -> (Option<i32>, String) {
        let at = self.daemons.iter().position(|daemon| daemon.host == host).expect("a daemon there");
        let mut daemon = self.daemons.remove(at);
        let kill = format!("kill -TERM {}", daemon.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut code = None;
        eventually("a daemon ends when it is told to", || {
            code = daemon.process.try_wait().unwrap();
            code.is_some()
        });
        (code.and_then(|code| code.code()), fs::read_to_string(&daemon.log).unwrap())
    }

    /// What the daemon on a host has said so far.
    pub(crate) fn said(&self, host: usize) -> String {
        let daemon = self.daemons.iter().find(|daemon| daemon.host == host).expect("a daemon there");
        fs::read_to_string(&daemon.log).unwrap()
    }

    /// The rack's file, as a host has it.
    pub(crate) fn file(&self, host: usize) -> RackFile {
        RackFile::read(self.home(host).join("rack.toml")).unwrap()
    }

    /// An application joins the rack as this node, on this node's host.
    pub(crate) fn join(&self, node: usize) -> Rack {
        let (file, id) = (self.file(host(node)), NodeId(u16::try_from(node).unwrap()));
        let until = Instant::now() + MOST_WAIT;
        loop {
            match self.network.on(host(node), || Rack::join_within(&file, id, MOST_WAIT)) {
                Ok(rack) => return rack,
                // A former incarnation in this process lets go of its address a moment after it was dropped.
                Err(StartError::Udp(_)) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Err(error) => panic!("{id} does not join: {error}"),
            }
        }
    }

    /// Applications join as these nodes, at the same time: a rack waits for all before it begins.
    pub(crate) fn join_all<const N: usize>(&self, nodes: [usize; N]) -> [Rack; N] {
        thread::scope(|scope| {
            nodes.map(|node| scope.spawn(move || self.join(node))).map(|joining| joining.join().unwrap())
        })
    }

    /// How the rack is, as `rackmem status` tells on this host: over HTTP, but on the switch's.
    pub(crate) fn status(&self, host: usize) -> Option<Value> {
        let mut command = self.command(host, &["status", "--json"]);
        let output = self.network.on(host, || command.output().unwrap());
        serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success())
    }

    /// Waits until `rackmem status` on this host says so of the rack.
    pub(crate) fn until_status(&self, from: usize, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut status = None;
        eventually(what, || {
            status = self.status(from);
            status.as_ref().is_some_and(&is_so)
        });
        status.expect("it was so")
    }

    /// Waits until all nodes are up.
    pub(crate) fn until_up(&self, from: usize) -> Value {
        self.until_status(from, "all nodes are up", |status| {
            (0..self.nodes).all(|node| status["nodes"][node]["up"] == true)
        })
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            // It may have ended by itself.
            let _ = daemon.process.kill();
            let _ = daemon.process.wait();
            if thread::panicking() {
                let said = fs::read_to_string(&daemon.log).unwrap_or_default();
                eprintln!("the daemon on host {} has said:\n{said}", daemon.host);
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
