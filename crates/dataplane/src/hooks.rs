//! Where the programs see what comes in at each port: at the traffic control, or before that, in the device's driver (XDP).
//!
//! At the traffic control they are at every port. In a driver they are where that is asked for, or where it is cheaper: there a
//! frame that goes out at once costs no packet of the kernel's. Not between a pair of virtual ports, whose driver has packets of
//! the kernel, copies each for a program into a page, and makes a packet of it again.
//!
//! What must always hold: a driver runs a program only if every port's driver sends on what another's gives it. What it is given
//! otherwise is lost.

use std::io;
use std::os::fd::OwnedFd;

use switch::ebpf::{Hook, KernelProgram};

use crate::kernel::Error;
use crate::netdev;
use crate::pins::{self, Claim};
use crate::ports::Device;
use crate::program::{InDriver, Loaded};
use crate::system;

/// The ports of a switch, and where its programs see what comes in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ports {
    /// The devices behind which the nodes are.
    pub devices: Vec<String>,
    /// None: where it is cheaper, by what each device can do.
    pub hook: Option<Hook>,
}

/// What holds the programs in drivers.
#[derive(Default)]
pub(crate) struct InDrivers {
    /// At which devices they are.
    devices: Vec<u32>,
    /// Unless that is kept.
    _attached: Vec<OwnedFd>,
}

/// What holds the programs in the driver of a device is called so, of those for blocks.
pub(crate) fn in_driver(device: u32) -> String {
    format!("in-driver-{device}")
}

impl InDrivers {
    /// True if programs are in the driver of this device.
    pub(crate) fn has(&self, device: Device) -> bool {
        self.devices.contains(&device.index)
    }

    /// The names of what is kept of them.
    pub(crate) fn kept(&self) -> impl Iterator<Item = String> {
        self.devices.iter().map(|device| in_driver(*device))
    }

    /// Attaches these programs in the drivers of these ports where they belong there.
    pub(crate) fn attach(
        programs: [(&KernelProgram, &Loaded); 2],
        (ports, hook): (&[(String, Device)], Option<Hook>),
        claim: Option<&Claim>,
    ) -> Result<Self, Error> {
        let mut new = Self::default();
        let belongs: Vec<&(String, Device)> = match hook {
            Some(Hook::TrafficControl) => Vec::new(),
            Some(Hook::Driver) => ports.iter().collect(),
            None => ports.iter().filter(|(port, _)| !is_of_a_pair(port)).collect(),
        };
        if belongs.is_empty() {
            return Ok(new);
        }
        let is_asked_for = hook.is_some();
        let program = match InDriver::load(programs) {
            Ok(program) => program,
            Err(refused) if is_asked_for => return Err(Error::Refused(refused)),
            Err(refused) => {
                tracing::warn!(%refused, "no program in drivers");
                return Ok(new);
            }
        };
        for (port, device) in belongs {
            match new.attach_at(&program, *device, claim) {
                Ok(()) => {}
                Err(error) if is_asked_for => {
                    let (port, step) = (port.clone(), "attach the program in its driver");
                    return Err(Error::Port { port, step, error });
                }
                Err(error) => tracing::info!(port, %error, "its driver does not run the programs"),
            }
        }
        match ports.iter().find_map(|(port, device)| Some((port, sends_on(*device).err()?))) {
            Some((port, error)) if is_asked_for => {
                let (port, step) = (port.clone(), "send on what drivers give it");
                Err(Error::Port { port, step, error })
            }
            Some((port, error)) => {
                tracing::info!(port, %error, "no program in drivers");
                // What is kept of them goes when it is found that it does not belong there.
                Ok(Self::default())
            }
            None => Ok(new),
        }
    }

    fn attach_at(&mut self, program: &InDriver, device: Device, claim: Option<&Claim>) -> io::Result<()> {
        let kept = claim.map(|claim| (claim, claim.name(pins::PROGRAM_NAMES[0], &in_driver(device.index))));
        match (program.attach(device.index), &kept) {
            // A driver has one program: the one that is kept.
            (Err(error), Some((_, kept))) if error.kind() == io::ErrorKind::ResourceBusy && kept.exists() => {
            }
            (attached, _) => {
                let link = attached?;
                if let Some((claim, kept)) = kept {
                    claim.replace(&link, &kept)?;
                }
                self._attached.push(link);
            }
        }
        self.devices.push(device.index);
        Ok(())
    }
}

/// True if a device is one of a pair of virtual ports.
fn is_of_a_pair(port: &str) -> bool {
    system::driver_of(port).is_ok_and(|driver| driver == "veth")
}

fn sends_on(device: Device) -> io::Result<()> {
    if netdev::features(device.index)?.sends_on() {
        return Ok(());
    }
    let why = "its driver does not (that of a virtual port does if the other end merges what it receives: ethtool -K DEVICE gro on)";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
