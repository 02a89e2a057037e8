//! How many instructions a second a machine executes, without timing and with it.
//!
//! ```sh
//! cargo run --release -p rackmem-riscv --example speed
//! ```
//! Times are of the processor, where the kernel says them (`/proc/self/schedstat`), so that others on a shared machine count less;
//! each line is the best of five.

use std::time::Instant;

use riscv::machine::{Console, Machine, MachineConfig, Schedule};
use riscv::program::Program;
use riscv::timing::Chip;

/// Code, with the number of its rounds in a0, and how many nodes run it.
const LOADS: [(&str, usize, u64, &str); 5] = [
    ("a counter", 1, 60_000_000, "again: addi a0, a0, -1; bne a0, zero, again"),
    (
        "a generator of random numbers",
        1,
        20_000_000,
        "li t1, 1; again: slli t2, t1, 13; xor t1, t1, t2; srli t2, t1, 7; xor t1, t1, t2
         slli t2, t1, 17; xor t1, t1, t2; addi a0, a0, -1; bne a0, zero, again",
    ),
    (
        "sums in memory",
        1,
        20_000_000,
        "addi sp, sp, -64; again: ld t0, 0(sp); ld t1, 8(sp); add t0, t0, t1; addi t1, t1, 1; sd t0, 0(sp); sd t1, 8(sp)
         addi a0, a0, -1; bne a0, zero, again",
    ),
    (
        "the same, 64 nodes",
        64,
        400_000,
        "addi sp, sp, -64; again: ld t0, 0(sp); ld t1, 8(sp); add t0, t0, t1; addi t1, t1, 1; sd t0, 0(sp); sd t1, 8(sp)
         addi a0, a0, -1; bne a0, zero, again",
    ),
    (
        "remote atomics, 64 nodes on one word",
        64,
        20_000,
        "mv s0, a0; li a7, 1004; ecall; mv a2, a0; mv a0, s0; eaddie e12, zero, 1; li a3, 1
         again: eamoadd.d a4, a2, a3; addi a0, a0, -1; bne a0, zero, again",
    ),
];

fn main() {
    println!("without timing");
    all(Schedule::Turns, 1);
    println!("with timing");
    all(Schedule::Timed(Chip::PAPER), 10);
}

fn all(schedule: Schedule, less: u64) {
    for (name, nodes, rounds, code) in LOADS {
        let rounds = rounds / less;
        let text = format!("li a0, {rounds}; {code}; li a7, 93; li a0, 0; ecall");
        let program = Program::assembled(&text).expect("it is understood");
        let start = Instant::now();
        let mut best = (f64::MAX, 0, 0);
        for _ in 0..5 {
            let mut machine =
                Machine::new(program.clone(), &MachineConfig { schedule, ..MachineConfig::nodes(nodes) })
                    .expect("it fits");
            let begin = now(start);
            machine.run(&mut Console::default()).expect("it ends");
            let total = machine.stats().total();
            let took = now(start) - begin;
            if took < best.0 {
                best = (took, total.instructions, total.remote_atomics);
            }
        }
        let (took, instructions, atomics) = best;
        print!("{name:40} {:8.1} M instructions/s", instructions as f64 / took / 1e6);
        if atomics > 0 {
            print!(", {:.2} M remote atomics/s", atomics as f64 / took / 1e6);
        }
        println!();
    }
}

/// Seconds that this program has had a processor for; where nobody says that, seconds since it began.
fn now(start: Instant) -> f64 {
    let said = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanos = said.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    nanos.map_or_else(|| start.elapsed().as_secs_f64(), |nanos| nanos as f64 / 1e9)
}
