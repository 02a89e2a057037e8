//! What takes how long, with timing: against what the constants say, and the same results as without.

use riscv::machine::{Console, Machine, MachineConfig, NodeStats, Schedule, Stats};
use riscv::program::Program;
use riscv::timing::Chip;

fn config(nodes: usize) -> MachineConfig {
    MachineConfig { schedule: Schedule::Timed(Chip::PAPER), memory: 4 << 20, ..MachineConfig::nodes(nodes) }
}

fn run(text: &str, config: &MachineConfig) -> (Machine, Stats) {
    let mut machine = Machine::new(Program::assembled(text).unwrap(), config).unwrap();
    machine.run(&mut Console::default()).unwrap();
    let stats = machine.stats();
    (machine, stats)
}

/// Cycles that code takes on node 0 of some; others exit at once. s0 and s1 have the clock before and behind it, a2 the heap.
fn cycles(nodes: usize, code: &str) -> u64 {
    let text = format!(
        "li a7, 1000; ecall; bne a0, zero, out; li a7, 1004; ecall; mv a2, a0; li a3, 1
         csrrs s0, cycle, zero; {code}; csrrs s1, cycle, zero; out: li a7, 93; li a0, 0; ecall"
    );
    let (machine, _) = run(&text, &config(nodes));
    let x = machine.registers(0);
    // The first reading is an instruction itself.
    x[9] - x[8] - 1
}

#[test]
fn an_instruction_is_a_cycle_and_some_are_more() {
    let chip = Chip::PAPER;
    assert_eq!(cycles(1, "nop; nop; add a0, a0, a0"), 3);
    assert_eq!(cycles(1, "mul a0, a0, a0"), 1 + chip.multiplication);
    assert_eq!(cycles(1, "div a0, a0, a3; nop"), 2 + chip.division);
}

#[test]
fn a_load_takes_what_the_level_takes_that_has_its_line() {
    let chip = Chip::PAPER;
    let cold = 1 + chip.second_level_cycles + chip.memory_cycles;
    assert_eq!(cycles(1, "ld a0, 0(a2)"), cold);
    assert_eq!(cycles(1, "ld a0, 0(a2); ld a0, 8(a2); sd a0, 16(a2)"), cold + 2);
}

#[test]
fn a_remote_atomic_takes_the_way_there_the_memory_the_operation_and_the_way_back() {
    let chip = Chip::PAPER;
    // To the neighbour: a request of 32 bytes, an answer of 16.
    let way = |bytes: u64| chip.packetizer + chip.hop + bytes / chip.flit + chip.packetizer;
    let expected = way(32) + chip.memory_cycles + chip.operation + way(16);
    let found = cycles(2, "eaddie e12, zero, 2; eamoadd.d a4, a2, a3");
    assert_eq!(found, 2 + expected);
    // One hop more for each column or row.
    assert_eq!(cycles(6, "eaddie e12, zero, 6; eamoadd.d a4, a2, a3"), found + 2 * 2 * chip.hop);
}

#[test]
fn a_posted_store_is_one_cycle_and_a_fence_waits_for_it() {
    let posted = cycles(2, "eaddie e12, zero, 2; esd a3, 0(a2)");
    assert_eq!(posted, 2);
    let waited = cycles(2, "eaddie e12, zero, 2; esd a3, 0(a2); fence rw, rw");
    let atomic = cycles(2, "eaddie e12, zero, 2; eamoadd.d a4, a2, a3");
    // Its acknowledgement is a word, two flits, shorter than an atomic's answer.
    assert_eq!(waited, atomic - 2);
}

#[test]
fn a_line_that_the_engine_has_changed_is_not_in_the_cores_caches() {
    let chip = Chip::PAPER;
    let found =
        cycles(2, "ld a0, 0(a2); eaddie e12, zero, 1; eamoadd.d a4, a2, a3; fence rw, rw; ld a0, 0(a2)");
    let cold = 1 + chip.second_level_cycles + chip.memory_cycles;
    // To the own engine packets are only packed and unpacked; the caches have the line when it is fetched.
    let own = 4 * chip.packetizer + chip.second_level_cycles + chip.operation + 1;
    let release = chip.channel_cycles;
    let least = 2 * cold + own + 2;
    assert!((least..=least + release).contains(&found), "{found}, {least}");
}

