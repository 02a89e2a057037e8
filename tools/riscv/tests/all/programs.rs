//! Programs from files: what is loaded, what is refused and why, and that the prebuilt ones do what they say.

use crate::elf_file;

use elf_file::{CODE, DATA, elf};
use riscv::isa::assemble::assemble;
use riscv::machine::{ConfigError, Console, Machine, MachineConfig, Schedule};
use riscv::program::{LoadError, Program};
use riscv::timing::Chip;

fn prebuilt(name: &str) -> Program {
    let path = format!("{}/programs/prebuilt/{name}.elf", env!("CARGO_MANIFEST_DIR"));
    Program::from_elf(&std::fs::read(path).unwrap()).unwrap()
}

/// Runs a prebuilt program: codes, and what it has written.
fn run(name: &str, arguments: &[&str], config: &MachineConfig) -> (Vec<i32>, String) {
    let arguments = [name].iter().chain(arguments).map(ToString::to_string).collect();
    let mut machine = Machine::new(prebuilt(name).with_arguments(arguments), config).unwrap();
    let mut console = Console::default();
    let codes = machine.run(&mut console).unwrap();
    (codes, String::from_utf8(console.bytes).unwrap())
}

#[test]
fn all_nodes_add_to_the_hot_word() {
    for schedule in [Schedule::Turns, Schedule::Seeded(1), Schedule::Seeded(2)] {
        let config = MachineConfig { schedule, memory: 2 << 20, ..MachineConfig::nodes(64) };
        let (codes, text) = run("hot_word", &["25"], &config);
        assert_eq!(text, "1600 additions of 64 PEs, the word is 1600\n");
        assert_eq!(codes, [0; 64]);
    }
}

#[test]
fn additions_that_are_not_to_the_hot_word_are_to_others_and_none_is_lost() {
    for heat in ["0", "50", "90"] {
        let config = MachineConfig { memory: 2 << 20, ..MachineConfig::nodes(8) };
        let (codes, text) = run("hot_word", &["25", heat, "64"], &config);
        assert_eq!(text, "200 additions of 8 PEs, all words are 200\n");
        assert_eq!(codes, [0; 8]);
    }
    let (codes, _) =
        run("hot_word", &["25", "101"], &MachineConfig { memory: 2 << 20, ..MachineConfig::nodes(2) });
    assert_eq!(codes, [2, 2], "no percentage");
}

#[test]
fn every_pattern_of_circustent_gives_the_right_result_in_every_form() {
    for pattern in ["rand", "stride1", "striden", "ptrchase", "central", "sg", "scatter", "gather"] {
        for operation in ["add", "cas", "update"] {
            for form in ["ring", "global", "own"] {
                for schedule in [Schedule::Turns, Schedule::Seeded(5)] {
                    let config = MachineConfig { schedule, memory: 2 << 20, ..MachineConfig::nodes(6) };
                    let (codes, text) = run("circustent", &[pattern, operation, form, "40", "64"], &config);
                    assert_eq!(codes, [0; 6], "{text}");
                    assert!(text.contains(&format!("{pattern} {operation} {form}: 6 PEs")), "{text}");
                    assert!(!text.contains("wrong"), "{text}");
                }
            }
        }
    }
}

#[test]
fn patterns_have_the_atomics_per_iteration_that_the_benchmark_says() {
    for (pattern, atomics) in
        [("rand", 1), ("ptrchase", 1), ("central", 1), ("sg", 4), ("scatter", 3), ("gather", 3)]
    {
        let count = |iterations: &str| {
            let arguments =
                ["circustent", pattern, "cas", "ring", iterations, "64"].map(str::to_owned).into();
            let config = MachineConfig { memory: 2 << 20, ..MachineConfig::nodes(3) };
            let mut machine =
                Machine::new(prebuilt("circustent").with_arguments(arguments), &config).unwrap();
            machine.run(&mut Console::default()).unwrap();
            machine.stats().total().remote_atomics
        };
        assert_eq!(count("50") - count("20"), 3 * 30 * atomics, "{pattern}");
    }
}

#[test]
fn a_program_that_is_called_wrongly_says_how_and_fails() {
    let (codes, text) = run("circustent", &["rand"], &MachineConfig::nodes(2));
    assert_eq!(codes, [2, 2]);
    assert!(text.starts_with("circustent rand|stride1"), "{text}");
}

#[test]
fn the_remote_addition_of_the_hot_word_is_one_instruction() {
    let words: Vec<_> = prebuilt("hot_word").words().map(|(_, word)| word).collect();
    let atomics = words.iter().filter(|word| *word & 0x7f == 0x6b).count();
    assert!(atomics >= 1, "there is none");
    let program = prebuilt("hot_word");
    assert_eq!(program.place(program.symbol("main").unwrap() + 4), Some(("main", 4)));
}

