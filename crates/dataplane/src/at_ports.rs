//! A program at the ports, what it is told of nodes, and where it is kept.
//!
//! What must always hold: a session's keys, counters and window are one life, written while the program does not look at them, and
//! never again while it does.

use std::io::ErrorKind::AlreadyExists;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use switch::ebpf::memory::session;
use switch::ebpf::{DatagramTerms, Frames, Hook, KernelProgram, Output, TooLong, datagram};
use transport::udp::{NodeSession, SINGLE_MAGIC, Single, UdpTransport};
use transport::{PeerId, WIRE_VERSION};

use crate::hooks::InDrivers;
use crate::kernel::Error;
use crate::pins::{self, Claim};
use crate::ports::{self, Device};
use crate::program::{Loaded, Refused};
use crate::system;

/// A program at the ports, and what it was told.
pub(crate) struct AtPorts {
    pub(crate) loaded: Loaded,
    /// What its packets are about.
    pub(crate) kind: Single,
    terms: DatagramTerms,
    /// Of each node, what it was told last.
    told: Vec<Option<NodeSession>>,
    /// What holds it at the ports, unless that is kept.
    _attached: Vec<OwnedFd>,
}

/// What a program of single packets has to know of datagrams.
const fn terms(kind: Single) -> DatagramTerms {
    DatagramTerms {
        magic: SINGLE_MAGIC,
        version: WIRE_VERSION,
        kind: kind.to_wire(),
        switch: PeerId::SWITCH.to_wire(),
    }
}

/// A program of packets of a kind.
pub(crate) struct Written {
    kind: Single,
    program: KernelProgram,
    /// The same for drivers.
    in_driver: KernelProgram,
}

impl Written {
    pub(crate) fn new(
        kind: Single,
        write: impl Fn(Frames) -> Result<KernelProgram, TooLong>,
    ) -> Result<Self, Error> {
        let write = |hook| {
            let program = write(Frames::Datagrams(terms(kind), hook, Output::Ports));
            program.map_err(|error| Error::TooLarge(error.to_string()))
        };
        let (program, in_driver) = (write(Hook::TrafficControl)?, write(Hook::Driver)?);
        assert_eq!(program.header, kind.bytes(), "a program and its datagrams");
        Ok(Self { kind, program, in_driver })
    }

    fn loaded(&self) -> Result<Loaded, Refused> {
        Loaded::load(&self.program)
    }

    fn kept(&self, claim: &Claim) -> Result<Loaded, Refused> {
        Loaded::pinned(&self.program, |part| claim.name(name(self.kind), part))
    }
}

/// What the parts of a program are called where it is kept.
const fn name(kind: Single) -> &'static str {
    match kind {
        Single::Packet => pins::PROGRAM_NAMES[0],
        Single::Lock => pins::PROGRAM_NAMES[1],
    }
}

/// What holds a program at a device is called so. (Names of devices may have dots, and names there may not.)
fn at_device(device: u32) -> String {
    format!("at-{device}")
}

