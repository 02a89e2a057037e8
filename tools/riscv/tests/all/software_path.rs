//! The software path: routines of a library are charged as they were counted, nothing else is, and programs do the same on both paths.

use riscv::library::{Library, Routine};
use riscv::machine::{Console, Failure, Machine, MachineConfig, NodeStats, Schedule};
use riscv::prebuilt::{CIRCUSTENT, CIRCUSTENT_SOFTWARE, GRAPH, GRAPH_SOFTWARE};
use riscv::program::Program;
use riscv::timing::Chip;
use riscv::trap::Cause;

const COUNTS: &str = "count g 396 396\ncount getmem 8 394 394\ncount getmem 64 1000 1000\n";
const EXIT: &str = "li a7, 93; li a0, 0; ecall";

fn machine(text: &str, schedule: Schedule) -> Machine {
    let program = Program::assembled(&format!("{text}; {EXIT}")).unwrap();
    Machine::new(program, &MachineConfig { schedule, ..MachineConfig::nodes(1) }).unwrap()
}

/// What a program executes, and the cycles that it takes.
fn executed(text: &str, schedule: Schedule) -> NodeStats {
    let mut machine = machine(text, schedule).with_library(Library::parse("x", COUNTS).unwrap());
    machine.run(&mut Console::default()).unwrap();
    machine.stats().nodes[0]
}

