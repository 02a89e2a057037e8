//! A rack file to begin with: every key with its default, and what it means.
//!
//! What must always hold: it is read without a mistake.

use std::fmt::Write as _;
use std::net::SocketAddr;

use wire::Nanos;

use super::TransportKind;
use super::units::{bytes_text, span_text};
use crate::config::Config;

/// What a rack file begins with that is not the default.
#[derive(Clone, Copy, Default, Debug)]
pub struct Given<'a> {
    /// Where the rack's sockets are.
    pub runtime: Option<&'a str>,
    /// How many nodes keep names.
    pub name_nodes: Option<u16>,
    /// Bytes that every node caches.
    pub cache: Option<u64>,
    /// Bytes that every node contributes.
    pub memory: Option<u64>,
    /// How many nodes keep memory with copies.
    pub copies: Option<u16>,
    /// How long a node is not heard that is declared dead.
    pub timeout: Option<Nanos>,
    /// The switch's programs are in the kernel.
    pub kernel: Option<GivenKernel<'a>>,
}

/// What a rack has whose switch's programs are in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct GivenKernel<'a> {
    /// The file of its key.
    pub key: &'a str,
    /// Bytes of a packet on its paths.
    pub mtu: usize,
    /// The devices behind which its nodes are.
    pub ports: &'a str,
    /// Where its programs are kept.
    pub keep: Option<&'a str>,
}

