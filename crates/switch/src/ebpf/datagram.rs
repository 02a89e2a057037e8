//! Datagrams of the rack at a port: whose they are, whether they are what they say, and how packets leave.
//!
//! | bytes of the datagram | field | |
//! | --- | --- | --- |
//! | 0..8 | magic, version, kind, from, to, guard, 0 | one packet for a switch program, with a tag |
//! | 8..16 | counter | of this datagram, in its session |
//! | 16..24, 24..32 | the sender's session, the receiver's | |
//! | 32.. | the packet's header | |
//! | behind it | tag | 16 bytes, over everything before it |
//!
//! What must always hold: nothing of the switch's state changes before the tag was checked; a counter of a session is
//! taken once, in the locked section of the pass that it belongs to; a counter that goes out is drawn in one step, so no
//! two datagrams of a session have the same.

use wire::HeaderFields;

use super::assembler::{Assembler, Code, Label, Map, Named, TooLong};
use super::emitter::{Emitter, Frames, Hook, Output, offset};
use super::instruction::{
    Arithmetic, COUNTER, Helper, If, PACKET, R1, R2, R3, R4, R5, Register, SCRATCH, STATE, Width,
};
use super::memory::{Datagrams, MEMORIES, frame, scratch, session};

/// In the kernel's view of a packet: not 0 if it came with the tag of a virtual network (`__sk_buff.vlan_present`).
const VLAN_PRESENT: i16 = 20;

/// What is known of a node, and of the life that counts.
const NODE: Register = COUNTER;

/// What the programs of all ports know of the rack's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramTerms {
    /// What a datagram begins with.
    pub magic: [u8; 2],
    /// The version of the wire format.
    pub version: u8,
    /// The kind of datagram that brings one packet to or from a switch program.
    pub kind: u8,
    /// The number that names the switch in heads.
    pub switch: u8,
}

impl DatagramTerms {
    /// The first 8 bytes of the head of a datagram from the switch to a node.
    pub const fn first_word(self, node: u8) -> [u8; 8] {
        let [first, second] = self.magic;
        [first, second, self.version, self.kind, self.switch, node, 1, 0]
    }
}

