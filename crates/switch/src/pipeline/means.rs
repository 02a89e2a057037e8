//! What a switch can do with a packet before and behind the stages: in its parser, its multicast engine and its deparser.
//!
//! A program says what becomes of a packet by calls of [`Headers`] and [`Means`], and nothing else. Whoever implements
//! them decides what that comes to: software does it to a packet as it is called; a compiler writes down the instructions
//! that would do it ([`crate::ebpf`]); the stage map counts what it takes ([`super::tally`]). So both paths of every [`Headers::either`] may be walked, and a program keeps to
//! what it is given: no loops of its own over what a packet says, no state but PHV fields and what it rewrites.

use super::phv::Field;

/// What comes of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Sum, modulo 2^64.
    Add,
    /// Product, modulo 2^64.
    Mul,
    /// The first, shifted left by the second, which is below 64.
    Shl,
    /// The first, shifted right by the second, which is below 64.
    Shr,
    /// 1 if they are equal, else 0.
    Equals,
    /// 1 if the first is smaller, else 0.
    Below,
}

impl Op {
    /// What comes of them.
    #[inline(always)]
    pub const fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::Add => a.wrapping_add(b),
            Self::Mul => a.wrapping_mul(b),
            Self::Shl => a.wrapping_shl(b as u32),
            Self::Shr => a.wrapping_shr(b as u32),
            Self::Equals => (a == b) as u64,
            Self::Below => (a < b) as u64,
        }
    }
}

/// A packet's header, and the packets that come of it.
pub trait Headers: Sized {
    /// A number that is known when a packet is there.
    type Word: Copy;

    /// A field of the header.
    type Field: Copy;

    /// A number that is known beforehand.
    fn number(&mut self, value: u64) -> Self::Word;

    /// What comes of two numbers.
    fn compute(&mut self, op: Op, a: Self::Word, b: Self::Word) -> Self::Word;

    /// One of two, by a condition: anything but 0 is `yes`.
    fn either(
        &mut self,
        condition: Self::Word,
        yes: impl FnOnce(&mut Self) -> Self::Word,
        no: impl FnOnce(&mut Self) -> Self::Word,
    ) -> Self::Word;

    /// A field of the packet as it came in.
    fn field(&mut self, field: Self::Field) -> Self::Word;

    /// Changes a field of the packet that goes out. At first that is the one that came in, and each that is sent leaves it
    /// as it was.
    fn rewrite(&mut self, field: Self::Field, value: Self::Word);

    /// The packet that goes out comes from an agent of a node, as headers name it.
    fn from(&mut self, agent: u8, node: u16);

    /// The packet that goes out is for an agent of a node.
    fn to(&mut self, agent: u8, node: Self::Word);

    /// The nodes that the list behind the header names: a set. There is none behind headers that have no list.
    fn listed(&mut self) -> Self::Word;

    /// Sends the packet that goes out, as it is now.
    fn send(&mut self);

    /// Does something for every bit of a set, lowest first: the multicast engine.
    fn each(&mut self, set: Self::Word, body: impl FnMut(&mut Self, Self::Word));

    /// The bit of a set that a random number of 32 bits picks ([`wire::Copyset::pick`]); 64 or more if the set is empty.
    fn pick(&mut self, set: Self::Word, random: Self::Word) -> Self::Word;

    /// Does something, by a condition.
    fn when(&mut self, condition: Self::Word, yes: impl FnOnce(&mut Self)) {
        let then = |m: &mut Self| {
            yes(m);
            m.number(0)
        };
        self.either(condition, then, |m| m.number(0));
    }

    /// What comes of a number and one that is known beforehand.
    fn with(&mut self, op: Op, a: Self::Word, b: u64) -> Self::Word {
        let b = self.number(b);
        self.compute(op, a, b)
    }

    /// 1 if a number below 64 is in a set, else 0.
    fn is_in(&mut self, set: u64, value: Self::Word) -> Self::Word {
        let set = self.number(set);
        let shifted = self.compute(Op::Shr, set, value);
        self.with(Op::And, shifted, 1)
    }

    /// 1 if a condition does not hold, else 0.
    fn not(&mut self, condition: Self::Word) -> Self::Word {
        self.with(Op::Equals, condition, 0)
    }

    /// Sets a field of the packet that goes out to a number that is known beforehand.
    fn set(&mut self, field: Self::Field, value: u64) {
        let value = self.number(value);
        self.rewrite(field, value);
    }
}

/// A packet's way through the stages.
pub trait Means: Headers {
    /// What is counted.
    type Counted;

    /// A field of the PHV.
    fn phv(&mut self, field: Field) -> Self::Word;

    /// Sets a field of the PHV.
    fn set_phv(&mut self, field: Field, value: Self::Word);

    /// Does what a number says that is below `values`; 0 comes of others.
    fn dispatch(
        &mut self,
        value: Self::Word,
        values: u64,
        body: impl FnMut(&mut Self, u64) -> Self::Word,
    ) -> Self::Word;

    /// The incarnation of the switch.
    fn epoch(&mut self) -> Self::Word;

    /// The node that keeps the shadow of the directory.
    fn shadow(&mut self) -> Self::Word;

    /// What the first pass left for the second.
    fn carried(&mut self) -> Self::Word;

    /// The packet makes a second pass, and carries this.
    fn carry(&mut self, what: Self::Word);

    /// Counts something, which decides nothing.
    fn count(&mut self, what: Self::Counted);

    /// Counts the packet as what it is, by a condition, and nothing comes of it; or goes on.
    fn unless(
        &mut self,
        condition: Self::Word,
        what: Self::Counted,
        goes_on: impl FnOnce(&mut Self) -> Self::Word,
    ) -> Self::Word {
        let counted = |m: &mut Self| {
            m.count(what);
            m.number(0)
        };
        self.either(condition, counted, goes_on)
    }

    /// Sets a field of the PHV to a number that is known beforehand.
    fn set_phv_to(&mut self, field: Field, value: u64) {
        let value = self.number(value);
        self.set_phv(field, value);
    }
}
