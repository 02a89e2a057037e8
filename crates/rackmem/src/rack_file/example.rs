//! A rack file to begin with: every key with its default, and what it means.
//!
//! What must always hold: it is read without a mistake.

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::TransportKind;
use super::units::bytes_text;
use crate::config::Config;

/// A commented rack file. With UDP, `addresses` are those of the switch and of each node, in this order; in shared
/// memory only their number counts.
pub fn example(name: &str, transport: TransportKind, addresses: &[SocketAddr]) -> String {
    let nodes = addresses.len().saturating_sub(1);
    let default = Config::default();
    let udp = transport == TransportKind::Udp;
    let loopback = addresses.iter().all(|address| address.ip().is_loopback());
    let mut text = format!(
        "# A rack of {nodes} nodes. Every place of it reads the same file; `rackmem status` does, too.\n\
         # What stands here with a # is the default.\n\
         \n\
         [rack]\n\
         name = \"{name}\"                 # letters, digits and -\n\
         transport = \"{}\"            # \"udp\" between machines, \"shm\" with all places on one machine\n\
         # block = \"{}\"            # the unit of coherence and of atomicity: a power of two, 64 B to 1 MiB\n\
         # cache = \"{}\"           # on every node\n\
         # memory = \"{}\"         # that every node contributes\n\
         # timeout = \"1 s\"            # a place that is not heard of for so long is given up\n\
         # strict = false             # true: no access is ever stale, also on a node that was stopped\n",
        transport.name(),
        bytes_text(default.block_size.bytes()),
        bytes_text(default.cache),
        bytes_text(default.memory),
    );
    if udp {
        let comment = if loopback { "# " } else { "" };
        let _ = writeln!(
            text,
            "{comment}key = \"rack.key\"           # made with: rackmem key rack.key; needed beyond loopback"
        );
        let _ = writeln!(
            text,
            "# mtu = 1500                 # of the path between the machines (65535 on loopback)"
        );
    }
    text.push_str("# runtime = \"run\"            # directory of the rack's sockets, on each machine for itself\n\n[switch]\n");
    if udp {
        let _ = writeln!(text, "listen = \"{}\"", addresses[0]);
    }
    let _ = write!(
        text,
        "# entries = {}           # directory entries that it has room for\n\
         # directory = \"auto\"         # hot blocks in the \"switch\", cold ones at their \"home\"; or one of these for all\n\
         # queue = false              # true: requests for a block in transit wait in line, and are not refused\n\
         # metrics = \"127.0.0.1:9400\" # Prometheus metrics over HTTP, and `rackmem status` from other machines\n",
        default.switch_entries
    );
    for (id, address) in addresses.iter().skip(1).enumerate() {
        let _ = write!(text, "\n[[node]]\nid = {id}\n");
        if udp {
            let _ = writeln!(text, "listen = \"{address}\"");
        }
    }
    text
}
