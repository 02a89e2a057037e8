//! Many nodes change the same words, and the core of the words' node changes them as well: nothing is lost, whatever goes when.

use riscv::machine::{Console, Machine, MachineConfig, Schedule, Stats};
use riscv::program::Program;

/// All nodes but 0 do `remote` so many times; node 0 does `local`. Both find the heap's address in a2, 1 in a3, and node 0 in e12.
fn run(nodes: usize, rounds: u32, remote: &str, local: &str, schedule: Schedule) -> (Machine, u64, Stats) {
    let text = format!(
        "li a7, 1004; ecall; mv a2, a0; li a3, 1; eaddie e12, zero, 1
         li a7, 1000; ecall; mv s1, a0; li s0, {rounds}
         beq s1, zero, near
         far: {remote}; addi s0, s0, -1; bne s0, zero, far; j done
         near: {local}; addi s0, s0, -1; bne s0, zero, near
         done: fence rw, rw; li a7, 1003; ecall; li a7, 93; li a0, 0; ecall"
    );
    let config = MachineConfig { schedule, memory: 4 << 20, ..MachineConfig::nodes(nodes) };
    let mut machine = Machine::new(Program::assembled(&text).unwrap(), &config).unwrap();
    machine.run(&mut Console::default()).unwrap();
    let (heap, stats) = (machine.layout().heap.start, machine.stats());
    (machine, heap, stats)
}

fn schedules() -> impl Iterator<Item = Schedule> {
    (0..30).map(Schedule::Seeded).chain([Schedule::Turns])
}

#[test]
fn one_word_gets_every_addition_of_all_nodes_and_of_its_own_core() {
    for schedule in schedules() {
        let (machine, heap, stats) = run(9, 40, "eamoadd.d a4, a2, a3", "amoadd.d a4, a3, (a2)", schedule);
        assert_eq!(machine.memory(0).load::<3>(heap), Some(9 * 40), "{schedule:?}");
        assert_eq!(stats.total().remote_atomics, 8 * 40);
        assert_eq!(stats.total().local_atomics, 40);
    }
}

#[test]
fn a_plain_store_beside_a_hot_word_is_never_lost() {
    // Node 0 counts in the second word of the line with loads and stores, while all others add to the first.
    for schedule in schedules() {
        let local = "ld a4, 8(a2); addi a4, a4, 1; sd a4, 8(a2)";
        let (machine, heap, _) = run(7, 40, "eamoadd.d a4, a2, a3", local, schedule);
        assert_eq!(machine.memory(0).load::<3>(heap), Some(6 * 40), "{schedule:?}");
        assert_eq!(machine.memory(0).load::<3>(heap + 8), Some(40), "{schedule:?}");
    }
}

#[test]
fn two_words_of_a_line_get_their_own_additions_in_both_widths() {
    for schedule in schedules() {
        // The words: a double word, and both halves of the next.
        let remote = "eamoadd.d a4, a2, a3; addi a5, a2, 8; eaddie e15, zero, 1; eamoadd.w a4, a5, a3
                      addi a5, a2, 12; eamoadd.w a4, a5, a3; eamoadd.w a4, a5, a3";
        let local = "amoadd.d a4, a3, (a2); addi a5, a2, 12; amoadd.w a4, a3, (a5)";
        let (machine, heap, _) = run(6, 20, remote, local, schedule);
        assert_eq!(machine.memory(0).load::<3>(heap), Some(6 * 20), "{schedule:?}");
        assert_eq!(machine.memory(0).load::<2>(heap + 8), Some(5 * 20), "{schedule:?}");
        assert_eq!(machine.memory(0).load::<2>(heap + 12), Some(5 * 40 + 20), "{schedule:?}");
    }
}

#[test]
fn a_reservation_ends_when_another_node_changes_its_line() {
    // Node 0 adds by lr and sc, the others remotely: an sc that succeeded after a remote addition would lose it.
    for schedule in schedules() {
        let local =
            "again: lr.d a4, (a2); addi a4, a4, 1; nop; nop; nop; sc.d a5, a4, (a2); bne a5, zero, again";
        let (machine, heap, _) = run(6, 20, "eamoadd.d a4, a2, a3", local, schedule);
        assert_eq!(machine.memory(0).load::<3>(heap), Some(6 * 20), "{schedule:?}");
    }
}

#[test]
fn bytes_of_one_word_are_stored_by_many_nodes_and_none_is_lost() {
    // Node n stores n into byte n of the line, once: a compare-and-swap that failed would be seen.
    for schedule in schedules() {
        let remote = "add a5, a2, s1; eaddie e15, zero, 1; esb s1, 0(a5)";
        let (machine, heap, _) = run(8, 1, remote, "nop", schedule);
        let bytes = machine.memory(0).bytes(heap, 8).unwrap();
        assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 7], "{schedule:?}");
    }
}

#[test]
fn compare_and_swap_counts_every_success_once() {
    for schedule in schedules() {
        // a4 holds what is expected, and gets what was there.
        let remote =
            "eld a4, 0(a2); retry: mv a5, a4; addi t0, a4, 1; eamocas.d a4, a2, t0; bne a4, a5, retry";
        let (machine, heap, _) = run(6, 15, remote, "amoadd.d a4, a3, (a2)", schedule);
        assert_eq!(machine.memory(0).load::<3>(heap), Some(6 * 15), "{schedule:?}");
    }
}

#[test]
fn requests_for_one_line_are_merged_into_one_fetch() {
    let (_, _, stats) = run(64, 100, "eamoadd.d a4, a2, a3", "nop", Schedule::Turns);
    let engine = stats.nodes[0].engine;
    assert_eq!((engine.taken, engine.fetched, engine.written), (6300, 100, 100), "{engine:?}");
    assert_eq!(engine.merged, 6200);
}

#[test]
fn what_does_not_fit_into_the_registers_waits_and_is_done() {
    for schedule in schedules() {
        let text = "li a7, 1004; ecall; mv a2, a0; li a3, 1; eaddie e12, zero, 1; li a7, 1000; ecall; slli a1, a0, 6
             li s0, 10; again: add a2, a2, a1; eamoadd.d a4, a2, a3; esd a3, 8(a2); esd a3, 16(a2); sub a2, a2, a1
             addi s0, s0, -1; bne s0, zero, again; fence rw, rw; li a7, 1003; ecall; li a7, 93; li a0, 0; ecall";
        let engine = nic::words::LinesConfig { entries: 2, subentries: 2, lines: 4 };
        let config = MachineConfig { schedule, engine, memory: 4 << 20, ..MachineConfig::nodes(8) };
        let mut machine = Machine::new(Program::assembled(text).unwrap(), &config).unwrap();
        machine.run(&mut Console::default()).unwrap();
        let heap = machine.layout().heap.start;
        for node in 0..8 {
            assert_eq!(machine.memory(0).load::<3>(heap + node * 64), Some(10), "{schedule:?}");
        }
        assert!(machine.stats().nodes[0].engine.full > 0, "{schedule:?}: nothing had to wait");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let schedule = Schedule::Seeded(seed);
        let (machine, _, stats) = run(5, 30, "eamoadd.d a4, a2, a3", "amoadd.d a4, a3, (a2)", schedule);
        (0..5).map(|node| machine.registers(node)).fold(vec![stats.rounds], |mut all, registers| {
            all.extend(registers);
            all
        })
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4), "a seed changes nothing");
}
