//! Random programs of standard instructions in lock step with qemu-riscv64, where it is installed: before every instruction all
//! registers are the same.
//!
//! With `RACKMEM_RISCV` set, a machine without qemu is a failure.

use crate::elf_file;

use std::fs;
use std::process::Command;

use elf_file::{CODE, DATA, DATA_BYTES, elf};
use random::Random;
use riscv::isa::assemble::assemble;
use riscv::machine::{Machine, MachineConfig, Observer};
use riscv::program::Program;

/// Address and registers before an instruction.
type Step = (u64, [u64; 32]);

struct Steps(Vec<Step>);

impl Observer for Steps {
    fn on_console(&mut self, _: usize, _: &[u8]) {}

    fn traces(&self) -> bool {
        true
    }

    fn on_instruction(&mut self, _: usize, pc: u64, _: u32, x: &[u64; 32]) {
        self.0.push((pc, *x));
    }
}

struct Writer(Random);

impl Writer {
    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[(self.0.bits() % choice.len() as u64) as usize]
    }

    /// A register that a program changes as it likes; gp is the data's address, tp an address in it.
    fn register(&mut self) -> String {
        let number = self.0.bits() % 30;
        format!("x{}", if number < 3 { number } else { number + 2 })
    }

    fn source(&mut self) -> String {
        format!("x{}", self.0.bits() % 32)
    }

    /// A value: often an edge.
    fn value(&mut self) -> i64 {
        let random = self.0.bits();
        match random % 5 {
            0 => self.of(&[0, 1, -1, i64::MIN, i64::MAX, 1 << 31, -(1 << 31), 0xffff_ffff]),
            1 => (random >> 32) as i32 as i64,
            2 => (random >> 56) as i64,
            _ => self.0.bits() as i64,
        }
    }

    fn instruction(&mut self, index: usize) -> String {
        const PLAIN: [&str; 28] = [
            "add", "sub", "sll", "slt", "sltu", "xor", "srl", "sra", "or", "and", "addw", "subw", "sllw",
            "srlw", "sraw", "mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu", "mulw", "divw",
            "divuw", "remw", "remuw",
        ];
        const ATOMICS: [&str; 9] = ["swap", "add", "xor", "and", "or", "min", "max", "minu", "maxu"];
        let (rd, a, b) = (self.register(), self.source(), self.source());
        let constant = (self.0.bits() % 4096) as i64 - 2048;
        let offset = |bytes: i64| constant / bytes * bytes;
        match self.0.bits() % 16 {
            0..=5 => format!("{} {rd}, {a}, {b}", self.of(&PLAIN)),
            6 | 7 => {
                let name = self.of(&["addi", "slti", "sltiu", "xori", "ori", "andi", "addiw"]);
                format!("{name} {rd}, {a}, {constant}")
            }
            8 => format!("{} {rd}, {a}, {}", self.of(&["slli", "srli", "srai"]), constant & 63),
            9 => format!("{} {rd}, {a}, {}", self.of(&["slliw", "srliw", "sraiw"]), constant & 31),
            10 => format!("{} {rd}, {}", self.of(&["lui", "auipc"]), self.0.bits() & 0xf_ffff),
            11 => {
                let (name, bytes) = self.of(&[
                    ("lb", 1),
                    ("lh", 2),
                    ("lw", 4),
                    ("ld", 8),
                    ("lbu", 1),
                    ("lhu", 2),
                    ("lwu", 4),
                ]);
                format!("{name} {rd}, {}(gp)", offset(bytes))
            }
            12 => {
                let (name, bytes) = self.of(&[("sb", 1), ("sh", 2), ("sw", 4), ("sd", 8)]);
                format!("{name} {b}, {}(gp)", offset(bytes))
            }
            13 => {
                let name = self.of(&["beq", "bne", "blt", "bge", "bltu", "bgeu"]);
                format!(
                    "{name} {a}, {b}, skip{index}; addi {rd}, {rd}, 1; xori {rd}, {rd}, 5; skip{index}: nop"
                )
            }
            14 => {
                let (width, order) = (self.of(&["w", "d"]), self.of(&["", ".aq", ".rl", ".aqrl"]));
                let name = self.of(&ATOMICS);
                format!("addi tp, gp, {}; amo{name}.{width}{order} {rd}, {b}, (tp)", offset(8))
            }
            _ => {
                let width = self.of(&["w", "d"]);
                let sure = format!("lr.{width} {rd}, (tp); sc.{width} {rd}, {b}, (tp)");
                let call = format!(
                    "jal ra, over{index}; nop; over{index}: auipc ra, 0; jalr ra, 12(ra); nop; fence rw, rw"
                );
                format!("addi tp, gp, {}; {}", offset(8), self.of(&[sure.as_str(), call.as_str()]))
            }
        }
    }

    fn program(&mut self) -> String {
        let mut text = format!("li gp, {}\n", DATA + DATA_BYTES / 2);
        text += "mv tp, gp; li sp, 0\n";
        for register in (1..32).filter(|register| ![2, 3, 4].contains(register)) {
            text += &format!("li x{register}, {}\n", self.value());
        }
        for index in 0..1500 {
            text += &self.instruction(index);
            text.push('\n');
        }
        text + "li a7, 93; li a0, 0; ecall"
    }
}

