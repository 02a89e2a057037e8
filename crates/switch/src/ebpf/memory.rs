//! Where a program finds what in its maps.

use alloc::vec::Vec;

use crate::pipeline::Phv;

/// Bytes of a packet that a test run writes down: a datagram with the longest header that there is.
pub(super) const LOGGED: usize = 192;

/// A datagram of the rack in a frame: offsets, in bytes. The frame begins at 6, so that what is behind its 42 bytes of Ethernet, IP
/// and UDP begins at a multiple of 8.
pub(super) mod frame {
    /// Bytes before the frame.
    pub(in super::super) const PAD: usize = 6;
    /// Bytes of Ethernet, IP and UDP.
    pub(in super::super) const AROUND: usize = 42;
    /// The head of the datagram.
    pub(in super::super) const HEAD: usize = PAD + AROUND;
    /// Its bytes.
    pub(in super::super) const HEAD_BYTES: usize = 32;
    /// The packet's header.
    pub(in super::super) const PACKET: usize = HEAD + HEAD_BYTES;
    /// Bytes of the tag, behind the packet.
    pub(in super::super) const TAG_BYTES: usize = 16;
    /// The longest frame.
    pub(in super::super) const BYTES: usize = PACKET + 136 + TAG_BYTES;
}

/// The scratch memory: offsets, in bytes.
pub(super) mod scratch {
    use super::frame;
    use crate::pipeline::Phv;

    /// The frame that came in.
    pub(in super::super) const FRAME_IN: usize = 0;
    /// The header of the packet in it.
    pub(in super::super) const CAME_IN: usize = FRAME_IN + frame::PACKET;
    /// The frame that goes out.
    pub(in super::super) const FRAME_OUT: usize = FRAME_IN + frame::BYTES;
    /// The header of the packet in it.
    pub(in super::super) const GOES_OUT: usize = FRAME_OUT + frame::PACKET;
    /// The device through which it goes.
    pub(in super::super) const DEVICE: usize = FRAME_OUT + frame::BYTES;
    /// Not 0: nobody has sent the datagram before.
    pub(in super::super) const IS_NEW: usize = DEVICE + 8;
    /// In a driver: what the program ends with.
    pub(in super::super) const VERDICT: usize = IS_NEW + 8;
    /// What the first pass has left for the second.
    pub(in super::super) const CARRIED: usize = VERDICT + 8;
    /// Not 0: there is a second pass.
    pub(in super::super) const AGAIN: usize = CARRIED + 8;
    /// The PHV.
    pub(in super::super) const PHV: usize = AGAIN + 8;
    /// Numbers on the way.
    pub(in super::super) const WORDS: usize = PHV + 8 * Phv::FIELDS;
    /// How many there can be at a time.
    pub(in super::super) const MOST_WORDS: usize = 256;
    /// All of it.
    pub(in super::super) const BYTES: usize = WORDS + 8 * MOST_WORDS;
}

/// Bytes of scratch memory that a program needs.
pub const SCRATCH_BYTES: usize = scratch::BYTES;

/// Memories that addresses name.
pub const MEMORIES: usize = 64;

/// Packets that a test run of a program can write down.
pub const MOST_LOGGED: usize = 80;

wire::listed! {
    /// What a program counts of datagrams.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Datagrams {
        /// They were the program's, and went through the stages.
        Taken: "taken",
        /// Their tags were not made with the key of their session: dropped.
        WrongTag: "wrong tag",
        /// They came a second time, or so late that nobody can tell: dropped.
        Replayed: "replayed",
        /// They could not go out: nothing is known of their node.
        NoPort: "no port",
    }
}

/// What a program is told of a node: offsets, in bytes.
pub mod session {
    /// Which of the two lives counts: 0 or 1, in 8 bytes. The other is that of another session, and nobody looks at it.
    pub const WHICH: usize = 0;
    /// The device at whose port the node is, in 8 bytes; 0: nobody knows.
    pub const DEVICE: usize = 8;
    /// What a frame for the node begins with: 6 bytes that do not count, 42 of Ethernet, IP and UDP, and the first 8 of the
    /// datagram's head.
    pub const TEMPLATE: usize = 16;
    /// Bytes of that.
    pub const TEMPLATE_BYTES: usize = 56;
    /// The first of the two lives.
    pub const LIFE: usize = TEMPLATE + TEMPLATE_BYTES;
    /// Bytes of a life.
    pub const LIFE_BYTES: usize = 80;
    /// All of it.
    pub const BYTES: usize = 256;