impl<C, F: HeaderFields> Emitter<'_, C, F> {
    /// Bytes of a frame with one packet.
    fn frame(&self) -> usize {
        frame::AROUND + frame::HEAD_BYTES + self.header() + frame::TAG_BYTES
    }

    /// What of it is covered by the tag.
    fn covered(&self) -> usize {
        frame::HEAD_BYTES + self.header()
    }

    /// Reads the frame, or only the packet's header if that is all there is.
    pub(super) fn read_frame(&mut self, elsewhere: Label) {
        let (from, to, bytes) = match self.frames {
            Frames::Bare(_, at) => (at, scratch::CAME_IN, self.header()),
            Frames::Datagrams(..) => (0, scratch::FRAME_IN + frame::PAD, self.frame()),
        };
        self.code.by(Arithmetic::Move, R1, PACKET);
        self.code.number(R2, from as u64);
        self.code.by(Arithmetic::Move, R3, SCRATCH);
        self.code.by_number(Arithmetic::Add, R3, to as i32);
        self.code.number(R4, bytes as u64);
        self.code.call(match self.frames.hook() {
            Hook::TrafficControl => Helper::LoadBytes,
            Hook::Driver => Helper::LoadBytesInDriver,
        });
        self.code.jump_if_number(If::Different, RESULT, 0, elsewhere);
    }

    fn byte_is(&mut self, at: usize, is: u8, elsewhere: Label) {
        self.code.load(Width::Byte, R1, SCRATCH, offset(scratch::FRAME_IN + frame::PAD + at));
        self.code.jump_if_number(If::Different, R1, i32::from(is), elsewhere);
    }

    /// Jumps elsewhere with a frame that is no datagram with one packet for this switch.
    pub(super) fn is_datagram(&mut self, terms: DatagramTerms, elsewhere: Label) {
        if self.frames.hook() == Hook::TrafficControl {
            // A tag of a virtual network that the device has taken off: of another network than ours. (A driver does not say. Whatever
            // came that way, its sender has our keys.)
            self.code.load(Width::Word, R1, PACKET, VLAN_PRESENT);
            self.code.jump_if_number(If::Different, R1, 0, elsewhere);
        }
        let udp = 8 + self.covered() + frame::TAG_BYTES;
        let [high, low] = (udp as u16).to_be_bytes();
        // IPv4 without options, UDP, and as long as such a datagram is.
        for (at, is) in [(12, 8), (13, 0), (14, 0x45), (23, 17), (38, high), (39, low)] {
            self.byte_is(at, is, elsewhere);
        }
        // No fragment: neither more to come nor an offset.
        self.code.load(Width::Half, R1, SCRATCH, offset(scratch::FRAME_IN + frame::PAD + 20));
        let mask = u16::from_ne_bytes([0x3f, 0xff]);
        self.code.by_number(Arithmetic::And, R1, i32::from(mask));
        self.code.jump_if_number(If::Different, R1, 0, elsewhere);
        for (at, width, here) in [(30, Width::Word, 0), (36, Width::Half, 4)] {
            self.code.load(width, R1, SCRATCH, offset(scratch::FRAME_IN + frame::PAD + at));
            self.code.load(width, R2, STATE, offset(self.layout.here + here));
            self.code.jump_if(If::Different, R1, R2, elsewhere);
        }
        let (head, [first, second]) = (frame::AROUND, terms.magic);
        for (at, is) in
            [(0, first), (1, second), (2, terms.version), (3, terms.kind), (5, terms.switch), (6, 1), (7, 0)]
        {
            self.byte_is(head + at, is, elsewhere);
        }
    }

    /// Finds what is known of the sender: [`NODE`] becomes the life that counts. Jumps elsewhere with a datagram of
    /// another session: the process greets its sender. Drops one with a wrong tag.
    pub(super) fn is_authentic(&mut self, elsewhere: Label, drop: Label) {
        self.code.load(Width::Byte, R1, SCRATCH, offset(scratch::FRAME_IN + frame::HEAD + 4));
        self.life_of(elsewhere);
        for (at, known) in [(16, session::THEIRS), (24, session::MINE)] {
            self.code.load(Width::Double, R1, SCRATCH, offset(scratch::FRAME_IN + frame::HEAD + at));
            self.code.load(Width::Double, R2, NODE, offset(session::LIFE + known));
            self.code.jump_if(If::Different, R1, R2, elsewhere);
        }
        let (wrong, right) = (self.code.label(), self.code.label());
        let key = (NODE, offset(session::LIFE + session::KEY_IN));
        let covered = self.covered();
        self.tag(key, scratch::FRAME_IN + frame::HEAD, covered);
        let tag = scratch::FRAME_IN + frame::HEAD + covered;
        // Both halves are looked at, whatever the first says.
        self.code.load(Width::Double, R3, SCRATCH, offset(tag));
        self.code.load(Width::Double, R4, SCRATCH, offset(tag + 8));
        self.code.by(Arithmetic::Xor, R1, R3);
        self.code.by(Arithmetic::Xor, R2, R4);
        self.code.by(Arithmetic::Or, R1, R2);
        self.code.jump_if_number(If::Equal, R1, 0, right);
        self.code.bind(wrong);
        self.count_datagram(Datagrams::WrongTag);
        self.code.jump(drop);
        self.code.bind(right);
    }

    /// [`NODE`] becomes what is known of the node in R1, moved on to the life that counts; jumps elsewhere if there is no such
    /// node. R2 becomes the same, not moved on.
    fn life_of(&mut self, elsewhere: Label) {
        self.code.jump_if_number(If::AtLeast, R1, self.nodes() as i32, elsewhere);
        self.code.by_number(Arithmetic::Mul, R1, session::BYTES as i32);
        self.code.by_number(Arithmetic::Add, R1, self.layout.sessions as i32);
        self.code.by(Arithmetic::Move, NODE, STATE);
        self.code.by(Arithmetic::Add, NODE, R1);
        self.code.by(Arithmetic::Move, R2, NODE);
        self.code.load(Width::Double, R1, NODE, offset(session::WHICH));
        self.code.by_number(Arithmetic::And, R1, 1);
        self.code.by_number(Arithmetic::Mul, R1, session::LIFE_BYTES as i32);
        self.code.by(Arithmetic::Add, NODE, R1);
    }

    /// Under the lock: takes the datagram's counter, if nobody has. Says so in scratch memory.
    pub(super) fn take_counter(&mut self) {
        let (newest, seen) = (offset(session::LIFE + session::NEWEST), offset(session::LIFE + session::SEEN));
        let is_new = offset(scratch::IS_NEW);
        let (older, far, mark, end) =
            (self.code.label(), self.code.label(), self.code.label(), self.code.label());
        self.code.store_number(Width::Double, SCRATCH, is_new, 0);
        self.code.load(Width::Double, R1, SCRATCH, offset(scratch::FRAME_IN + frame::HEAD + 8));
        self.code.load(Width::Double, R2, NODE, newest);
        self.code.load(Width::Double, R3, NODE, seen);
        self.code.jump_if(If::AtMost, R1, R2, older);
        self.code.store(Width::Double, NODE, newest, R1);
        self.code.by(Arithmetic::Sub, R1, R2);
        self.code.jump_if_number(If::Above, R1, 63, far);
        self.code.by(Arithmetic::Shl, R3, R1);
        self.code.number(R4, 1);
        self.code.jump(mark);
        self.code.bind(far);
        self.code.number(R3, 0);
        self.code.number(R4, 1);
        self.code.jump(mark);
        self.code.bind(older);
        self.code.by(Arithmetic::Sub, R2, R1);
        self.code.jump_if_number(If::Above, R2, 63, end);
        self.code.number(R4, 1);
        self.code.by(Arithmetic::Shl, R4, R2);
        self.code.by(Arithmetic::Move, R5, R3);
        self.code.by(Arithmetic::And, R5, R4);
        self.code.jump_if_number(If::Different, R5, 0, end);
        self.code.bind(mark);
        self.code.by(Arithmetic::Or, R3, R4);
        self.code.store(Width::Double, NODE, seen, R3);
        self.code.store_number(Width::Double, SCRATCH, is_new, 1);
        self.code.bind(end);
    }

    /// The function that sends the packet that goes out: its arguments are the packet, the scratch memory and the state.
    pub(super) fn function_that_sends(&mut self) {
        let (no_port, end) = (self.code.label(), self.code.label());
        self.code.bind(self.sends);
        self.code.by(Arithmetic::Move, PACKET, R1);
        self.code.by(Arithmetic::Move, SCRATCH, R2);
        self.code.by(Arithmetic::Move, STATE, R3);
        match self.frames {
            Frames::Bare(..) => self.log(frame::PACKET, self.header()),
            Frames::Datagrams(_, hook, output) => {
                self.seal(no_port);
                match output {
                    Output::Log => self.log(frame::HEAD, self.covered() + frame::TAG_BYTES),
                    Output::Ports => self.transmit(hook),
                }
                self.code.jump(end);
                self.code.bind(no_port);
                self.count_datagram(Datagrams::NoPort);
            }
        }
        self.code.bind(end);
        self.code.number(RESULT, 0);
        self.code.exit();
    }

    /// The frame around the packet that goes out.
    fn seal(&mut self, no_port: Label) {
        let (frame_out, head) = (scratch::FRAME_OUT, scratch::FRAME_OUT + frame::HEAD);
        self.code.load(Width::Half, R1, SCRATCH, offset(scratch::GOES_OUT + F::TO.0.at));
        if self.has_servers {
            self.code.jump_if_number(If::AtLeast, R1, MEMORIES as i32, no_port);
            self.code.by(Arithmetic::Move, R2, STATE);
            self.code.by(Arithmetic::Add, R2, R1);
            self.code.load(Width::Byte, R1, R2, offset(self.layout.servers));
        }
        self.life_of(no_port);
        self.code.load(Width::Double, R3, R2, offset(session::DEVICE));
        self.code.jump_if_number(If::Equal, R3, 0, no_port);
        self.code.store(Width::Double, SCRATCH, offset(scratch::DEVICE), R3);
        for at in (0..session::TEMPLATE_BYTES).step_by(8) {
            self.code.load(Width::Double, R1, R2, offset(session::TEMPLATE + at));
            self.code.store(Width::Double, SCRATCH, offset(frame_out + at), R1);
        }
        self.code.number(R1, 1);
        self.code.draw(NODE, offset(session::LIFE + session::WENT_OUT), R1);
        self.code.by_number(Arithmetic::Add, R1, 1);
        self.code.store(Width::Double, SCRATCH, offset(head + 8), R1);
        for (at, known) in [(16, session::MINE), (24, session::THEIRS)] {
            self.code.load(Width::Double, R1, NODE, offset(session::LIFE + known));
            self.code.store(Width::Double, SCRATCH, offset(head + at), R1);
        }
        let covered = self.covered();
        self.tag((NODE, offset(session::LIFE + session::KEY_OUT)), head, covered);
        self.code.store(Width::Double, SCRATCH, offset(head + covered), R1);
        self.code.store(Width::Double, SCRATCH, offset(head + covered + 8), R2);
    }

    /// The frame takes the place of the one that came in, which is as long, and leaves: a copy of it, or itself.
    fn transmit(&mut self, hook: Hook) {
        self.code.by(Arithmetic::Move, R1, PACKET);
        self.code.number(R2, 0);
        self.code.by(Arithmetic::Move, R3, SCRATCH);
        self.code.by_number(Arithmetic::Add, R3, (scratch::FRAME_OUT + frame::PAD) as i32);
        self.code.number(R4, self.frame() as u64);
        self.code.number(R5, 0);
        match hook {
            Hook::TrafficControl => {
                self.code.call(Helper::StoreBytes);
                self.code.by(Arithmetic::Move, R1, PACKET);
                self.code.load(Width::Double, R2, SCRATCH, offset(scratch::DEVICE));
                self.code.number(R3, 0);
                self.code.call(Helper::CloneRedirect);
            }
            Hook::Driver => {
                self.code.call(Helper::StoreBytesInDriver);
                self.code.load(Width::Double, R1, SCRATCH, offset(scratch::DEVICE));
                self.code.number(R2, 0);
                self.code.call(Helper::Redirect);
                self.code.store(Width::Double, SCRATCH, offset(scratch::VERDICT), RESULT);
            }
        }
    }
}

/// A program that takes the lock and lets it go, and nothing else: when it has run, every pass that had begun before is over.
///
/// # Errors
/// None: it is short.
pub fn barrier() -> Result<Code, TooLong> {
    let mut code = Assembler::default();
    for helper in [Helper::Lock, Helper::Unlock] {
        code.map(R1, Map::Lock, Named::Entry);
        code.call(helper);
    }
    code.number(RESULT, 0);
    code.exit();
    code.finish()
}

/// Bytes of a datagram with one packet, whose header has so many.
pub const fn datagram_bytes(header: usize) -> usize {
    frame::HEAD_BYTES + header + frame::TAG_BYTES
}

/// What a call gives back.
const RESULT: Register = super::instruction::R0;
