//! The steps of the program, stage by stage.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use wire::{Rule, Rules};

use super::layout::{
    BEHIND_STAGE, Fields, KEY_STAGES, NUMBER_STAGE, OPERATIONS_STAGE, OUTSTANDING_STAGE, TAIL_STAGE,
    VERDICT_STAGE, WAYS, class, op, state, verdict,
};
use crate::pipeline::Match::{Any, Is};
use crate::pipeline::step::ArrayId;
use crate::pipeline::{
    Alu, Array, Budget, BuildError, Compute, Field, Gate, Match, Primitive, Program, ProgramBuilder, Rmw,
    Row, Table, alu,
};

/// All arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrays {
    pub(super) numbers: ArrayId,
    pub(super) outstanding: ArrayId,
    pub(super) tails: ArrayId,
    pub(super) appends: ArrayId,
    pub(super) of_keys: ArrayId,
    pub(super) behind: ArrayId,
    pub(super) states: ArrayId,
    pub(super) keys: [ArrayId; WAYS],
}

/// How large the arrays are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) connections: usize,
    pub(super) slots: usize,
    pub(super) records: usize,
    /// Bound queue pairs, and numbers that each may have in flight.
    pub(super) bound: usize,
    pub(super) numbers: usize,
    /// Of those, atomics.
    pub(super) atomics: usize,
    /// Cells of each way of KEY; TAIL has one for each.
    pub(super) ways: [usize; WAYS],
}

impl Sizes {
    /// Records of connections, of bound queue pairs, and of their atomics' turns.
    fn all_records(&self) -> usize {
        self.records + self.bound * (self.numbers + self.atomics)
    }

    /// How many indexes there are for keys.
    pub(super) fn indexes(&self) -> usize {
        self.ways.iter().sum()
    }

    /// The index, from 1, of a cell of a way.
    pub(super) fn index(&self, way: usize, cell: usize) -> u32 {
        (self.ways[..way].iter().sum::<usize>() + cell + 1) as u32
    }

    /// The cell and the way of an index.
    pub(super) fn cell(&self, index: u32) -> (usize, usize) {
        let mut at = index as usize - 1;
        let mut way = 0;
        while at >= self.ways[way] {
            at -= self.ways[way];
            way += 1;
        }
        (way, at)
    }
}

/// Builds the program.
pub(super) fn build<R: Rules>(rules: R, sizes: Sizes) -> Result<(Program, Fields, Arrays), BuildError> {
    let mut p = ProgramBuilder::new("steering");
    let f = Fields::declare(&mut p);
    let mut array = |name, stage, bits, entries| p.array(Array { name, stage, bits, entries });
    let arrays = Arrays {
        numbers: array("NEXT PSN".into(), NUMBER_STAGE, 32, sizes.connections + 3 * sizes.bound),
        outstanding: array("OUTSTANDING".into(), OUTSTANDING_STAGE, 64, sizes.slots),
        // Indexes are counted from 1, and records too.
        tails: array("TAIL".into(), TAIL_STAGE, 64, sizes.indexes() + 1),
        appends: array("APPEND".into(), TAIL_STAGE, 64, sizes.all_records() + 1),
        of_keys: array("OF KEY".into(), TAIL_STAGE, 32, sizes.all_records() + 1),
        behind: array("BEHIND".into(), BEHIND_STAGE, 64, sizes.all_records() + 1),
        states: array("STATE".into(), BEHIND_STAGE, 16, sizes.all_records() + 1),
        keys: core::array::from_fn(|way| {
            array(format!("KEY way {way}"), KEY_STAGES[way], 64, sizes.ways[way])
        }),
    };
    numbers(&mut p, &f, &arrays);
    bound_number(&mut p, &f);
    operations(rules, &mut p, &f);
    bound_record(&mut p, &f);
    verdicts(rules, &mut p, &f);
    outstanding_and_tail(&mut p, &f, &arrays);
    records(&mut p, &f, &arrays);
    Ok((p.build(&Budget::PUBLISHED)?, f, arrays))
}

/// Is it a packet that the connection has not sent before? And on bound queue pairs: which number is next, is there room for it, how far
/// has the memory come?
fn numbers(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays) {
    p.rmw(Rmw {
        array: arrays.numbers,
        index: f.connection,
        gate: None,
        select: f.class,
        cases: vec![
            (class::WRITE, Alu::Advance(f.sequence)),
            (class::SWAP, Alu::Advance(f.sequence)),
            (class::REQUEST, Alu::Advance(f.sequence)),
            (class::READ, Alu::Advance(f.sequence)),
            (class::HEARD, Alu::Advance(f.sequence)),
            (class::OPEN, Alu::Read),
            (class::ROOM, Alu::Passed(f.sequence)),
            (class::BIND, Alu::CountOrMark(f.one)),
            (class::TURN, Alu::Read),
            (class::TAKEN, Alu::CountOrMark(f.one)),
        ],
        out: Some(f.new),
    });
}

