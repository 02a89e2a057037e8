//! What a verified program does to packets.

use switch::pipeline::{
    Alu, Array, Budget, Compute, Field, Gate, Match, Phv, Primitive, Program, ProgramBuilder, Rmw, Row, Table,
};

/// A field's value after a pass that began with these values.
fn after(program: &mut Program, set: &[(Field, u64)], field: Field) -> u64 {
    let mut phv = Phv::new();
    for (field, value) in set {
        phv.set(*field, *value);
    }
    program.run(&mut phv);
    phv.get(field)
}

#[test]
fn a_counter_per_index_counts_what_its_selector_says() {
    let mut p = ProgramBuilder::new("counters");
    let [index, select, operand] = ["index", "select", "operand"].map(|name| p.parsed(name, 8));
    let count = p.metadata("count", 8);
    let array = p.array(Array { name: "counts".into(), stage: 0, bits: 8, entries: 3 });
    let cases = vec![(1, Alu::CountOrMark(operand)), (2, Alu::Read)];
    p.rmw(Rmw { array, index, gate: None, select, cases, out: Some(count) });
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    let mut run = |at, what| after(&mut program, &[(index, at), (select, what), (operand, 1)], count);
    assert_eq!([run(0, 1), run(0, 1), run(2, 1)], [1, 2, 1]);
    assert_eq!([run(0, 2), run(1, 2), run(2, 2)], [2, 0, 1]);
    assert_eq!(run(0, 3), 0, "no program, no access");
    assert_eq!(run(3, 1), 0, "no cell, no access");
    assert_eq!(run(u64::MAX, 1), 0);
    assert_eq!(program.cells(array).collect::<Vec<_>>(), [2, 0, 1]);
    assert_eq!(program.passes(), 9);
}

#[test]
fn a_cell_keeps_the_bits_that_it_has() {
    let mut p = ProgramBuilder::new("narrow");
    let [index, select] = ["index", "select"].map(|name| p.parsed(name, 8));
    let value = p.parsed("value", 64);
    let array = p.array(Array { name: "five bits".into(), stage: 0, bits: 5, entries: 4 });
    p.rmw(Rmw { array, index, gate: None, select, cases: vec![(0, Alu::Set(value))], out: None });
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    after(&mut program, &[(index, 1), (value, u64::MAX)], value);
    assert_eq!(program.cells(array).collect::<Vec<_>>(), [0, 31, 0, 0]);
}

#[test]
fn a_closed_gate_skips_its_group_and_nothing_else() {
    let mut p = ProgramBuilder::new("gates");
    let open = p.parsed("open", 1);
    let outs: Vec<Field> = (0..5).map(|at| p.metadata(format!("out {at}"), 8)).collect();
    let gates = [None, Some(Gate::is(open, 1)), Some(Gate::is(open, 1)), Some(Gate::is_not(open, 1)), None];
    for (at, gate) in gates.into_iter().enumerate() {
        let primitives = vec![Primitive::Set { to: outs[at], value: 1 }];
        p.compute(Compute { name: format!("step {at}"), stage: at, gate, primitives });
    }
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    let mut ran =
        |value| outs.iter().map(|out| after(&mut program, &[(open, value)], *out)).collect::<Vec<_>>();
    assert_eq!(ran(1), [1, 1, 1, 0, 1]);
    assert_eq!(ran(0), [1, 0, 0, 1, 1]);
}

#[test]
fn a_gate_that_its_own_step_changes_is_looked_at_again() {
    let mut p = ProgramBuilder::new("changing");
    let field = p.metadata("field", 8);
    let outs = [0, 1].map(|at| p.metadata(format!("out {at}"), 8));
    let mut compute = |stage, gate, to, value| {
        let primitives = vec![Primitive::Set { to, value }];
        p.compute(Compute { name: format!("stage {stage}"), stage, gate, primitives });
    };
    compute(0, Some(Gate::is(field, 0)), field, 2);
    compute(1, Some(Gate::is(field, 0)), outs[0], 1);
    compute(1, Some(Gate::is(field, 2)), outs[1], 1);
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    assert_eq!(outs.map(|out| after(&mut program, &[], out)), [0, 1]);
}