/// What qemu writes before each instruction.
fn steps_of(log: &str) -> Vec<Step> {
    let (mut steps, mut step): (Vec<Step>, Option<Step>) = (Vec::new(), None);
    let value = |text: &str| u64::from_str_radix(text, 16).ok();
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["pc", pc] = words.as_slice() {
            steps.extend(step.take());
            step = value(pc).map(|pc| (pc, [0; 32]));
        }
        for pair in words.windows(2) {
            let number = pair[0]
                .strip_prefix('x')
                .and_then(|name| name.split_once('/'))
                .and_then(|(n, _)| n.parse::<usize>().ok());
            if let (Some(number), Some(value), Some((_, x))) = (number, value(pair[1]), step.as_mut()) {
                x[number] = value;
            }
        }
    }
    steps.extend(step);
    steps
}

#[test]
fn random_programs_go_in_lock_step_with_qemu() {
    let help = Command::new("qemu-riscv64").arg("--help").output();
    let Ok(help) = help else {
        assert!(
            std::env::var_os("RACKMEM_RISCV").is_none(),
            "RACKMEM_RISCV is set, and qemu-riscv64 is not installed"
        );
        eprintln!("not done: qemu-riscv64 is not installed");
        return;
    };
    // The flag has been renamed in qemu 8.1.
    let single = if String::from_utf8_lossy(&help.stdout).contains("-one-insn-per-tb") {
        "-one-insn-per-tb"
    } else {
        "-singlestep"
    };
    for seed in 0..8 {
        let text = Writer(Random::new(seed)).program();
        let file = elf(&assemble(&text, CODE).unwrap());
        let base = format!("{}/lock-step-{seed}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
        let (path, log) = (format!("{base}.elf"), format!("{base}.log"));
        fs::write(&path, &file).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        fs::set_permissions(&path, permissions).unwrap();
        let status = Command::new("qemu-riscv64")
            .args([single, "-d", "cpu,nochain", "-D", &log, &path])
            .status()
            .unwrap();
        let theirs = steps_of(&fs::read_to_string(&log).unwrap());
        fs::remove_file(&path).unwrap();
        fs::remove_file(&log).unwrap();

        let program = Program::from_elf(&file).unwrap();
        let mut machine =
            Machine::new(program, &MachineConfig { memory: 8 << 20, ..MachineConfig::nodes(1) }).unwrap();
        let mut ours = Steps(Vec::new());
        machine.run(&mut ours).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        assert!(ours.0.len() > 1500, "seed {seed}: the program does too little");
        assert_eq!(theirs.len(), ours.0.len(), "seed {seed}: qemu {status}");
        for (index, (ours, theirs)) in ours.0.iter().zip(&theirs).enumerate() {
            let (mut x, mut y) = (ours.1, theirs.1);
            if index < 10 {
                // The stack pointer is the loader's until the program sets it.
                (x[2], y[2]) = (0, 0);
            }
            assert_eq!(
                (ours.0, x),
                (theirs.0, y),
                "seed {seed}, instruction {index}: address and registers, here and in qemu"
            );
        }
    }
}
