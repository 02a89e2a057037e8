//! Histories that `rackmem ycsb --history` writes, of racks of processes and in one process: each is linearizable.

use std::fs;

use check::history::read_json_lines;
use check::linearizability::{Limits, Verdict, check_history};

use super::tiny;
use crate::shell::{Temporary, can_have_kernel};

fn the_history_is_linearizable(transport: &str, store: &str) {
    let each = ["A", "F"].map(|workload| ["--workload", workload, "--store", store]);
    the_histories_are_linearizable(transport, store, &each.each_ref().map(<[_; 4]>::as_slice));
}

fn the_histories_are_linearizable(transport: &str, store: &str, runs: &[&[&str]]) {
    let temporary = Temporary::new(&format!("hist-{transport}-{store}"));
    for run in runs {
        let path = temporary.path("history.jsonl");
        let history = path.to_str().unwrap();
        let args = tiny(transport, "20", &[run, &["--history", history][..]].concat());
        temporary.json(&args);
        let operations = read_json_lines(std::io::BufReader::new(fs::File::open(&path).unwrap())).unwrap();
        assert_eq!(operations.len(), 20 + 900, "the load, and the run");
        let clients =
            operations.iter().map(|operation| operation.client).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(clients.len(), 6, "three nodes with two threads each");
        let verdict = check_history(&operations, Limits::default());
        assert!(matches!(verdict, Verdict::Linearizable { .. }), "{run:?}: {verdict}");
    }
}

#[test]
fn the_history_of_a_rack_over_shared_memory_is_linearizable() {
    the_history_is_linearizable("shm", "coherent");
}

#[test]
fn the_history_of_a_rack_over_udp_is_linearizable() {
    the_history_is_linearizable("udp", "coherent");
}

#[test]
fn the_history_of_a_rack_whose_switch_is_in_the_kernel_is_linearizable() {
    if !can_have_kernel() {
        return;
    }
    let in_switch = |workload| ["--workload", workload, "--directory", "switch"];
    let runs = ["A", "F"].map(in_switch);
    the_histories_are_linearizable("wire", "coherent", &runs.each_ref().map(<[_; 4]>::as_slice));
    the_histories_are_linearizable("wire-process", "coherent", &[&in_switch("A")]);
    the_histories_are_linearizable("wire", "locked", &[&["--workload", "A", "--store", "locked"]]);
}

#[test]
fn the_history_of_a_store_with_locks_over_shared_memory_is_linearizable() {
    the_history_is_linearizable("shm", "locked");
}

#[test]
fn the_history_of_a_store_with_locks_over_udp_is_linearizable() {
    the_history_is_linearizable("udp", "locked");
}

#[test]
fn the_history_of_a_store_with_locks_in_one_process_is_linearizable() {
    the_history_is_linearizable("inline", "locked");
}

#[test]
fn the_history_of_a_store_in_mapped_memory_is_linearizable_over_shared_memory_and_udp() {
    if let Err(why) = rackmem::can_map() {
        println!("SKIPPED: {why}");
        return;
    }
    ["shm", "udp"].into_iter().for_each(|transport| the_history_is_linearizable(transport, "mapped"));
}

fn the_history_of_chains_is_linearizable(transport: &str) {
    let native = ["--workload", "A", "--store", "chain"];
    let steered = ["--workload", "A", "--store", "chain", "--steering", "all"];
    the_histories_are_linearizable(transport, "chain", &[&native, &steered]);
}

#[test]
fn the_history_of_a_store_of_objects_is_linearizable_wherever_the_nodes_are() {
    ["inline", "shm", "udp"]
        .into_iter()
        .for_each(|transport| the_history_is_linearizable(transport, "objects"));
}

#[test]
fn the_history_of_chains_over_shared_memory_is_linearizable_with_steering_and_without() {
    the_history_of_chains_is_linearizable("shm");
}

#[test]
fn the_history_of_chains_over_udp_is_linearizable_with_steering_and_without() {
    the_history_of_chains_is_linearizable("udp");
}

#[test]
fn the_history_of_chains_in_one_process_is_linearizable_with_steering_and_without() {
    the_history_of_chains_is_linearizable("inline");
}