#[test]
fn steps_that_wait_for_each_other_keep_their_order_whatever_their_gates() {
    // a, then b from a, then c from b, where a and c share a gate and b does not.
    let mut p = ProgramBuilder::new("order");
    let [x, open] = ["x", "open"].map(|name| p.parsed(name, 8));
    let [a, b, c] = ["a", "b", "c"].map(|name| p.metadata(name, 8));
    let gate = Some(Gate::is(open, 1));
    let mut copy = |stage, gate, to, from| {
        let primitives = vec![Primitive::Copy { to, from }];
        p.compute(Compute { name: format!("stage {stage}"), stage, gate, primitives });
    };
    copy(0, gate, a, x);
    copy(1, None, b, a);
    copy(2, gate, c, b);
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    assert_eq!([0, 1].map(|value| after(&mut program, &[(x, 5), (open, value)], c)), [0, 5]);

    // Two writers of one field, the last of which has the gate of an earlier step.
    let mut p = ProgramBuilder::new("writers");
    let open = p.parsed("open", 8);
    let [a, b] = ["a", "b"].map(|name| p.metadata(name, 8));
    let gate = Some(Gate::is(open, 1));
    let mut set = |stage, gate, to, value| {
        let primitives = vec![Primitive::Set { to, value }];
        p.compute(Compute { name: format!("stage {stage}"), stage, gate, primitives });
    };
    set(0, gate, a, 1);
    set(1, None, b, 1);
    set(2, gate, b, 2);
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    assert_eq!([0, 1].map(|value| after(&mut program, &[(open, value)], b)), [1, 2]);
}

#[test]
fn the_last_writer_that_runs_wins() {
    let mut p = ProgramBuilder::new("writers");
    let way = p.parsed("way", 8);
    let out = p.metadata("out", 8);
    for at in 0..3 {
        let primitives = vec![Primitive::Set { to: out, value: 10 + at as u64 }];
        p.compute(Compute {
            name: format!("way {at}"),
            stage: at,
            gate: Some(Gate::has(way, 1 << at)),
            primitives,
        });
    }
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    let mut of = |ways| after(&mut program, &[(way, ways)], out);
    assert_eq!([of(0), of(1), of(2), of(4), of(5), of(3)], [0, 10, 11, 12, 12, 11]);
}

#[test]
fn the_first_row_that_matches_acts_with_short_keys_and_long_ones() {
    for bits in [8, 30] {
        let mut p = ProgramBuilder::new("table");
        let keys = [0, 1].map(|at| p.parsed(format!("key {at}"), if at == 0 { 4 } else { bits }));
        let out = p.metadata("out", 8);
        let row = |key: [Match; 2], value| Row {
            key: key.to_vec(),
            action: vec![Primitive::Set { to: out, value }],
        };
        let rows = vec![
            row([Match::Is(1), Match::Is(2)], 1),
            row([Match::Is(1), Match::Has(4)], 2),
            row([Match::Any, Match::Is(2)], 3),
        ];
        let default = vec![Primitive::Set { to: out, value: 9 }];
        p.table(Table { name: "t".into(), stage: 0, gate: None, key: keys.to_vec(), rows, default });
        let mut program = p.build(&Budget::PUBLISHED).unwrap();
        let mut of = |a, b| after(&mut program, &[(keys[0], a), (keys[1], b)], out);
        assert_eq!(
            [of(1, 2), of(1, 4), of(1, 6), of(3, 2), of(3, 4), of(1, 1)],
            [1, 2, 2, 3, 9, 9],
            "{bits}"
        );
        assert_eq!(of(17, 2), 1, "a key field has the bits that it was declared with");
    }
}

#[test]
fn a_program_without_an_output_leaves_the_field_alone() {
    let mut p = ProgramBuilder::new("release");
    let [index, select, x] = ["index", "select", "x"].map(|name| p.parsed(name, 16));
    let out = p.parsed("out", 16);
    let array = p.array(Array { name: "lock".into(), stage: 0, bits: 16, entries: 1 });
    let cases = vec![(0, Alu::TryReadLock), (1, Alu::Release(x))];
    p.rmw(Rmw { array, index, gate: None, select, cases, out: Some(out) });
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    assert_eq!(after(&mut program, &[(out, 77)], out), 1);
    assert_eq!(after(&mut program, &[(out, 77), (select, 1), (x, 1)], out), 77);
    assert_eq!(program.cell(array, 0), Some(0));
}

#[test]
fn a_plan_leaves_out_what_nobody_sees_and_nothing_else() {
    let mut p = ProgramBuilder::new("seen");
    let x = p.parsed("x", 8);
    let [at, one] = ["at", "one"].map(|name| p.parsed(name, 8));
    let [seen, unseen, old, last] = ["seen", "unseen", "old", "last"].map(|name| p.metadata(name, 8));
    let copy = |stage, to, from| {
        let primitives = vec![Primitive::Copy { to, from }];
        Compute { name: format!("stage {stage}"), stage, gate: None, primitives }
    };
    p.compute(copy(0, seen, x));
    p.compute(copy(0, unseen, x));
    let cells = p.array(Array { name: "kept".into(), stage: 1, bits: 8, entries: 1 });
    let cases = vec![(1, Alu::Set(x))];
    p.rmw(Rmw { array: cells, index: at, gate: None, select: one, cases, out: Some(old) });
    p.compute(copy(2, last, seen));
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    let plan = program.plan(&[(one, 1)], &[last], &[]).unwrap();
    let mut phv = Phv::new();
    phv.set(x, 7);
    program.run_plan(&plan, &mut phv);
    assert_eq!([last, seen, unseen, old].map(|field| phv.get(field)), [7, 7, 0, 0]);
    assert_eq!(program.cell(cells, 0), Some(7), "what is in an array is seen by the next packet");
}

