//! Single events.

use nic::objects::{Attempt, Effect, Engine, Load, Mode, Object, Refused, Row, SabreConfig};
use wire::Nanos;

const ATTEMPT: Attempt = Attempt { requester: 7, number: 1 };
const OBJECT: Object = Object { first: 100, blocks: 2, header: 0 };
const ROW: Row = Row(0);

fn engine(mode: Mode) -> Engine {
    Engine::new(SabreConfig { mode, transfers: 2, ..SabreConfig::PAPER })
}

/// An engine with one object asked for, and what it asked of the memory.
fn asked(mode: Mode) -> (Engine, Vec<Load>) {
    let mut engine = engine(mode);
    engine.on_register(Nanos::ZERO, ATTEMPT, OBJECT).unwrap();
    engine.on_request(Nanos::ZERO, ATTEMPT, 2).unwrap();
    let loads = loads(&mut engine);
    (engine, loads)
}

fn loads(engine: &mut Engine) -> Vec<Load> {
    let mut out = Vec::new();
    let loads = std::iter::from_fn(|| engine.select(&mut out)).collect();
    assert_eq!(out, [], "nothing is answered before it comes");
    loads
}

fn verdict(whole: bool) -> Effect {
    Effect::Verdict { attempt: ATTEMPT, whole }
}

fn reply(index: u32) -> Effect {
    Effect::Reply { attempt: ATTEMPT, index }
}

/// The race of Figure 2 of the paper: block 1 is read, a writer comes and goes, block 0 with the version is read.
#[test]
fn a_writer_that_comes_and_goes_before_the_version_is_read_is_seen() {
    let (mut engine, loads) = asked(Mode::Speculative);
    assert_eq!(loads.len(), 2, "both blocks are asked for at once");
    let mut out = Vec::new();
    engine.on_block(ROW, 1, 0, &mut out);
    // The writer: version 1, block 1, version 2. The header was not read, so nobody tells of it.
    engine.on_invalidation(101);
    engine.on_block(ROW, 0, 2, &mut out);
    assert_eq!(out, [reply(1), reply(0), verdict(false)]);
    assert_eq!(engine.counters().invalidated, 1);
}

#[test]
fn a_block_that_is_written_before_it_is_read_tears_nothing() {
    let (mut engine, _) = asked(Mode::Speculative);
    let mut out = Vec::new();
    engine.on_invalidation(101);
    engine.on_block(ROW, 1, 0, &mut out);
    engine.on_block(ROW, 0, 2, &mut out);
    assert_eq!(out, [reply(1), reply(0), verdict(true)]);
}

#[test]
fn a_block_that_leaves_the_caches_after_the_window_tears_nothing() {
    let (mut engine, _) = asked(Mode::Speculative);
    let mut out = Vec::new();
    engine.on_block(ROW, 0, 4, &mut out);
    engine.on_invalidation(101);
    engine.on_block(ROW, 1, 0, &mut out);
    assert_eq!(out, [reply(0), reply(1), verdict(true)]);
}

#[test]
fn an_unverified_header_is_read_again_after_all_data() {
    for (version, whole) in [(4, true), (6, false), (5, false)] {
        let (mut engine, _) = asked(Mode::Speculative);
        let mut out = Vec::new();
        engine.on_block(ROW, 0, 4, &mut out);
        engine.on_invalidation(100);
        assert_eq!(loads(&mut engine), [], "not before the data are here");
        engine.on_block(ROW, 1, 0, &mut out);
        assert_eq!(out, [reply(0), reply(1)], "no verdict yet");
        assert_eq!(loads(&mut engine), [Load::Version { row: ROW, block: 100 }]);
        engine.on_version(ROW, version, &mut out);
        assert_eq!(out.last(), Some(&verdict(whole)));
    }
}

#[test]
fn an_object_that_is_being_written_is_torn_and_the_rest_of_it_not_read() {
    let mut engine = engine(Mode::Speculative);
    engine.on_register(Nanos::ZERO, ATTEMPT, OBJECT).unwrap();
    engine.on_request(Nanos::ZERO, ATTEMPT, 1).unwrap();
    let mut out = Vec::new();
    assert_eq!(loads(&mut engine).len(), 1);
    engine.on_block(ROW, 0, 3, &mut out);
    assert_eq!(out, [reply(0)], "a request that was not made is not answered");
    engine.on_request(Nanos::ZERO, ATTEMPT, 1).unwrap();
    assert_eq!(engine.select(&mut out), None);
    assert_eq!(out[1..], [Effect::Empty { attempt: ATTEMPT, index: 1 }, verdict(false)]);
}

