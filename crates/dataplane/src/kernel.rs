//! The data plane of a rack's switch in the kernel: its programs for blocks and for locks at the ports, and what the process
//! tells them.
//!
//! Packets without a payload between a node and the switch travel one in a datagram ([`transport::udp::NodeSession`]). The
//! programs take them at the port, and this process never sees them. All else goes to the process as if there were no
//! program: greetings, heartbeats, epochs, chains, which locks the directory has, and single packets of a session that a
//! program does not know yet, which their senders repeat.
//!
//! What must always hold:
//! - What is loaded and attached goes with this process.
//! - A session's keys, counters and window are one life, written while the program does not look at them, and never again while
//!   it does.
//! - An incarnation begins with its number. When the barrier has run, no pass of a former one is under way; then what was
//!   held is read, and forgotten.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use live::networked::{DataPlane, PlaneReport};
use switch::coherence::{Dump, Switch, SwitchConfig};
use switch::ebpf::memory::session;
use switch::ebpf::{DatagramTerms, Datagrams, Frames, KernelProgram, Output, TooLong, datagram};
use switch::locks::{self, Directory, DirectoryConfig};
use transport::udp::{NodeSession, SINGLE_MAGIC, Single, UdpTransport};
use transport::{PeerId, WIRE_VERSION};
use wire::{AllRules, LockKind, LockPacket, NodeId, SwitchEpoch};

use crate::ports::{self, Device};
use crate::program::{Loaded, Refused};
use crate::system;

/// Why the switch does not run in the kernel.
#[derive(Debug)]
pub enum Error {
    /// The program knows IPv4, and has to know which address is the switch's.
    Address(SocketAddr),
    /// There is no program of this size.
    TooLarge(String),
    /// The kernel does not take the program.
    Refused(Refused),
    /// Nothing can be attached to a port.
    Port {
        /// The device.
        port: String,
        /// What was to be done.
        step: &'static str,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// A switch without ports sees nothing.
    NoPorts,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(
                f,
                "a switch program in the kernel takes an IPv4 address of its own, and {address} is none: name the one that the nodes use"
            ),
            Self::TooLarge(why) => write!(f, "no program for the kernel: {why}"),
            Self::Refused(refused) => write!(f, "{refused}"),
            Self::Port { port, step, error } => write!(f, "port {port}: cannot {step}: {error}"),
            Self::NoPorts => {
                write!(f, "a switch program in the kernel needs the devices at which the nodes are")
            }
        }
    }
}

impl std::error::Error for Error {}

/// How often the kernel is asked where nodes are: no longer than a request waits until it is repeated.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// A program at the ports, and what it was told.
struct AtPorts {
    loaded: Loaded,
    /// What its packets are about.
    kind: Single,
    terms: DatagramTerms,
    /// Of each node, what it was told last.
    told: Vec<Option<NodeSession>>,
    _attached: Vec<OwnedFd>,
}

impl AtPorts {
    fn attach(
        kind: Single,
        nodes: usize,
        here: SocketAddrV4,
        ports: &[String],
        program: impl FnOnce(Frames) -> Result<KernelProgram, TooLong>,
    ) -> Result<Self, Error> {
        let terms = DatagramTerms {
            magic: SINGLE_MAGIC,
            version: WIRE_VERSION,
            kind: kind.to_wire(),
            switch: PeerId::SWITCH.to_wire(),
        };
        let program = program(Frames::Datagrams(terms, Output::Ports))
            .map_err(|error| Error::TooLarge(error.to_string()))?;
        assert_eq!(program.header, kind.bytes(), "a program and its datagrams");
        let mut loaded = Loaded::load(&program).map_err(Error::Refused)?;
        loaded.is_at(here);
        let attach = |port: &String| {
            let failed = |step| move |error| Error::Port { port: port.clone(), step, error };
            let device = system::device(port).map_err(failed("find the device"))?;
            loaded.attach(device.index).map_err(failed("attach the program"))
        };
        let attached = ports.iter().map(attach).collect::<Result<_, _>>()?;
        Ok(Self { loaded, kind, terms, told: vec![None; nodes], _attached: attached })
    }

