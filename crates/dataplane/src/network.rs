//! The network of a rack on one machine: a namespace for the switch and one for each node, and a cable from each node to a
//! port of the switch.
//!
//! ```text
//!   node 0: port 10.77.1.2 ─── p0 10.77.1.1 ┐
//!   node 1: port 10.77.2.2 ─── p1 10.77.2.1 ├ switch: 10.77.0.1, forwards between its ports
//!   node 2: port 10.77.3.2 ─── p2 10.77.3.1 ┘
//! ```
//!
//! The namespaces have no names: they are there as long as somebody is in them or holds them, so nothing is left of a rack
//! that was killed. A process enters one before it opens a socket ([`enter`]). "In the network" means here: in the
//! kernel, on the core that sends.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::system;

/// Bytes of an IP packet on these cables: as on Ethernet with jumbo frames, so that a block of 4 KiB fits.
pub const MTU: usize = 9000;
/// The port of UDP at which everybody listens: each in a network of its own.
const UDP_PORT: u16 = 7400;

/// Whether this process may have such a network, with a program in the kernel at its ports.
///
/// # Errors
/// What is in the way.
pub fn can_run() -> Result<(), String> {
    let network = Network::new(1).map_err(|error| error.to_string())?;
    drop(network);
    crate::program::can_load().map_err(|refused| refused.to_string())
}

/// The namespaces of a rack.
#[derive(Debug)]
pub struct Network {
    switch: OwnedFd,
    nodes: Vec<OwnedFd>,
}

impl Network {
    /// A network for so many nodes.
    ///
    /// # Errors
    /// If this process may not have namespaces of its own (it takes root), or there is no `ip` (of iproute2), or that fails.
    pub fn new(nodes: usize) -> io::Result<Self> {
        let switch = system::new_namespace().map_err(|error| {
            let why = "a network of its own takes root, or the capabilities CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_BPF";
            io::Error::new(error.kind(), format!("{error}: {why}"))
        })?;
        let nodes = (0..nodes).map(|_| system::new_namespace()).collect::<io::Result<Vec<_>>>()?;
        let network = Self { switch, nodes };
        let mut at_switch = String::from("link set lo up\naddr add 10.77.0.1/32 dev lo\n");
        for (node, namespace) in network.nodes.iter().enumerate() {
            let (path, net) = (path_of(namespace), node + 1);
            let path = path.display();
            at_switch += &format!(
                "link add p{node} type veth peer name port netns {path}\naddr add 10.77.{net}.1/24 dev p{node}\nlink set p{node} mtu {MTU} up\n"
            );
        }
        inside(&network.switch, || {
            File::options().write(true).open("/proc/sys/net/ipv4/ip_forward")?.write_all(b"1")?;
            ip(&at_switch)
        })?;
        for (node, namespace) in network.nodes.iter().enumerate() {
            let net = node + 1;
            let at_node = format!(
                "link set lo up\naddr add 10.77.{net}.2/24 dev port\nlink set port mtu {MTU} up\nroute add default via 10.77.{net}.1\n"
            );
            inside(namespace, || ip(&at_node))?;
        }
        Ok(network)
    }

    /// Programs may be in the drivers of the ports: what those send on through a cable arrives only where what is received is
    /// merged.
    ///
    /// # Errors
    /// If a node's end of its cable cannot do that.
    pub fn with_programs_in_drivers(self) -> io::Result<Self> {
        self.nodes.iter().try_for_each(|namespace| inside(namespace, || system::merge_received("port")))?;
        Ok(self)
    }

    /// Where the switch is, and then the nodes: for whoever [enters](enter) as long as this is there.
    pub fn paths(&self) -> Vec<PathBuf> {
        [&self.switch].into_iter().chain(&self.nodes).map(path_of).collect()
    }

    /// Where the switch listens, and then the nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let nodes = (0..self.nodes.len()).map(address_of);
        let all = [Ipv4Addr::new(10, 77, 0, 1)].into_iter().chain(nodes);
        all.map(|address| SocketAddr::from((address, UDP_PORT))).collect()
    }

    /// Does something at the switch (0), or at a node (1 and on): what it starts stays there.
    ///
    /// # Errors
    /// What the work says; or if this process may not be there.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn at<T: Send>(&self, place: usize, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let namespace = if place == 0 { &self.switch } else { &self.nodes[place - 1] };
        inside(namespace, work)
    }

    /// Pulls the cable of a node out of the switch, or puts it back. Addresses stay.
    ///
    /// # Errors
    /// If `ip` cannot do it.
    pub fn plug(&self, node: usize, plugged: bool) -> io::Result<()> {
        let state = if plugged { "up" } else { "down" };
        inside(&self.switch, || ip(&format!("link set p{node} {state}\n")))
    }

    /// The names of the switch's ports.
    pub fn ports(nodes: usize) -> Vec<String> {
        (0..nodes).map(|node| format!("p{node}")).collect()
    }
}

/// Where a node is in such a network.
///
/// # Panics
/// If no rack has it.
pub fn address_of(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, u8::try_from(node + 1).expect("at most 64 nodes"), 2)
}

/// This thread, and those that it starts from now on, are in this namespace.
///
/// # Errors
/// If there is no such namespace any more, or this process may not be in it.
pub fn enter(path: &Path) -> io::Result<()> {
    system::enter_namespace(File::open(path)?.as_fd())
}

fn path_of(namespace: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd()))
}

/// Does something in a namespace, in a thread of its own.
fn inside<T: Send>(namespace: &OwnedFd, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            system::enter_namespace(namespace.as_fd())?;
            work()
        });
        inside.join().expect("it does not panic")
    })
}

/// Runs `ip` with these commands, a line each.
fn ip(commands: &str) -> io::Result<()> {
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot run `ip`, which is part of iproute2: {error}"))
    })?;
    child.stdin.take().expect("it was asked for").write_all(commands.as_bytes())?;
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(format!("`ip` says: {}", said.trim())))
}
