//! Every atomic at its edge values, in both widths: local ones, remote ones to another node, to the own node, and with an extended
//! address of zero. What must come out is said here once more, in 128 bits.

use riscv::machine::{Console, Machine, MachineConfig};
use riscv::program::Program;

const EDGES: [u64; 15] = [
    0,
    1,
    2,
    0x7f,
    0x7fff_fffe,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0xffff_ffff_7fff_ffff,
    0xffff_ffff_ffff_ffff,
];

/// A word's bits as a signed number.
fn signed(value: u64, bits: u32) -> i128 {
    let value = i128::from(value) & ((1 << bits) - 1);
    if value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
}

/// What the word is afterwards.
fn expected(operation: &str, bits: u32, old: u64, operand: u64, compared: u64) -> u64 {
    let (a, b, c) = (signed(old, bits), signed(operand, bits), signed(compared, bits));
    let mask = (1_i128 << bits) - 1;
    let new = match operation {
        "add" => a + b,
        "xor" => a ^ b,
        "and" => a & b,
        "or" => a | b,
        "min" => a.min(b),
        "max" => a.max(b),
        "minu" => (a & mask).min(b & mask),
        "maxu" => (a & mask).max(b & mask),
        "swap" => b,
        "cas" => {
            if a == c {
                b
            } else {
                a
            }
        }
        other => panic!("{other}"),
    };
    (new & mask) as u64
}

/// Runs one instruction on a word in the middle of a line of node 1, whose heap is everybody's: returns rd, and the double words
/// before, at and behind the word.
fn run(
    instruction: &str,
    extended: u64,
    old: u64,
    operand: u64,
    rd: u64,
    bits: u32,
    upper: bool,
) -> (u64, [u64; 3]) {
    let text = format!(
        "li a7, 1004; ecall; li a1, {at}; add a2, a0, a1
         li a3, {operand}; li a4, {rd}; li a5, {extended}; eaddie e12, a5, 0
         li a7, 1000; ecall; li a1, {runner}; bne a0, a1, done
         {instruction}
         done: li a7, 1003; ecall
         li a7, 93; li a0, 0; ecall",
        at = 24 + if upper { 4 } else { 0 },
        operand = operand as i64,
        rd = rd as i64,
        // With an extended address of zero the node itself is meant.
        runner = if extended == 0 { 1 } else { 0 },
    );
    let mut machine = Machine::new(Program::assembled(&text).unwrap(), &MachineConfig::nodes(2)).unwrap();
    let heap = machine.layout().heap.start;
    let neighbours = 0x1111_2222_3333_4444_u64;
    let contents = if bits == 64 {
        old
    } else if upper {
        old << 32 | 0x5555_6666
    } else {
        0x7777_8888 << 32 | old & 0xffff_ffff
    };
    let target = if extended == 1 { 0 } else { 1 };
    for (at, value) in [(16, neighbours), (24, contents), (32, neighbours)] {
        machine.memory_mut(target).store::<3>(heap + at, value).unwrap();
    }
    machine.run(&mut Console::default()).unwrap();
    let runner = if extended == 0 { 1 } else { 0 };
    let word = |at| machine.memory(target).load::<3>(heap + at).unwrap();
    (machine.registers(runner)[14], [word(16), word(24), word(32)])
}

fn assert_right(operation: &str, instruction: &str, extended: u64, bits: u32) {
    for (index, old) in EDGES.into_iter().enumerate() {
        for (other, operand) in EDGES.into_iter().enumerate() {
            let upper = bits == 32 && (index + other) % 2 == 1;
            // Of a compare-and-swap: what is expected is there, but for every third time. The upper half of rd is nobody's.
            let compared = if operation == "cas" && (index + other) % 3 == 0 {
                operand.wrapping_add(5)
            } else if bits == 32 {
                old ^ 0xabcd << 40
            } else {
                old
            };
            let (rd, [before, word, behind]) =
                run(instruction, extended, old, operand, compared, bits, upper);
            let found = if bits == 64 {
                word
            } else if upper {
                assert_eq!(word & 0xffff_ffff, 0x5555_6666, "{instruction} has changed its neighbour");
                word >> 32
            } else {
                assert_eq!(word >> 32, 0x7777_8888, "{instruction} has changed its neighbour");
                word & 0xffff_ffff
            };
            let what =
                format!("{instruction} on {old:#x} with {operand:#x}, {compared:#x}, extended {extended}");
            assert_eq!(found, expected(operation, bits, old, operand, compared), "{what}");
            assert_eq!(rd, signed(old, bits) as u64, "{what}: rd");
            assert_eq!((before, behind), (0x1111_2222_3333_4444, 0x1111_2222_3333_4444), "{what}");
        }
    }
}

