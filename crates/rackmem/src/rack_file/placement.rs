//! Where the places of the rack are, and whether they can reach each other, and nobody else them.
//!
//! What must always hold: what listens beyond this machine has a key.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use transport::udp::{Key, KeyError};

use super::error::Mistakes;
use super::parse::Tables;
use super::table::{Placed, Table};
use super::{Placement, TransportKind};

/// IPv6 asks this of every path.
const LEAST_MTU: u64 = 1_280;
const MOST_MTU: u64 = 65_535;
/// Of Ethernet.
const DEFAULT_MTU: usize = 1_500;

const TRANSPORTS: &str = "transport = \"udp\" (between machines) or \"shm\" (all places on one machine)";
const SWITCH_EXAMPLE: &str = "\"10.0.0.1:7400\"";
const NODE_EXAMPLE: &str = "\"10.0.0.2:7400\"";
const METRICS_EXAMPLE: &str = "\"127.0.0.1:9400\"";
const KEY_EXAMPLE: &str = "\"rack.key\"";

/// Where everything is.
pub(super) struct Places {
    /// None in shared memory: the directory follows from the rack's name.
    pub(super) placement: Option<Placement>,
    pub(super) switch_metrics: Option<SocketAddr>,
    pub(super) node_metrics: Vec<Option<SocketAddr>>,
}

/// An address of the file.
struct Address {
    /// Whose it is, in words.
    whose: String,
    placed: Placed<SocketAddr>,
}

/// Reads where everything is. There may be mistakes also if it returns something.
pub(super) fn read(folder: &Path, tables: &Tables<'_>, mistakes: &mut Mistakes<'_>) -> Option<Places> {
    let transport = transport(&tables.rack, mistakes);
    let by_id = by_id(&tables.nodes, mistakes);
    let mut metrics = Vec::new();
    let mut metrics_of = |table: &Table<'_>, whose: String, mistakes: &mut Mistakes<'_>| {
        let placed = table.address("metrics", METRICS_EXAMPLE, mistakes)?;
        metrics.push(Address { whose, placed });
        Some(placed.value)
    };
    let switch_metrics =
        tables.switch.and_then(|switch| metrics_of(&switch, "the switch".to_owned(), mistakes));
    let node_metrics = by_id.as_ref().map(|by_id| {
        let nodes = by_id.iter().enumerate();
        nodes.map(|(id, node)| metrics_of(node, format!("node {id}"), mistakes)).collect()
    });
    refuse_doubles("metrics", &metrics, mistakes);
    let placement = match transport? {
        TransportKind::SharedMemory => {
            refuse_network(tables, mistakes);
            None
        }
        TransportKind::Udp => Some(udp(folder, tables, by_id.as_deref(), mistakes)?),
    };
    Some(Places { placement, switch_metrics, node_metrics: node_metrics? })
}

fn transport(rack: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Option<TransportKind> {
    if !rack.has("transport") {
        mistakes.add(rack.at, format_args!("[rack] has no `transport`: write {TRANSPORTS}"));
    }
    let given = rack.text("transport", "\"udp\"", mistakes)?;
    let kinds = [TransportKind::SharedMemory, TransportKind::Udp];
    let kind = kinds.into_iter().find(|kind| kind.name() == given.value);
    if kind.is_none() {
        mistakes.add(given.at, format_args!("`{}` is not a transport: write {TRANSPORTS}", given.value));
    }
    kind
}

/// The tables of the nodes in the order of their ids, if those are 0 to n-1.
fn by_id<'a>(nodes: &[Table<'a>], mistakes: &mut Mistakes<'_>) -> Option<Vec<Table<'a>>> {
    let mut placed: Vec<Option<Table<'a>>> = vec![None; nodes.len()];
    let mut refused = Vec::new();
    for node in nodes {
        node.require("id", "0, 1, 2 and so on", mistakes);
        let Some(id) = node.number("id", "0, 1, 2 and so on", mistakes) else { continue };
        match usize::try_from(id.value).ok().and_then(|id| placed.get_mut(id)) {
            Some(free @ None) => *free = Some(*node),
            Some(Some(_)) => refused.push((id.at, format!("two nodes have the id {}", id.value))),
            None => {
                let (count, last) = (nodes.len(), nodes.len() - 1);
                let what = format!("{count} nodes have the ids 0 to {last}, and none has {}", id.value);
                refused.push((id.at, what));
            }
        }
    }
    let free = placed.iter().enumerate().filter(|(_, node)| node.is_none()).map(|(id, _)| id);
    // As many are free as were refused, or more.
    for ((at, what), free) in refused.into_iter().zip(free) {
        mistakes.add(at, format_args!("{what}: write id = {free}, which is free"));
    }
    placed.into_iter().collect()
}

/// What belongs to addresses has no meaning in shared memory, and would be believed to have one.
fn refuse_network(tables: &Tables<'_>, mistakes: &mut Mistakes<'_>) {
    const INSTEAD: &str = "with transport = \"shm\": remove it, or write transport = \"udp\"";
    for table in tables.switch.iter().chain(&tables.nodes).filter(|table| table.has("listen")) {
        let at = table.place_of("listen");
        mistakes.add(at, format_args!("{} has an address that nothing listens on {INSTEAD}", table.name));
    }
    for (key, why) in [("key", "file permissions guard shared memory"), ("mtu", "there are no datagrams")] {
        if tables.rack.has(key) {
            let at = tables.rack.place_of(key);
            mistakes.add(at, format_args!("`{key}` has no meaning ({why}) {INSTEAD}"));
        }
    }
}

