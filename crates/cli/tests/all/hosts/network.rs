//! Hosts that are network namespaces of this machine: each has one interface, whose cable leads to a hub.
//!
//! ```text
//!    host 0        host 1         host 2          namespaces, with a loopback and an eth0 each
//!      │ eth0        │ eth0         │ eth0
//!      └── port0 ────┴── port1 ─────┴── port2     hub: a namespace, too; a bridge or a router
//! ```
//! What must always hold: nothing of this is in the machine's own network, names are of this process alone, and all of
//! it is gone when the value is dropped.

use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::process::{self, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io, panic, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// If it is `required`, a test fails where it would be skipped.
const WISH: &str = "RACKMEM_HOSTS";
/// What Ethernet carries.
const ETHERNET: u32 = 1500;

/// What is between the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hub {
    /// A bridge: all hosts are neighbours. No cable carries longer IP packets than this.
    Bridge { mtu: u32 },
    /// A router, with a network of its own for every host. The last host's cable carries no longer IP packets than
    /// this, the others carry Ethernet's: who sends does not see how narrow the path is.
    Router { narrowest: u32 },
}

/// Hosts and their hub.
pub(crate) struct Network {
    prefix: String,
    hub: Hub,
    hosts: usize,
}

impl Network {
    /// Some hosts, or nothing if this machine does not permit it: then the reason has been printed.
    pub(crate) fn new(hub: Hub, hosts: usize) -> Option<Self> {
        static PERMITTED: OnceLock<Result<(), String>> = OnceLock::new();
        let tried = || {
            remove_abandoned();
            Self::build(Hub::Router { narrowest: ETHERNET }, 1).and_then(|network| network.try_inside(0))
        };
        if let Err(why) = PERMITTED.get_or_init(tried) {
            assert!(std::env::var(WISH).as_deref() != Ok("required"), "no network namespaces: {why}");
            let test = thread::current().name().unwrap_or("a test").to_owned();
            let said = format!("SKIPPED {test}: no network namespaces here: {why}\n");
            // Not with a macro: what those print in a test that passes is thrown away.
            let _ = io::stderr().write_all(said.as_bytes());
            return None;
        }
        Some(Self::build(hub, hosts).unwrap_or_else(|why| panic!("{why}")))
    }

