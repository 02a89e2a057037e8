//! What a program says of a packet, written down as instructions: the other half of [`Headers`] and [`Means`].
//!
//! Numbers are kept in scratch memory, not in registers: the kernel's verifier tracks registers and the stack value by value, and
//! would walk each path of the program by itself.

use core::marker::PhantomData;

use wire::HeaderFields;
use wire::header::Place;

use super::assembler::{Assembler, Label};
use super::datagram::DatagramTerms;
use super::instruction::{
    Arithmetic, COUNTER, If, PACKET, R0, R1, R2, R3, R4, Register, SCRATCH, STATE, Width,
};
use super::memory::{Datagrams, LOGGED, MOST_LOGGED, StateLayout, frame, scratch};
use crate::pipeline::{Field, Headers, Means, Op, Program};

/// A number: known beforehand, or in a word of scratch memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    Number(u64),
    At(i16),
}

/// What becomes of a datagram that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// It is written down in the state, for whoever runs the program by hand.
    Log,
    /// It goes through the port of its node.
    Ports,
}

/// Where the program sees a frame that comes in at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// At the traffic control's ingress, where copies of a frame can be sent.
    TrafficControl,
    /// In the driver (XDP), before the kernel has made anything of it. One frame goes out there of each that comes in, so a packet that
    /// may become more than one goes on, to the traffic control.
    Driver,
}

/// What frames are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frames {
    /// A packet's header begins at this byte, and nobody asks who sent it; what goes out is written down: for tests.
    Bare(Hook, usize),
    /// Datagrams of the rack over IPv4, one packet in each, with tags.
    Datagrams(DatagramTerms, Hook, Output),
}

impl Frames {
    /// Where they come in.
    pub(crate) const fn hook(self) -> Hook {
        match self {
            Self::Bare(hook, _) | Self::Datagrams(_, hook, _) => hook,
        }
    }
}

/// A list of nodes behind a header: a byte for each, of which the upper bit is something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct List {
    /// Where its length stands, a byte.
    pub(crate) length_at: usize,
    /// Where it begins.
    pub(crate) at: usize,
    /// The most that it has.
    pub(crate) most: usize,
}

/// Writes instructions down.
#[derive(Debug)]
pub(crate) struct Emitter<'a, C, F> {
    pub(super) code: Assembler,
    pub(super) layout: &'a StateLayout,
    /// Words of scratch memory that are in use.
    words: usize,
    /// Bytes of a header, its list included.
    header: usize,
    /// The list behind it.
    list: Option<List>,
    /// Bits of a set that can be set.
    nodes: usize,
    /// What goes to a memory goes to the node that has it.
    pub(super) has_servers: bool,
    pub(super) frames: Frames,
    /// Where the function is that sends.
    pub(super) sends: Label,
    counter_of: fn(C) -> usize,
    fields: PhantomData<fn(F)>,
}

impl<'a, C, F: HeaderFields> Emitter<'a, C, F> {
    pub(crate) fn new(
        layout: &'a StateLayout,
        (header, list): (usize, Option<List>),
        nodes: usize,
        frames: Frames,
        counter_of: fn(C) -> usize,
    ) -> Self {
        assert!(frame::PACKET + header + frame::TAG_BYTES <= frame::BYTES, "a header of {header} bytes");
        let mut code = Assembler::default();
        let sends = code.label();
        let (words, has_servers, fields) = (0, false, PhantomData);
        Self { code, layout, words, header, list, nodes, has_servers, frames, sends, counter_of, fields }
    }

    /// There are memories that are where the state says.
    pub(crate) fn with_servers(self, has_servers: bool) -> Self {
        Self { has_servers, ..self }
    }

    /// Where frames come in.
    pub(crate) const fn hook(&self) -> Hook {
        self.frames.hook()
    }

    /// How many nodes there are.
    pub(super) const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Counts datagrams.
    pub(super) fn count_datagram(&mut self, what: Datagrams) {
        self.add_one(self.layout.datagram_counter(what));
    }