fn udp(
    folder: &Path,
    tables: &Tables<'_>,
    by_id: Option<&[Table<'_>]>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Placement> {
    if tables.switch.is_none() {
        mistakes.add(
            usize::MAX,
            format_args!("there is no [switch]: write [switch], and under it listen = {SWITCH_EXAMPLE}"),
        );
    }
    let switch = tables.switch.and_then(|switch| listen(&switch, "the switch", SWITCH_EXAMPLE, mistakes));
    let nodes = by_id.unwrap_or(&[]).iter().enumerate();
    let nodes: Vec<Option<Address>> =
        nodes.map(|(id, node)| listen(node, &format!("node {id}"), NODE_EXAMPLE, mistakes)).collect();
    let all = [switch].into_iter().chain(nodes).collect::<Option<Vec<Address>>>();
    let key = key(folder, &tables.rack, mistakes);
    let mtu = mtu(&tables.rack, mistakes);
    let all = all.filter(|_| tables.switch.is_some() && by_id.is_some())?;
    refuse_doubles("listen", &all, mistakes);
    let reachable = reachable(&all, mistakes);
    let loopback = all[0].placed.value.ip().is_loopback();
    if reachable && !loopback && !tables.rack.has("key") {
        mistakes.add(
            all[0].placed.at,
            format_args!(
                "{} is not loopback, and the rack has no key, so anybody could write its memory: write key = {KEY_EXAMPLE} under [rack], and make that file with: rackmem key rack.key",
                all[0].placed.value
            ),
        );
    }
    let mut addresses = all.iter().map(|address| address.placed.value);
    Some(Placement::Udp {
        switch: addresses.next().expect("the switch is the first"),
        nodes: addresses.collect(),
        key,
        mtu: mtu.unwrap_or(if loopback { MOST_MTU as usize } else { DEFAULT_MTU }),
    })
}

fn listen(table: &Table<'_>, whose: &str, example: &str, mistakes: &mut Mistakes<'_>) -> Option<Address> {
    table.require("listen", example, mistakes);
    let placed = table.address("listen", example, mistakes)?;
    let ip = placed.value.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    let wrong = if placed.value.port() == 0 {
        "has no port that the others could know: write one from 1 to 65535"
    } else if ip.is_unspecified() {
        "is no address that the others could send to: write the one of this machine that they reach"
    } else if ip.is_multicast() || broadcast {
        "is the address of more than one machine: write the one of this machine that the others reach"
    } else {
        return Some(Address { whose: whose.to_owned(), placed });
    };
    mistakes.add(placed.at, format_args!("{} {wrong}, for example listen = {example}", placed.value));
    None
}

fn refuse_doubles(key: &str, addresses: &[Address], mistakes: &mut Mistakes<'_>) {
    for (index, later) in addresses.iter().enumerate() {
        let earlier = addresses[..index].iter().find(|earlier| earlier.placed.value == later.placed.value);
        if let Some(earlier) = earlier {
            mistakes.add(
                later.placed.at,
                format_args!(
                    "{} and {} have the same `{key}`, {}: write another port or address for one of them",
                    earlier.whose, later.whose, later.placed.value
                ),
            );
        }
    }
}

/// Whether all can send to all: one kind of address, and loopback for all or for none.
fn reachable(all: &[Address], mistakes: &mut Mistakes<'_>) -> bool {
    let first = &all[0];
    let mut reachable = true;
    for address in &all[1..] {
        let (here, there) = (first.placed.value, address.placed.value);
        let what = if here.is_ipv4() != there.is_ipv4() {
            "one is IPv4, the other IPv6: write all addresses of one kind"
        } else if here.ip().is_loopback() != there.ip().is_loopback() {
            "one is loopback, so only this machine reaches it: write loopback addresses for all or for none"
        } else {
            continue;
        };
        reachable = false;
        let whose = &address.whose;
        mistakes.add(
            address.placed.at,
            format_args!("{whose} ({there}) cannot talk to {} ({here}): {what}", first.whose),
        );
    }
    reachable
}

fn key(folder: &Path, rack: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Option<Key> {
    let given = rack.text("key", KEY_EXAMPLE, mistakes)?;
    let path = folder.join(given.value);
    let error = match Key::read(&path) {
        Ok(key) => return Some(key),
        Err(error) => error,
    };
    let instead = match &error {
        KeyError::Io { error, .. } if error.kind() == ErrorKind::NotFound => {
            format!("; write a key with: rackmem key {}, the same for all places", path.display())
        }
        KeyError::Digits { .. } => "; write one with: rackmem key FILE".to_owned(),
        _ => String::new(),
    };
    mistakes.add(given.at, format_args!("{error}{instead}"));
    None
}

fn mtu(rack: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Option<usize> {
    let given = rack.number("mtu", "1500", mistakes)?;
    if !(LEAST_MTU..=MOST_MTU).contains(&given.value) {
        mistakes.add(
            given.at,
            format_args!(
                "an mtu of {} is not possible: write {LEAST_MTU} to {MOST_MTU}, for example mtu = 1500",
                given.value
            ),
        );
        return None;
    }
    usize::try_from(given.value).ok()
}

/// Where the sockets of a rack with this name are, unless its file says otherwise.
pub fn runtime_directory(name: &str) -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join(format!("rackmem-{name}")),
        // That folder is shared with other users.
        None => std::env::temp_dir().join(format!("rackmem-{}-{name}", rustix::process::getuid().as_raw())),
    }
}