    fn build(hub: Hub, hosts: usize) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let network = Self { prefix: format!("rackmem-{}-{number}-", process::id()), hub, hosts };
        let namespaces = (0..hosts).map(|host| network.namespace(host)).chain([network.hub_namespace()]);
        ip(&[], &lines(namespaces.map(|name| format!("netns add {name}"))))?;
        network.wire_hub()?;
        (0..hosts).try_for_each(|host| network.wire_host(host))?;
        Ok(network)
    }

    fn wire_hub(&self) -> Result<(), String> {
        let mut commands = Vec::new();
        if matches!(self.hub, Hub::Bridge { .. }) {
            commands.push("link add middle type bridge forward_delay 0 stp_state 0".to_owned());
            commands.push("link set middle up".to_owned());
        }
        for host in 0..self.hosts {
            let (peer, mtu) = (self.namespace(host), self.mtu(host));
            commands.push(format!(
                "link add port{host} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {peer}"
            ));
            commands.push(match self.hub {
                Hub::Bridge { .. } => format!("link set port{host} master middle"),
                Hub::Router { .. } => format!("addr add {}/24 dev port{host}", self.gateway(host)),
            });
            commands.push(format!("link set port{host} up"));
        }
        ip(&["-n", &self.hub_namespace()], &lines(commands))?;
        if matches!(self.hub, Hub::Router { .. }) {
            let forward = || fs::write("/proc/sys/net/ipv4/ip_forward", "1");
            inside(&self.hub_namespace(), forward).flatten().map_err(|why| format!("ip_forward: {why}"))?;
        }
        Ok(())
    }

    fn wire_host(&self, host: usize) -> Result<(), String> {
        let mut commands = vec![
            "link set lo up".to_owned(),
            format!("addr add {}/24 dev eth0", self.address(host)),
            "link set eth0 up".to_owned(),
        ];
        if matches!(self.hub, Hub::Router { .. }) {
            commands.push(format!("route add default via {}", self.gateway(host)));
        }
        ip(&["-n", &self.namespace(host)], &lines(commands))
    }

    fn try_inside(self, host: usize) -> Result<(), String> {
        inside(&self.namespace(host), || ()).map_err(|why| format!("setns: {why}"))
    }

    fn mtu(&self, host: usize) -> u32 {
        match self.hub {
            Hub::Bridge { mtu } => mtu,
            Hub::Router { narrowest } if host + 1 == self.hosts => narrowest,
            Hub::Router { .. } => ETHERNET,
        }
    }

    fn namespace(&self, host: usize) -> String {
        format!("{}{host}", self.prefix)
    }

    fn hub_namespace(&self) -> String {
        format!("{}hub", self.prefix)
    }

    /// Where others reach a host.
    pub(crate) fn address(&self, host: usize) -> Ipv4Addr {
        let number = u8::try_from(host).expect("few hosts");
        match self.hub {
            Hub::Bridge { .. } => Ipv4Addr::new(10, 77, 0, 1 + number),
            Hub::Router { .. } => Ipv4Addr::new(10, 77, number, 2),
        }
    }

    fn gateway(&self, host: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, u8::try_from(host).expect("few hosts"), 1)
    }

    /// Runs something on a host, on a thread of its own: sockets that it opens, and processes and threads that it starts,
    /// are there.
    pub(crate) fn on<R: Send>(&self, host: usize, run: impl FnOnce() -> R + Send) -> R {
        inside(&self.namespace(host), run).expect("the namespace is there")
    }

    /// Pulls the cable of a host out of the hub. The host's own interface and addresses stay.
    pub(crate) fn unplug(&self, host: usize) {
        self.set_port(host, "down");
    }

    /// Puts it back.
    pub(crate) fn plug(&self, host: usize) {
        self.set_port(host, "up");
    }

    fn set_port(&self, host: usize, state: &str) {
        let set = format!("link set port{host} {state}");
        ip(&["-n", &self.hub_namespace()], &set).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Switches the interface of a host off, at the host: its routes go, and sending fails there.
    pub(crate) fn set_interface(&self, host: usize, on: bool) {
        let set = format!("link set eth0 {}", if on { "up" } else { "down" });
        ip(&["-n", &self.namespace(host)], &set).unwrap_or_else(|why| panic!("{why}"));
    }

    /// IP packets that were cut into fragments so far, on all hosts and in the hub.
    pub(crate) fn fragments(&self) -> u64 {
        let created = |namespace: String| counted(&namespace, "Ip", "FragCreates");
        (0..self.hosts).map(|host| self.namespace(host)).chain([self.hub_namespace()]).map(created).sum()
    }

    /// UDP datagrams that hosts have sent and no host has received so far. Some may be in flight.
    pub(crate) fn lost_datagrams(&self) -> u64 {
        let count =
            |name| -> u64 { (0..self.hosts).map(|host| counted(&self.namespace(host), "Udp", name)).sum() };
        // In this order: what arrives in between does not make it look as if more had arrived than was sent.
        let received = count("InDatagrams");
        count("OutDatagrams") - received
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let namespaces = (0..self.hosts).map(|host| self.namespace(host)).chain([self.hub_namespace()]);
        // Some are not there if the network could not be built.
        let _ = ip(&["-force"], &lines(namespaces.map(|name| format!("netns del {name}"))));
    }
}

/// Namespaces of test processes that were killed go.
fn remove_abandoned() {
    let Ok(namespaces) = fs::read_dir("/run/netns") else { return };
    for name in namespaces.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let owner = name.strip_prefix("rackmem-").and_then(|rest| rest.split('-').next());
        let owner: Option<u32> = owner.and_then(|owner| owner.parse().ok());
        if owner.is_some_and(|owner| !fs::exists(format!("/proc/{owner}")).unwrap_or(true)) {
            // Somebody else may just be doing the same.
            let _ = ip(&[], &format!("netns del {name}"));
        }
    }
}

fn lines(commands: impl IntoIterator<Item = String>) -> String {
    commands.into_iter().collect::<Vec<_>>().join("\n")
}

/// Runs commands of iproute2, one a line.
fn ip(options: &[&str], commands: &str) -> Result<(), String> {
    let started = Command::new("ip")
        .args(options)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut running = started.map_err(|why| format!("`ip` of iproute2 does not start: {why}"))?;
    // If it does not read them, it has said why.
    let _ = running.stdin.take().expect("it is piped").write_all(commands.as_bytes());
    let output = running.wait_with_output().map_err(|why| why.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`ip`: {}", said.trim().replace('\n', "; ")))
}

/// Runs something in a namespace, on a thread of its own.
fn inside<R: Send>(namespace: &str, run: impl FnOnce() -> R + Send) -> io::Result<R> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    let there = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(run())
    };
    thread::scope(|scope| scope.spawn(there).join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
}

/// What a namespace has counted, by the names of the kernel.
fn counted(namespace: &str, protocol: &str, name: &str) -> u64 {
    let statistics = inside(namespace, || fs::read_to_string("/proc/thread-self/net/snmp"));
    let statistics = statistics.flatten().expect("the namespace counts");
    // The first line of a protocol has the names, the second one the numbers.
    let mut lines = statistics.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let (names, numbers) = (lines.next().expect("names"), lines.next().expect("numbers"));
    let mut columns = names.split(' ').zip(numbers.split(' '));
    let (_, number) = columns.find(|(column, _)| *column == name).expect("it is counted");
    number.parse().expect("a number")
}
