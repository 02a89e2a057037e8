//! The machine that runs the switch's programs for a kernel notices what a program must not do.

use check::bytecode::Machine;
use switch::coherence::{Switch, SwitchConfig};
use switch::ebpf::{Code, Frames, Hook, Instruction, KernelProgram, Map, Named, in_turn, verdict};

const fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    Instruction { code, to, from, offset, number }
}

const EXIT: Instruction = instruction(0x95, 0, 0, 0, 0);
/// R0 becomes 2.
const TAKEN: Instruction = instruction(0xb7, 0, 0, 0, verdict::TAKEN as i32);

const fn call(function: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, function)
}

/// R1 becomes the lock.
const LOCK: [Instruction; 2] = [instruction(0x18, 1, 0, 0, 0), instruction(0, 0, 0, 0, 0)];
const TAKE: i32 = 93;
const LET_GO: i32 = 94;

/// Runs these instructions, where some name a map: what came of it, or what is wrong.
fn run(instructions: Vec<Instruction>, maps: &[(usize, Map, Named)]) -> Result<u32, String> {
    let switch = Switch::new(&SwitchConfig { entries: 7, ..SwitchConfig::for_nodes(2) }).expect("it fits");
    let whole = switch.for_kernel(Frames::Bare(Hook::TrafficControl, 0)).expect("its jumps are short enough");
    let program = KernelProgram { code: Code { instructions, maps: maps.to_vec() }, ..whole };
    Machine::new(&program).run(&[0; 64]).map(|ran| ran.verdict).map_err(|fault| fault.to_string())
}

/// The same, with the lock named in these places.
fn run_with_lock(parts: &[&[Instruction]]) -> Result<u32, String> {
    let instructions = parts.concat();
    let is_lock = |at: &usize| instructions[*at] == LOCK[0];
    let maps: Vec<_> =
        (0..instructions.len()).filter(is_lock).map(|at| (at, Map::Lock, Named::Entry)).collect();
    run(instructions, &maps)
}

#[track_caller]
fn is_noticed(ran: Result<u32, String>, what: &str) {
    let said = ran.expect_err(what);
    assert!(said.contains(what), "{said}");
}

#[test]
fn a_sound_program_comes_to_its_verdict() {
    assert_eq!(run(vec![TAKEN, EXIT], &[]), Ok(verdict::TAKEN));
    assert_eq!(
        run_with_lock(&[&LOCK, &[call(TAKE)], &LOCK, &[call(LET_GO), TAKEN, EXIT]]),
        Ok(verdict::TAKEN)
    );
}

/// A driver runs one program only.
#[test]
fn the_second_of_two_programs_in_turn_sees_what_the_first_lets_go_on() {
    let ends = |with: u32| vec![instruction(0xb7, 0, 0, 0, with as i32), EXIT];
    let (taken, passed) = (verdict::taken(Hook::Driver), verdict::passed(Hook::Driver));
    // R0 becomes the upper half of R1: where the packet is.
    let looks = vec![instruction(0xbf, 0, 1, 0, 0), instruction(0x77, 0, 0, 0, 32), EXIT];
    let packet = run(looks.clone(), &[]);
    assert_eq!(run(in_turn([&ends(taken), &looks]), &[]), Ok(taken), "the first has taken it");
    assert_eq!(run(in_turn([&ends(passed), &looks]), &[]), packet);
    assert_eq!(run(in_turn([&ends(passed), &ends(passed)]), &[]), Ok(passed), "it is for neither");
}

#[test]
fn a_round_without_end_is_noticed() {
    is_noticed(run(vec![instruction(0x05, 0, 0, -1, 0)], &[]), "more than 1000000 instructions");
    is_noticed(run(vec![TAKEN], &[]), "behind the end of the program");
}

#[test]
fn a_look_at_memory_of_others_is_noticed() {
    let load = |at: u8, offset: i16| instruction(0x79, 0, at, offset, 0);
    let state = [instruction(0x18, 8, 0, 0, 0), instruction(0, 0, 0, 0, 0)];
    let maps = [(0, Map::State, Named::Entry)];
    is_noticed(run(vec![load(2, 0), EXIT], &[]), "is no address");
    is_noticed(run(vec![load(10, 0), EXIT], &[]), "bytes 512..520 of Stack");
    is_noticed(run(vec![load(1, 0), EXIT], &[]), "a look into Packet");
    is_noticed(run([&state[..], &[load(8, -8), EXIT]].concat(), &maps), "of Scratch");
    let store = instruction(0x7b, 8, 0, i16::MIN, 0);
    is_noticed(run([&state[..], &[store, EXIT]].concat(), &maps), "of Scratch");
}

#[test]
fn a_lock_that_is_not_let_go_or_taken_twice_is_noticed_and_so_is_a_call_under_it() {
    let take = [&LOCK[..], &[call(TAKE)]].concat();
    let let_go = [&LOCK[..], &[call(LET_GO)]].concat();
    is_noticed(run_with_lock(&[&take, &[TAKEN, EXIT]]), "ends with the lock taken");
    is_noticed(run_with_lock(&[&take, &take, &[EXIT]]), "is called with the lock taken");
    is_noticed(run_with_lock(&[&let_go, &[EXIT]]), "the lock is taken: false");
    is_noticed(run_with_lock(&[&take, &[call(26), EXIT]]), "is called with the lock taken");
}

#[test]
fn what_is_no_instruction_or_no_function_is_noticed() {
    is_noticed(run(vec![instruction(0xff, 0, 0, 0, 0), EXIT], &[]), "arithmetic 0xff");
    is_noticed(run(vec![instruction(0x04, 0, 0, 0, 0), EXIT], &[]), "is no instruction");
    is_noticed(run(vec![call(7), EXIT], &[]), "function 7 of");
}