/// All nodes add to one word of node 0 so many times.
fn hot(nodes: usize, rounds: u32, subentries: u32) -> (u64, NodeStats) {
    let text = format!(
        "li a7, 1004; ecall; mv a2, a0; li a3, 1; eaddie e12, zero, 1; li s0, {rounds}; li a7, 1003; ecall
         again: eamoadd.d a4, a2, a3; addi s0, s0, -1; bne s0, zero, again
         li a7, 1003; ecall; li a7, 93; li a0, 0; ecall"
    );
    let engine = nic::words::LinesConfig { subentries, ..nic::words::LinesConfig::PAPER };
    let (machine, stats) = run(&text, &MachineConfig { engine, ..config(nodes) });
    let word = machine.memory(0).load::<3>(machine.layout().heap.start).unwrap();
    assert_eq!(word, nodes as u64 * u64::from(rounds));
    (stats.total().cycles, stats.total())
}

#[test]
fn with_merging_a_hot_word_of_many_nodes_is_at_least_four_times_as_fast() {
    let (with, merged) = hot(64, 50, 64);
    let (without, alone) = hot(64, 50, 1);
    assert!(merged.engine.merged > 0 && alone.engine.merged == 0);
    assert!(without >= 4 * with, "{with} cycles with merging, {without} without");
}

#[test]
fn results_are_those_of_the_machine_without_timing() {
    let path = format!("{}/programs/prebuilt/circustent.elf", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(path).unwrap();
    for pattern in ["rand", "stride1", "striden", "ptrchase", "central", "sg", "scatter", "gather"] {
        for (operation, form) in [("add", "ring"), ("update", "global")] {
            let run = |schedule| {
                let arguments =
                    ["circustent", pattern, operation, form, "30", "64"].map(str::to_owned).into();
                let program = Program::from_elf(&file).unwrap().with_arguments(arguments);
                let mut machine = Machine::new(program, &MachineConfig { schedule, ..config(6) }).unwrap();
                let mut console = Console::default();
                assert_eq!(machine.run(&mut console), Ok(vec![0; 6]), "{pattern}");
                (String::from_utf8(console.bytes).unwrap(), machine.stats().total())
            };
            let (text, timed) = run(Schedule::Timed(Chip::PAPER));
            let (other, untimed) = run(Schedule::Turns);
            assert_eq!(text, other);
            if operation == "add" {
                assert_eq!(timed.remote_atomics, untimed.remote_atomics, "{pattern}");
            }
            assert!(timed.cycles > timed.instructions / 6, "{pattern}");
        }
    }
}

#[test]
fn a_hot_word_loses_no_addition_of_remote_and_local_cores_and_reservations_end() {
    let text = "li a7, 1004; ecall; mv a2, a0; li a3, 1; eaddie e12, zero, 1; li s0, 200
         li a7, 1000; ecall; beq a0, zero, near
         far: eamoadd.d a4, a2, a3; addi s0, s0, -1; bne s0, zero, far; j done
         near: lr.d a4, (a2); addi a4, a4, 1; sc.d a5, a4, (a2); bne a5, zero, near
         ld a4, 8(a2); addi a4, a4, 1; sd a4, 8(a2); addi s0, s0, -1; bne s0, zero, near
         done: li a7, 1003; ecall; li a7, 93; li a0, 0; ecall";
    let (machine, _) = run(text, &config(7));
    let heap = machine.layout().heap.start;
    assert_eq!(machine.memory(0).load::<3>(heap), Some(7 * 200));
    assert_eq!(machine.memory(0).load::<3>(heap + 8), Some(200));
}

#[test]
fn a_run_takes_the_same_cycles_each_time() {
    assert_eq!(hot(9, 40, 64), hot(9, 40, 64));
}
