//! Where others send to reach a peer: an address, or a name that is looked up.
//!
//! What must always hold: a text is an address or a name with a port, or refused; a mistyped address is never taken for a name.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

/// No host name is longer.
const LONGEST_HOST: usize = 253;

/// Where others send to reach a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Advertised {
    /// An address that stays.
    Address(SocketAddr),
    /// A name, which is looked up, and looked up again when the peer does not answer.
    Name(HostName),
}

/// A host's name, with a port.
#[derive(Clone, Debug)]
pub struct HostName {
    host: Arc<str>,
    port: u16,
    /// Where it was written.
    whence: Arc<str>,
}

impl PartialEq for HostName {
    fn eq(&self, other: &Self) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }
}

impl Eq for HostName {}

impl HostName {
    /// Where it was written, for whoever has to correct it.
    pub fn whence(&self) -> &str {
        &self.whence
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Advertised {
    /// Reads `10.0.0.1:7400`, `[fd00::1]:7400` or `node-1.rack:7400`. `whence` says where it was written. None: it is neither.
    pub fn parse(text: &str, whence: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|_| port.bytes().all(|digit| digit.is_ascii_digit()))?;
        let label = |label: &str| {
            let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            inner && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
        };
        let labels = host.strip_suffix('.').unwrap_or(host).split('.');
        // No top-level domain consists of digits; mistyped addresses do.
        let top = labels.clone().next_back()?;
        let named = labels.clone().all(label) && !top.bytes().all(|byte| byte.is_ascii_digit());
        (named && host.len() <= LONGEST_HOST)
            .then(|| Self::Name(HostName { host: host.into(), port, whence: whence.into() }))
    }

    /// The address, unless it is a name.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(name) => name.port,
        }
    }
}

impl From<SocketAddr> for Advertised {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Advertised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// Who looks names up.
#[derive(Clone)]
pub struct Lookup(Arc<LookupFn>);

type LookupFn = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

impl Lookup {
    /// This function does. It may take its time: nobody waits for it.
    pub fn by(look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    pub(super) fn addresses(&self, name: &HostName) -> io::Result<Vec<SocketAddr>> {
        self.0(&name.host, name.port)
    }
}

impl Default for Lookup {
    /// The system does, as it is set up: DNS, a file of hosts.
    fn default() -> Self {
        Self::by(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

#[cfg(test)]
mod tests {
    use super::Advertised;

    #[test]
    fn addresses_and_names_with_ports_are_read_and_written_alike() {
        for text in ["10.0.0.1:7400", "[fd00::1]:7400"] {
            let read = Advertised::parse(text, "here");
            assert!(matches!(read, Some(Advertised::Address(_))), "{text}");
            assert_eq!(read.expect("read").to_string(), text);
        }
        for text in ["localhost:1", "node-1.rack:7400", "n_0.rack.example.:65535", "1e100.net:80", "a:07400"]
        {
            let Some(Advertised::Name(name)) = Advertised::parse(text, "here") else { panic!("{text}") };
            assert_eq!((name.to_string(), name.whence()), (text.replace(":0", ":"), "here"));
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        let long = format!("{}.a:1", "a".repeat(64));
        for text in [
            "",
            "host",
            ":7400",
            "host:",
            "host:x",
            "host:+1",
            "host:65536",
            "10.0.0.300:7400",
            "10.0.0:1",
            "fd00::1:7400",
            "a b:1",
            "-a:1",
            "a-.b:1",
            "a..b:1",
            ".:1",
            "[host]:1",
            "h\u{f6}st:1",
            "a/b:1",
            &long,
        ] {
            assert_eq!(Advertised::parse(text, "here"), None, "{text}");
        }
    }
}
