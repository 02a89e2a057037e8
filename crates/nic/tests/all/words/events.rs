//! Single events, and operations at their edges.

use nic::words::{
    Done, Effect, EntryId, Folder, Lines, LinesConfig, Operands, Operation, Refused, Request, Width, of_wire,
};
use wire::Rules;
use wire::roce::batch;
use wire::rules::AllRules;

const fn add(ticket: u64, address: u64) -> Request {
    let operands = Operands { operand: 1, expected: 0 };
    Request { ticket, address, width: Width::Double, operation: Operation::Add, operands }
}

fn executed(engine: &mut Lines) -> Vec<Effect> {
    let mut out = Vec::new();
    while engine.execute(&mut out) {}
    out
}

#[test]
fn one_fetch_and_one_release_serve_all_that_wait() {
    let mut engine = Lines::new(LinesConfig::PAPER);
    let mut out = Vec::new();
    for ticket in 0..10 {
        engine.on_request(add(ticket, 8 * (ticket % 2)), &mut out).unwrap();
    }
    assert_eq!(out, [Effect::Fetch { entry: EntryId(0), line: 0 }]);
    engine.on_line(EntryId(0), [5, 7, 0, 0, 0, 0, 0, 0]);
    let out = executed(&mut engine);
    assert_eq!(out.len(), 11);
    assert_eq!(out[0], Effect::Done(Done { ticket: 0, old: 5 }));
    assert_eq!(out[3], Effect::Done(Done { ticket: 3, old: 8 }));
    assert_eq!(out[10], Effect::Release { line: 0, changed: Some([10, 12, 0, 0, 0, 0, 0, 0]) });
    assert_eq!((engine.counters().fetched, engine.counters().merged), (1, 9));
}

#[test]
fn what_is_only_read_is_not_written_back() {
    let mut engine = Lines::new(LinesConfig::PAPER);
    engine.on_request(Request { operation: Operation::Load, ..add(1, 16) }, &mut Vec::new()).unwrap();
    engine.on_line(EntryId(0), [9; 8]);
    let done = Effect::Done(Done { ticket: 1, old: 9 });
    assert_eq!(executed(&mut engine), [done, Effect::Release { line: 0, changed: None }]);
    assert_eq!(engine.counters().written, 0);
}

#[test]
fn what_comes_while_a_line_is_worked_on_joins_it() {
    let mut engine = Lines::new(LinesConfig::PAPER);
    let mut out = Vec::new();
    engine.on_request(add(1, 0), &mut out).unwrap();
    engine.on_request(add(2, 0), &mut out).unwrap();
    engine.on_line(EntryId(0), [0; 8]);
    assert!(engine.execute(&mut out));
    engine.on_request(add(3, 0), &mut out).unwrap();
    assert_eq!(executed(&mut engine).len(), 3, "two are done, and the line goes");
    assert_eq!(engine.counters().fetched, 1);
}