    /// In a life: the name of the node's session, and of the switch's.
    pub const THEIRS: usize = 0;
    /// See [`THEIRS`].
    pub const MINE: usize = 8;
    /// The two words of the key of what comes in, and of what goes out.
    pub const KEY_IN: usize = 16;
    /// See [`KEY_IN`].
    pub const KEY_OUT: usize = 32;
    /// The newest counter that came in.
    pub const NEWEST: usize = 48;
    /// Bit n: so many before the newest has come, too.
    pub const SEEN: usize = 56;
    /// The last counter that went out.
    pub const WENT_OUT: usize = 64;

    const _: () = assert!(LIFE + 2 * LIFE_BYTES <= BYTES && WENT_OUT + 8 <= LIFE_BYTES);
}

/// The state: what the process of the switch and the program share. Offsets, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateLayout {
    /// The incarnation of the switch, in 8 bytes.
    pub epoch: usize,
    /// The node that keeps the shadow of the directory, in 8 bytes.
    pub shadow: usize,
    /// Counters of 8 bytes each.
    pub counters: usize,
    /// How many counters there are: those of the program, then those of datagrams ([`Datagrams`]).
    pub number_of_counters: usize,
    /// Where datagrams for the switch go: the address of IPv4 and the port, in the bytes of the network.
    pub here: usize,
    /// The node that has each memory, a byte for each of [`MEMORIES`]: those with copies are where the epoch says. Another number: nobody.
    pub servers: usize,
    /// What is known of each node, [`session::BYTES`] apart.
    pub sessions: usize,
    /// In test runs: how many packets went out, in 8 bytes, and behind that the packets.
    pub log: usize,
    /// The register arrays.
    pub arrays: Vec<ArrayLayout>,
    /// All of it.
    pub bytes: usize,
}

/// A register array: cells side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayLayout {
    /// Where it begins.
    pub at: usize,
    /// Bytes of a cell: 1, 2, 4 or 8.
    pub cell: usize,
    /// Bits of a cell that count.
    pub bits: u32,
    /// Cells.
    pub entries: usize,
}

impl StateLayout {
    /// For arrays of so many bits and cells.
    pub(crate) fn new(counters: usize, nodes: usize, arrays: impl Iterator<Item = (u32, usize)>) -> Self {
        let counters = counters + Datagrams::ALL.len();
        let (epoch, shadow, here, servers) = (0, 8, 16, 24);
        let first_counter = servers + MEMORIES;
        let log = first_counter + 8 * counters;
        let sessions = log + 8 + MOST_LOGGED * LOGGED;
        let mut bytes = sessions + nodes * session::BYTES;
        let place = |(bits, entries): (u32, usize)| {
            let cell = bits.next_power_of_two().max(8) as usize / 8;
            let at = bytes;
            bytes += (cell * entries).next_multiple_of(8);
            ArrayLayout { at, cell, bits, entries }
        };
        let arrays = arrays.map(place).collect();
        let (counters, number_of_counters) = (first_counter, counters);
        Self { epoch, shadow, counters, number_of_counters, here, servers, sessions, log, arrays, bytes }
    }

    /// What a test run has written down, of so many bytes each: headers, or datagrams.
    pub fn logged<'a>(&self, state: &'a [u8], header: usize) -> impl Iterator<Item = &'a [u8]> {
        let first = self.log + 8;
        let many = self.word(state, self.log).min(MOST_LOGGED as u64) as usize;
        state[first..first + many * LOGGED].chunks_exact(LOGGED).map(move |packet| &packet[..header])
    }

    /// The cell of an array.
    pub fn cell(&self, state: &[u8], array: usize, index: usize) -> u64 {
        let ArrayLayout { at, cell, .. } = self.arrays[array];
        let bytes = &state[at + index * cell..][..cell];
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// A counter of datagrams.
    pub fn datagrams(&self, state: &[u8], what: Datagrams) -> u64 {
        self.counter(state, self.datagram_counter(what))
    }

    pub(super) const fn datagram_counter(&self, what: Datagrams) -> usize {
        self.number_of_counters - Datagrams::ALL.len() + what as usize
    }

    /// A counter.
    pub fn counter(&self, state: &[u8], counter: usize) -> u64 {
        self.word(state, self.counters + 8 * counter)
    }

    fn word(&self, state: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|byte| state[at + byte]))
    }
}

const _: () = assert!(scratch::WORDS + 8 * scratch::MOST_WORDS < i16::MAX as usize && Phv::FIELDS < 64);
