//! Random words as programs: whatever they are, a machine ends with a precise trap, or makes progress until it is stopped.

use riscv::isa::TABLE;
use riscv::machine::{Console, Failure, Machine, MachineConfig, Schedule};
use riscv::program::Program;

/// Random words; of every four, three are instructions with random operands.
fn words(seed: u64) -> Vec<u32> {
    let mut stream = random::Random::new(seed);
    let word = |_| {
        let random = stream.bits();
        let row = &TABLE[(random >> 32) as usize % TABLE.len()];
        if random.is_multiple_of(4) {
            random as u32
        } else {
            random as u32 & !row.pattern.mask | row.pattern.bits
        }
    };
    (0..200).map(word).collect()
}

/// First words that give registers addresses and nodes, so that more of what follows gets anywhere.
fn prologue() -> Vec<u32> {
    let mut text = "li a7, 1004; ecall\n".to_owned();
    for register in ["a2", "a3", "a4", "a5", "s2", "s5", "t3", "t5"] {
        text += &format!("mv {register}, a0\n");
    }
    for register in 10..32 {
        text += &format!("eaddie e{register}, zero, {}\n", register % 4);
    }
    riscv::isa::assemble::assemble(&text, 0x8000_0000).unwrap()
}

/// How it ended, if it is as it should be.
fn run(seed: u64, schedule: Schedule) -> Failure {
    let code = [prologue(), words(seed)].concat();
    let program = Program::from_words(&code);
    let config = MachineConfig { schedule, memory: 2 << 20, limit: Some(20_000), ..MachineConfig::nodes(3) };
    let mut machine = Machine::new(program, &config).unwrap();
    let Err(failure) = machine.run(&mut Console::default()) else { return Failure::Limit(0) };
    if let Failure::Trap(trap) = &failure {
        // Precise: it says where the core stands, and what is there.
        let at = trap.pc.wrapping_sub(0x8000_0000) / 4;
        assert_eq!(trap.word, code.get(at as usize).copied(), "seed {seed}: {trap}");
        assert_eq!(trap.x, machine.registers(trap.node), "seed {seed}");
        assert_eq!(trap.x[0], 0, "seed {seed}");
        assert_eq!(trap.retired, machine.stats().nodes[trap.node].instructions, "seed {seed}");
        assert!(trap.to_string().contains("pc 0x"), "seed {seed}");
    }
    failure
}

#[test]
fn random_words_end_in_a_precise_trap_or_make_progress() {
    let (mut traps, mut others) = (0, 0);
    for seed in 0..1500 {
        match run(seed, Schedule::Turns) {
            Failure::Trap(_) => traps += 1,
            _ => others += 1,
        }
        run(seed, Schedule::Seeded(seed));
    }
    assert!(traps > 1000, "{traps} traps, {others} others");
}

#[test]
fn both_ways_through_the_loop_do_the_same() {
    // One node: turns and single instructions must come to the same trap.
    for seed in 0..1500 {
        let result = |schedule| {
            let program = Program::from_words(&[prologue(), words(seed)].concat());
            // Turns end at blocks: the limit is not the same instruction for both.
            let config =
                MachineConfig { schedule, memory: 2 << 20, limit: Some(5_000), ..MachineConfig::nodes(1) };
            let mut machine = Machine::new(program, &config).unwrap();
            machine.run(&mut Console::default())
        };
        let (blocks, single) = (result(Schedule::Turns), result(Schedule::Seeded(seed)));
        assert_eq!(blocks, single, "seed {seed}");
    }
}