#[test]
fn where_nothing_tells_of_writes_the_version_is_read_first_and_last() {
    let (mut engine, first) = asked(Mode::VersionFirst);
    assert_eq!(first, [Load::Version { row: ROW, block: 100 }]);
    let mut out = Vec::new();
    engine.on_version(ROW, 8, &mut out);
    let data = loads(&mut engine);
    assert_eq!(data.len(), 2);
    engine.on_block(ROW, 1, 0, &mut out);
    engine.on_block(ROW, 0, 8, &mut out);
    assert_eq!(loads(&mut engine), [Load::Version { row: ROW, block: 100 }]);
    engine.on_version(ROW, 8, &mut out);
    assert_eq!(out, [reply(1), reply(0), verdict(true)]);
}

#[test]
fn a_lock_is_asked_for_with_the_data_and_given_back_after_them() {
    let (mut engine, asked) = asked(Mode::Locked);
    assert_eq!(asked[0], Load::Lock { row: ROW, block: 100 });
    assert_eq!(asked.len(), 3, "nothing waits for the lock");
    let mut out = Vec::new();
    engine.on_block(ROW, 0, 0, &mut out);
    engine.on_lock(ROW, true, &mut out);
    engine.on_block(ROW, 1, 0, &mut out);
    assert_eq!(out, [reply(0), reply(1), Effect::Unlock { block: 100 }, verdict(true)]);
}

#[test]
fn a_lock_that_a_writer_has_is_not_waited_for() {
    let (mut engine, _) = asked(Mode::Locked);
    let mut out = Vec::new();
    engine.on_lock(ROW, false, &mut out);
    engine.on_block(ROW, 0, 0, &mut out);
    engine.on_block(ROW, 1, 0, &mut out);
    assert_eq!(out, [reply(0), reply(1), verdict(false)], "and none is given back");
}

#[test]
fn transfers_take_turns() {
    let mut engine = engine(Mode::Speculative);
    for (requester, first) in [(1, 0), (2, 10)] {
        let attempt = Attempt { requester, number: 1 };
        engine.on_register(Nanos::ZERO, attempt, Object { first, blocks: 2, header: 0 }).unwrap();
        engine.on_request(Nanos::ZERO, attempt, 2).unwrap();
    }
    let blocks: Vec<u64> = loads(&mut engine)
        .into_iter()
        .map(|load| match load {
            Load::Block { block, .. } => block,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(blocks, [0, 10, 1, 11]);
}

#[test]
fn what_makes_no_sense_is_refused_and_counted() {
    let mut engine = engine(Mode::Speculative);
    let register = |engine: &mut Engine, attempt, object| engine.on_register(Nanos::ZERO, attempt, object);
    for object in
        [Object { blocks: 0, ..OBJECT }, Object { header: 2, ..OBJECT }, Object { first: u64::MAX, ..OBJECT }]
    {
        assert_eq!(register(&mut engine, ATTEMPT, object), Err(Refused::Malformed), "{object:?}");
    }
    assert_eq!(engine.on_request(Nanos::ZERO, ATTEMPT, 1), Err(Refused::Unknown));
    assert_eq!(register(&mut engine, ATTEMPT, OBJECT), Ok(()));
    assert_eq!(register(&mut engine, ATTEMPT, OBJECT), Err(Refused::Repeated));
    assert_eq!(engine.on_request(Nanos::ZERO, ATTEMPT, 3), Err(Refused::TooMany));
    assert_eq!(engine.counters().refused, 6);
    let other = |requester| Attempt { requester, number: 1 };
    assert_eq!(register(&mut engine, other(1), OBJECT), Ok(()));
    assert_eq!(register(&mut engine, other(2), OBJECT), Err(Refused::Full));
    assert_eq!(engine.counters().full, 1);
}

#[test]
fn a_requester_that_is_gone_frees_its_transfer() {
    let mut engine = engine(Mode::Speculative);
    engine.on_register(Nanos(5), ATTEMPT, OBJECT).unwrap();
    let due = Nanos(5) + SabreConfig::PAPER.timeout;
    assert_eq!(engine.deadline(), Some(due));
    let mut out = Vec::new();
    engine.on_deadline(Nanos(due.0 - 1), &mut out);
    assert_eq!(engine.active(), 1, "being called early is harmless");
    engine.on_deadline(due, &mut out);
    assert_eq!((engine.active(), engine.counters().given_up), (0, 1));
    assert_eq!((out, engine.deadline()), (vec![], None));
}

#[test]
fn the_row_of_a_requester_that_comes_back_is_free_when_the_memory_has_answered() {
    let (mut engine, _) = asked(Mode::Speculative);
    let mut out = Vec::new();
    engine.forget(ATTEMPT.requester, &mut out);
    assert_eq!(engine.active(), 1, "two blocks are still to come");
    engine.on_register(Nanos::ZERO, ATTEMPT, OBJECT).expect("its numbers begin anew");
    engine.on_block(ROW, 0, 2, &mut out);
    engine.on_block(ROW, 1, 2, &mut out);
    assert_eq!(out, [], "nobody waits for them");
    assert_eq!(engine.active(), 1, "the new attempt");
}
