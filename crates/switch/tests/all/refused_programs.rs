//! What the chip could not run is not built, and the message names the offender.

use switch::pipeline::step::ArrayId;
use switch::pipeline::{
    Alu, Array, Budget, BuildError, Compute, Field, Gate, Match, Primitive, ProgramBuilder, Rmw, Row, Table,
};

/// A program with one array in stage 1 and one step on it, and its fields.
struct Sketch {
    p: ProgramBuilder,
    index: Field,
    select: Field,
    found: Field,
}

fn sketch() -> Sketch {
    let mut p = ProgramBuilder::new("sketch");
    let index = p.parsed("index", 16);
    let select = p.parsed("select", 4);
    let found = p.metadata("found", 64);
    Sketch { p, index, select, found }
}

impl Sketch {
    fn array(&mut self, name: &str, stage: usize, bits: u32, entries: usize) -> ArrayId {
        self.p.array(Array { name: name.into(), stage, bits, entries })
    }

    fn read(&self, array: ArrayId) -> Rmw {
        Rmw {
            array,
            index: self.index,
            gate: None,
            select: self.select,
            cases: vec![(1, Alu::Read)],
            out: Some(self.found),
        }
    }

    fn compute(&self, name: &str, stage: usize, primitives: Vec<Primitive>) -> Compute {
        Compute { name: name.into(), stage, gate: None, primitives }
    }

    fn refusal(self) -> BuildError {
        self.p.build(&Budget::PUBLISHED).expect_err("refused")
    }
}

