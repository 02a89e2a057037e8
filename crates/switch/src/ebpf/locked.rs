//! One packet from its coming in to its going out: what all programs have in common.

use wire::HeaderFields;

use super::assembler::{Label, Map, Named};
use super::emitter::{Emitter, Frames, Hook, List, Word, offset};
use super::instruction::{Arithmetic, Helper, If, PACKET, R0, R1, R2, SCRATCH, STACK, STATE, Width};
use super::memory::{Datagrams, scratch};
use super::{Code, TooLong, verdict};
use crate::pipeline::Headers as _;

impl<C, F: HeaderFields> Emitter<'_, C, F> {
    /// The whole program: `is_ours` jumps elsewhere with a header that is not for it, `passes` goes through the stages under the lock,
    /// and `goes_out` sends what comes of it.
    pub(crate) fn program(
        mut self,
        is_ours: impl FnOnce(&mut Self, Label),
        passes: impl FnOnce(&mut Self) -> Word,
        goes_out: impl FnOnce(&mut Self, Word),
    ) -> Result<Code, TooLong> {
        let (elsewhere, drop, done) = (self.code.label(), self.code.label(), self.code.label());
        self.code.by(Arithmetic::Move, PACKET, R1);
        self.code.store_number(Width::Word, STACK, -4, 0);
        self.code.map(R1, Map::Scratch, Named::Itself);
        self.code.by(Arithmetic::Move, R2, STACK);
        self.code.by_number(Arithmetic::Add, R2, -4);
        self.code.call(Helper::LookUp);
        self.code.jump_if_number(If::Equal, R0, 0, elsewhere);
        self.code.by(Arithmetic::Move, SCRATCH, R0);
        self.read_frame(elsewhere);
        self.code.map(STATE, Map::State, Named::Entry);
        let guarded = match self.frames {
            Frames::Bare(..) => false,
            Frames::Datagrams(terms, ..) => {
                self.is_datagram(terms, elsewhere);
                true
            }
        };
        is_ours(&mut self, elsewhere);
        if guarded {
            self.is_authentic(elsewhere, drop);
        }
        self.code.store_number(Width::Double, SCRATCH, offset(scratch::AGAIN), 0);
        if self.hook() == Hook::Driver {
            let nothing_goes_out = verdict::taken(Hook::Driver) as i32;
            self.code.store_number(Width::Double, SCRATCH, offset(scratch::VERDICT), nothing_goes_out);
        }
        self.code.map(R1, Map::Lock, Named::Entry);
        self.code.call(Helper::Lock);
        let found = if guarded {
            self.take_counter();
            let is_new = Word::At(offset(scratch::IS_NEW));
            self.either(is_new, passes, |m| m.number(0))
        } else {
            passes(&mut self)
        };
        self.code.map(R1, Map::Lock, Named::Entry);
        self.code.call(Helper::Unlock);
        if guarded {
            let replayed = self.code.label();
            self.load(R1, Word::At(offset(scratch::IS_NEW)));
            self.code.jump_if_number(If::Equal, R1, 0, replayed);
            self.count_datagram(Datagrams::Taken);
            self.goes_out_as_it_came_in();
            goes_out(&mut self, found);
            self.code.jump(done);
            self.code.bind(replayed);
            self.count_datagram(Datagrams::Replayed);
        } else {
            self.goes_out_as_it_came_in();
            goes_out(&mut self, found);
        }
        self.code.bind(done);
        if self.hook() == Hook::Driver {
            self.load(R0, Word::At(offset(scratch::VERDICT)));
            self.code.exit();
        }
        self.code.bind(drop);
        self.code.number(R0, verdict::taken(self.hook()).into());
        self.code.exit();
        self.code.bind(elsewhere);
        self.code.by_number(Arithmetic::Move, R0, verdict::passed(self.hook()).cast_signed());
        self.code.exit();
        self.function_that_sends();
        self.code.finish()
    }

    /// Jumps elsewhere unless a word of the header is one of these numbers, which are below 64.
    pub(crate) fn is_one_of(&mut self, at: usize, bytes: usize, set: u64, elsewhere: Label) {
        self.header_word(at, bytes);
        self.code.jump_if_number(If::Above, R1, 63, elsewhere);
        self.code.number(R2, set);
        self.code.by(Arithmetic::Shr, R2, R1);
        self.code.by_number(Arithmetic::And, R2, 1);
        self.code.jump_if_number(If::Equal, R2, 0, elsewhere);
    }

    /// Jumps elsewhere unless a word of the header is this number.
    pub(crate) fn is_number(&mut self, at: usize, bytes: usize, number: i32, elsewhere: Label) {
        self.header_word(at, bytes);
        self.code.jump_if_number(If::Different, R1, number, elsewhere);
    }

    /// Jumps elsewhere unless two words of the header are the same, where the first is one of these numbers.
    pub(crate) fn is_same_as(&mut self, set: u64, a: (usize, usize), b: (usize, usize), elsewhere: Label) {
        let end = self.code.label();
        self.header_word(a.0, a.1);
        self.code.number(R2, set);
        self.code.by(Arithmetic::Shr, R2, R1);
        self.code.by_number(Arithmetic::And, R2, 1);
        self.code.jump_if_number(If::Equal, R2, 0, end);
        self.code.by(Arithmetic::Move, R2, R1);
        self.header_word(b.0, b.1);
        self.code.jump_if(If::Different, R1, R2, elsewhere);
        self.code.bind(end);
    }

    /// Jumps elsewhere if a word of the header is 0, and another is not.
    pub(crate) fn is_not_of_nothing(&mut self, a: (usize, usize), b: (usize, usize), elsewhere: Label) {
        let end = self.code.label();
        self.header_word(a.0, a.1);
        self.code.jump_if_number(If::Different, R1, 0, end);
        self.header_word(b.0, b.1);
        self.code.jump_if_number(If::Different, R1, 0, elsewhere);
        self.code.bind(end);
    }

    /// Jumps elsewhere unless a word of the header, without these of its bits, is at most this number.
    pub(crate) fn is_at_most(&mut self, at: usize, bytes: usize, without: u64, most: i32, elsewhere: Label) {
        self.header_word(at, bytes);
        self.code.number(R2, !without);
        self.code.by(Arithmetic::And, R1, R2);
        self.code.jump_if_number(If::Above, R1, most, elsewhere);
    }

    /// Jumps elsewhere unless the list behind the header names nodes, none of them twice.
    pub(crate) fn is_list(&mut self, list: List, elsewhere: Label) {
        self.list_of_nodes(list, Some(elsewhere));
    }

    fn header_word(&mut self, at: usize, bytes: usize) {
        self.code.load(Width::of_bytes(bytes), R1, SCRATCH, offset(scratch::CAME_IN + at));
    }
}
