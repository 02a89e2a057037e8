//! The data plane of a rack's switch in the kernel: the coherence program at the ports, and what its process tells it.
//!
//! Packets without a payload between a node and the switch travel one in a datagram ([`transport::udp::NodeSession`]). The
//! program takes them at the port, and this process never sees them. All else goes to the process as if there were no
//! program: greetings, heartbeats, epochs, packets about locks, and single packets of a session that the program does not
//! know yet, which their senders repeat.
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

use live::networked::{DataPlane, PlaneReport};
use switch::coherence::{Dump, Switch, SwitchConfig};
use switch::ebpf::memory::session;
use switch::ebpf::{DatagramTerms, Datagrams, Frames, Output, datagram};
use transport::udp::{NodeSession, SINGLE_KIND, SINGLE_MAGIC, UdpTransport};
use transport::{PeerId, WIRE_VERSION};
use wire::packet::HEADER_BYTES;
use wire::{NodeId, SwitchEpoch};

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

/// The coherence program, at the ports of this machine.
pub struct Kernel {
    program: Loaded,
    /// What the program is made of, and a place to look at what it holds.
    model: Switch,
    udp: Arc<UdpTransport>,
    here: SocketAddrV4,
    terms: DatagramTerms,
    /// Of each node, what it was told last.
    told: Vec<Option<NodeSession>>,
    /// How many sessions had begun when all of them were told.
    sessions: Option<u64>,
    state: Vec<u8>,
    _attached: Vec<OwnedFd>,
}

impl Kernel {
    /// Loads the program for this switch, and attaches it to these devices.
    ///
    /// # Errors
    /// If the kernel or a device does not do what it takes: [`Error`] says which, and what.
    ///
    /// # Panics
    /// If the configuration has been found possible, and is not.
    pub fn attach(config: &SwitchConfig, udp: Arc<UdpTransport>, ports: &[String]) -> Result<Self, Error> {
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
        let terms = DatagramTerms {
            magic: SINGLE_MAGIC,
            version: WIRE_VERSION,
            kind: SINGLE_KIND,
            switch: PeerId::SWITCH.to_wire(),
        };
        let model = Switch::new(config).expect("the rack's configuration was found possible");
        let program = model.for_kernel(Frames::Datagrams(terms), Output::Ports);
        let program = program.map_err(|error| Error::TooLarge(error.to_string()))?;
        let mut program = Loaded::load(&program).map_err(Error::Refused)?;
        program.is_at(here);
        let attach = |port: &String| {
            let failed = |step| move |error| Error::Port { port: port.clone(), step, error };
            let device = system::device(port).map_err(failed("find the device"))?;
            program.attach(device.index).map_err(failed("attach the program"))
        };
        let attached = ports.iter().map(attach).collect::<Result<_, _>>()?;
        let told = vec![None; config.nodes];
        Ok(Self {
            program,
            model,
            udp,
            here,
            terms,
            told,
            sessions: None,
            state: Vec::new(),
            _attached: attached,
        })
    }

    /// Tells the program of a session. False: the kernel does not know yet where its node is.
    fn tell(&mut self, session: &NodeSession) -> bool {
        let SocketAddr::V4(address) = session.address else { return true };
        let place = ports::neighbour(*address.ip()).ok().flatten();
        let Some(place) = place else { return false };
        let Ok(device) = system::device(&place.device) else { return false };
        let node = session.node.index();
        let is_same_life = self.told[node]
            .as_ref()
            .is_some_and(|told| (told.mine, told.theirs) == (session.mine, session.theirs));
        if !is_same_life {
            self.program.begin_life(node, session);
        }
        let first = self.terms.first_word(PeerId::node(session.node).to_wire());
        let template = template((self.here, device), (address, place.address), first);
        self.program.place(node, device.index, &template);
        if !is_same_life {
            self.program.switch_life(node);
        }
        tracing::info!(node = session.node.0, port = place.device, "the program at the ports knows a node");
        self.told[node] = Some(session.clone());
        true
    }
}

impl DataPlane for Kernel {
    fn begin_epoch(&mut self, epoch: SwitchEpoch, shadow: NodeId) -> Dump {
        self.program.set_epoch(epoch.0);
        self.program.state(&mut self.state);
        let (layout, state) = (self.program.layout(), &self.state);
        self.model.take_on(|array, index| layout.cell(state, array, index));
        let dump = self.model.dump();
        self.program.clear(shadow.0);
        dump
    }

    fn look(&mut self) {
        let begun = self.udp.sessions_begun();
        if self.sessions == Some(begun) {
            return;
        }
        let mut all = true;
        for session in self.udp.node_sessions() {
            let node = session.node.index();
            if node < self.told.len() && self.told[node].as_ref() != Some(&session) {
                all &= self.tell(&session);
            }
        }
        if all {
            self.sessions = Some(begun);
        }
    }

    fn report(&mut self) -> PlaneReport {
        self.program.state(&mut self.state);
        let (layout, state) = (self.program.layout(), &self.state);
        self.model.take_on(|array, index| layout.cell(state, array, index));
        let datagrams = Datagrams::ALL.map(|what| (what.name(), layout.datagrams(state, what)));
        PlaneReport {
            occupancy: self.model.occupancy() as u64,
            taken: layout.datagrams(state, Datagrams::Taken),
            dropped: Switch::<wire::AllRules>::drops_in_kernel(layout, state),
            datagrams: datagrams.to_vec(),
        }
    }
}

/// What a frame for a node begins with.
fn template(
    (here, device): (SocketAddrV4, Device),
    (there, hardware): (SocketAddrV4, [u8; 6]),
    first_word: [u8; 8],
) -> [u8; session::TEMPLATE_BYTES] {
    let datagram = datagram::datagram_bytes(HEADER_BYTES);
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
        let bytes = template((here, device), (there, [2, 0, 0, 0, 0, 2]), *b"RU\x07\x03\x40\x01\x01\x00");
        let ip = &bytes[6 + 14..][..20];
        let words = ip.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(&bytes[6 + 12..6 + 14], &[8, 0]);
        assert_eq!(&bytes[48..], b"RU\x07\x03\x40\x01\x01\x00");
        assert_eq!(u16::from_be_bytes([bytes[6 + 36], bytes[6 + 37]]), 7401);
    }
}
