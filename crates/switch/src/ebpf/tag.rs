//! The tags of datagrams: SipHash-2-4 with 128 bits, written out.
//!
//! R1 to R4 are its state, R5 is the word that goes in, R0 is spoilt. Nothing is branched on.

use wire::HeaderFields;

use super::emitter::{Emitter, offset};
use super::instruction::{Arithmetic, R0, R1, R2, R3, R4, R5, Register, SCRATCH, Width};

const ROTATIONS: [i32; 6] = [13, 16, 32, 17, 21, 32];

impl<C, F: HeaderFields> Emitter<'_, C, F> {
    /// The tag of so many bytes of scratch memory, under the key whose two words are at a register and an offset:
    /// R1 and R2 become its halves.
    pub(super) fn tag(&mut self, key: (Register, i16), at: usize, bytes: usize) {
        self.code.load(Width::Double, R1, key.0, key.1);
        self.code.load(Width::Double, R2, key.0, key.1 + 8);
        self.code.by(Arithmetic::Move, R3, R1);
        self.code.by(Arithmetic::Move, R4, R2);
        for (to, what) in [
            (R1, 0x736f_6d65_7073_6575),
            (R2, 0x646f_7261_6e64_6f6d ^ 0xee),
            (R3, 0x6c79_6765_6e65_7261),
            (R4, 0x7465_6462_7974_6573),
        ] {
            self.code.number(R5, what);
            self.code.by(Arithmetic::Xor, to, R5);
        }
        for at in (at..at + bytes).step_by(8) {
            self.code.load(Width::Double, R5, SCRATCH, offset(at));
            self.absorb();
        }
        self.code.number(R5, (bytes as u64 & 0xff) << 56);
        self.absorb();
        self.code.by_number(Arithmetic::Xor, R3, 0xee);
        (0..4).for_each(|_| self.round());
        self.mixed(R5);
        self.code.by_number(Arithmetic::Xor, R2, 0xdd);
        (0..4).for_each(|_| self.round());
        self.mixed(R2);
        self.code.by(Arithmetic::Move, R1, R5);
    }

    fn absorb(&mut self) {
        self.code.by(Arithmetic::Xor, R4, R5);
        (0..2).for_each(|_| self.round());
        self.code.by(Arithmetic::Xor, R1, R5);
    }

    fn round(&mut self) {
        let [a, b, c, d, e, f] = ROTATIONS;
        self.code.by(Arithmetic::Add, R1, R2);
        self.rotate(R2, a);
        self.code.by(Arithmetic::Xor, R2, R1);
        self.rotate(R1, c);
        self.code.by(Arithmetic::Add, R3, R4);
        self.rotate(R4, b);
        self.code.by(Arithmetic::Xor, R4, R3);
        self.code.by(Arithmetic::Add, R1, R4);
        self.rotate(R4, e);
        self.code.by(Arithmetic::Xor, R4, R1);
        self.code.by(Arithmetic::Add, R3, R2);
        self.rotate(R2, d);
        self.code.by(Arithmetic::Xor, R2, R3);
        self.rotate(R3, f);
    }

    fn rotate(&mut self, word: Register, by: i32) {
        self.code.by(Arithmetic::Move, R0, word);
        self.code.by_number(Arithmetic::Shl, R0, by);
        self.code.by_number(Arithmetic::Shr, word, 64 - by);
        self.code.by(Arithmetic::Or, word, R0);
    }

    /// A register becomes the exclusive or of the state. Spoils R0.
    fn mixed(&mut self, to: Register) {
        self.code.by(Arithmetic::Move, R0, R1);
        for word in [R2, R3, R4] {
            self.code.by(Arithmetic::Xor, R0, word);
        }
        self.code.by(Arithmetic::Move, to, R0);
    }
}
