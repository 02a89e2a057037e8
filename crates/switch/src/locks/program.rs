//! The steps of the program, stage by stage.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use wire::{Rule, Rules};

use super::layout::{
    Fields, HOLDER_STAGE, MERGE_STAGE, OPERATIONS_STAGE, OWNERSHIP_STAGE, ROUTE_STAGE, SHARERS_STAGE,
    TAG_STAGE, WAITERS_STAGE, WAYS, WHOSE_STAGE, class, route, set_op,
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
    pub(super) tags: [ArrayId; WAYS],
    pub(super) ownerships: [ArrayId; WAYS],
    pub(super) waiters: ArrayId,
    pub(super) writers: ArrayId,
    pub(super) sharers: ArrayId,
}

impl Arrays {
    pub(super) fn all(&self) -> impl Iterator<Item = ArrayId> {
        self.tags.into_iter().chain(self.ownerships).chain([self.waiters, self.writers, self.sharers])
    }
}

/// Builds the program for so many sets of [`WAYS`] entries.
pub(super) fn build<R: Rules>(rules: R, sets: usize) -> Result<(Program, Fields, Arrays), BuildError> {
    let mut p = ProgramBuilder::new("locks");
    let f = Fields::declare(&mut p);
    let mut array = |name, stage, entries| p.array(Array { name, stage, bits: 64, entries });
    let arrays = Arrays {
        tags: core::array::from_fn(|way| array(format!("LOCK TAG way {way}"), TAG_STAGE, sets)),
        ownerships: core::array::from_fn(|way| array(format!("OWNERSHIP way {way}"), OWNERSHIP_STAGE, sets)),
        waiters: array("WAITERS".into(), WAITERS_STAGE, sets * WAYS),
        writers: array("WRITERS".into(), SHARERS_STAGE, sets * WAYS),
        sharers: array("SHARERS".into(), SHARERS_STAGE, sets * WAYS),
    };
    find(rules, &mut p, &f, &arrays);
    whose(&mut p, &f);
    operations(rules, &mut p, &f);
    sets_of_nodes(&mut p, &f, &arrays);
    decide(rules, &mut p, &f);
    Ok((p.build(&Budget::PUBLISHED)?, f, arrays))
}

/// The entry's way; its term, read, taken, compared or raised.
fn find<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays) {
    for way in 0..WAYS {
        p.rmw(Rmw {
            array: arrays.tags[way],
            index: f.set,
            gate: None,
            select: f.one,
            cases: vec![(1, Alu::MatchTag(f.key))],
            out: Some(f.hit[way]),
        });
    }
    for way in 0..WAYS {
        p.rmw(Rmw {
            array: arrays.ownerships[way],
            index: f.set,
            gate: Some(Gate::is(f.hit[way], alu::HIT)),
            select: f.class,
            cases: vec![
                (class::READ, Alu::Read),
                (class::WRITE, Alu::TakeIfFree(f.taker)),
                (
                    class::MOVE,
                    if rules.holds(Rule::OneMoveAtATime) { Alu::MarkIfEqual(f.claim) } else { Alu::Read },
                ),
                (class::COMMIT, Alu::Raise(f.claim)),
                (class::LOOK, Alu::Raise(f.claim)),
            ],
            out: Some(f.ownerships[way]),
        });
    }
    let found = |way: usize| Row {
        key: (0..WAYS).map(|at| if at == way { Is(alu::HIT) } else { Any }).collect(),
        action: vec![
            Primitive::Set { to: f.found, value: 1 },
            Primitive::Copy { to: f.cell, from: f.cells[way] },
        ],
    };
    p.table(Table {
        name: "found".into(),
        stage: OWNERSHIP_STAGE,
        gate: None,
        key: f.hit.to_vec(),
        rows: (0..WAYS).map(found).collect(),
        default: Vec::new(),
    });
}

fn whose(p: &mut ProgramBuilder, f: &Fields) {
    p.compute(Compute {
        name: "ownership".into(),
        stage: MERGE_STAGE,
        gate: None,
        primitives: vec![Primitive::Or { to: f.ownership, a: f.ownerships[0], b: f.ownerships[1] }],
    });
    p.compute(Compute {
        name: "holder".into(),
        stage: HOLDER_STAGE,
        gate: None,
        primitives: vec![
            Primitive::And { to: f.holder, a: f.ownership, b: f.holder_bits },
            Primitive::Equals { to: f.owned, a: f.ownership, b: f.claim },
            Primitive::Equals { to: f.marked, a: f.ownership, b: f.marked_claim },
        ],
    });
    p.compute(Compute {
        name: "whose".into(),
        stage: WHOSE_STAGE,
        gate: None,
        primitives: vec![
            Primitive::IsZero { to: f.free, from: f.holder },
            Primitive::Equals { to: f.mine, a: f.holder, b: f.me },
        ],
    });
}