    /// Tells the program of a session. False: the kernel does not know yet where its node is.
    fn tell(&mut self, session: &NodeSession, here: SocketAddrV4) -> bool {
        let SocketAddr::V4(address) = session.address else { return true };
        let place = ports::neighbour(*address.ip()).ok().flatten();
        let Some(place) = place else { return false };
        let Ok(device) = system::device(&place.device) else { return false };
        let node = session.node.index();
        let is_same_life = self.told[node]
            .as_ref()
            .is_some_and(|told| (told.mine, told.theirs) == (session.mine, session.theirs));
        if !is_same_life {
            self.loaded.begin_life(node, session);
        }
        let first = self.terms.first_word(PeerId::node(session.node).to_wire());
        let template = template(self.kind.bytes(), (here, device), (address, place.address), first);
        self.loaded.place(node, device.index, &template);
        if !is_same_life {
            self.loaded.switch_life(node);
            let (node, port) = (session.node.0, place.device);
            tracing::info!(node, port, program = ?self.kind, "a program at the ports knows a node");
        }
        self.told[node] = Some(session.clone());
        true
    }

    /// Tells it of all sessions that have changed. False: the kernel does not know yet where some node is.
    fn look(&mut self, udp: &UdpTransport, here: SocketAddrV4) -> bool {
        let mut all = true;
        for session in udp.node_sessions(self.kind) {
            let node = session.node.index();
            if node < self.told.len() && self.told[node].as_ref() != Some(&session) {
                all &= self.tell(&session, here);
            }
        }
        all
    }
}

/// Where programs are attached, in the words of the kernel.
const HOOK: &str = "tcx/ingress";

/// The switch's programs, at the ports of this machine.
pub struct Kernel {
    blocks: AtPorts,
    locks: AtPorts,
    /// What the program for blocks is made of, and a place to look at what it holds.
    model: Switch,
    /// What the program for locks is made of, and who decides which locks it has.
    directory: Directory,
    udp: Arc<UdpTransport>,
    here: SocketAddrV4,
    ports: Vec<String>,
    /// How many sessions had begun when the programs were told of all.
    sessions: Option<u64>,
    /// When to ask again where nodes are that the kernel did not know.
    again: Instant,
    state: Vec<u8>,
}

impl Kernel {
    /// Loads the programs for this switch, and attaches them to these devices.
    ///
    /// # Errors
    /// If the kernel or a device does not do what it takes: [`Error`] says which, and what.
    ///
    /// # Panics
    /// If the configuration has been found possible, and is not.
    pub fn attach(
        blocks: &SwitchConfig,
        locks: &DirectoryConfig,
        udp: Arc<UdpTransport>,
        ports: &[String],
    ) -> Result<Self, Error> {
        if ports.is_empty() {
            return Err(Error::NoPorts);
        }
        let address = udp.address().map_err(|error| Error::Port {
            port: "of the socket".into(),
            step: "find out the address",
            error,
        })?;
        let here = match address {
            SocketAddr::V4(here) if !here.ip().is_unspecified() => here,
            _ => return Err(Error::Address(address)),
        };
        let model = Switch::new(blocks).expect("the rack's configuration was found possible");
        let directory = Directory::new(locks).expect("the rack's configuration was found possible");
        let nodes = blocks.nodes;
        let blocks = AtPorts::attach(Single::Packet, nodes, here, ports, |frames| model.for_kernel(frames))?;
        let locks = AtPorts::attach(Single::Lock, nodes, here, ports, |frames| directory.for_kernel(frames))?;
        Ok(Self {
            blocks,
            locks,
            model,
            directory,
            udp,
            here,
            ports: ports.to_vec(),
            sessions: None,
            again: Instant::now(),
            state: Vec::new(),
        })
    }
}

impl Kernel {
    /// Writes what has changed of these cells of the directory. A TAG that is cleared goes first, and whatever has found its entry
    /// ends before anything else is written; a TAG that is set comes last, and nobody finds an entry that is not whole.
    fn write_back(&mut self, cells: &[(usize, usize)]) {
        let (directory, program) = (&self.directory, &mut self.locks.loaded);
        let changed = |at: &[(usize, usize)], program: &Loaded| {
            let cells = at.iter().map(|(array, index)| (*array, *index, directory.cell(*array, *index)));
            cells.filter(|(array, index, value)| program.cell(*array, *index) != *value).collect::<Vec<_>>()
        };
        let (tags, others) = cells.split_at(Directory::<AllRules>::TAGS);
        let (cleared, set): (Vec<_>, Vec<_>) =
            changed(tags, program).into_iter().partition(|(_, _, value)| *value == 0);
        for (array, index, value) in &cleared {
            program.set_cell(*array, *index, *value);
            program.barrier();
        }
        for (array, index, value) in changed(others, program).into_iter().chain(set) {
            program.set_cell(array, index, value);
        }
    }
}