fn assert_says(error: &BuildError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn a_stage_beyond_the_chip() {
    let mut s = sketch();
    let array = s.array("far", 12, 8, 1);
    s.p.rmw(s.read(array));
    let error = s.refusal();
    assert_eq!(error, BuildError::StageBeyondChip { what: "far".into(), stage: 12, stages: 12 });
    assert_says(&error, &["far", "stage 12"]);

    let mut s = sketch();
    s.p.compute(s.compute("late", 13, vec![]));
    assert_says(&s.refusal(), &["late", "stage 13"]);
}

#[test]
fn two_accesses_of_an_array_in_one_pass() {
    let mut s = sketch();
    let array = s.array("twice", 1, 8, 1);
    s.p.rmw(s.read(array));
    s.p.rmw(Rmw { out: None, ..s.read(array) });
    assert_eq!(s.refusal(), BuildError::ArrayTwice { array: "twice".into() });
}

#[test]
fn a_step_back_to_an_earlier_stage() {
    let mut s = sketch();
    let (late, early) = (s.array("late", 5, 8, 1), s.array("early", 4, 8, 1));
    s.p.rmw(s.read(late));
    s.p.rmw(Rmw { out: None, ..s.read(early) });
    assert_says(&s.refusal(), &["early", "stage 4", "late", "stage 5", "resubmission"]);
}

#[test]
fn a_result_used_in_its_own_stage() {
    let mut s = sketch();
    let (one, two) = (s.array("one", 3, 8, 1), s.array("two", 3, 8, 1));
    s.p.rmw(s.read(one));
    s.p.rmw(Rmw { index: s.found, out: None, ..s.read(two) });
    let error = s.refusal();
    assert!(matches!(&error, BuildError::UsedTooEarly { stage: 3, writer_stage: 3, .. }), "{error}");
    assert_says(&error, &["one", "two", "found"]);

    let mut s = sketch();
    let (one, two) = (s.array("one", 3, 8, 1), s.array("two", 4, 8, 1));
    s.p.rmw(s.read(one));
    s.p.rmw(Rmw { index: s.found, out: None, ..s.read(two) });
    s.p.build(&Budget::PUBLISHED).expect("a stage later it is there");
}

#[test]
fn a_result_used_before_its_stage() {
    for user in ["gate", "select", "operand", "key"] {
        let mut s = sketch();
        let (one, two) = (s.array("one", 2, 8, 1), s.array("two", 3, 8, 1));
        let read = s.read(one);
        let found = s.found;
        match user {
            "gate" => s.p.rmw(Rmw { gate: Some(Gate::is(found, 1)), out: None, ..read }),
            "select" => s.p.rmw(Rmw { select: found, out: None, ..read }),
            "operand" => s.p.rmw(Rmw { cases: vec![(1, Alu::Or(found))], out: None, ..read }),
            _ => s.p.table(Table {
                name: "one".into(),
                stage: 2,
                gate: None,
                key: vec![found],
                rows: vec![],
                default: vec![],
            }),
        }
        s.p.rmw(s.read(two));
        let error = s.refusal();
        assert!(
            matches!(&error, BuildError::UsedTooEarly { stage: 2, writer_stage: 3, .. }),
            "{user}: {error}"
        );
        assert_says(&error, &["one", "two", "found"]);
    }
}

#[test]
fn a_field_that_nobody_sets() {
    for user in ["index", "gate", "select", "operand"] {
        let mut s = sketch();
        let array = s.array("array", 1, 8, 1);
        let nothing = s.p.metadata("nothing", 8);
        let read = s.read(array);
        s.p.rmw(match user {
            "index" => Rmw { index: nothing, ..read },
            "gate" => Rmw { gate: Some(Gate::is(nothing, 0)), ..read },
            "select" => Rmw { select: nothing, ..read },
            _ => Rmw { cases: vec![(1, Alu::Set(nothing))], ..read },
        });
        let error = s.refusal();
        assert_eq!(error, BuildError::Undefined { step: "array".into(), field: "nothing".into() }, "{user}");
        assert_says(&error, &["array", "nothing"]);
    }
}

#[test]
fn more_than_four_programs_on_an_array() {
    let mut s = sketch();
    let array = s.array("busy", 1, 8, 1);
    let x = s.p.parsed("x", 8);
    let four =
        vec![(0, Alu::Read), (1, Alu::Set(x)), (2, Alu::Or(x)), (3, Alu::SetIfZero(x)), (4, Alu::Read)];
    let mut five = four.clone();
    five.push((5, Alu::TryWriteLock));
    let four = Rmw { cases: four, ..s.read(array) };
    let mut fits = s.p.clone();
    fits.rmw(four);
    fits.build(&Budget::PUBLISHED).expect("four programs, one of them for two selectors");
    s.p.rmw(Rmw { cases: five, ..s.read(array) });
    assert_eq!(s.refusal(), BuildError::TooManyPrograms { array: "busy".into(), have: 5, most: 4 });
}

#[test]
fn the_same_program_with_another_operand_is_another_program() {
    let mut s = sketch();
    let array = s.array("busy", 1, 8, 1);
    let operands: Vec<Field> = (0..5).map(|i| s.p.parsed(format!("x{i}"), 8)).collect();
    let cases = operands.into_iter().enumerate().map(|(at, x)| (at as u64, Alu::Set(x))).collect();
    s.p.rmw(Rmw { cases, ..s.read(array) });
    assert_eq!(s.refusal(), BuildError::TooManyPrograms { array: "busy".into(), have: 5, most: 4 });
}

#[test]
fn selectors_that_are_too_large_or_used_twice() {
    for cases in [vec![(16, Alu::Read)], vec![(2, Alu::Read), (2, Alu::TryReadLock)]] {
        let mut s = sketch();
        let array = s.array("array", 1, 16, 1);
        s.p.rmw(Rmw { cases, ..s.read(array) });
        assert!(matches!(s.refusal(), BuildError::BadSelector { limit: 16, .. }));
    }
}

#[test]
fn cells_that_no_alu_can_handle() {
    for bits in [0, 65, 128] {
        let mut s = sketch();
        s.array("wide", 1, bits, 1);
        assert_eq!(s.refusal(), BuildError::CellTooWide { array: "wide".into(), bits, most: 64 });
    }
}

#[test]
fn an_array_without_cells() {
    let mut s = sketch();
    s.array("none", 1, 8, 0);
    assert_eq!(s.refusal(), BuildError::EmptyArray { array: "none".into() });
}

#[test]
fn an_output_that_does_not_fit_its_field() {
    let mut s = sketch();
    let array = s.array("wide", 1, 32, 1);
    let narrow = s.p.metadata("narrow", 31);
    s.p.rmw(Rmw { out: Some(narrow), ..s.read(array) });
    assert_says(&s.refusal(), &["wide", "32", "narrow", "31"]);
}

#[test]
fn more_memory_than_a_stage_has() {
    // 80 blocks of 16 KiB: 1.25 MiB.
    let mut s = sketch();
    s.array("fits", 1, 64, 80 * 2048);
    s.p.build(&Budget::PUBLISHED).expect("a full stage");

    let mut s = sketch();
    s.array("small", 1, 8, 100);
    s.array("large", 1, 64, 80 * 2048);
    let error = s.refusal();
    assert_eq!(error, BuildError::StageSram { stage: 1, largest: "large".into(), blocks: 81, most: 80 });
    assert_says(&error, &["stage 1", "large"]);
}

#[test]
fn more_memory_than_the_chip_gives() {
    let mut s = sketch();
    for stage in 0..12 {
        s.array(&format!("part {stage}"), stage, 64, 40 * 2048);
    }
    let budget = Budget { sram_blocks: 479, ..Budget::PUBLISHED };
    let error = s.p.build(&budget).expect_err("refused");
    assert_eq!(error, BuildError::ChipSram { blocks: 480, most: 479 });
}

#[test]
fn more_arrays_in_a_stage_than_it_has_stateful_alus() {
    let mut s = sketch();
    for name in ["a", "b", "c", "d", "e"] {
        s.array(name, 7, 8, 1);
    }
    let error = s.refusal();
    assert_says(&error, &["stage 7", "a, b, c, d, e", "4 stateful ALUs"]);
}

#[test]
fn more_ternary_rows_or_tables_than_a_stage_has() {
    let table = |s: &Sketch, name: &str, rows: usize| Table {
        name: name.into(),
        stage: 2,
        gate: None,
        key: vec![s.index],
        rows: (0..rows).map(|_| Row { key: vec![Match::Any], action: vec![] }).collect(),
        default: vec![],
    };
    let mut s = sketch();
    s.p.table(table(&s, "ternary", 200));
    let budget = Budget { tcam_blocks_per_stage: 1, tcam_block_rows: 100, ..Budget::PUBLISHED };
    let error = s.p.clone().build(&budget).expect_err("refused");
    assert_eq!(error, BuildError::StageTcam { stage: 2, largest: "ternary".into(), blocks: 2, most: 1 });

    let mut s = sketch();
    for at in 0..17 {
        s.p.table(table(&s, &format!("table {at}"), 1));
    }
    assert_eq!(s.refusal(), BuildError::TooManyTables { stage: 2, have: 17, most: 16 });
}

#[test]
fn more_fields_than_the_phv_holds() {
    let mut s = sketch();
    for at in 0..61 {
        s.p.metadata(format!("field {at}"), 1);
    }
    assert_eq!(s.refusal(), BuildError::TooManyFields { have: 64, most: 63 });

    let s = sketch();
    let budget = Budget { phv_bits: 80, ..Budget::PUBLISHED };
    let error = s.p.build(&budget).expect_err("refused");
    assert_eq!(error, BuildError::PhvTooWide { bits: 84, most: 80 });

    let mut s = sketch();
    s.p.metadata("huge", 65);
    assert_eq!(s.refusal(), BuildError::FieldWidth { field: "huge".into(), bits: 65 });
}

#[test]
fn instructions_side_by_side_that_need_each_other() {
    let mut s = sketch();
    let other = s.p.metadata("other", 8);
    let chained =
        vec![Primitive::Set { to: s.found, value: 1 }, Primitive::Copy { to: other, from: s.found }];
    s.p.compute(s.compute("chain", 1, chained));
    assert_eq!(s.refusal(), BuildError::Chained { step: "chain".into(), field: "found".into() });

    let mut s = sketch();
    let twice = vec![Primitive::Set { to: s.found, value: 1 }, Primitive::Set { to: s.found, value: 2 }];
    s.p.compute(s.compute("twice", 1, twice));
    assert_eq!(s.refusal(), BuildError::Chained { step: "twice".into(), field: "found".into() });
}

#[test]
fn two_writers_of_a_field_in_one_stage_unless_their_gates_exclude_each_other() {
    let with_gates = |one: Option<Gate>, two: Option<Gate>, s: &mut Sketch| {
        let set = |value| vec![Primitive::Set { to: s.found, value }];
        let (a, b) = (s.compute("a", 1, set(1)), s.compute("b", 1, set(2)));
        s.p.compute(Compute { gate: one, ..a });
        s.p.compute(Compute { gate: two, ..b });
    };
    let s = sketch();
    let f = s.select;
    let conflicting = [
        (None, None),
        (Some(Gate::is(f, 1)), None),
        (Some(Gate::is(f, 1)), Some(Gate::is(s.index, 2))),
        (Some(Gate::is(f, 1)), Some(Gate::is_not(f, 2))),
        (Some(Gate::has(f, 1)), Some(Gate::is(f, 3))),
        (Some(Gate::is_not(f, 1)), Some(Gate::is_not(f, 1))),
    ];
    for (one, two) in conflicting {
        let mut s = sketch();
        with_gates(one, two, &mut s);
        let error = s.refusal();
        assert!(matches!(&error, BuildError::WriteConflict { stage: 1, .. }), "{one:?} {two:?} {error}");
        assert_says(&error, &["a and b", "found"]);
    }
    let exclusive = [
        (Gate::is(f, 1), Gate::is(f, 2)),
        (Gate::is(f, 1), Gate::is_not(f, 1)),
        (Gate::has(f, 4), Gate::is(f, 1)),
    ];
    for (one, two) in exclusive {
        let mut s = sketch();
        with_gates(Some(one), Some(two), &mut s);
        s.p.build(&Budget::PUBLISHED).expect("only one of them can run");
    }
}

#[test]
fn rows_that_do_not_fit_their_key() {
    for key in [vec![], vec![Match::Any, Match::Any], vec![Match::Is(16)], vec![Match::Has(1 << 20)]] {
        let mut s = sketch();
        let rows = vec![Row { key, action: vec![] }];
        let key = vec![s.select];
        s.p.table(Table { name: "odd".into(), stage: 1, gate: None, key, rows, default: vec![] });
        assert_eq!(s.refusal(), BuildError::BadRow { table: "odd".into(), row: 0 });
    }
}

#[test]
fn keys_and_tables_that_are_too_large() {
    let mut s = sketch();
    let wide = s.p.parsed("wide", 60);
    let key = vec![wide, s.index];
    s.p.table(Table { name: "wide".into(), stage: 1, gate: None, key, rows: vec![], default: vec![] });
    assert_eq!(s.refusal(), BuildError::KeyTooWide { table: "wide".into(), bits: 76, most: 64 });

    let mut s = sketch();
    let key = vec![s.select];
    let rows = vec![Row { key: vec![Match::Any], action: vec![] }; 256];
    s.p.table(Table { name: "long".into(), stage: 1, gate: None, key, rows, default: vec![] });
    assert_eq!(s.refusal(), BuildError::TooManyRows { table: "long".into(), have: 256, most: 255 });
}

#[test]
fn arrays_and_fields_of_another_program() {
    let mut other = sketch();
    let foreign = other.array("foreign", 1, 8, 1);
    let mut s = sketch();
    s.p.rmw(s.read(foreign));
    assert!(matches!(s.refusal(), BuildError::Unknown { .. }));

    let field = other.p.metadata("foreign", 8);
    let mut s = sketch();
    let (to, from) = (s.found, field);
    s.p.compute(s.compute("odd", 1, vec![Primitive::Copy { to, from }]));
    assert_eq!(s.refusal(), BuildError::Unknown { step: "odd".into() });
}
