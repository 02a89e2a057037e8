//! Memory order: small programs of two or more nodes, the outcomes that the order allows, and that those are also seen which it
//! allows and a simpler machine would not show.
//!
//! The rules (`core/mod.rs`): a core executes in order; loads and atomics of other nodes' memory block it; stores there are posted,
//! and ordered only by fences, by rl, and with accesses of the same word. xBGAS asks for no more (section 1.3).

use std::collections::BTreeSet;

use riscv::machine::{Console, Machine, MachineConfig, Schedule};
use riscv::program::Program;

/// Runs a program on some seeds: what nodes have in s2 and s3 at the end. Each node finds in a2 the heap's address, its number in
/// s1, 1 in a3, and nodes 0 to 2 in e12, e13 and e14; a4 and a5 are what a2 is.
fn outcomes(nodes: &[&str], seeds: u64) -> BTreeSet<Vec<(u64, u64)>> {
    let mut text = "li a7, 1004; ecall; mv a2, a0; mv a3, a0; mv a4, a0; li t1, 1; li s2, 0; li s3, 0
         eaddie e12, zero, 1; eaddie e13, zero, 2; eaddie e14, zero, 3; li a7, 1000; ecall; mv s1, a0
         li a7, 1003; ecall\n"
        .to_owned();
    for (index, _) in nodes.iter().enumerate() {
        text += &format!("li t0, {index}; beq s1, t0, node{index}\n");
    }
    for (index, code) in nodes.iter().enumerate() {
        text += &format!("node{index}: {code}; j done\n");
    }
    text += "done: li a7, 93; li a0, 0; ecall";
    let program = Program::assembled(&text).unwrap();
    let run = |seed| {
        let config = MachineConfig {
            schedule: Schedule::Seeded(seed),
            memory: 2 << 20,
            ..MachineConfig::nodes(nodes.len())
        };
        let mut machine = Machine::new(program.clone(), &config).unwrap();
        machine.run(&mut Console::default()).unwrap();
        (0..nodes.len()).map(|node| (machine.registers(node)[18], machine.registers(node)[19])).collect()
    };
    (0..seeds).map(run).collect()
}

/// What the last node has seen.
fn seen(outcomes: &BTreeSet<Vec<(u64, u64)>>) -> BTreeSet<(u64, u64)> {
    outcomes.iter().map(|outcome| *outcome.last().unwrap()).collect()
}

fn all() -> BTreeSet<(u64, u64)> {
    BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)])
}

#[test]
fn posted_stores_to_different_nodes_may_arrive_in_any_order() {
    // Message passing: data on node 0, flag on node 1; node 2 reads the flag and then the data.
    let found =
        outcomes(&["nop", "nop", "esd t1, 0(a2); esd t1, 0(a3)", "eld s2, 0(a3); eld s3, 0(a2)"], 400);
    assert_eq!(seen(&found), all(), "a flag without its data is allowed, and must be seen");
}

#[test]
fn a_fence_between_posted_stores_keeps_their_order() {
    let found = outcomes(
        &["nop", "nop", "esd t1, 0(a2); fence w, w; esd t1, 0(a3)", "eld s2, 0(a3); eld s3, 0(a2)"],
        400,
    );
    let without_data = (1, 0);
    assert_eq!(seen(&found), &all() - &BTreeSet::from([without_data]));
}

#[test]
fn an_atomic_with_release_waits_for_posted_stores() {
    // The flag is the writer's own memory, and it sets it by an atomic with rl; the reader reads it from there.
    let reader = "eld s2, 8(a4); eld s3, 0(a2)";
    let with =
        outcomes(&["nop", "nop", "esd t1, 0(a2); addi a5, a2, 8; amoswap.d.rl t2, t1, (a5)", reader], 400);
    assert_eq!(seen(&with), &all() - &BTreeSet::from([(1, 0)]));
    let without =
        outcomes(&["nop", "nop", "esd t1, 0(a2); addi a5, a2, 8; amoswap.d t2, t1, (a5)", reader], 400);
    assert_eq!(seen(&without), all(), "without rl it does not wait");
}

#[test]
fn stores_are_passed_by_loads_unless_a_fence_is_between() {
    // Store buffering: both nodes store to the other's word... of a third node, and read the other's.
    let both = |fence: &str| {
        let code = |mine: &str, others: &str| format!("esd t1, 0({mine}); {fence}; eld s2, 0({others})");
        let (one, other) = (code("a2", "a3"), code("a3", "a2"));
        let found = outcomes(&["nop", "nop", &one, &other], 600);
        found.iter().map(|outcome| (outcome[2].0, outcome[3].0)).collect::<BTreeSet<_>>()
    };
    assert_eq!(both("nop"), all(), "both may read before the stores have arrived");
    assert_eq!(both("fence rw, rw"), &all() - &BTreeSet::from([(0, 0)]));
}

#[test]
fn a_core_reads_its_own_posted_store() {
    let found = outcomes(&["nop", "esd t1, 0(a2); eld s2, 0(a2); esw t1, 8(a2); elw s3, 8(a2)"], 200);
    assert_eq!(seen(&found), BTreeSet::from([(1, 1)]));
}

#[test]
fn all_nodes_see_the_changes_of_one_word_in_the_same_order() {
    // Coherence: two writers, two readers who read twice. No reader sees the first value again after the second.
    let reader = "eld s2, 0(a2); eld s3, 0(a2)";
    let found = outcomes(&["li t1, 1; esd t1, 0(a2)", "li t1, 2; esd t1, 0(a2)", reader, reader], 600);
    for outcome in &found {
        let (one, other) = (outcome[2], outcome[3]);
        assert!(one.0 == 0 || one.1 != 0, "back to nothing: {outcome:?}");
        let opposite = one.0 != 0 && one.0 != one.1 && (other.0, other.1) == (one.1, one.0);
        assert!(!opposite, "two orders: {outcome:?}");
    }
    assert!(found.len() > 6, "the seeds show too little: {found:?}");
}

#[test]
fn atomics_of_many_nodes_are_one_after_the_other() {
    // Each adds 1 and sees another value.
    let code = "eamoadd.d s2, a2, t1";
    let found = outcomes(&[code, code, code, code], 200);
    for outcome in &found {
        let values: BTreeSet<u64> = outcome.iter().map(|(value, _)| *value).collect();
        assert_eq!(values, BTreeSet::from([0, 1, 2, 3]), "{outcome:?}");
    }
    assert!(found.len() > 4, "the seeds show too little: {found:?}");
}

#[test]
fn stores_before_a_barrier_are_there_behind_it() {
    let writer = "esd t1, 0(a2); esd t1, 0(a3); li a7, 1003; ecall";
    let reader = "li a7, 1003; ecall; eld s2, 0(a2); eld s3, 0(a3)";
    let waits = "li a7, 1003; ecall";
    assert_eq!(seen(&outcomes(&[waits, waits, writer, reader], 200)), BTreeSet::from([(1, 1)]));
}