#[test]
fn code_and_data_are_where_the_file_says_and_data_is_zero() {
    let code = assemble("li a1, 0x500000; ld a0, 8(a1); li a7, 93; ecall", CODE).unwrap();
    let program = Program::from_elf(&elf(&code)).unwrap();
    assert_eq!(program.entry(), CODE);
    let mut machine =
        Machine::new(program, &MachineConfig { memory: 8 << 20, ..MachineConfig::nodes(1) }).unwrap();
    machine.memory_mut(0).store::<3>(DATA + 8, 77).unwrap();
    assert_eq!(machine.memory(0).load::<2>(CODE), Some(u64::from(code[0])));
    assert_eq!(machine.run(&mut Console::default()), Ok(vec![77]));
}

#[test]
fn what_is_no_program_for_the_machine_is_refused_with_the_reason() {
    let good = elf(&[0x13]);
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        Program::from_elf(&file).err()
    };
    assert_eq!(with(0, b"\x7fELF"), None);
    assert_eq!(with(0, b"what"), Some(LoadError::NotElf));
    assert!(matches!(Program::from_elf(&good[..100]), Err(LoadError::Damaged(_))));
    assert_eq!(with(18, &62_u16.to_le_bytes()), Some(LoadError::Machine(62)));
    assert_eq!(with(16, &1_u16.to_le_bytes()), Some(LoadError::NotLinked));
    assert_eq!(with(48, &1_u32.to_le_bytes()), Some(LoadError::Compressed));
    assert_eq!(with(48, &4_u32.to_le_bytes()), Some(LoadError::Float));
    assert_eq!(with(24, &(CODE + 2).to_le_bytes()), Some(LoadError::Entry(CODE + 2)));
    assert_eq!(with(24, &DATA.to_le_bytes()), Some(LoadError::Entry(DATA)));
    assert_eq!(with(64 + 4, &4_u32.to_le_bytes()), Some(LoadError::NoCode));
    assert_eq!(with(64 + 4, &7_u32.to_le_bytes()), Some(LoadError::WritableCode(CODE)));
    assert_eq!(with(120 + 16, &(CODE - 0x1000).to_le_bytes()), Some(LoadError::WritableCode(CODE - 0x1000)));
    assert_eq!(with(120 + 40, &u64::MAX.to_le_bytes()), Some(LoadError::TooLarge));
    // Without data, code could be as large as it likes.
    let mut large = good.clone();
    large[64 + 40..64 + 48].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    large[120..124].fill(0);
    assert_eq!(Program::from_elf(&large).err(), Some(LoadError::TooLarge));
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused_or_loaded_but_never_panics() {
    let good =
        std::fs::read(format!("{}/programs/prebuilt/hot_word.elf", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for length in (0..good.len()).step_by(61) {
        let _ = Program::from_elf(&good[..length]);
    }
    let mut damaged = good.clone();
    for at in 0..good.len().min(400) {
        for value in [0, 0xff, 0x80] {
            damaged[at] = value;
            if let Ok(program) = Program::from_elf(&damaged) {
                let _ = Machine::new(program, &MachineConfig { memory: 2 << 20, ..MachineConfig::nodes(1) });
            }
        }
        damaged[at] = good[at];
    }
}

#[test]
fn a_program_that_does_not_fit_is_refused() {
    let program = prebuilt("hot_word");
    let new = |config| Machine::new(program.clone(), &config).err();
    assert_eq!(new(MachineConfig::nodes(0)), Some(ConfigError::Nodes(0)));
    assert_eq!(new(MachineConfig::nodes(5000)), Some(ConfigError::Nodes(5000)));
    assert!(matches!(
        new(MachineConfig { memory: 1 << 20, ..MachineConfig::nodes(1) }),
        Some(ConfigError::Memory { .. })
    ));
    let more = new(MachineConfig { memory: 1 << 44, ..MachineConfig::nodes(1) });
    assert_eq!(more, Some(ConfigError::TooMuch(1 << 44)));
    assert!(matches!(
        new(MachineConfig { stack: 1 << 40, ..MachineConfig::nodes(1) }),
        Some(ConfigError::NoRoomForStack { .. })
    ));
    let many = program.clone().with_arguments(vec!["x".repeat(1 << 20)]);
    assert_eq!(Machine::new(many, &MachineConfig::nodes(1)).err(), Some(ConfigError::Arguments));
}

/// Whoever looks on may stop it, in each schedule, and a program that never ends does then.
#[test]
fn a_machine_that_is_told_to_stop_stops() {
    struct Impatient(std::cell::Cell<u32>);
    impl riscv::machine::Observer for Impatient {
        fn on_console(&mut self, _: usize, _: &[u8]) {}

        fn stops(&self) -> bool {
            self.0.set(self.0.get() + 1);
            self.0.get() > 100
        }
    }
    for schedule in [Schedule::Turns, Schedule::Seeded(1), Schedule::Timed(Chip::PAPER)] {
        let program = Program::assembled("again: j again").unwrap();
        let config = MachineConfig { schedule, memory: 2 << 20, ..MachineConfig::nodes(2) };
        let ended = Machine::new(program, &config).unwrap().run(&mut Impatient(0.into()));
        assert_eq!(ended, Err(riscv::machine::Failure::Stopped), "{schedule:?}");
    }
}

/// Where the cross compiler is installed; the same compiler must give the same bytes.
#[test]
fn the_prebuilt_programs_are_what_their_sources_give() {
    let script = format!("{}/programs/build", env!("CARGO_MANIFEST_DIR"));
    let output = std::process::Command::new("bash").args([&script, "--check"]).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    eprint!("{text}");
    let is_required = std::env::var_os("RACKMEM_RISCV").is_some();
    assert!(!is_required || !text.starts_with("not done"), "RACKMEM_RISCV is set: {text}");
}

/// What docs/rae.md begins with, literally, where the cross compiler is installed: but for the last line, which is the command's.
#[test]
fn the_first_program_of_the_page_is_ten_lines_and_does_what_the_page_says() {
    let here = env!("CARGO_MANIFEST_DIR");
    let page = std::fs::read_to_string(format!("{here}/../../docs/rae.md")).unwrap();
    let block = |kind: &str| {
        let (_, behind) = page.split_once("## A first program").unwrap();
        let (_, behind) = behind.split_once(&format!("```{kind}\n")).unwrap();
        behind.split_once("```").unwrap().0.to_owned()
    };
    let (source, shell) = (block("c"), block("sh"));
    assert_eq!(source.lines().count(), 10, "{source}");
    let (build, run) = shell.split_once("rackmem-lab riscv run ").expect("it is run in the end");
    assert!(run.starts_with("first.elf --nodes 64"), "{run}");
    let clean = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-program");
    let script = format!(
        "set -e; command -v riscv64-unknown-elf-gcc >/dev/null || {{ echo not done: no cross compiler; exit; }}
         rm -rf '{clean}'; mkdir -p '{clean}/tools/riscv'; cp -r '{here}/programs' '{clean}/tools/riscv/'; cd '{clean}'
         cat >tools/riscv/programs/first.c; {build}",
        clean = clean.display()
    );
    let mut child = std::process::Command::new("bash")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended already, and said why.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), source.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    if said.starts_with("not done") {
        eprint!("{said}");
        return;
    }
    let program = std::fs::read(clean.join("tools/riscv/programs/first.elf")).unwrap();
    let config = MachineConfig { memory: 2 << 20, ..MachineConfig::nodes(64) };
    let mut machine = Machine::new(Program::from_elf(&program).unwrap(), &config).unwrap();
    let mut console = Console::default();
    machine.run(&mut console).unwrap();
    assert_eq!(String::from_utf8(console.bytes).unwrap(), "64 of 64\n");
    assert!(page.contains("It prints `64 of 64`"));
}

/// One node ends all while others wait for answers, at a barrier, or compute.
#[test]
fn a_program_is_ended_on_all_nodes_by_one_of_them() {
    let text = "li a7, 1004; ecall; mv a2, a0; eaddie e12, zero, 1; li a7, 1000; ecall
         li t0, 1; beq a0, t0, asks; li t0, 2; beq a0, t0, meets; li t0, 3; beq a0, t0, computes
         li s0, 50; again: addi s0, s0, -1; bne s0, zero, again; li a7, 94; li a0, 5; ecall
         asks: eld a4, 0(a2); j asks
         meets: li a7, 1003; ecall
         computes: j computes";
    let program = Program::assembled(text).unwrap();
    for schedule in (0..20).map(Schedule::Seeded).chain([Schedule::Turns, Schedule::Timed(Chip::PAPER)]) {
        let config = MachineConfig { schedule, memory: 2 << 20, ..MachineConfig::nodes(4) };
        let mut machine = Machine::new(program.clone(), &config).unwrap();
        assert_eq!(machine.run(&mut Console::default()), Ok(vec![5; 4]), "{schedule:?}");
    }
}
