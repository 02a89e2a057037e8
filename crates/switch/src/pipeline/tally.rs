//! What a program asks of a switch before and behind the stages: counted by walking every path of its parser, its multicast
//! engine and its deparser once.

use alloc::collections::BTreeSet;
use core::fmt;

use super::means::{Headers, Means, Op};
use super::phv::Field;

/// What a program needs around its stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Around {
    /// Fields of the header that the parser or the deparser looks at.
    pub parsed: usize,
    /// Lists behind the header that are read.
    pub lists: usize,
    /// Conditions, with the rows of what a code decides.
    pub conditions: usize,
    /// Computations on words.
    pub computations: usize,
    /// Fields that are rewritten where a packet leaves for one place (ingress).
    pub rewritten: usize,
    /// Places in the deparser from where a packet leaves for one place.
    pub unicasts: usize,
    /// Multicast groups: places from where a packet leaves for each node of a set.
    pub groups: usize,
    /// Fields that are rewritten in each copy (egress).
    pub rewritten_in_copies: usize,
    /// Choices of one node of a set by a random number.
    pub choices: usize,
    /// Reasons to send a packet through the pipeline once more, with a word that it carries.
    pub recirculations: usize,
}

impl Around {
    /// What two programs need that share one chip: each has headers of its own.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            parsed: self.parsed + other.parsed,
            lists: self.lists + other.lists,
            conditions: self.conditions + other.conditions,
            computations: self.computations + other.computations,
            rewritten: self.rewritten + other.rewritten,
            unicasts: self.unicasts + other.unicasts,
            groups: self.groups + other.groups,
            rewritten_in_copies: self.rewritten_in_copies + other.rewritten_in_copies,
            choices: self.choices + other.choices,
            recirculations: self.recirculations + other.recirculations,
        }
    }
}

impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parsed, lists, conditions, computations, .. } = self;
        let Self { rewritten, unicasts, groups, rewritten_in_copies, choices, recirculations, .. } = self;
        let lists = if *lists > 0 { ", and the list behind it" } else { "" };
        writeln!(f, "parser       {parsed} fields of the header{lists}")?;
        writeln!(f, "around       {conditions} conditions and rows, {computations} computations")?;
        writeln!(f, "ingress      {unicasts} ways to one place, {rewritten} fields rewritten")?;
        writeln!(f, "multicast    {groups} groups of nodes, {choices} choices of one by a random number")?;
        writeln!(f, "egress       of each copy, fields rewritten: {rewritten_in_copies}")?;
        writeln!(f, "recirculated {recirculations} ways, with a word")
    }
}

/// A field that is rewritten: one of the header's, or where it goes or comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rewritten<F> {
    Field(F),
    From,
    To,
}

/// Walks a program, and counts.
pub(crate) struct Tally<F, C> {
    around: Around,
    parsed: BTreeSet<F>,
    rewritten: BTreeSet<Rewritten<F>>,
    in_copies: BTreeSet<Rewritten<F>>,
    /// In what is done for each node of a set.
    in_group: bool,
    counts: core::marker::PhantomData<fn(C)>,
}

impl<F: Copy + Ord, C> Tally<F, C> {
    /// What the program needs that walks through this.
    pub(crate) fn of(walk: impl FnOnce(&mut Self)) -> Around {
        let mut tally = Self {
            around: Around::default(),
            parsed: BTreeSet::new(),
            rewritten: BTreeSet::new(),
            in_copies: BTreeSet::new(),
            in_group: false,
            counts: core::marker::PhantomData,
        };
        walk(&mut tally);
        Around {
            parsed: tally.parsed.len(),
            rewritten: tally.rewritten.len(),
            rewritten_in_copies: tally.in_copies.len(),
            ..tally.around
        }
    }

    fn rewrites(&mut self, what: Rewritten<F>) {
        let fields = if self.in_group { &mut self.in_copies } else { &mut self.rewritten };
        fields.insert(what);
    }
}

/// Words are not looked at.
impl<F: Copy + Ord, C> Headers for Tally<F, C> {
    type Word = ();
    type Field = F;

    fn number(&mut self, _: u64) {}

    fn compute(&mut self, _: Op, (): (), (): ()) {
        self.around.computations += 1;
    }

    fn either(&mut self, (): (), yes: impl FnOnce(&mut Self), no: impl FnOnce(&mut Self)) {
        self.around.conditions += 1;
        yes(self);
        no(self);
    }

    fn field(&mut self, field: F) {
        self.parsed.insert(field);
    }

    fn rewrite(&mut self, field: F, (): ()) {
        self.rewrites(Rewritten::Field(field));
    }

    fn from(&mut self, _: u8, _: u16) {
        self.rewrites(Rewritten::From);
    }

    fn to(&mut self, _: u8, (): ()) {
        self.rewrites(Rewritten::To);
    }

    fn listed(&mut self) {
        self.around.lists += 1;
    }

    fn send(&mut self) {
        self.around.unicasts += usize::from(!self.in_group);
    }

    fn each(&mut self, (): (), mut body: impl FnMut(&mut Self, ())) {
        self.around.groups += 1;
        let outer = core::mem::replace(&mut self.in_group, true);
        body(self, ());
        self.in_group = outer;
    }

    fn pick(&mut self, (): (), (): ()) {
        self.around.choices += 1;
    }
}

impl<F: Copy + Ord, C> Means for Tally<F, C> {
    type Counted = C;

    fn phv(&mut self, _: Field) {}

    fn set_phv(&mut self, _: Field, (): ()) {}

    fn dispatch(&mut self, (): (), values: u64, mut body: impl FnMut(&mut Self, u64)) {
        self.around.conditions += values as usize;
        (0..values).for_each(|value| body(self, value));
    }

    fn epoch(&mut self) {}

    fn shadow(&mut self) {}

    fn carried(&mut self) {}

    fn carry(&mut self, (): ()) {
        self.around.recirculations += 1;
    }

    fn count(&mut self, _: C) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that sends a packet to one place or, changed, to all of a set, and perhaps once more through the pipeline.
    fn walk<M: Means<Field = u8>>(m: &mut M) {
        let (a, b) = (m.field(1), m.field(2));
        let sum = m.compute(Op::Add, a, b);
        let one = |m: &mut M| {
            m.rewrite(3, sum);
            m.from(1, 0);
            m.send();
            m.number(0)
        };
        let all = |m: &mut M| {
            m.each(a, |m, node| {
                m.to(2, node);
                m.set(1, 7);
                m.send();
            });
            m.carry(b);
            m.number(0)
        };
        m.either(sum, one, all);
        m.pick(a, b);
        m.dispatch(sum, 3, |m, at| m.number(at));
    }

    #[test]
    fn every_path_of_a_program_is_walked_once() {
        let around = Tally::<u8, ()>::of(walk);
        let expected = Around {
            parsed: 2,
            lists: 0,
            conditions: 1 + 3,
            computations: 1,
            rewritten: 2,
            unicasts: 1,
            groups: 1,
            rewritten_in_copies: 2,
            choices: 1,
            recirculations: 1,
        };
        assert_eq!(around, expected);
    }
}
