//! RoCEv2: one-sided operations as an RDMA NIC puts them on the wire.
//!
//! ```text
//!   Ethernet II | IPv4 | UDP 4791 | BTH | RETH, AtomicETH, AETH, ... | payload | pad | ICRC
//!        14        20       8       12          by opcode                        0-3     4
//! ```
//!
//! Everything behind the UDP header is the InfiniBand transport (volume 1 of its specification, chapters 9 and 11;
//! annex A17 for RoCEv2), big-endian but for the ICRC. This is what real NICs speak. Live
//! racks send what follows the UDP header, without the ICRC, in messages of their own transport: a real NIC at one end would
//! need code that frames its packets.
//!
//! | module | holds |
//! | --- | --- |
//! | [`opcode`] | what a packet is: the reliable-connected transport, and our operations in the manufacturers' range |
//! | [`psn`] | packet sequence numbers, modulo 2^24, and queue pair numbers |
//! | [`syndrome`] | acknowledgements, credits, and why a request was refused |
//! | [`packet`] | the transport's headers, as one value |
//! | [`batch`] | the payload of remote atomics: many operations in one packet |
//! | [`verdict`] | how a SABRe ends: whole, or torn |
//! | [`frame`] | Ethernet, IPv4 and UDP around them; the ICRC behind |
//! | [`crc`] | the checksum itself |
//! | [`malformed`] | why bytes are not a packet |
//!
//! What must always hold: parsing never panics, whatever the bytes are; it says by a [`Malformed`] what is wrong; and
//! a frame that [`Frame`] writes is read back as the same value.

pub mod batch;
pub mod crc;
pub mod frame;
pub mod malformed;
pub mod opcode;
pub mod packet;
pub mod psn;
pub mod syndrome;
pub mod verdict;

pub use frame::{Frame, Route};
pub use malformed::Malformed;
pub use opcode::{Layout, Opcode};
pub use packet::{Aeth, AtomicEth, BTH_BYTES, Extension, Key, MOST_HEADER_BYTES, Packet, Reth};
pub use psn::{Psn, QpNumber};
pub use syndrome::{NakCode, RnrTimer, Syndrome};
pub use verdict::Verdict;
