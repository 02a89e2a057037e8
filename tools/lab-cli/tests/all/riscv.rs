//! `rackmem-lab riscv` as a shell sees it.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::COMMAND;
use crate::shell;

fn rackmem(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = shell::run(args);
    (status.code(), shell::text(&stdout), shell::text(&stderr))
}

fn prebuilt(name: &str) -> String {
    format!("{}/../riscv/programs/prebuilt/{name}.elf", env!("CARGO_MANIFEST_DIR"))
}

fn file(name: &str, content: &[u8]) -> String {
    shell::file(name, content).display().to_string()
}

#[test]
fn a_program_runs_on_every_node_and_what_it_writes_is_the_output() {
    let (code, out, err) = rackmem(&["riscv", "run", &prebuilt("hot_word"), "--nodes", "8", "--", "50"]);
    assert_eq!((code, out.as_str()), (Some(0), "400 additions of 8 PEs, the word is 400\n"), "{err}");
}

#[test]
fn a_result_for_programs_is_one_document_and_consoles_go_elsewhere() {
    let (code, out, err) =
        rackmem(&["riscv", "run", &prebuilt("hot_word"), "--nodes", "4", "--json", "--", "50"]);
    assert_eq!(code, Some(0), "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    // Each node has one more, with which all words are added up.
    assert_eq!(document["total"]["remote_atomics"], 200 + 4);
    assert_eq!(document["by_node"].as_array().unwrap().len(), 4);
    assert_eq!(document["exit_codes"], serde_json::json!([0, 0, 0, 0]));
    assert_eq!(err, "200 additions of 4 PEs, the word is 200\n");
}

#[test]
fn what_was_counted_is_printed_when_it_is_asked_for() {
    let (code, out, _) =
        rackmem(&["riscv", "run", &prebuilt("hot_word"), "--nodes", "4", "--stats", "--", "50"]);
    assert_eq!(code, Some(0));
    let line = out.lines().find(|line| line.starts_with("remote atomics")).expect("it is counted");
    assert!(line.ends_with(" 204"), "{line}");
}

#[test]
fn a_trace_has_every_instruction_of_every_node() {
    let (code, _, err) =
        rackmem(&["riscv", "run", &prebuilt("hot_word"), "--nodes", "2", "--trace", "--", "3"]);
    assert_eq!(code, Some(0));
    let atomics: Vec<&str> = err.lines().filter(|line| line.contains("eamoadd.d")).collect();
    // Three of each node, and one more with which all words are added up.
    assert_eq!(atomics.len(), 2 * (3 + 1), "{atomics:#?}");
    assert!(atomics[0].starts_with("  0 8000"), "{atomics:?}");
}

#[test]
fn a_program_is_disassembled_with_its_symbols_and_remote_atomics() {
    let (code, out, err) = rackmem(&["riscv", "disasm", &prebuilt("hot_word")]);
    assert_eq!(code, Some(0), "{err}");
    for part in ["_start:\n    80000000", "\nmain:\n", "  eaddie e10, ", "  eamoadd.d "] {
        assert!(out.contains(part), "{part:?} in {out}");
    }
}

#[test]
fn a_wrong_file_is_refused_with_the_reason() {
    let cut_off = &std::fs::read(prebuilt("hot_word")).unwrap()[..3000];
    for (content, why) in
        [(b"#!/bin/sh".as_slice(), "no ELF file"), (&x86(), "not for RISC-V"), (cut_off, "cut off")]
    {
        let path = file("wrong.elf", content);
        for command in ["run", "disasm"] {
            let (code, out, err) = rackmem(&["riscv", command, &path]);
            assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
            assert!(err.contains("wrong.elf") && err.contains(why), "{err}");
        }
    }
    let (code, _, err) = rackmem(&["riscv", "run", "nothing-is-here.elf"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("cannot read nothing-is-here.elf"), "{err}");
}

/// The head of a program for another processor.
fn x86() -> Vec<u8> {
    let mut bytes = std::fs::read(prebuilt("hot_word")).unwrap();
    bytes[18..20].copy_from_slice(&62_u16.to_le_bytes());
    bytes
}

#[test]
fn a_machine_that_cannot_be_is_refused() {
    for (args, why) in [
        (["--nodes", "0"], "1 to 1024 nodes"),
        (["--nodes", "2000"], "not 2000"),
        (["--memory", "64KiB"], "does not fit"),
        (["--memory", "100TiB"], "more than this machine has"),
    ] {
        let (code, _, err) = rackmem(&[&["riscv", "run", &prebuilt("hot_word")], args.as_slice()].concat());
        assert_eq!(code, Some(2));
        assert!(err.contains(why), "{err}");
    }
}

#[test]
fn a_trap_ends_the_run_with_a_message() {
    // The first instruction becomes none.
    let mut bytes = std::fs::read(prebuilt("hot_word")).unwrap();
    let at = bytes.windows(4).position(|word| word == 0x0000_3197_u32.to_le_bytes()).expect("auipc gp, 0x3");
    bytes[at..at + 4].fill(0);
    let (code, _, err) = rackmem(&["riscv", "run", &file("trap.elf", &bytes), "--nodes", "2"]);
    assert_eq!(code, Some(1));
    for part in ["error: node 0: illegal instruction", "pc 0x80000000 <_start+0x0>", "sp 0000000"] {
        assert!(err.contains(part), "{part:?} in {err}");
    }
}

#[test]
fn what_a_program_writes_to_a_full_disk_is_not_lost_in_silence() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("not done: there is no /dev/full here");
        return;
    };
    let mut command = Command::new(COMMAND);
    let said =
        command.args(["riscv", "run", &prebuilt("hot_word"), "--", "5"]).stdout(full).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(err.contains("cannot write the result to standard output"), "{err}");
}

#[test]
fn a_run_that_is_stopped_says_so_and_prints_what_was_counted() {
    // A node that waits for itself: `again: j again` in the place of the first instruction.
    let mut bytes = std::fs::read(prebuilt("hot_word")).unwrap();
    let at = bytes.windows(4).position(|word| word == 0x0000_3197_u32.to_le_bytes()).expect("auipc gp, 0x3");
    bytes[at..at + 4].copy_from_slice(&0x0000_006f_u32.to_le_bytes());
    for timing in [None, Some("--timing")] {
        let mut command = Command::new(COMMAND);
        command.args(["riscv", "run", &file("endless.elf", &bytes), "--nodes", "2", "--stats", "--trace"]);
        let command = command.args(timing).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It runs once it traces; from then on nobody reads its trace but at the end.
        let mut first = [0; 8];
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_exact(&mut first).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut rest = Vec::new();
        stderr.read_to_end(&mut rest).unwrap();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(String::from_utf8_lossy(&rest).contains("stopped by Ctrl-C"));
        assert!(out.contains("\ninstructions") || out.starts_with("instructions"), "{out}");
    }
}

#[test]
fn a_run_that_does_not_end_is_stuck_and_one_that_fails_says_who() {
    let (code, _, err) = rackmem(&["riscv", "run", &prebuilt("hot_word"), "--limit", "1000"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("not at its end after 1000 instructions"), "{err}");
    let (code, _, err) = rackmem(&["riscv", "run", &prebuilt("circustent"), "--nodes", "3"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("node 0 has exited with 2 (3 of 3"), "{err}");
}