    /// A word that nobody uses.
    fn word(&mut self) -> i16 {
        assert!(self.words < scratch::MOST_WORDS, "a program keeps more numbers than there is room for");
        self.words += 1;
        offset(scratch::WORDS + 8 * (self.words - 1))
    }

    /// A register becomes a number.
    pub(super) fn load(&mut self, to: Register, word: Word) {
        match word {
            Word::Number(number) => self.code.number(to, number),
            Word::At(at) => self.code.load(Width::Double, to, SCRATCH, at),
        }
    }

    /// A word of scratch memory becomes a number. Spoils R1.
    pub(super) fn put(&mut self, at: i16, word: Word) {
        match word {
            Word::Number(number) if i32::try_from(number.cast_signed()).is_ok() => {
                self.code.store_number(Width::Double, SCRATCH, at, number as i32);
            }
            _ => {
                self.load(R1, word);
                self.code.store(Width::Double, SCRATCH, at, R1);
            }
        }
    }

    fn keep(&mut self, from: Register) -> Word {
        let at = self.word();
        self.code.store(Width::Double, SCRATCH, at, from);
        Word::At(at)
    }

    /// What follows is done with the words that are free now, and they are free again behind it.
    fn apart<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let words = self.words;
        let done = work(self);
        self.words = words;
        done
    }

    fn store_place(&mut self, place: Place, word: Word) {
        let at = offset(scratch::GOES_OUT + place.at);
        let width = Width::of_bytes(place.bytes);
        let Some(bit) = place.bit else {
            match word {
                Word::Number(number) if i32::try_from(number).is_ok() => {
                    return self.code.store_number(width, SCRATCH, at, number as i32);
                }
                _ => {
                    self.load(R1, word);
                    return self.code.store(width, SCRATCH, at, R1);
                }
            }
        };
        self.code.load(width, R2, SCRATCH, at);
        self.code.by_number(Arithmetic::And, R2, !(1 << bit));
        self.load(R1, word);
        self.code.by_number(Arithmetic::Shl, R1, bit as i32);
        self.code.by(Arithmetic::Or, R2, R1);
        self.code.store(width, SCRATCH, at, R2);
    }

    /// The packet that goes out is the one that came in.
    pub(super) fn goes_out_as_it_came_in(&mut self) {
        for at in (0..self.header).step_by(8) {
            self.code.load(Width::Double, R1, SCRATCH, offset(scratch::CAME_IN + at));
            self.code.store(Width::Double, SCRATCH, offset(scratch::GOES_OUT + at), R1);
        }
    }

    /// Bytes of a header.
    pub(super) const fn header(&self) -> usize {
        self.header
    }

    /// Not 0 if there is a second pass.
    pub(crate) fn is_again(&mut self) -> Word {
        Word::At(offset(scratch::AGAIN))
    }

    /// All fields of a program's PHV are 0.
    pub(crate) fn clear_phv(&mut self, program: &Program) {
        for field in 0..program.fields() {
            self.code.store_number(Width::Double, SCRATCH, phv(field), 0);
        }
    }

    /// Jumps to the place of each value.
    fn jump_by_value(&mut self, places: &[(u64, Label)], otherwise: Label) {
        match places {
            [] => self.code.jump(otherwise),
            [(value, to)] => {
                self.code.jump_if_number(If::Equal, R1, *value as i32, *to);
                self.code.jump(otherwise);
            }
            _ => {
                let (low, high) = places.split_at(places.len() / 2);
                let above = self.code.label();
                self.code.jump_if_number(If::AtLeast, R1, high[0].0 as i32, above);
                self.jump_by_value(low, otherwise);
                self.code.bind(above);
                self.jump_by_value(high, otherwise);
            }
        }
    }

    /// Counts with a counter of the state, with which other processors count, too.
    pub(super) fn add_one(&mut self, counter: usize) {
        self.code.number(R1, 1);
        self.code.add_to(STATE, offset(self.layout.counters + 8 * counter), R1);
    }

    /// Runs a loop with [`COUNTER`] from 0 to the number of nodes.
    fn for_every_node(&mut self, body: impl FnOnce(&mut Self, Label)) {
        let (top, next, end) = (self.code.label(), self.code.label(), self.code.label());
        self.code.number(COUNTER, 0);
        self.code.bind(top);
        self.code.jump_if_number(If::Equal, COUNTER, self.nodes as i32, end);
        self.apart(|m| body(m, next));
        self.code.bind(next);
        self.code.by_number(Arithmetic::Add, COUNTER, 1);
        self.code.jump(top);
        self.code.bind(end);
    }

    /// The nodes of a list. Jumps elsewhere if there are any twice, or more than fit, if there is somewhere to go.
    pub(super) fn list_of_nodes(&mut self, list: List, elsewhere: Option<Label>) -> Word {
        let set = self.word();
        let (top, end) = (self.code.label(), self.code.label());
        self.put(set, Word::Number(0));
        self.code.load(Width::Byte, R2, SCRATCH, offset(scratch::CAME_IN + list.length_at));
        if let Some(elsewhere) = elsewhere {
            self.code.jump_if_number(If::Above, R2, list.most as i32, elsewhere);
        }
        self.code.number(COUNTER, 0);
        self.code.bind(top);
        self.code.jump_if_number(If::Equal, COUNTER, list.most as i32, end);
        self.code.jump_if(If::AtLeast, COUNTER, R2, end);
        self.code.by(Arithmetic::Move, R3, SCRATCH);
        self.code.by(Arithmetic::Add, R3, COUNTER);
        self.code.load(Width::Byte, R1, R3, offset(scratch::CAME_IN + list.at));
        self.code.by_number(Arithmetic::And, R1, 0x7f);
        if let Some(elsewhere) = elsewhere {
            self.code.jump_if_number(If::Above, R1, 63, elsewhere);
        }
        self.code.number(R4, 1);
        self.code.by(Arithmetic::Shl, R4, R1);
        self.code.load(Width::Double, R1, SCRATCH, set);
        if let Some(elsewhere) = elsewhere {
            self.code.by(Arithmetic::Move, R3, R1);
            self.code.by(Arithmetic::And, R3, R4);
            self.code.jump_if_number(If::Different, R3, 0, elsewhere);
        }
        self.code.by(Arithmetic::Or, R1, R4);
        self.code.store(Width::Double, SCRATCH, set, R1);
        self.code.by_number(Arithmetic::Add, COUNTER, 1);
        self.code.jump(top);
        self.code.bind(end);
        Word::At(set)
    }

    /// Goes on only if the bit of [`COUNTER`] is in a set.
    fn if_in(&mut self, set: Word, otherwise: Label) {
        self.load(R1, set);
        self.code.by(Arithmetic::Shr, R1, COUNTER);
        self.code.by_number(Arithmetic::And, R1, 1);
        self.code.jump_if_number(If::Equal, R1, 0, otherwise);
    }

    /// How many bits a set has: R1 becomes that. Spoils R2 and R3.
    fn bits(&mut self, set: Word) {
        self.load(R1, set);
        for (shift, mask) in [
            (1, 0x5555_5555_5555_5555),
            (2, 0x3333_3333_3333_3333),
            (4, 0x0f0f_0f0f_0f0f_0f0f),
            (8, 0x00ff_00ff_00ff_00ff),
            (16, 0x0000_ffff_0000_ffff),
            (32, 0x0000_0000_ffff_ffff_u64),
        ] {
            self.code.number(R3, mask);
            self.code.by(Arithmetic::Move, R2, R1);
            self.code.by_number(Arithmetic::Shr, R2, shift);
            self.code.by(Arithmetic::And, R2, R3);
            self.code.by(Arithmetic::And, R1, R3);
            self.code.by(Arithmetic::Add, R1, R2);
        }
    }
}