#[test]
fn two_lines_of_one_place_come_one_after_the_other() {
    let mut engine = Lines::new(LinesConfig { lines: 2, ..LinesConfig::PAPER });
    let mut out = Vec::new();
    engine.on_request(add(1, 0), &mut out).unwrap();
    engine.on_request(add(2, 128), &mut out).unwrap();
    engine.on_request(add(3, 64), &mut out).unwrap();
    let fetched: Vec<u64> = out
        .iter()
        .map(|effect| match effect {
            Effect::Fetch { line, .. } => *line,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(fetched, [0, 1]);
    engine.on_line(EntryId(0), [0; 8]);
    assert_eq!(executed(&mut engine).last(), Some(&Effect::Fetch { entry: EntryId(1), line: 2 }));
}

/// Whether a line gets its place while another one, which has it, is asked for again and again.
pub(crate) fn gets_its_turn<R: Rules>(rules: R) -> bool {
    let mut engine = Lines::with_rules(rules, LinesConfig { lines: 2, ..LinesConfig::PAPER });
    let mut out = Vec::new();
    engine.on_request(add(0, 0), &mut out).unwrap();
    engine.on_line(EntryId(0), [0; 8]);
    engine.on_request(add(1, 128), &mut out).unwrap();
    for ticket in 2..1_000 {
        engine.on_request(add(ticket, 0), &mut out).unwrap();
        engine.execute(&mut out);
        if out.iter().any(|effect| matches!(effect, Effect::Fetch { line: 2, .. })) {
            return true;
        }
    }
    false
}

#[test]
fn a_line_that_waits_for_its_place_gets_it() {
    assert!(gets_its_turn(AllRules));
}

#[test]
fn what_finds_no_room_waits_outside() {
    let mut engine = Lines::new(LinesConfig { entries: 1, subentries: 2, ..LinesConfig::PAPER });
    let mut out = Vec::new();
    engine.on_request(add(1, 0), &mut out).unwrap();
    assert_eq!(engine.on_request(add(2, 64), &mut out), Err(Refused::Full), "no entry");
    engine.on_request(add(3, 0), &mut out).unwrap();
    assert_eq!(engine.on_request(add(4, 0), &mut out), Err(Refused::Full), "no subentry");
    assert_eq!(engine.counters().full, 2);
    assert_eq!(engine.on_request(add(5, 4), &mut out), Err(Refused::Misaligned));
}

#[test]
fn minimum_and_maximum_are_signed_and_words_are_extended() {
    let apply = |operation: Operation, width, old, operand| {
        operation.apply(width, old, Operands { operand, expected: 0 })
    };
    let minus_one = u64::MAX;
    assert_eq!(apply(Operation::Min, Width::Double, 1, minus_one), minus_one);
    assert_eq!(apply(Operation::Max, Width::Double, 1, minus_one), 1);
    assert_eq!(apply(Operation::Min, Width::Word, 1, 0xffff_ffff), minus_one, "-1 of 32 bits");
    assert_eq!(apply(Operation::Max, Width::Word, 0x8000_0000, 0), 0);
    assert_eq!(apply(Operation::Add, Width::Word, 0x7fff_ffff, 1), 0xffff_ffff_8000_0000);
    assert_eq!(apply(Operation::Add, Width::Double, minus_one, 1), 0);
    let cas =
        |old, expected| Operation::CompareSwap.apply(Width::Word, old, Operands { operand: 9, expected });
    assert_eq!(cas(0xffff_ffff, minus_one), 9, "both are -1");
    assert_eq!(cas(3, 4), 3);
}

#[test]
fn the_mapping_table_has_every_operation_once() {
    let named: Vec<Operation> = batch::Operation::ALL.iter().map(|name| of_wire(*name)).collect();
    assert_eq!(named, Operation::ALL, "the nine of them, in their order");
    for (operation, name) in Operation::ALL.iter().zip(batch::Operation::ALL) {
        assert_eq!(operation.to_wire(), *name);
    }
}

#[test]
fn a_request_is_the_same_on_both_sides_of_the_wire() {
    let operands = Operands { operand: 7, expected: 9 };
    for operation in Operation::ALL {
        for width in [Width::Word, Width::Double] {
            let request = Request { ticket: 5, address: 64, width, operation, operands };
            let entry = request.to_wire(true);
            let expected = if operation == Operation::CompareSwap { 9 } else { 0 };
            let operands = Operands { expected, ..operands };
            assert_eq!(Request::of_wire(5, &entry), Request { operands, ..request });
            assert!(entry.fetches && !request.to_wire(false).fetches);
        }
    }
}

#[test]
fn a_folder_sorts_many_words_and_keeps_the_order_of_each() {
    let mut folder = Folder::default();
    for burst in [250, 3, 1, 0, 250] {
        let of_index = |ticket: u64| Request {
            ticket,
            address: (ticket * 37 % 100) * 8,
            width: if ticket.is_multiple_of(7) { Width::Word } else { Width::Double },
            operation: Operation::Add,
            operands: Operands { operand: ticket, expected: 0 },
        };
        let mut requests: Vec<Request> = (0..burst).map(of_index).collect();
        requests.push(Request { address: 4, width: Width::Double, ..of_index(burst) });
        let folds: Vec<(u64, Width, Vec<u64>)> = folder
            .fold(&requests)
            .map(|fold| {
                assert_eq!(fold.len(), fold.done(0).count());
                (fold.address(), fold.width(), fold.done(0).map(|done| done.ticket).collect())
            })
            .collect();
        let mut expected: Vec<(u64, Width, Vec<u64>)> = Vec::new();
        for request in &requests[..burst as usize] {
            let word = (request.address, request.width);
            match expected.iter_mut().find(|(address, width, _)| (*address, *width) == word) {
                Some((.., tickets)) => tickets.push(request.ticket),
                None => expected.push((word.0, word.1, vec![request.ticket])),
            }
        }
        assert_eq!(folds, expected, "the one that is not aligned is left out");
    }
}
