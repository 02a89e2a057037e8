//! Litmus programs through pointers, on a page that all nodes map and on two: what the model forbids never comes out.

use std::io::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use check::AtEnd;
use check::litmus::{self, Outcomes, Program, Strength, View};

use super::super::rig::Processes;
use super::{PAGE, alloc, can_map, map_everywhere, rack, rack_so, ways};

/// Does something that takes seconds on a machine that is full. After a minute the process ends, with what it was, and what every
/// node is in the middle of: a thread that waits in a fault cannot be interrupted.
pub(super) fn watched<R>(rack: &Processes, what: &str, work: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done = AtEnd(&done);
        scope.spawn(|| {
            let began = Instant::now();
            while !done.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
                if began.elapsed() > Duration::from_secs(60) {
                    let nodes: Vec<String> = rack.nodes.iter().map(rackmem::Rack::in_flight).collect();
                    let _ = writeln!(std::io::stderr(), "{what}: does not get on:\n{}", nodes.join("\n"));
                    std::process::abort();
                }
            }
        });
        work()
    })
}

/// Runs a program with its locations on one page, and on two; in each pass, at some places.
fn outcomes(rack: &Processes, program: Program, strength: Strength, places: usize, passes: u64) -> Outcomes {
    let addr = alloc(rack, 1, 2 * PAGE);
    let maps = map_everywhere(rack, addr, 2 * PAGE);
    let mut all = Outcomes::default();
    for (round, second) in [256, 512].into_iter().enumerate() {
        let views: Vec<View<'_>> = (0..program.threads())
            .map(|thread| {
                let words = maps[thread % maps.len()].words();
                View { x: &words[..places], y: &words[second..second + places] }
            })
            .collect();
        // As often as a minute is enough for.
        for first in (0..passes).step_by(200) {
            let some = (passes - first).min(200);
            let first = 1 + round as u64 * passes + first;
            all.add(&watched(rack, "litmus programs", || {
                litmus::run(program, strength, &views, first, some)
            }));
        }
    }
    all
}

/// With `RACKMEM_LITMUS_PASSES` that many times as often: for `.ci/run deep`.
#[test]
fn litmus_programs_on_one_page_and_on_two_have_no_outcome_that_the_model_forbids() {
    let often = std::env::var("RACKMEM_LITMUS_PASSES").map_or(1, |often| often.parse().unwrap());
    let (places, passes) = (32, 4 * often);
    for (way, faulty) in ways().flat_map(|way| [(way, false), (way, true)]) {
        let rack = rack_so(4, faulty, way);
        for program in Program::ALL {
            for strength in [Strength::Plain, Strength::Atomic] {
                let outcomes = outcomes(&rack, program, strength, places, passes);
                println!("{way:?}, faulty {faulty}, {program:?} {strength:?}: {outcomes:?}");
                assert_eq!((outcomes.all, outcomes.forbidden), (2 * places as u64 * passes, 0));
            }
        }
    }
}

/// Such a rack may not get on at all, so it has a process of its own.
#[test]
fn a_writer_that_goes_on_before_the_last_copy_is_withdrawn_is_found_out() {
    if !can_map() {
        return;
    }
    const WRONG: &str = "RACKMEM_MAPPED_WRONG";
    if std::env::var_os(WRONG).is_some() {
        let rack = rack(2, false);
        rack.answer_early();
        while outcomes(&rack, Program::MessagePassing, Strength::Atomic, 8, 10).forbidden == 0 {}
        std::process::exit(77);
    }
    let test =
        "networked::mapped::litmus::a_writer_that_goes_on_before_the_last_copy_is_withdrawn_is_found_out";
    let found = (0..10).any(|_| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(WRONG, "1")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        let ended = loop {
            match child.try_wait().unwrap() {
                None if began.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(5))
                }
                ended => break ended,
            }
        };
        if ended.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        ended.and_then(|status| status.code()) == Some(77)
    });
    assert!(found, "nobody noticed");
}