impl<C, F: HeaderFields> Headers for Emitter<'_, C, F> {
    type Word = Word;
    type Field = F;

    fn number(&mut self, value: u64) -> Word {
        Word::Number(value)
    }

    fn compute(&mut self, op: Op, a: Word, b: Word) -> Word {
        if let (Word::Number(a), Word::Number(b)) = (a, b) {
            return Word::Number(op.of(a, b));
        }
        self.load(R1, a);
        self.load(R2, b);
        let arithmetic = match op {
            Op::And => Arithmetic::And,
            Op::Or => Arithmetic::Or,
            Op::Xor => Arithmetic::Xor,
            Op::Add => Arithmetic::Add,
            Op::Mul => Arithmetic::Mul,
            Op::Shl => Arithmetic::Shl,
            Op::Shr => Arithmetic::Shr,
            Op::Equals | Op::Below => {
                let when = if op == Op::Equals { If::Equal } else { If::Below };
                self.truth(R0, when);
                return self.keep(R0);
            }
        };
        self.code.by(arithmetic, R1, R2);
        self.keep(R1)
    }

    fn either(
        &mut self,
        condition: Word,
        yes: impl FnOnce(&mut Self) -> Word,
        no: impl FnOnce(&mut Self) -> Word,
    ) -> Word {
        if let Word::Number(condition) = condition {
            return if condition != 0 { yes(self) } else { no(self) };
        }
        let result = self.word();
        let (otherwise, end) = (self.code.label(), self.code.label());
        self.load(R1, condition);
        self.code.jump_if_number(If::Equal, R1, 0, otherwise);
        self.apart(|m| {
            let word = yes(m);
            m.put(result, word);
        });
        self.code.jump(end);
        self.code.bind(otherwise);
        self.apart(|m| {
            let word = no(m);
            m.put(result, word);
        });
        self.code.bind(end);
        Word::At(result)
    }

    fn when(&mut self, condition: Word, yes: impl FnOnce(&mut Self)) {
        if let Word::Number(condition) = condition {
            return if condition != 0 {
                yes(self)
            };
        }
        let end = self.code.label();
        self.load(R1, condition);
        self.code.jump_if_number(If::Equal, R1, 0, end);
        self.apart(yes);
        self.code.bind(end);
    }

    fn field(&mut self, field: F) -> Word {
        let place = field.place();
        self.code.load(Width::of_bytes(place.bytes), R1, SCRATCH, offset(scratch::CAME_IN + place.at));
        if let Some(bit) = place.bit {
            self.code.by_number(Arithmetic::Shr, R1, bit as i32);
            self.code.by_number(Arithmetic::And, R1, 1);
        }
        self.keep(R1)
    }

    fn rewrite(&mut self, field: F, value: Word) {
        self.store_place(field.place(), value);
    }

    fn from(&mut self, agent: u8, node: u16) {
        self.store_place(F::FROM.0, Word::Number(u64::from(node)));
        self.store_place(F::FROM.1, Word::Number(u64::from(agent)));
    }

    fn to(&mut self, agent: u8, node: Word) {
        self.store_place(F::TO.0, node);
        self.store_place(F::TO.1, Word::Number(u64::from(agent)));
    }

    fn listed(&mut self) -> Word {
        match self.list {
            None => Word::Number(0),
            Some(list) => self.list_of_nodes(list, None),
        }
    }

    fn send(&mut self) {
        self.code.by(Arithmetic::Move, R1, PACKET);
        self.code.by(Arithmetic::Move, R2, SCRATCH);
        self.code.by(Arithmetic::Move, R3, STATE);
        self.code.call_function(self.sends);
    }

    fn each(&mut self, set: Word, mut body: impl FnMut(&mut Self, Word)) {
        self.for_every_node(|m, next| {
            m.if_in(set, next);
            let node = m.keep(COUNTER);
            body(m, node);
        });
    }

    fn pick(&mut self, set: Word, random: Word) -> Word {
        let (result, left) = (self.word(), self.word());
        self.put(result, Word::Number(u64::MAX));
        self.bits(set);
        self.load(R2, random);
        self.code.by(Arithmetic::Mul, R1, R2);
        self.code.by_number(Arithmetic::Shr, R1, 32);
        self.code.store(Width::Double, SCRATCH, left, R1);
        self.for_every_node(|m, next| {
            m.if_in(set, next);
            let not_this = m.code.label();
            m.code.load(Width::Double, R1, SCRATCH, left);
            m.code.jump_if_number(If::Different, R1, 0, not_this);
            m.code.store(Width::Double, SCRATCH, result, COUNTER);
            m.code.bind(not_this);
            // Below 0 it never comes to 0 again.
            m.code.by_number(Arithmetic::Sub, R1, 1);
            m.code.store(Width::Double, SCRATCH, left, R1);
        });
        Word::At(result)
    }
}

