//! The data plane of a rack's switch in the kernel: its programs for blocks and for locks at the ports, and what the process
//! tells them.
//!
//! Packets without a payload between a node and the switch travel one in a datagram ([`transport::udp::NodeSession`]). The
//! programs take them at the port, and this process never sees them. All else goes to the process as if there were no
//! program: greetings, heartbeats, epochs, chains, which locks the directory has, and single packets of a session that a
//! program does not know yet, which their senders repeat.
//!
//! What must always hold:
//! - What is loaded and attached goes with this process, unless it is [kept](crate::pins).
//! - An incarnation begins with its number. When the barrier has run, no pass of a former one is under way; then what was
//!   held is read, and forgotten.

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use live::networked::{DataPlane, PlaneReport};
use switch::coherence::{Dump, Switch, SwitchConfig};
use switch::ebpf::{Datagrams, Hook};
use switch::locks::{self, Directory, DirectoryConfig};
use transport::udp::{Single, UdpTransport};
use wire::{AllRules, LockKind, LockPacket, NodeId, SwitchEpoch};

use crate::at_ports::{self, AtPorts, Written};
use crate::hooks::{InDrivers, Ports};
use crate::pins::Claim;
use crate::ports::Device;
use crate::program::{self, Loaded, Refused};
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
    /// Nothing can be kept there.
    Keep {
        /// The directory.
        directory: PathBuf,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// What is kept there is of another switch.
    KeptOfAnother {
        /// The directory.
        directory: PathBuf,
        /// Where that switch is, or was.
        there: SocketAddrV4,
    },
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
            Self::Keep { directory, error } => write!(
                f,
                "cannot keep programs in {}: {error} (it takes root, and a directory in a file system of bpf: mount -t bpf bpf /sys/fs/bpf)",
                directory.display()
            ),
            Self::KeptOfAnother { directory, there } => {
                let directory = directory.display();
                write!(
                    f,
                    "{directory} has the programs of a switch at {there}: keep these elsewhere, or take those away with: rm -r {directory}"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// How often the kernel is asked where nodes are: no longer than a request waits until it is repeated.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Where programs are attached, in the words of the kernel.
const fn name_of(hook: Hook) -> &'static str {
    match hook {
        Hook::TrafficControl => "tcx/ingress",
        Hook::Driver => "xdp/native",
    }
}

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
    ports: Vec<(String, Device)>,
    in_drivers: InDrivers,
    /// How many sessions had begun when the programs were told of all.
    sessions: Option<u64>,
    /// When to ask again where nodes are that the kernel did not know.
    again: Instant,
    state: Vec<u8>,
    /// The programs are in an incarnation, and may know something.
    began: bool,
    /// They are kept.
    claim: Option<Claim>,
}

/// The devices of the switch.
fn devices(ports: &Ports) -> Result<Vec<(String, Device)>, Error> {
    if ports.devices.is_empty() {
        return Err(Error::NoPorts);
    }
    let device = |port: &String| {
        let step = "find the device";
        let found = system::device(port);
        let found = found.map_err(|error| Error::Port { port: port.clone(), step, error })?;
        Ok((port.clone(), found))
    };
    ports.devices.iter().map(device).collect()
}

/// Refuses a port at which the longest packets of the rack would be lost.
fn carries(port: &str, device: Device, longest: usize) -> Result<(), Error> {
    if device.mtu >= longest {
        return Ok(());
    }
    let why = format!(
        "its MTU is {}, and those have up to {longest} bytes: raise it (ip link set {port} mtu {longest}), or write mtu = {} under [rack], in the files of all places",
        device.mtu, device.mtu
    );
    let error = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    Err(Error::Port { port: port.to_owned(), step: "carry the rack's packets", error })
}

/// Where a switch listens.
fn address_of_switch(address: SocketAddr) -> Result<SocketAddrV4, Error> {
    match address {
        SocketAddr::V4(here) if !here.ip().is_unspecified() => Ok(here),
        _ => Err(Error::Address(address)),
    }
}

impl Kernel {
    /// Claims what is kept in a directory of a switch's programs, for [`Kernel::attach`]. What would be in the way of that is
    /// found first: nothing that runs is ended in vain. `me` is a random number.
    ///
    /// # Errors
    /// As [`Kernel::attach`]; and if nothing can be kept there, or what is there is of a switch at another address.
    pub fn claim(directory: &Path, address: SocketAddr, ports: &Ports, me: u64) -> Result<Claim, Error> {
        let here = address_of_switch(address)?;
        devices(ports)?;
        program::can_load().map_err(Error::Refused)?;
        Claim::make(directory, here, me)
    }

    /// Loads the programs for this switch, and attaches them to these devices. With a claim they are kept, and what a former
    /// process has kept of the same programs is taken over.
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
        ports: &Ports,
        mut claim: Option<Claim>,
    ) -> Result<Self, Error> {
        let (hook, ports) = (ports.hook, devices(ports)?);
        let address = udp.address().map_err(|error| Error::Port {
            port: "of the socket".into(),
            step: "find out the address",
            error,
        })?;
        let here = address_of_switch(address)?;
        ports.iter().try_for_each(|(port, device)| carries(port, *device, udp.longest_packet()))?;
        let mut model = Switch::new(blocks).expect("the rack's configuration was found possible");
        let directory = Directory::new(locks).expect("the rack's configuration was found possible");
        let written = [
            Written::new(Single::Packet, |frames| model.for_kernel(frames))?,
            Written::new(Single::Lock, |frames| directory.for_kernel(frames))?,
        ];
        let known = (blocks.nodes, here);
        let ([blocks, locks], in_drivers) = at_ports::attach(written, known, (&ports, hook), claim.as_mut())?;
        let epoch = blocks.loaded.epoch();
        // What it has read of the programs it knows as of this incarnation.
        model.restart(SwitchEpoch(epoch));
        Ok(Self {
            blocks,
            locks,
            model,
            directory,
            udp,
            here,
            ports,
            in_drivers,
            sessions: None,
            again: Instant::now(),
            state: Vec::new(),
            began: epoch > 0,
            claim,
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
    fn epoch(&self) -> SwitchEpoch {
        SwitchEpoch(self.blocks.loaded.epoch())
    }

    fn begin_epoch(
        &mut self,
        epoch: SwitchEpoch,
        shadow: NodeId,
        server_of: &dyn Fn(NodeId) -> Option<NodeId>,
    ) -> Option<Dump> {
        for program in [&mut self.blocks, &mut self.locks] {
            program.loaded.set_epoch(epoch.0);
        }
        self.blocks.loaded.set_servers(|memory| server_of(NodeId(memory as u16)));
        self.blocks.loaded.state(&mut self.state);
        let (layout, state) = (self.blocks.loaded.layout(), &self.state);
        self.model.take_on(|array, index| layout.cell(state, array, index));
        let dump = self.began.then(|| self.model.dump());
        self.began = true;
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

    fn look(&mut self) -> bool {
        if self.claim.as_ref().is_some_and(|claim| !claim.holds()) {
            return false;
        }
        let begun = self.udp.sessions_begun();
        let now = Instant::now();
        if self.sessions == Some(begun) || now < self.again {
            return true;
        }
        self.again = now + ASK_EVERY;
        let blocks = self.blocks.look(&self.udp, self.here);
        let locks = self.locks.look(&self.udp, self.here);
        if blocks && locks {
            self.sessions = Some(begun);
        }
        true
    }

    fn report(&mut self) -> PlaneReport {
        let kept = self.claim.as_ref().map(|claim| claim.directory().to_owned());
        let hook_at = |device| if self.in_drivers.has(device) { Hook::Driver } else { Hook::TrafficControl };
        let ports = self.ports.iter().map(|(port, device)| (port.clone(), name_of(hook_at(*device))));
        let mut report = PlaneReport { ports: ports.collect(), kept, ..PlaneReport::default() };
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

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("here", &self.here).finish_non_exhaustive()
    }
}
