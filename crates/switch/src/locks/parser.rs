//! The parser: which packets the directory handles, what kind of pass they make, and what the stages see of them.

use wire::{LockField, LockKind, Rule, Rules, Term, addr};

use super::directory::Drop;
use super::layout::{Fields, SETTLED, WAYS, class};
use crate::pipeline::primitive::GOLDEN;
use crate::pipeline::{Means, Op};

/// What happens to a packet about a lock on its way.
pub(super) trait OfLocks: Means<Field = LockField, Counted = Drop> {}

impl<M: Means<Field = LockField, Counted = Drop>> OfLocks for M {}

/// The kinds that a directory handles.
const HANDLED: u64 =
    bit(LockKind::Acquire) | bit(LockKind::Move) | bit(LockKind::Install) | bit(LockKind::Remove);

const fn bit(kind: LockKind) -> u64 {
    1 << kind as u64
}

/// What a directory does with packets before its stages, by what it is built for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parser<R> {
    pub(super) rules: R,
    pub(super) nodes: usize,
}

/// Where an entry is, or would be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<W> {
    pub(super) set: W,
    /// The cells of the set's ways.
    pub(super) cells: [W; WAYS],
}

impl<R: Rules> Parser<R> {
    /// The class of a packet's first pass, or 0 if it is dropped (and counted). Whether a home says what only homes say, the
    /// control plane asks.
    pub(super) fn first_pass<M: OfLocks>(self, m: &mut M) -> M::Word {
        let kind = m.field(LockField::Kind);
        let known = m.is_in(HANDLED, kind);
        let unknown = m.not(known);
        m.unless(unknown, Drop::Kind, |m| {
            let of_another_time = if self.rules.holds(Rule::LockEpochsAreFenced) {
                let (theirs, ours) = (m.field(LockField::Epoch), m.epoch());
                let same = m.compute(Op::Equals, theirs, ours);
                m.not(same)
            } else {
                m.number(0)
            };
            m.unless(of_another_time, Drop::Epoch, |m| {
                let nonsense = self.is_nonsense(m);
                m.unless(nonsense, Drop::Nonsense, |m| {
                    m.dispatch(kind, LockKind::ALL.len() as u64 + 1, |m, kind| {
                        match u8::try_from(kind).ok().and_then(LockKind::from_wire) {
                            Some(LockKind::Acquire) => {
                                let writes = m.field(LockField::Writes);
                                m.either(writes, |m| m.number(class::WRITE), |m| m.number(class::READ))
                            }
                            Some(LockKind::Move) => {
                                // Whoever stands in a queue stands behind somebody.
                                let (queued, next) = (m.field(LockField::Queued), m.field(LockField::Next));
                                let (nobody, queued) = (m.not(next), m.with(Op::Below, queued, 1));
                                let queued = m.not(queued);
                                let headless = m.compute(Op::And, queued, nobody);
                                m.unless(headless, Drop::Nonsense, |m| m.number(class::MOVE))
                            }
                            Some(LockKind::Install) => m.number(class::INSTALL),
                            Some(LockKind::Remove) => m.number(class::REMOVE),
                            _ => m.number(0),
                        }
                    })
                })
            })
        })
    }

    /// It names nodes that the rack does not have, or carries what no holder would send.
    fn is_nonsense<M: OfLocks>(self, m: &mut M) -> M::Word {
        let nodes = self.nodes as u64;
        let nobody = !(u64::MAX >> (64 - self.nodes));
        let mut named = m.listed();
        for set in [LockField::Nodes, LockField::Waiting] {
            let set = m.field(set);
            named = m.compute(Op::Or, named, set);
        }
        let mut wrong = m.with(Op::And, named, nobody);
        let lock = m.field(LockField::Lock);
        let home = m.with(Op::Shr, lock, u64::from(addr::OFFSET_BITS));
        let (next, node, term) =
            (m.field(LockField::Next), m.field(LockField::Node), m.field(LockField::Term));
        for (number, bound) in [(next, nodes + 1), (node, nodes), (home, nodes), (term, Term::MAX.0)] {
            let is_below = m.with(Op::Below, number, bound);
            let is_not = m.not(is_below);
            wrong = m.compute(Op::Or, wrong, is_not);
        }
        let payload = m.field(LockField::Payload);
        m.compute(Op::Or, wrong, payload)
    }