impl<C, F: HeaderFields> Means for Emitter<'_, C, F> {
    type Counted = C;

    fn phv(&mut self, field: Field) -> Word {
        self.code.load(Width::Double, R1, SCRATCH, phv(field.index()));
        self.keep(R1)
    }

    fn set_phv(&mut self, field: Field, value: Word) {
        self.put(phv(field.index()), value);
    }

    fn dispatch(&mut self, value: Word, values: u64, mut body: impl FnMut(&mut Self, u64) -> Word) -> Word {
        if let Word::Number(value) = value {
            return if value < values { body(self, value) } else { Word::Number(0) };
        }
        let result = self.word();
        let end = self.code.label();
        self.put(result, Word::Number(0));
        // The bodies first: where there is nothing to do, no jump leads.
        let from = self.code.items();
        let mut places = alloc::vec::Vec::new();
        for value in 0..values {
            let start = self.code.items();
            let place = self.code.label();
            self.code.bind(place);
            let empty = self.code.items();
            let word = self.apart(|m| body(m, value));
            if self.code.items() == empty && word == Word::Number(0) {
                self.code.cut(start);
                continue;
            }
            if word != Word::Number(0) {
                self.put(result, word);
            }
            self.code.jump(end);
            places.push((value, place));
        }
        let bodies = self.code.cut(from);
        self.load(R1, value);
        self.jump_by_value(&places, end);
        self.code.paste(bodies);
        self.code.bind(end);
        Word::At(result)
    }

    fn epoch(&mut self) -> Word {
        self.code.load(Width::Double, R1, STATE, offset(self.layout.epoch));
        self.keep(R1)
    }

    fn shadow(&mut self) -> Word {
        self.code.load(Width::Double, R1, STATE, offset(self.layout.shadow));
        self.keep(R1)
    }

    fn carried(&mut self) -> Word {
        Word::At(offset(scratch::CARRIED))
    }

    fn carry(&mut self, what: Word) {
        self.put(offset(scratch::CARRIED), what);
        self.put(offset(scratch::AGAIN), Word::Number(1));
    }

    fn count(&mut self, what: C) {
        self.add_one((self.counter_of)(what));
    }
}