/// A number of a bound queue pair was taken: 24 bits of the counter, of which the lower ones say which record is its.
fn bound_number(p: &mut ProgramBuilder, f: &Fields) {
    p.compute(Compute {
        name: "number".into(),
        stage: OPERATIONS_STAGE,
        gate: Some(Gate::is(f.class, class::BIND)),
        primitives: vec![
            Primitive::And { to: f.taken, a: f.new, b: f.number_mask },
            Primitive::And { to: f.low, a: f.new, b: f.low_mask },
        ],
    });
    p.compute(Compute {
        name: "turn".into(),
        stage: OPERATIONS_STAGE,
        gate: Some(Gate::is(f.class, class::TURN)),
        primitives: vec![Primitive::And { to: f.low, a: f.new, b: f.low_mask }],
    });
}

fn bound_record(p: &mut ProgramBuilder, f: &Fields) {
    p.compute(Compute {
        name: "its record".into(),
        stage: VERDICT_STAGE,
        gate: Some(Gate::is(f.class, class::BIND)),
        primitives: vec![
            Primitive::Add { to: f.record, a: f.low, b: f.first_record },
            Primitive::Or { to: f.index, a: f.taken, b: f.kind },
        ],
    });
    p.compute(Compute {
        name: "the turn's record".into(),
        stage: VERDICT_STAGE,
        gate: Some(Gate::is(f.class, class::TURN)),
        primitives: vec![Primitive::Add { to: f.record, a: f.low, b: f.first_record }],
    });
}

fn set(actions: &[(Field, u64)]) -> Vec<Primitive> {
    actions.iter().map(|&(to, value)| Primitive::Set { to, value }).collect()
}

/// What the arrays do, by the kind of pass.
fn operations<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields) {
    let (outstanding, tail, record, state) = (f.outstanding_op, f.tail_op, f.record_op, f.state_op);
    let row = |class: u64, new: Match, actions: &[(Field, u64)]| Row {
        key: vec![Is(class), new],
        action: set(actions),
    };
    let is_new = if rules.holds(Rule::NumbersAreNew) { Is(1) } else { Any };
    p.table(Table {
        name: "operations".into(),
        stage: OPERATIONS_STAGE,
        gate: None,
        key: vec![f.class, f.new],
        rows: vec![
            row(class::LEARN, Any, &[(outstanding, op::SET)]),
            row(class::KEEP, Any, &[(outstanding, op::KEEP)]),
            // No tail is 0: what is 0 and confirmed stays as it is, and is looked at.
            row(
                class::READ,
                is_new,
                &[(outstanding, op::LOOK), (tail, op::CONFIRM), (record, op::SET), (state, op::SET)],
            ),
            row(class::READ, Any, &[(outstanding, op::LOOK), (tail, op::CONFIRM)]),
            row(
                class::SWAP,
                is_new,
                &[(outstanding, op::TAKE), (tail, op::TAKE), (record, op::SET), (state, op::SET)],
            ),
            row(class::SWAP, Any, &[(record, op::READ), (state, op::READ)]),
            row(class::ANSWER, Any, &[(record, op::READ), (state, op::READ)]),
            row(class::FRONT, Any, &[(record, op::READ), (state, op::READ)]),
            row(class::OPEN, Any, &[(outstanding, op::TAKE)]),
            row(class::BIND, Any, &[(record, op::SET), (state, op::SET)]),
            row(class::HEARD, Any, &[(record, op::READ), (state, op::READ)]),
            row(class::FILLED, Any, &[(state, op::OR)]),
            row(class::TURN, Any, &[(record, op::READ)]),
            row(class::TAKEN, Any, &[(record, op::SET)]),
        ],
        default: Vec::new(),
    });
    p.table(Table {
        name: "held".into(),
        stage: OPERATIONS_STAGE,
        gate: None,
        key: f.held.to_vec(),
        rows: (0..WAYS)
            .map(|way| Row {
                key: (0..WAYS).map(|at| if at == way { Is(alu::HIT) } else { Any }).collect(),
                action: vec![Primitive::Copy { to: f.outstanding, from: f.candidates[way] }],
            })
            .collect(),
        default: Vec::new(),
    });
    p.compute(Compute {
        name: "comparisons".into(),
        stage: OPERATIONS_STAGE,
        gate: None,
        primitives: vec![
            Primitive::Equals { to: f.is_recorded, a: f.number, b: f.recorded_number },
            Primitive::Equals { to: f.is_expected, a: f.original, b: f.expected },
            Primitive::Equals { to: f.is_front, a: f.front, b: f.found_front },
        ],
    });
}