/// A commented rack file. With UDP, `addresses` are those of the switch and of each node, in this order; in shared
/// memory only their number counts.
pub fn example(name: &str, transport: TransportKind, addresses: &[SocketAddr], given: Given<'_>) -> String {
    let Given { runtime, name_nodes, .. } = given;
    let nodes = addresses.len().saturating_sub(1);
    let default = Config::default();
    let udp = transport == TransportKind::Udp;
    let loopback = addresses.iter().all(|address| address.ip().is_loopback());
    let mut text = format!(
        "# A rack of {nodes} node{}. Every place of it reads the same file; `rackmem status` does, too.\n\
         # What stands here behind a # is the default.\n\n[rack]\n",
        if nodes == 1 { "" } else { "s" }
    );
    let bytes = |key: &str, bytes: u64| format!("# {key} = \"{}\"", bytes_text(bytes));
    line(&mut text, format!("name = \"{name}\""), "letters, digits and -");
    line(
        &mut text,
        format!("transport = \"{}\"", transport.name()),
        "\"udp\" between machines, \"shm\" with all places on one machine",
    );
    line(
        &mut text,
        bytes("block", default.block_size.bytes()),
        "the unit of coherence and of atomicity: a power of two, 64 B to 1 MiB",
    );
    let given_bytes = |key: &str, given: Option<u64>, default: u64| match given {
        Some(given) => format!("{key} = \"{}\"", bytes_text(given)),
        None => bytes(key, default),
    };
    line(&mut text, given_bytes("cache", given.cache, default.cache), "on every node");
    line(&mut text, given_bytes("memory", given.memory, default.memory), "that every node contributes");
    line(
        &mut text,
        given.copies.map_or("# copies = 1".to_owned(), |copies| format!("copies = {copies}")),
        "2 or 3: so many nodes keep names and what is allocated with copies, which then outlive one or two",
    );
    line(
        &mut text,
        bytes("refill", default.refill),
        "a second, that come to a node of each memory of which copies are missing, at most",
    );
    line(
        &mut text,
        bytes("lock_copies", default.lock_copies),
        "on every node, for copies of what locks guard",
    );
    line(
        &mut text,
        bytes("lock_region", default.lock_region),
        "the most that one lock guards: up to 1 MiB; rings and buffers are made for it",
    );
    line(
        &mut text,
        "# own_first = 0".to_owned(),
        "threads of the node that has a lock which go before a node that waits, each time it comes there",
    );
    line(
        &mut text,
        name_nodes.map_or(format!("# name_nodes = {nodes}"), |nodes| format!("name_nodes = {nodes}")),
        "the first so many nodes keep names: leave out those that come and go",
    );
    line(
        &mut text,
        format!("# most_nodes = {}", Config::usual_places(nodes, given.copies.unwrap_or(1).into())),
        "nodes can be added while the rack runs, up to so many: append a [[node]], here and where it is to run",
    );
    line(
        &mut text,
        given.timeout.map_or_else(
            || "# timeout = \"1 s\"".to_owned(),
            |timeout| format!("timeout = \"{}\"", span_text(timeout)),
        ),
        "a node that is not heard for so long is declared dead",
    );
    line(
        &mut text,
        "# peek = false".to_owned(),
        "true: small reads of blocks that others keep writing are done where the block is",
    );
    line(
        &mut text,
        "# strict = false".to_owned(),
        "true: no access is ever stale, also on a node that was stopped",
    );
    line(
        &mut text,
        "# scheduling = \"fair\"".to_owned(),
        "\"realtime\": those who answer run before applications that compute; needs the right to do so",
    );
    if udp {
        let (key, mtu) = match given.kernel {
            Some(GivenKernel { key, mtu, .. }) => (format!("key = \"{key}\""), format!("mtu = {mtu}")),
            None if loopback => ("# key = \"rack.key\"".to_owned(), "# mtu = 65535".to_owned()),
            None => ("key = \"rack.key\"".to_owned(), "# mtu = 1500".to_owned()),
        };
        line(&mut text, key, "made with: rackmem key rack.key; needed beyond loopback, there is no default");
        line(&mut text, mtu, "of the paths between the machines");
    }
    match runtime {
        Some(runtime) => line(&mut text, format!("runtime = \"{runtime}\""), "where the rack's sockets are"),
        None => line(
            &mut text,
            "# runtime = \"run\"".to_owned(),
            "where the rack's sockets are, on each machine for itself; without it, the user's runtime directory",
        ),
    }
    text.push_str("\n[switch]\n");
    if udp {
        line(&mut text, format!("listen = \"{}\"", addresses[0]), "\"0.0.0.0:7400\": at all its addresses");
        line(
            &mut text,
            format!("# advertise = \"{}\"", addresses[0]),
            "what the others use, an address or a host name; nodes have this key, too",
        );
    }
    line(
        &mut text,
        format!("# entries = {}", default.switch_entries),
        "directory entries that it has room for",
    );
    line(
        &mut text,
        format!("# lock_entries = {}", default.lock_entries),
        "locks that it has room for; the homes of others keep theirs",
    );
    line(
        &mut text,
        "# steering = 0".to_owned(),
        "keys of chains whose tails it holds, to send each append to the true one",
    );
    line(
        &mut text,
        "# steer_reads = false".to_owned(),
        "where it steers: it sends reads to the tail, too, and what was replaced stays in quarantine for seconds longer",
    );
    line(
        &mut text,
        "# preload = false".to_owned(),
        "where it steers: after its restart it is told the tails of the keys that are written to most",
    );
    line(
        &mut text,
        "# directory = \"auto\"".to_owned(),
        "hot blocks in the \"switch\", cold ones at their \"home\"; or one of these for all",
    );
    line(
        &mut text,
        "# queue = false".to_owned(),
        "true: requests for a block in transit wait in line, and are not refused",
    );
    line(
        &mut text,
        "# metrics = \"127.0.0.1:9400\"".to_owned(),
        "Prometheus metrics over HTTP, and `rackmem status` from other machines; without it, none",
    );
    if udp {
        let (data_plane, ports) = match given.kernel {
            Some(GivenKernel { ports, .. }) => {
                ("data_plane = \"kernel\"".to_owned(), format!("ports = \"{ports}\""))
            }
            None => ("# data_plane = \"process\"".to_owned(), "# ports = \"eth1 eth2\"".to_owned()),
        };
        let keep = given.kernel.and_then(|kernel| kernel.keep);
        let keep =
            keep.map_or("# keep = \"/sys/fs/bpf/rackmem\"".to_owned(), |keep| format!("keep = \"{keep}\""));
        line(
            &mut text,
            data_plane,
            "\"kernel\": the switch's program is in the kernel of its machine, at its ports (docs/kernel.md)",
        );
        line(&mut text, ports, "the devices behind which the nodes are, for that");
        line(
            &mut text,
            "# hook = \"tc\"".to_owned(),
            "where it is there: \"tc\" (traffic control) or \"xdp\" (the driver); without it, where it is cheaper",
        );
        line(
            &mut text,
            keep,
            "where that program stays when the switch's process dies; without it, it goes too",
        );
    }
    for (id, address) in addresses.iter().skip(1).enumerate() {
        let _ = write!(text, "\n[[node]]\nid = {id}\n");
        if udp {
            let _ = writeln!(text, "listen = \"{address}\"");
        }
    }
    text
}

/// Adds an entry with its meaning beside it.
fn line(text: &mut String, entry: String, meaning: &str) {
    // A String takes everything.
    let _ = writeln!(text, "{entry:<28} # {meaning}");
}