impl<C, F: HeaderFields> Emitter<'_, C, F> {
    /// A register becomes 1 if R1 and R2 compare so, else 0.
    pub(super) fn truth(&mut self, to: Register, when: If) {
        let end = self.code.label();
        self.code.number(to, 1);
        self.code.jump_if(when, R1, R2, end);
        self.code.number(to, 0);
        self.code.bind(end);
    }

    /// Writes down so many bytes of the frame that goes out, from one on.
    pub(super) fn log(&mut self, from: usize, bytes: usize) {
        let full = self.code.label();
        let log = offset(self.layout.log);
        self.code.load(Width::Double, R1, STATE, log);
        self.code.jump_if_number(If::AtLeast, R1, MOST_LOGGED as i32, full);
        self.code.by(Arithmetic::Move, R2, R1);
        self.code.by_number(Arithmetic::Mul, R2, LOGGED as i32);
        self.code.by(Arithmetic::Move, R3, STATE);
        self.code.by(Arithmetic::Add, R3, R2);
        for at in (0..bytes).step_by(8) {
            self.code.load(Width::Double, R4, SCRATCH, offset(scratch::FRAME_OUT + from + at));
            self.code.store(Width::Double, R3, offset(self.layout.log + 8 + at), R4);
        }
        self.code.by_number(Arithmetic::Add, R1, 1);
        self.code.store(Width::Double, STATE, log, R1);
        self.code.bind(full);
    }
}

/// The place of a PHV field in scratch memory.
pub(super) fn phv(field: usize) -> i16 {
    offset(scratch::PHV + 8 * field)
}

pub(super) fn offset(at: usize) -> i16 {
    i16::try_from(at).expect("what is addressed so lies within 32 KiB")
}