fn refused(text: &str, library: Option<Library>) -> Cause {
    let mut machine = machine(text, Schedule::Turns);
    if let Some(library) = library {
        machine = machine.with_library(library);
    }
    match machine.run(&mut Console::default()) {
        Err(Failure::Trap(trap)) => {
            assert_eq!(trap.retired, 1, "a trap is precise, and nothing is charged");
            trap.cause
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_takes_exactly_the_instructions_that_were_counted_with_timing_and_without() {
    for schedule in [Schedule::Turns, Schedule::Seeded(3), Schedule::Timed(Chip::PAPER)] {
        let without = executed("nop; nop", schedule);
        let with = executed("nop; csrrwi zero, routine, 13; nop", schedule);
        assert_eq!(with.instructions - without.instructions, 396, "{schedule:?}");
        assert_eq!(with.cycles - without.cycles, 396, "{schedule:?}: a cycle each");
        assert_eq!((with.routines, with.charged), (1, 396));
        assert_eq!((without.routines, without.charged), (0, 0));
    }
}

#[test]
fn a_call_that_moves_bytes_takes_what_was_counted_for_as_many() {
    let of = |bytes: u32| {
        let text = format!("li t0, {}; csrrw zero, routine, t0", 17 + bytes * 256);
        executed(&text, Schedule::Turns).charged
    };
    assert_eq!([8, 9, 63, 64].map(of), [394, 394, 394, 1000]);
}

#[test]
fn what_was_not_counted_is_refused() {
    let library = || Library::parse("x", COUNTS).ok();
    assert_eq!(refused("nop; csrrwi zero, routine, 12", library()), Cause::NotCounted(Routine::P, 0));
    let of = |bytes: u32| {
        let text = format!("li t0, {}; csrrw zero, routine, t0", 17 + bytes * 256);
        refused(&text, library())
    };
    assert_eq!(of(0), Cause::NotCounted(Routine::GetMem, 0));
    assert_eq!(of(7), Cause::NotCounted(Routine::GetMem, 7));
}

#[test]
fn a_barrier_takes_what_was_counted_for_as_many_nodes() {
    let charged = |nodes: usize| {
        let program = Program::assembled(&format!("csrrwi zero, routine, 16; {EXIT}")).unwrap();
        let machine =
            Machine::new(program, &MachineConfig { memory: 2 << 20, ..MachineConfig::nodes(nodes) }).unwrap();
        let counts = "count barrier_all 2 100 100\ncount barrier_all 4 150 150\n";
        let mut machine = machine.with_library(Library::parse("x", counts).unwrap());
        machine.run(&mut Console::default()).map(|_| machine.stats().total().charged)
    };
    assert_eq!([2, 3, 4, 9].map(charged), [Ok(200), Ok(300), Ok(600), Ok(1350)]);
    let Err(Failure::Trap(trap)) = charged(1) else { panic!("a barrier of one was not counted") };
    assert!(trap.to_string().contains("a barrier of 1"), "{trap}");
}

#[test]
fn a_size_beyond_all_that_were_counted_is_refused() {
    let mut machine = machine("lui t0, 4; addi t0, t0, 273; csrrw zero, routine, t0", Schedule::Turns)
        .with_library(Library::parse("x", COUNTS).unwrap());
    let Err(Failure::Trap(trap)) = machine.run(&mut Console::default()) else { panic!("it was charged") };
    assert_eq!(trap.cause, Cause::NotCounted(Routine::GetMem, 65));
    assert!(trap.to_string().contains("getmem of 65 bytes"), "{trap}");
}

#[test]
fn without_a_library_and_for_a_number_of_no_routine_there_is_a_trap() {
    assert_eq!(refused("nop; csrrwi zero, routine, 13", None), Cause::NoLibrary);
    assert_eq!(refused("nop; csrrwi zero, routine, 31", None), Cause::UnknownRoutine(31));
    assert_eq!(refused("nop; csrrwi a0, routine, 13", None), Cause::Illegal);
}

/// What a program prints, and what its nodes have counted between its marks.
fn run(file: &[u8], arguments: &[&str], library: Option<&str>, schedule: Schedule) -> (String, NodeStats) {
    let arguments = ["program"].iter().chain(arguments).map(ToString::to_string).collect();
    let program = Program::from_elf(file).unwrap().with_arguments(arguments);
    let config = MachineConfig { schedule, memory: 4 << 20, ..MachineConfig::nodes(3) };
    let mut machine = Machine::new(program, &config).unwrap();
    if let Some(name) = library {
        machine = machine.with_library(Library::counted(name).unwrap());
    }
    let mut console = Console::default();
    let codes = machine.run(&mut console).unwrap();
    assert_eq!(codes, [0; 3]);
    let between = machine.between(1, 2).expect("it has marks");
    let total = between.iter().fold(NodeStats::default(), |sum, node| sum.plus(node));
    (String::from_utf8(console.bytes).unwrap(), total)
}

#[test]
fn kernels_give_the_same_results_on_both_paths() {
    for schedule in [Schedule::Turns, Schedule::Timed(Chip::PAPER)] {
        for kernel in ["bfs", "sssp", "pr", "cc", "bc", "tc"] {
            let arguments = [kernel, "kron", "6", "4"];
            let (ours, _) = run(GRAPH, &arguments, None, schedule);
            for library in ["openmpi-shm", "openmpi-tcp"] {
                let (theirs, counted) = run(GRAPH_SOFTWARE, &arguments, Some(library), schedule);
                assert_eq!(ours, theirs, "{library}");
                assert!(counted.routines > 0 && counted.charged > 100 * counted.routines, "{kernel}");
            }
        }
        for pattern in ["rand", "ptrchase", "central", "stride1"] {
            let arguments = [pattern, "update", "global", "30", "64"];
            let (ours, _) = run(CIRCUSTENT, &arguments, None, schedule);
            let (theirs, _) = run(CIRCUSTENT_SOFTWARE, &arguments, Some("openmpi-shm"), schedule);
            assert_eq!(ours, theirs);
            assert!(ours.contains("right"), "{ours}");
        }
    }
}

#[test]
fn between_the_marks_a_pattern_makes_its_accesses_and_calls_and_no_others() {
    let arguments = ["rand", "add", "global", "30", "64"];
    let (_, ours) = run(CIRCUSTENT, &arguments, None, Schedule::Turns);
    let (_, theirs) = run(CIRCUSTENT_SOFTWARE, &arguments, Some("openmpi-shm"), Schedule::Turns);
    assert_eq!((ours.remote_atomics, ours.routines, ours.charged), (90, 0, 0));
    assert_eq!(theirs.remote_atomics, 90);
    // Of each of three nodes: thirty additions, and the barriers behind the first mark and before the last.
    let library = Library::counted("openmpi-shm").unwrap();
    let of = |routine, size| library.instructions(routine, size).unwrap();
    assert_eq!(theirs.routines, 3 * 32);
    assert_eq!(theirs.charged, 90 * of(Routine::FetchAdd, 0) + 6 * of(Routine::BarrierAll, 3));
    // Nothing else is different but what the compiler makes of it.
    let rest = theirs.instructions - theirs.charged;
    assert!(rest.abs_diff(ours.instructions) * 20 < ours.instructions, "{rest} and {}", ours.instructions);
}

#[test]
fn a_program_without_marks_has_nothing_between_them() {
    let mut machine = machine("nop", Schedule::Turns);
    machine.run(&mut Console::default()).unwrap();
    assert_eq!(machine.between(1, 2), None);
}