#[test]
fn a_plan_that_decides_on_the_way_does_what_the_program_does() {
    let mut p = ProgramBuilder::new("decisions");
    let ([x, z], y) = ([p.parsed("x", 2), p.parsed("z", 8)], p.parsed("y", 1));
    let [kept, both, op] = ["kept", "both", "op"].map(|name| p.metadata(name, 8));
    let sum = p.metadata("sum", 8);
    let [cells, more] = [("cells", 1), ("more", 3)]
        .map(|(name, stage)| p.array(Array { name: name.into(), stage, bits: 8, entries: 4 }));
    let stage = |stage, gate, primitives| Compute { name: format!("stage {stage}"), stage, gate, primitives };
    p.compute(stage(0, Some(Gate::is(y, 1)), vec![Primitive::Copy { to: both, from: z }]));
    let cases = vec![(0, Alu::Or(z)), (1, Alu::Set(z))];
    p.rmw(Rmw { array: cells, index: x, gate: Some(Gate::is_not(x, 2)), select: y, cases, out: Some(kept) });
    let row =
        |key: [Match; 2], value| Row { key: key.to_vec(), action: vec![Primitive::Set { to: op, value }] };
    p.table(Table {
        name: "operation".into(),
        stage: 2,
        gate: None,
        key: vec![x, y],
        rows: vec![row([Match::Is(3), Match::Any], 1), row([Match::Has(1), Match::Is(1)], 2)],
        default: Vec::new(),
    });
    let cases = vec![(1, Alu::Or(kept)), (2, Alu::Set(kept))];
    p.rmw(Rmw { array: more, index: x, gate: None, select: op, cases, out: None });
    p.compute(stage(4, None, vec![Primitive::Or { to: sum, a: kept, b: both }]));
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    let plans = [&[][..], &[x], &[y], &[x, y], &[y, x]].map(|fields| {
        let plan = program.plan(&[], &[sum, op], fields).unwrap();
        (plan, program.clone())
    });
    for (plan, mut planned) in plans {
        for input in 0..64 {
            let mut phv = Phv::new();
            for (field, value) in [(x, input % 4), (y, input / 4 % 2), (z, 1 << (input / 8))] {
                phv.set(field, value);
            }
            let mut expected = phv.clone();
            program.run(&mut expected);
            planned.run_plan(&plan, &mut phv);
            for field in [sum, op] {
                assert_eq!(phv.get(field), expected.get(field), "{field:?} of {input}");
            }
            assert_eq!(planned.all_cells(), program.all_cells(), "{input}");
        }
        program.clear();
    }
}

#[test]
fn a_plan_goes_where_a_field_was_copied_from_unless_it_got_another_value() {
    let mut p = ProgramBuilder::new("copies");
    let (x, y) = (p.parsed("x", 3), p.parsed("y", 1));
    let [same, perhaps] = ["same", "perhaps"].map(|name| p.metadata(name, 3));
    let [cells, more] = [("cells", 2), ("more", 3)]
        .map(|(name, stage)| p.array(Array { name: name.into(), stage, bits: 8, entries: 8 }));
    let copies = [same, perhaps].map(|to| Primitive::Copy { to, from: x });
    let another = vec![Primitive::Set { to: perhaps, value: 5 }];
    for (stage, gate, primitives) in [(0, None, copies.to_vec()), (1, Some(Gate::is(y, 1)), another)] {
        p.compute(Compute { name: format!("stage {stage}"), stage, gate, primitives });
    }
    for (array, index) in [(cells, same), (more, perhaps)] {
        p.rmw(Rmw { array, index, gate: None, select: x, cases: vec![(3, Alu::Set(x))], out: None });
    }
    let mut program = p.build(&Budget::PUBLISHED).unwrap();
    let plan = program.plan(&[], &[], &[]).unwrap();
    let mut phv = Phv::new();
    phv.set(x, 3);
    phv.set(y, 1);
    program.run_plan(&plan, &mut phv);
    assert_eq!((program.cell(cells, 3), program.cell(more, 5)), (Some(3), Some(3)));
    assert_eq!(phv.get(same), 0, "nobody sees it");
}
