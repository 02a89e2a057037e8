//! Racks of processes that programs in C start, and that end with them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::rig::{Home, Running, eventually};
use crate::compiler::{C, compiled, library, source};

/// `up.c`, which has started a rack; killed at the latest when the test ends.
struct Program {
    process: Child,
    output: BufReader<ChildStdout>,
    input: ChildStdin,
    /// The node that it does not need.
    node: String,
    /// How its rack is, as it was told.
    status: serde_json::Value,
}

impl Program {
    fn start(home: &Home, name: &str) -> Option<Self> {
        let program = compiled(&source("up.c"), name, C, &[library("librackmem_c.a").to_str().unwrap()])?;
        let mut process = home
            .within(Command::new(program))
            .env("RACKMEM_COMMAND", crate::COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let input = process.stdin.take().unwrap();
        let [mut node, mut status] = [const { String::new() }; 2];
        output.read_line(&mut node).unwrap();
        output.read_line(&mut status).unwrap();
        assert!(!status.is_empty(), "it has said why on standard error");
        let status = serde_json::from_str(&status).unwrap();
        Some(Self { process, output, input, node: node.trim().to_owned(), status })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What of a document does not change by the next look.
fn lasting(status: &serde_json::Value) -> Vec<&serde_json::Value> {
    let of = |of: &'static str, each: &'static [&str]| {
        let all = status[of].as_array().unwrap().iter();
        all.flat_map(move |it| each.iter().map(move |key| &it[*key]))
    };
    let rack = ["command", "version", "rack", "transport", "phase", "epoch", "file", "locks_unknown"];
    let rack = rack.iter().map(|key| &status[*key]);
    let nodes = of("nodes", &["id", "up", "incarnation"]);
    rack.chain(nodes).chain(of("locks", &["name", "address", "writes", "kept_by"])).collect()
}

#[test]
fn a_c_program_is_told_how_the_rack_is_as_the_command_tells_it() {
    let home = Home::new("c-status");
    let Some(program) = Program::start(&home, "up-status") else { return };
    let (told, shown) = (&program.status, home.status());
    assert_eq!(lasting(told), lasting(&shown));
    assert_eq!(told["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(told["locks"][0]["writes"], 1, "{told}");
    drop(program);
    eventually("nothing of it is left", || home.is_clean());
}

/// Starts a node of the program's rack again, as its user would.
fn start_again(home: &Home, node: &str) -> Running {
    let folders = std::fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().path());
    let file = folders.map(|folder| folder.join("rack.toml")).find(|file| file.exists()).unwrap();
    home.start(&["node", "--id", node, "--config", file.to_str().unwrap()])
}

#[test]
fn a_c_program_starts_a_rack_is_told_what_is_lost_makes_it_anew_and_leaves_nothing() {
    let home = Home::new("c-up");
    let Some(mut program) = Program::start(&home, "up") else { return };
    home.kill(&["node", "--id", &program.node]);
    program.input.write_all(b"killed\n").unwrap();
    let mut said = String::new();
    program.output.read_line(&mut said).unwrap();
    assert_eq!(said, "lost\n", "it has said why on standard error");
    let again = start_again(&home, &program.node);
    program.input.write_all(b"again\n").unwrap();
    said.clear();
    program.output.read_to_string(&mut said).unwrap();
    assert!(program.process.wait().unwrap().success() && said == "ok\n", "{said}");
    again.signal("TERM").output();
    eventually("nothing of it is left", || home.is_clean());
}

#[test]
fn what_a_c_program_has_started_ends_when_it_is_killed() {
    let home = Home::new("c-killed");
    let Some(program) = Program::start(&home, "up-killed") else { return };
    assert!(!home.is_clean());
    drop(program);
    eventually("the children end and take the files along", || home.is_clean());
}
