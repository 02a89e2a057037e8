//! Where the places of the rack are, and whether they can reach each other, and nobody else them.
//!
//! What must always hold: what listens beyond this machine has a key.

use std::fmt::Display;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use transport::udp::{Advertised, Key, KeyError};

use super::error::Mistakes;
use super::location::{Endpoint, wrong_to_send_to};
use super::parse::Tables;
use super::table::{Placed, Table};
use super::{DataPlane, Hook, Placement, Ports, TransportKind};

/// IPv6 asks this of every path.
const LEAST_MTU: u64 = 1_280;
const MOST_MTU: u64 = 65_535;
/// Of Ethernet.
const DEFAULT_MTU: usize = 1_500;

const TRANSPORTS: &str = "transport = \"udp\" (between machines) or \"shm\" (all places on one machine)";
const SWITCH_EXAMPLE: &str = "\"10.0.0.1:7400\"";
const NODE_EXAMPLE: &str = "\"10.0.0.2:7400\"";
const PORTS_EXAMPLE: &str = "\"eth1 eth2\"";
const HOOK_EXAMPLE: &str = "\"xdp\"";
const KEEP_EXAMPLE: &str = "\"/sys/fs/bpf/rackmem\"";
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
struct Address<T> {
    /// Whose it is, in words.
    whose: String,
    placed: Placed<T>,
}

/// A place that listens.
struct Listening {
    whose: String,
    /// Where `listen` stands.
    at: usize,
    /// Where what the others use stands, and which key that is.
    advertise_at: usize,
    advertise_key: &'static str,
    endpoint: Endpoint,
}

impl Listening {
    /// True: only this machine reaches it. None: that depends on where a name leads.
    fn is_local(&self) -> Option<bool> {
        let listen = self.endpoint.listen.ip();
        match self.endpoint.advertise.address() {
            Some(address) => Some(address.ip().is_loopback() || listen.is_loopback()),
            None => Some(listen.is_loopback()).filter(|_| !listen.is_unspecified()),
        }
    }