const REMOTE: [&str; 7] = ["add", "xor", "and", "or", "min", "max", "cas"];

#[test]
fn remote_atomics_of_another_nodes_memory_are_right_at_every_edge() {
    for operation in REMOTE {
        assert_right(operation, &format!("eamo{operation}.d a4, a2, a3"), 2, 64);
        assert_right(operation, &format!("eamo{operation}.w a4, a2, a3"), 2, 32);
    }
}

#[test]
fn remote_atomics_of_the_own_nodes_memory_are_right_at_every_edge() {
    for operation in REMOTE {
        assert_right(operation, &format!("eamo{operation}.d a4, a2, a3"), 1, 64);
        assert_right(operation, &format!("eamo{operation}.w a4, a2, a3"), 1, 32);
    }
}

#[test]
fn remote_atomics_with_an_extended_address_of_zero_are_local_and_right_at_every_edge() {
    for operation in REMOTE {
        assert_right(operation, &format!("eamo{operation}.d a4, a2, a3"), 0, 64);
        assert_right(operation, &format!("eamo{operation}.w a4, a2, a3"), 0, 32);
    }
}

#[test]
fn local_atomics_are_right_at_every_edge() {
    for operation in ["add", "xor", "and", "or", "min", "max", "minu", "maxu", "swap"] {
        assert_right(operation, &format!("amo{operation}.d a4, a3, (a2)"), 0, 64);
        assert_right(operation, &format!("amo{operation}.w a4, a3, (a2)"), 0, 32);
    }
}

#[test]
fn a_compare_and_swap_into_zero_expects_zero_and_leaves_zero() {
    for (old, new) in [(0, 9), (1, 1)] {
        let (_, [_, word, _]) = run("eamocas.d zero, a2, a3; add a4, zero, zero", 2, old, 9, 0, 64, false);
        assert_eq!(word, new);
    }
}

#[test]
fn loads_and_stores_of_parts_of_words_are_right_in_every_width_and_place() {
    for (name, bytes, is_signed) in
        [("b", 1, true), ("h", 2, true), ("w", 4, true), ("bu", 1, false), ("hu", 2, false), ("d", 8, true)]
    {
        for offset in (0..16).step_by(bytes) {
            for extended in 0..=2 {
                let old = 0x8182_8384_8586_8788_u64;
                let text = format!("el{name} a4, {}(a2)", offset as i64 - 8);
                let (rd, _) = run(&text, extended, old, 0, 0, 64, false);
                let all = (u128::from(old) << 64 | 0x1111_2222_3333_4444) >> (8 * offset);
                let value = all as u64 & (u64::MAX >> (64 - 8 * bytes));
                let value = if is_signed { signed(value, 8 * bytes as u32) as u64 } else { value };
                assert_eq!(rd, value, "{text}, extended {extended}");
                if name.ends_with('u') {
                    continue;
                }
                let text = format!("es{name} a3, {}(a2)", offset as i64 - 8);
                let stored = 0xf1f2_f3f4_f5f6_f7f8_u64;
                let (_, [before, word, behind]) = run(&text, extended, old, stored, 0, 64, false);
                let mask = (u128::from(u64::MAX >> (64 - 8 * bytes))) << (8 * offset);
                let was = u128::from(old) << 64 | 0x1111_2222_3333_4444;
                let is = u128::from(word) << 64 | u128::from(before);
                assert_eq!(
                    is,
                    was & !mask | u128::from(stored) << (8 * offset) & mask,
                    "{text}, extended {extended}"
                );
                assert_eq!(behind, 0x1111_2222_3333_4444);
            }
        }
    }
}
