//! Where a place listens, and what the others use to reach it: in the file, in the environment, or as flags say.
//!
//! What must always hold: what a place advertises is something that others could send to.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use transport::udp::Advertised;

use super::open::StartError;

/// The environment variables.
pub(super) const LISTEN: &str = "RACKMEM_LISTEN";
pub(super) const ADVERTISE: &str = "RACKMEM_ADVERTISE";

/// Where a place is, as the rack file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What the others use.
    pub advertise: Advertised,
}

/// Where a place of this process is, where that is not what the rack file says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Location {
    /// Where it listens.
    pub listen: Option<SocketAddr>,
    /// What the others use. It tells them.
    pub advertise: Option<Advertised>,
}

impl Location {
    /// What `RACKMEM_LISTEN` and `RACKMEM_ADVERTISE` say.
    ///
    /// # Errors
    /// If one of them says what cannot be.
    pub fn from_environment() -> Result<Self, StartError> {
        Self::read(|variable| std::env::var_os(variable).map(|given| given.to_string_lossy().into_owned()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, StartError> {
        let wrong = |variable: &str, what: String| {
            StartError::Location(format!("{variable}: {what}, or unset {variable}"))
        };
        let listen = variable(LISTEN).map(|given| {
            let listen = given.parse();
            listen.map_err(|_| {
                wrong(
                    LISTEN,
                    format!(
                        "`{given}` is not an IP address with a port: set it to one, for example 0.0.0.0:7400"
                    ),
                )
            })
        });
        let advertise = variable(ADVERTISE).map(|given| {
            advertised(&given, ADVERTISE)
                .map_err(|what| wrong(ADVERTISE, format!("{what}, for example node-0.rack:7400")))
        });
        Ok(Self { listen: listen.transpose()?, advertise: advertise.transpose()? })
    }

    /// This, and where it says nothing, the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { listen: self.listen.or(other.listen), advertise: self.advertise.or(other.advertise) }
    }

    /// An address that is given here.
    pub(super) fn given(&self) -> Option<String> {
        let listen = self.listen.map(|listen| listen.to_string());
        listen.or_else(|| self.advertise.as_ref().map(ToString::to_string))
    }
}

/// Reads what a place advertises: an IP address or a host name, with a port. `whence` says where it was written.
///
/// # Errors
/// What is wrong with it, and what to write instead; an example may follow.
pub fn advertised(text: &str, whence: &str) -> Result<Advertised, String> {
    let read = Advertised::parse(text, whence).ok_or_else(|| {
        format!("`{text}` is neither an IP address nor a host name, with a port: write one of both")
    })?;
    match wrong_to_send_to(&read, read.address().map(|address| address.ip()), read.port()) {
        Some(wrong) => Err(wrong),
        None => Ok(read),
    }
}

/// Why nobody could send there.
pub(super) fn wrong_to_send_to(shown: impl Display, ip: Option<IpAddr>, port: u16) -> Option<String> {
    let broadcast = matches!(ip, Some(IpAddr::V4(ip)) if ip.is_broadcast());
    let wrong = if port == 0 {
        "has no port that the others could know: write one from 1 to 65535"
    } else if ip.is_some_and(|ip| ip.is_unspecified()) {
        "is no address that the others could send to: write the one of this machine that they reach"
    } else if ip.is_some_and(|ip| ip.is_multicast()) || broadcast {
        "is the address of more than one machine: write the one of this machine that the others reach"
    } else {
        return None;
    };
    Some(format!("{shown} {wrong}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(listen: Option<&str>, advertise: Option<&str>) -> Result<Location, String> {
        let given = |name: &str| if name == LISTEN { listen } else { advertise };
        Location::read(|name| given(name).map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_is_read_and_flags_beat_it() {
        assert_eq!(read(None, None), Ok(Location::default()));
        let environment = read(Some("0.0.0.0:7400"), Some("node-0.rack:7400")).unwrap();
        assert_eq!(environment.listen, Some("0.0.0.0:7400".parse().unwrap()));
        assert_eq!(environment.advertise.as_ref().unwrap().to_string(), "node-0.rack:7400");
        let flags = Location { listen: Some("10.0.0.1:1".parse().unwrap()), advertise: None };
        let both = flags.clone().or(environment.clone());
        assert_eq!((both.listen, both.advertise), (flags.listen, environment.advertise));
    }

    #[test]
    fn what_cannot_be_is_said_with_the_variable_and_what_to_do() {
        for (listen, advertise, said) in [
            (
                Some("node-0:7400"),
                None,
                "RACKMEM_LISTEN: `node-0:7400` is not an IP address with a port: set it to one, for example 0.0.0.0:7400, or unset RACKMEM_LISTEN",
            ),
            (
                None,
                Some("node-0"),
                "RACKMEM_ADVERTISE: `node-0` is neither an IP address nor a host name, with a port: write one of both, for example node-0.rack:7400, or unset RACKMEM_ADVERTISE",
            ),
            (
                None,
                Some("0.0.0.0:7400"),
                "RACKMEM_ADVERTISE: 0.0.0.0:7400 is no address that the others could send to: write the one of this machine that they reach, for example node-0.rack:7400, or unset RACKMEM_ADVERTISE",
            ),
            (
                None,
                Some("node-0.rack:0"),
                "RACKMEM_ADVERTISE: node-0.rack:0 has no port that the others could know: write one from 1 to 65535, for example node-0.rack:7400, or unset RACKMEM_ADVERTISE",
            ),
        ] {
            assert_eq!(read(listen, advertise), Err(said.to_owned()));
        }
    }
}
