//! Why bytes are not a RoCEv2 packet. Whoever receives them counts them by these causes.

use core::fmt;

macro_rules! causes {
    ($($name:ident: $words:literal,)*) => {
        /// What is wrong with bytes that came from the wire.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Malformed {
            $(#[doc = concat!(" ", $words, ".")] $name,)*
        }

        impl Malformed {
            /// Every cause.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        impl fmt::Display for Malformed {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $words),* })
            }
        }
    };
}

causes! {
    Truncated: "shorter than its headers say",
    NotIpv4: "not an IPv4 packet in an Ethernet II frame",
    IpHeader: "an IPv4 header with options, or of another version",
    IpChecksum: "an IPv4 header whose checksum is wrong",
    Fragment: "a fragment of an IPv4 packet",
    NotUdp: "not a UDP datagram",
    NotRoce: "not sent to the UDP port of RoCEv2",
    UdpLength: "a UDP length that is not what is left of the IPv4 packet",
    Icrc: "an invariant CRC that is wrong",
    Version: "a transport header of an unknown version",
    Opcode: "an opcode that is not known",
    Syndrome: "a reserved syndrome",
    Padding: "more padding than there is payload",
    Alignment: "payload and padding are no multiple of four bytes",
    Payload: "bytes behind headers that nothing may follow",
}

impl core::error::Error for Malformed {}