impl DataPlane for Kernel {
    fn begin_epoch(&mut self, epoch: SwitchEpoch, shadow: NodeId) -> Dump {
        for program in [&mut self.blocks, &mut self.locks] {
            program.loaded.set_epoch(epoch.0);
        }
        self.blocks.loaded.state(&mut self.state);
        let (layout, state) = (self.blocks.loaded.layout(), &self.state);
        self.model.take_on(|array, index| layout.cell(state, array, index));
        let dump = self.model.dump();
        for program in [&mut self.blocks, &mut self.locks] {
            program.loaded.clear(shadow.0);
        }
        self.model.restart(epoch);
        self.directory.restart(epoch);
        dump
    }

    fn on_lock_packet(&mut self, packet: &LockPacket, send: &mut dyn FnMut(&LockPacket)) {
        if !matches!(packet.kind, LockKind::Install | LockKind::Remove) {
            // Of a session that the program does not know yet.
            return;
        }
        let cells = self.directory.entry_cells(packet.lock);
        let program = &mut self.locks.loaded;
        for (array, index) in &cells {
            self.directory.set_cell(*array, *index, program.cell(*array, *index));
        }
        let mut effects = Vec::new();
        self.directory.on_packet(packet, &mut effects);
        self.write_back(&cells);
        for effect in &effects {
            if let locks::Effect::Send(packet) = effect {
                send(packet);
            }
        }
    }

    fn look(&mut self) {
        let begun = self.udp.sessions_begun();
        let now = Instant::now();
        if self.sessions == Some(begun) || now < self.again {
            return;
        }
        self.again = now + ASK_EVERY;
        let blocks = self.blocks.look(&self.udp, self.here);
        let locks = self.locks.look(&self.udp, self.here);
        if blocks && locks {
            self.sessions = Some(begun);
        }
    }

    fn report(&mut self) -> PlaneReport {
        let mut report = PlaneReport { hook: HOOK, ports: self.ports.clone(), ..PlaneReport::default() };
        for program in [&self.locks, &self.blocks] {
            program.loaded.state(&mut self.state);
            let (layout, state) = (program.loaded.layout(), &self.state);
            let datagrams = Datagrams::ALL.map(|what| (what.name(), layout.datagrams(state, what)));
            report.taken += layout.datagrams(state, Datagrams::Taken);
            report.datagrams.push((program.kind, datagrams.to_vec()));
        }
        let (layout, state) = (self.blocks.loaded.layout(), &self.state);
        self.model.take_on(|array, index| layout.cell(state, array, index));
        report.occupancy = self.model.occupancy() as u64;
        report.dropped = Switch::<AllRules>::drops_in_kernel(layout, state);
        report
    }
}

/// What a frame for a node begins with.
fn template(
    header: usize,
    (here, device): (SocketAddrV4, Device),
    (there, hardware): (SocketAddrV4, [u8; 6]),
    first_word: [u8; 8],
) -> [u8; session::TEMPLATE_BYTES] {
    let datagram = datagram::datagram_bytes(header);
    let be = |bytes: usize| (bytes as u16).to_be_bytes();
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&be(20 + 8 + datagram));
    // Not to be cut.
    ip[6] = 0x40;
    (ip[8], ip[9]) = (64, 17);
    ip[12..16].copy_from_slice(&Ipv4Addr::octets(here.ip()));
    ip[16..20].copy_from_slice(&Ipv4Addr::octets(there.ip()));
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum);
    let ports = [here.port(), there.port()].map(u16::to_be_bytes).concat();
    let mut bytes = [0; session::TEMPLATE_BYTES];
    // The tag guards more than a checksum of UDP would, which 0 says that there is none of.
    let parts: [&[u8]; 8] =
        [&[0; 6], &hardware, &device.address, &[8, 0], &ip, &ports, &be(8 + datagram), &[0, 0]];
    let around = parts.concat();
    bytes[..around.len()].copy_from_slice(&around);
    bytes[around.len()..].copy_from_slice(&first_word);
    bytes
}

fn checksum(header: &[u8; 20]) -> [u8; 2] {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("here", &self.here).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_ip_has_the_checksum_that_its_receiver_expects() {
        // From RFC 1071's kind of example: the sum over header and checksum is all ones.
        let device = Device { index: 1, address: [2, 0, 0, 0, 0, 1] };
        let here = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 7400);
        let there = SocketAddrV4::new(Ipv4Addr::new(10, 77, 1, 2), 7401);
        let bytes = template(64, (here, device), (there, [2, 0, 0, 0, 0, 2]), *b"RU\x07\x03\x40\x01\x01\x00");
        let ip = &bytes[6 + 14..][..20];
        let words = ip.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(&bytes[6 + 12..6 + 14], &[8, 0]);
        assert_eq!(&bytes[48..], b"RU\x07\x03\x40\x01\x01\x00");
        assert_eq!(u16::from_be_bytes([bytes[6 + 36], bytes[6 + 37]]), 7401);
    }
}
