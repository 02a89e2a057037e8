//! What a UDP transport is told when it starts, and what it refuses.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::advertised::{Advertised, Lookup};
use super::key::Key;
use super::whereabouts::Reach;
use crate::peer::PeerId;
use crate::terms::Terms;

/// What a UDP transport has to know.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Whose connection it is.
    pub me: PeerId,
    /// Where it receives. Port 0 takes any.
    pub listen: SocketAddr,
    /// Where the other peers receive. Observers are not among them: they are answered where they ask from.
    pub peers: Vec<(PeerId, Advertised)>,
    /// Peers that may come, from wherever that is: they are answered there, too, and the switch says so to whoever asks.
    pub unlisted: Vec<PeerId>,
    /// Names.
    pub naming: Naming,
    /// The rack's key. Without one, only loopback addresses are bound, and nothing is authenticated.
    pub key: Option<Key>,
    /// The longest IP packet that the path carries, headers and all: [`UdpConfig::LEAST_MTU`] to [`UdpConfig::MOST_MTU`].
    pub mtu: usize,
    /// Bytes of a block: no packet brings more.
    pub block: u64,
    /// What [can wait](crate::Body::can_wait) travels in the datagram of the next message to its peer, where one is likely to
    /// follow soon, or right in front of it if it is a single packet. Fewer datagrams; who needs what is kept may get it a fraction of a millisecond later.
    pub coalescing: bool,
    /// Packets without a payload between a node and the switch travel one in a datagram, where a switch program in the
    /// kernel can take them. The same in all processes.
    pub singles: bool,
    /// The settings that peers must have, too.
    pub terms: Terms,
}

/// What has to do with names, and with peers that are not where the rack file says.
#[derive(Clone, Default, Debug)]
pub struct Naming {
    /// Where this peer is reached, if the others have not been told so from the start.
    pub advertise: Option<Advertised>,
    /// Who looks names up.
    pub lookup: Lookup,
}

impl UdpConfig {
    /// Every IPv6 path carries so much.
    pub const LEAST_MTU: usize = 1_280;
    /// No IP packet is longer.
    pub const MOST_MTU: usize = 65_535;

    /// What paths from this address carry if nobody says otherwise.
    pub fn usual_mtu(listen: SocketAddr) -> usize {
        if is_loopback(listen.ip()) { Self::MOST_MTU } else { 1_500 }
    }

    /// The longest datagram, a multiple of 8.
    pub(super) fn datagram(&self) -> usize {
        let headers = if self.listen.is_ipv4() { 20 + 8 } else { 40 + 8 };
        (self.mtu - headers) / 8 * 8
    }

    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.key.is_none() && !is_loopback(self.listen.ip()) {
            return Err(Error::NeedsKey { listen: self.listen });
        }
        if !(Self::LEAST_MTU..=Self::MOST_MTU).contains(&self.mtu) {
            return Err(Error::Mtu { mtu: self.mtu });
        }
        if self.block == 0
            || !self.block.is_multiple_of(8)
            || self.block > u64::from(wire::packet::MAX_PAYLOAD)
        {
            return Err(Error::Block { block: self.block });
        }
        if self.singles && (self.key.is_none() || !self.listen.is_ipv4()) {
            return Err(Error::Singles { listen: self.listen });
        }
        for (at, (peer, advertised)) in self.peers.iter().enumerate() {
            let peer = *peer;
            let again = self.peers[..at].iter().any(|&(other, _)| other == peer);
            if peer == self.me || again || self.unlisted.contains(&peer) {
                return Err(Error::Twice { peer });
            }
            if let Some(address) = advertised.address().filter(|it| self.reach().to(*it).is_none()) {
                return Err(Error::Family { peer, address, listen: self.listen });
            }
        }
        Ok(())
    }

    pub(super) fn reach(&self) -> Reach {
        Reach { listen: self.listen, loopback_only: self.key.is_none() }
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Why a UDP transport did not start.
#[derive(Debug)]
pub enum Error {
    /// Others than this machine could send here, and there is no key to tell friend from foe.
    NeedsKey {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// Out of range.
    Mtu {
        /// Asked for.
        mtu: usize,
    },
    /// No block has this size.
    Block {
        /// Asked for.
        block: u64,
    },
    /// A peer has two addresses, or is this peer itself.
    Twice {
        /// Which.
        peer: PeerId,
    },
    /// IPv4 and IPv6 do not reach each other.
    Family {
        /// Whose address it is.
        peer: PeerId,
        /// The address.
        address: SocketAddr,
        /// The own one.
        listen: SocketAddr,
    },
    /// A switch program in the kernel knows IPv4, and takes nothing without a key.
    Singles {
        /// The own address.
        listen: SocketAddr,
    },
    /// The system does not let us.
    Bind {
        /// The address asked for.
        listen: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The system has no random numbers.
    Random(io::Error),
}

impl Error {
    /// True if somebody else has the address.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Bind { error, .. } if error.kind() == io::ErrorKind::AddrInUse)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsKey { listen } => {
                write!(f, "{listen} can be reached from other machines: it takes a key file to listen there")
            }
            Self::Mtu { mtu } => {
                write!(f, "an MTU of {mtu} is not from {} to {}", UdpConfig::LEAST_MTU, UdpConfig::MOST_MTU)
            }
            Self::Block { block } => write!(f, "a block of {block} bytes is not a multiple of 8 up to 1 MiB"),
            Self::Twice { peer } => write!(f, "{peer} has more than one address"),
            Self::Family { peer, address, listen } => {
                write!(f, "{peer} at {address} cannot be reached from {listen}: one is IPv4, the other IPv6")
            }
            Self::Singles { listen } => write!(
                f,
                "a switch program in the kernel takes an IPv4 address and a key file, and {listen} has not both"
            ),
            Self::Bind { listen, error } => write!(f, "cannot listen on {listen}: {error}"),
            Self::Random(error) => write!(f, "no random numbers: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { error, .. } | Self::Random(error) => Some(error),
            _ => None,
        }
    }
}