impl AtPorts {
    fn attach(
        (kind, mut loaded): (Single, Loaded),
        (nodes, here): (usize, SocketAddrV4),
        ports: &[(String, Device)],
        claim: Option<&Claim>,
    ) -> Result<Self, Error> {
        loaded.is_at(here);
        let attach = |(port, device): &(String, Device)| {
            let failed = |step| move |error| Error::Port { port: port.clone(), step, error };
            let kept = claim.map(|claim| (claim, claim.name(name(kind), &at_device(device.index))));
            let link = match (loaded.attach(device.index), &kept) {
                // A program is at a device once: what is kept holds it there.
                (Err(error), Some((_, kept))) if error.kind() == AlreadyExists && kept.exists() => {
                    return Ok(None);
                }
                (attached, _) => attached.map_err(failed("attach the program"))?,
            };
            if let Some((claim, kept)) = kept {
                claim.replace(&link, &kept).map_err(failed("keep the program"))?;
            }
            Ok(Some(link))
        };
        let attached = ports.iter().map(attach);
        let attached = attached.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        Ok(Self { loaded, kind, terms: terms(kind), told: vec![None; nodes], _attached: attached })
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
    pub(crate) fn look(&mut self, udp: &UdpTransport, here: SocketAddrV4) -> bool {
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

/// Attaches both programs to these devices of the switch, where this says. With a claim they are kept, and what is kept of the same ones is
/// taken over.
pub(crate) fn attach(
    written: [Written; 2],
    known: (usize, SocketAddrV4),
    (devices, hook): (&[(String, Device)], Option<Hook>),
    mut claim: Option<&mut Claim>,
) -> Result<([AtPorts; 2], InDrivers), Error> {
    let [blocks, locks] = load(&written, claim.as_deref_mut())?;
    let [for_blocks, for_locks] = &written;
    let attach = |of: &Written, loaded| AtPorts::attach((of.kind, loaded), known, devices, claim.as_deref());
    let attached = [attach(for_blocks, blocks)?, attach(for_locks, locks)?];
    let [blocks, locks] = &attached;
    let programs = [(&for_blocks.in_driver, &blocks.loaded), (&for_locks.in_driver, &locks.loaded)];
    let in_drivers = InDrivers::attach(programs, (devices, hook), claim.as_deref())?;
    if let Some(claim) = claim {
        settle(claim, &written, devices, &in_drivers)?;
    }
    Ok((attached, in_drivers))
}

/// Loads both programs, or opens them where they are kept, if both are there.
fn load([blocks, locks]: &[Written; 2], claim: Option<&mut Claim>) -> Result<[Loaded; 2], Error> {
    let fresh = || Ok([blocks.loaded()?, locks.loaded()?]);
    let Some(claim) = claim else { return fresh().map_err(Error::Refused) };
    if claim.has(all([blocks, locks])) {
        let kept = blocks.kept(claim).and_then(|blocks| Ok([blocks, locks.kept(claim)?]));
        match kept {
            Ok(kept) => return Ok(kept),
            Err(error) => tracing::warn!(%error, "what is kept of the switch's programs is not whole"),
        }
    }
    claim.clear().map_err(|error| claim.failed(error))?;
    let loaded = fresh().map_err(Error::Refused)?;
    for (written, loaded) in [blocks, locks].into_iter().zip(&loaded) {
        let pinned = loaded.pin(|part| claim.name(name(written.kind), part));
        pinned.map_err(|error| claim.failed(error))?;
    }
    Ok(loaded)
}

/// Both programs are kept, at all ports. At others they are not any more.
fn settle(
    claim: &mut Claim,
    [blocks, locks]: &[Written; 2],
    devices: &[(String, Device)],
    in_drivers: &InDrivers,
) -> Result<(), Error> {
    let at = devices.iter().map(|(_, device)| at_device(device.index));
    let parts: Vec<String> = at.chain(Loaded::PARTS.map(str::to_owned)).collect();
    let of = |written: &Written| parts.iter().map(|part| claim.name(name(written.kind), part)).collect();
    let in_drivers = in_drivers.kept().map(|part| claim.name(pins::PROGRAM_NAMES[0], &part)).collect();
    let belong: [Vec<PathBuf>; 3] = [of(blocks), of(locks), in_drivers];
    let belongs = |path: &Path| belong.iter().flatten().any(|it| it == path);
    claim.clear_but(belongs).map_err(|error| claim.failed(error))?;
    claim.is_whole(all([blocks, locks]));
    Ok(())
}

/// All that is written.
const fn all([blocks, locks]: [&Written; 2]) -> [&KernelProgram; 4] {
    [&blocks.program, &locks.program, &blocks.in_driver, &locks.in_driver]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_ip_has_the_checksum_that_its_receiver_expects() {
        // From RFC 1071's kind of example: the sum over header and checksum is all ones.
        let device = Device { index: 1, address: [2, 0, 0, 0, 0, 1], mtu: 1500 };
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