/// What an acknowledgement says in the end: the first row that matches.
fn verdicts<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields) {
    let [appended, failed, lost] = f.marks;
    let key = vec![f.is_recorded, f.native, f.state, f.is_expected, f.is_front, f.front_state];
    let steered = |state: Match, ok: Match, front: Match, front_state: Match, action: Vec<Primitive>| Row {
        key: vec![Is(1), Is(0), state, ok, front, front_state],
        action,
    };
    let native = |state: Match, ok: Match, action: Vec<Primitive>| Row {
        key: vec![Is(1), Is(1), state, ok, Any, Any],
        action,
    };
    let says = |verdict: u64| set(&[(f.verdict, verdict)]);
    // The state changes; and is anything done to the tail?
    let becomes = |verdict: u64, mark: Field, tail: u64| {
        let mut actions = set(&[(f.verdict, verdict), (f.state_op, op::SET), (f.tail_op, tail)]);
        actions.push(Primitive::Copy { to: f.mark, from: mark });
        actions
    };
    let forget = if rules.holds(Rule::MismatchesReset) { op::SET } else { 0 };
    let unsettled = match rules.holds(Rule::AcksWait) {
        true => says(verdict::WAIT),
        false => becomes(verdict::STEERED, appended, op::CONFIRM),
    };
    let behind_failed = match rules.holds(Rule::FollowersFall) {
        true => becomes(verdict::REFUSED, failed, forget),
        false => becomes(verdict::STEERED, appended, op::CONFIRM),
    };
    let pending = || Is(state::PENDING);
    p.table(Table {
        name: "verdict".into(),
        stage: VERDICT_STAGE,
        gate: Some(Gate::is(f.class, class::SETTLE)),
        key,
        rows: vec![
            Row { key: vec![Is(0), Any, Any, Any, Any, Any], action: says(verdict::NONE) },
            native(pending(), Is(1), becomes(verdict::NATIVE, appended, op::TEACH)),
            native(pending(), Is(0), becomes(verdict::AGAIN, failed, 0)),
            native(Any, Any, says(verdict::NATIVE)),
            steered(Is(state::APPENDED), Any, Any, Any, says(verdict::STEERED)),
            steered(Is(state::FAILED), Any, Any, Any, says(verdict::REFUSED)),
            steered(Is(state::LOST), Any, Any, Any, says(verdict::INDETERMINATE)),
            // The word was another one.
            steered(pending(), Is(0), Any, Any, becomes(verdict::REFUSED, failed, forget)),
            steered(
                pending(),
                Any,
                Is(1),
                Is(state::APPENDED),
                becomes(verdict::STEERED, appended, op::CONFIRM),
            ),
            steered(pending(), Any, Is(1), Is(state::FAILED), behind_failed),
            steered(pending(), Any, Is(1), pending(), unsettled),
            // The record in front is gone, or indeterminate itself.
            steered(pending(), Any, Any, Any, becomes(verdict::INDETERMINATE, lost, forget)),
        ],
        default: Vec::new(),
    });
}

fn outstanding_and_tail(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays) {
    p.rmw(Rmw {
        array: arrays.outstanding,
        index: f.slot,
        gate: None,
        select: f.outstanding_op,
        cases: vec![
            (op::SET, Alu::Set(f.outstanding)),
            (op::TAKE, Alu::TakeIfMost(f.outstanding)),
            (op::KEEP, Alu::KeepIfEqual(f.outstanding)),
            (op::LOOK, Alu::LookIfHigh(f.outstanding)),
        ],
        out: Some(f.index),
    });
    p.rmw(Rmw {
        array: arrays.tails,
        index: f.index,
        gate: None,
        select: f.tail_op,
        cases: vec![
            (op::SET, Alu::Set(f.nothing)),
            (op::TAKE, Alu::SetIfAny(f.tail)),
            (op::TEACH, Alu::SetIfZero(f.tail)),
            (op::CONFIRM, Alu::LowerIfEqual(f.tail)),
        ],
        out: Some(f.before),
    });
}

fn records(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays) {
    let mut record = |array, select, operand, out| {
        let cases = vec![(op::READ, Alu::Read), (op::SET, Alu::Set(operand))];
        p.rmw(Rmw { array, index: f.record, gate: None, select, cases, out: Some(out) });
    };
    record(arrays.appends, f.record_op, f.append, f.appended);
    record(arrays.of_keys, f.record_op, f.index, f.of_key);
    key(p, f, arrays, 0);
    let mut record = |array, select, operand, out| {
        let cases = vec![(op::READ, Alu::Read), (op::SET, Alu::Set(operand))];
        p.rmw(Rmw { array, index: f.record, gate: None, select, cases, out: Some(out) });
    };
    record(arrays.behind, f.record_op, f.before, f.behind);
    p.rmw(Rmw {
        array: arrays.states,
        index: f.record,
        gate: None,
        select: f.state_op,
        cases: vec![(op::READ, Alu::Read), (op::SET, Alu::Set(f.mark)), (op::OR, Alu::Or(f.mark))],
        out: Some(f.found_state),
    });
    for way in 1..WAYS {
        key(p, f, arrays, way);
    }
    p.compute(Compute {
        name: "the same".into(),
        stage: BEHIND_STAGE,
        gate: None,
        primitives: vec![Primitive::Equals { to: f.same, a: f.appended, b: f.append }],
    });
}

fn key(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays, way: usize) {
    p.rmw(Rmw {
        array: arrays.keys[way],
        index: f.sets[way],
        gate: None,
        select: f.class,
        cases: vec![(class::WRITE, Alu::MatchTag(f.key))],
        out: Some(f.hit[way]),
    });
}
