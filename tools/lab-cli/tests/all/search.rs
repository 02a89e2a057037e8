//! Random runs and soaks say how to see again what they saw.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::shell::{Temporary, children_of, is_alive, mistake, run, signal, text, until};

#[test]
fn fresh_seeds_come_with_the_command_that_runs_them_again() {
    for which in [&["fuzz"][..], &["fuzz", "--locks"]] {
        let args =
            [which, &["--fresh", "2", "--steps", "500", "--with", "operations=100", "--json"]].concat();
        let fresh = run(&args);
        let (said, did) = (text(&fresh.stderr), text(&fresh.stdout));
        let line = said.lines().find(|line| line.contains("rackmem-lab fuzz")).expect("it says how");
        let again = line.split_once("rackmem-lab ").expect("a command").1;
        let again: Vec<&str> = again.split(' ').chain(["--json"]).collect();
        assert!(again.contains(&"--seeds") && again.starts_with(which), "{again:?}");
        let seen = |json: &str| {
            let json: Value = serde_json::from_str(json).expect("one JSON document");
            assert_eq!(json["done"], 2);
            (json["faults"].clone(), json["seen"].clone(), json["seeds"].clone())
        };
        assert_eq!(seen(&did), seen(&text(&run(&again).stdout)));
    }
}

#[test]
fn mistakes_in_what_is_to_be_searched_are_named() {
    let why = mistake(&["fuzz", "--with", "nods=2"], 2);
    assert!(why.contains("`nods`") && why.contains("nodes"), "{why}");
    let why = mistake(&["fuzz", "--with", "nodes"], 2);
    assert!(why.contains("nodes=2"), "{why}");
    let why = mistake(&["fuzz", "--fresh", "2", "--seeds", "0..3"], 2);
    assert!(why.contains("--seeds"), "{why}");
    let why = mistake(&["soak", "--copies", "3", "--nodes", "2"], 2);
    assert!(why.contains("add --nodes 3"), "{why}");
}

#[test]
fn a_soak_that_is_stuck_says_what_every_process_was_doing() {
    let temporary = Temporary::new("stuck");
    let args = ["soak", "--nodes", "2", "--transport", "shm", "--rounds", "1000", "--stuck-seconds", "2"];
    let child = temporary
        .command(&args)
        // Long enough for the rest of the rack not to go on without the node.
        .args(["--timeout-ms", "60000", "--round-seconds", "2", "--harm", "switch"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the start of all processes", || children_of(child.id()).len() == 3);
    let node = *children_of(child.id()).iter().max().unwrap();
    signal("-STOP", node);
    let output = child.wait_with_output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    let left = temporary.runtime_directories();
    let [dir] = &left[..] else { panic!("{left:?} is left; {told}") };
    assert!(told.contains(dir.to_str().unwrap()), "{told}");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_else(|_| panic!("{name}: {told}"));
    assert!(read("threads.txt").contains(", T\n"), "a process is stopped");
    assert!(read("rack.txt").contains("the switch: "));
    assert!(read("the switch.txt").contains("Counts"), "whoever is not stopped says how it is");
    assert!(!is_alive(node));
}