    /// The class of the second pass of a MOVE: it happens if the first has found that its sender knows everybody.
    pub(super) fn second_pass<M: OfLocks>(self, m: &mut M) -> M::Word {
        let approved = m.carried();
        m.either(approved, |m| m.number(class::COMMIT), |m| m.number(class::LOOK))
    }

    /// Where a switch of so many sets has a lock's entry.
    pub(super) fn slot<M: OfLocks>(self, m: &mut M, sets: usize) -> Slot<M::Word> {
        // As `primitive::spread`.
        let key = key_of(m);
        let mixed = m.with(Op::Mul, key, GOLDEN);
        let upper = m.with(Op::Shr, mixed, 32);
        let scaled = m.with(Op::Mul, upper, sets as u64 & 0xffff_ffff);
        let set = m.with(Op::Shr, scaled, 32);
        let first = m.with(Op::Mul, set, WAYS as u64);
        Slot { set, cells: core::array::from_fn(|way| m.with(Op::Add, first, way as u64)) }
    }

    /// Fills the PHV for a pass of this class.
    pub(super) fn parse<M: OfLocks>(self, m: &mut M, f: &Fields, kind: u64, slot: Slot<M::Word>) {
        let key = key_of(m);
        m.set_phv(f.key, key);
        m.set_phv(f.set, slot.set);
        for (field, cell) in f.cells.into_iter().zip(slot.cells) {
            m.set_phv(field, cell);
        }
        let node = m.field(LockField::Node);
        let me = m.with(Op::Add, node, 1);
        m.set_phv(f.me, me);
        let taker = m.with(Op::Or, me, SETTLED);
        m.set_phv(f.taker, taker);
        m.set_phv_to(f.class, kind);
        m.set_phv_to(f.one, 1);
        m.set_phv_to(f.holder_bits, SETTLED - 1);
        let (waiters, writers, sharers) = match kind {
            class::MOVE => (m.field(LockField::Waiting), m.number(0), m.number(0)),
            class::COMMIT => {
                let (rest, waiting) = (m.listed(), m.field(LockField::Waiting));
                // Those that nobody served may have come to wait in between: all but who is known and not in the rest.
                let unknown = m.with(Op::Xor, waiting, u64::MAX);
                (rest, m.compute(Op::Or, unknown, rest), m.field(LockField::Nodes))
            }
            _ => {
                let one = m.number(1);
                let bit = m.compute(Op::Shl, one, node);
                (bit, bit, bit)
            }
        };
        m.set_phv(f.waiters_operand, waiters);
        m.set_phv(f.writers_operand, writers);
        m.set_phv(f.sharers_operand, sharers);
        let term = m.field(LockField::Term);
        let claim = if kind == class::COMMIT {
            let next_term = m.with(Op::Add, term, 1);
            let next = m.field(LockField::Next);
            let holder = m.either(next, |m| m.with(Op::Or, next, SETTLED), |m| m.number(0));
            ownership(m, next_term, holder)
        } else {
            ownership(m, term, taker)
        };
        m.set_phv(f.claim, claim);
        let marked = m.with(Op::And, claim, !SETTLED);
        m.set_phv(f.marked_claim, marked);
    }
}

/// An OWNERSHIP cell: a term, and a holder with its mark.
fn ownership<M: OfLocks>(m: &mut M, term: M::Word, holder: M::Word) -> M::Word {
    let term = m.with(Op::Shl, term, 8);
    m.compute(Op::Or, term, holder)
}

/// What TAG holds: the complement, so that an empty cell is 0.
fn key_of<M: OfLocks>(m: &mut M) -> M::Word {
    let lock = m.field(LockField::Lock);
    m.with(Op::Xor, lock, u64::MAX)
}