/// What the sets of nodes do, by the kind of pass and what the term said: the first row that matches.
fn operations<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields) {
    let row = |class: u64, free: Match, mine: Match, owned: Match, actions: &[(Field, u64)]| Row {
        key: vec![Is(class), free, mine, owned],
        action: actions.iter().map(|&(to, value)| Primitive::Set { to, value }).collect(),
    };
    let of_this_term = if rules.holds(Rule::MoveIsOfThisTerm) { Is(1) } else { Any };
    let (waiters, writers, sharers) = (f.waiters_op, f.writers_op, f.sharers_op);
    p.table(Table {
        name: "operations".into(),
        stage: OPERATIONS_STAGE,
        gate: Some(Gate::is(f.found, 1)),
        key: vec![f.class, f.free, f.mine, f.owned],
        rows: vec![
            row(class::READ, Is(1), Any, Any, &[(sharers, set_op::ADD)]),
            row(class::READ, Any, Is(1), Any, &[(sharers, set_op::READ)]),
            row(class::READ, Any, Any, Any, &[(waiters, set_op::ADD)]),
            row(class::WRITE, Is(1), Any, Any, &[(sharers, set_op::READ)]),
            row(class::WRITE, Any, Is(1), Any, &[(sharers, set_op::READ)]),
            row(class::WRITE, Any, Any, Any, &[(waiters, set_op::ADD), (writers, set_op::ADD)]),
            row(class::MOVE, Any, Any, of_this_term, &[(waiters, set_op::CLEAR)]),
            row(
                class::COMMIT,
                Any,
                Any,
                Any,
                &[(waiters, set_op::ADD), (writers, set_op::KEEP), (sharers, set_op::SET)],
            ),
            row(class::LOOK, Any, Any, Any, &[(waiters, set_op::READ), (writers, set_op::READ)]),
        ],
        default: Vec::new(),
    });
}

fn sets_of_nodes(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays) {
    let mut set = |array, select, operand, out, more: &[(u64, Alu)]| {
        let mut cases = vec![(set_op::READ, Alu::Read), (set_op::ADD, Alu::Or(operand))];
        cases.extend_from_slice(more);
        p.rmw(Rmw { array, index: f.cell, gate: Some(Gate::is(f.found, 1)), select, cases, out: Some(out) });
    };
    let (waiters, writers, sharers) = (f.waiters_operand, f.writers_operand, f.sharers_operand);
    set(arrays.waiters, f.waiters_op, waiters, f.waiting, &[(set_op::CLEAR, Alu::ClearIfEqual(waiters))]);
    set(arrays.writers, f.writers_op, writers, f.writers, &[(set_op::KEEP, Alu::And(writers))]);
    set(arrays.sharers, f.sharers_op, sharers, f.sharers, &[(set_op::SET, Alu::Set(sharers))]);
    p.compute(Compute {
        name: "all known".into(),
        stage: SHARERS_STAGE,
        gate: None,
        primitives: vec![Primitive::Equals { to: f.all_known, a: f.waiting, b: f.one }],
    });
}

/// What becomes of the packet: the first row that matches.
fn decide<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields) {
    let row = |class: u64, free: Match, mine: Match, owned: Match, all_known: Match, to: u64| Row {
        key: vec![Is(class), free, mine, owned, Any, all_known],
        action: vec![Primitive::Set { to: f.route, value: to }],
    };
    // Another copy of it is between its passes, and will say what becomes of it.
    let in_flight = Row {
        key: vec![Is(class::MOVE), Any, Any, Any, Is(1), Any],
        action: vec![Primitive::Set { to: f.route, value: route::IGNORE }],
    };
    let over = if rules.holds(Rule::MoveIsOfThisTerm) { route::APPROVED } else { route::COMMIT };
    let known = if rules.holds(Rule::MoveKnowsAll) { Is(1) } else { Any };
    let in_the_way = if rules.holds(Rule::HolderQueues) { route::FORWARD } else { route::SERVE };
    p.table(Table {
        name: "route".into(),
        stage: ROUTE_STAGE,
        gate: Some(Gate::is(f.found, 1)),
        key: vec![f.class, f.free, f.mine, f.owned, f.marked, f.all_known],
        rows: vec![
            row(class::READ, Is(1), Any, Any, Any, route::SERVE),
            // It may not know that it holds: a late copy of a request to write took the lock, and what that brought was lost.
            row(class::READ, Any, Is(1), Any, Any, route::LEND),
            row(class::READ, Any, Any, Any, Any, in_the_way),
            row(class::WRITE, Is(1), Any, Any, Any, route::LEND),
            // Again: something of what the first brought about is missing.
            row(class::WRITE, Any, Is(1), Any, Any, route::LEND),
            row(class::WRITE, Any, Any, Any, Any, route::FORWARD),
            in_flight,
            row(class::MOVE, Any, Any, Is(0), Any, over),
            row(class::MOVE, Any, Any, Any, known, route::COMMIT),
            row(class::MOVE, Any, Any, Any, Any, route::LOOK),
            row(class::COMMIT, Any, Any, Any, Any, route::PASS_ON),
            row(class::LOOK, Any, Any, Any, Any, route::DENIED),
        ],
        default: Vec::new(),
    });
}