    /// True unless it cannot send to what the other advertises.
    fn can_send_to(&self, other: &Self) -> bool {
        let listen = self.endpoint.listen;
        let all = listen.is_ipv6() && listen.ip().is_unspecified();
        all || other.endpoint.advertise.address().is_none_or(|it| it.is_ipv4() == listen.is_ipv4())
    }
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
    refuse_doubles(&metrics, |_| "metrics", mistakes);
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
    for table in tables.switch.iter().chain(&tables.nodes) {
        for key in ["listen", "advertise"].into_iter().filter(|key| table.has(key)) {
            let at = table.place_of(key);
            mistakes.add(at, format_args!("{} has an address that nothing listens on {INSTEAD}", table.name));
        }
    }
    if let Some(switch) = &tables.switch {
        for key in ["data_plane", "ports", "hook", "keep"].into_iter().filter(|key| switch.has(key)) {
            let at = switch.place_of(key);
            mistakes.add(at, format_args!("`{key}` has no meaning (there are no ports) {INSTEAD}"));
        }
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
    let nodes: Vec<Option<Listening>> =
        nodes.map(|(id, node)| listen(node, &format!("node {id}"), NODE_EXAMPLE, mistakes)).collect();
    let all = [switch].into_iter().chain(nodes).collect::<Option<Vec<Listening>>>();
    let key = key(folder, &tables.rack, mistakes);
    let mtu = mtu(&tables.rack, mistakes);
    let all = all.filter(|_| tables.switch.is_some() && by_id.is_some())?;
    let advertised: Vec<Address<&Advertised>> = all
        .iter()
        .map(|it| {
            let placed = Placed { value: &it.endpoint.advertise, at: it.advertise_at };
            Address { whose: it.whose.clone(), placed }
        })
        .collect();
    refuse_doubles(&advertised, |index| all[index].advertise_key, mistakes);
    let reachable = reachable(&all, mistakes);
    let beyond = all.iter().find(|it| !it.endpoint.listen.ip().is_loopback());
    if let Some(beyond) = beyond.filter(|_| reachable && !tables.rack.has("key")) {
        mistakes.add(
            beyond.at,
            format_args!(
                "{} is not loopback, and the rack has no key, so anybody could write its memory: write key = {KEY_EXAMPLE} under [rack], and make that file with: rackmem key rack.key",
                beyond.endpoint.listen
            ),
        );
    }
    let data_plane = tables.switch.and_then(|switch| data_plane(&switch, &all[0], tables, mistakes));
    let loopback = beyond.is_none();
    let mut endpoints = all.into_iter().map(|it| it.endpoint);
    Some(Placement::Udp {
        switch: endpoints.next().expect("the switch is the first"),
        nodes: endpoints.collect(),
        key,
        mtu: mtu.unwrap_or(if loopback { MOST_MTU as usize } else { DEFAULT_MTU }),
        data_plane: data_plane.unwrap_or(DataPlane::Process),
    })
}

fn data_plane(
    switch: &Table<'_>,
    listening: &Listening,
    tables: &Tables<'_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<DataPlane> {
    const EXAMPLE: &str = "\"kernel\"";
    let given = switch.text("data_plane", EXAMPLE, mistakes);
    let ports = switch.text("ports", PORTS_EXAMPLE, mistakes);
    let keep = switch.text("keep", KEEP_EXAMPLE, mistakes);
    let hook = switch.text("hook", HOOK_EXAMPLE, mistakes);
    let kernel = match given.map(|given| given.value) {
        None | Some("process") => false,
        Some("kernel") => true,
        Some(other) => {
            let what =
                format!("no switch's program runs in `{other}`: write data_plane = {EXAMPLE} or \"process\"");
            mistakes.add(switch.place_of("data_plane"), what);
            return None;
        }
    };
    if !kernel {
        return Some(DataPlane::Process);
    }
    let ip = listening.endpoint.listen.ip();
    if !ip.is_ipv4() || ip.is_unspecified() {
        let what = format!(
            "a switch's program in the kernel takes an IPv4 address of its own, and {ip} is none: write the one that the nodes use, for example listen = {SWITCH_EXAMPLE}"
        );
        mistakes.add(listening.at, what);
    }
    if !tables.rack.has("key") {
        let what = format!(
            "a program in the kernel takes packets with a tag only: write key = {KEY_EXAMPLE} under [rack], and make that file with: rackmem key rack.key"
        );
        mistakes.add(switch.place_of("data_plane"), what);
    }
    let devices =
        ports.map_or(Vec::new(), |ports| ports.value.split_ascii_whitespace().map(str::to_owned).collect());
    let hook = hook.and_then(|given| match given.value {
        "tc" => Some(Hook::TrafficControl),
        "xdp" => Some(Hook::Driver),
        other => {
            let what = format!(
                "no port has a place `{other}` for programs: write hook = \"tc\" (traffic control) or {HOOK_EXAMPLE} (the driver), or leave it out, and each port has the one that is cheaper there"
            );
            mistakes.add(given.at, what);
            None
        }
    });
    let keep = keep.map(|keep| PathBuf::from(keep.value));
    if let Some(relative) = keep.as_ref().filter(|keep| !keep.is_absolute()) {
        let what = format!(
            "`{}` is no path from the root: what is kept is found by processes that start anywhere; write keep = {KEEP_EXAMPLE}",
            relative.display()
        );
        mistakes.add(switch.place_of("keep"), what);
    }
    Some(DataPlane::Kernel { ports: Ports { devices, hook }, keep })
}

fn listen(table: &Table<'_>, whose: &str, example: &str, mistakes: &mut Mistakes<'_>) -> Option<Listening> {
    table.require("listen", example, mistakes);
    let advertise = match table.has("advertise") {
        true => Some(table.advertised("advertise", example, mistakes)),
        false => None,
    };
    let listen = table.address("listen", example, mistakes)?;
    let ip = listen.value.ip();
    let wrong = if ip.is_unspecified() && listen.value.port() != 0 {
        advertise.is_none().then(|| {
            format!(
                "{} is no address that the others could send to: write what they use, too, for example advertise = {example} or a host name with a port",
                listen.value
            )
        })
    } else {
        let wrong = wrong_to_send_to(listen.value, Some(ip), listen.value.port());
        wrong.map(|wrong| format!("{wrong}, for example listen = {example}"))
    };
    if let Some(wrong) = wrong {
        mistakes.add(listen.at, wrong);
        return None;
    }
    let (whose, at, listen) = (whose.to_owned(), listen.at, listen.value);
    let (advertise, advertise_at, advertise_key) = match advertise {
        Some(given) => given.map(|given| (given.value, given.at, "advertise"))?,
        None => (listen.into(), at, "listen"),
    };
    Some(Listening { whose, at, advertise_at, advertise_key, endpoint: Endpoint { listen, advertise } })
}

fn refuse_doubles<T: PartialEq + Display>(
    addresses: &[Address<T>],
    key: impl Fn(usize) -> &'static str,
    mistakes: &mut Mistakes<'_>,
) {
    for (index, later) in addresses.iter().enumerate() {
        let earlier = addresses[..index].iter().find(|earlier| earlier.placed.value == later.placed.value);
        if let Some(earlier) = earlier {
            mistakes.add(
                later.placed.at,
                format_args!(
                    "{} and {} have the same `{}`, {}: write another port or address for one of them",
                    earlier.whose,
                    later.whose,
                    key(index),
                    later.placed.value
                ),
            );
        }
    }
}

/// Whether all can send to all: one kind of address, and loopback for all or for none.
fn reachable(all: &[Listening], mistakes: &mut Mistakes<'_>) -> bool {
    let first = &all[0];
    let mut reachable = true;
    for other in &all[1..] {
        let what = if !first.can_send_to(other) || !other.can_send_to(first) {
            "one is IPv4, the other IPv6: write all addresses of one kind"
        } else if matches!((first.is_local(), other.is_local()), (Some(here), Some(there)) if here != there) {
            "one is loopback, so only this machine reaches it: write loopback addresses for all or for none"
        } else {
            continue;
        };
        reachable = false;
        let (here, there) = (&first.endpoint.advertise, &other.endpoint.advertise);
        mistakes.add(
            other.advertise_at,
            format_args!("{} ({there}) cannot talk to {} ({here}): {what}", other.whose, first.whose),
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
