//! Commands that start a rack of processes: what they measure, and that nothing is left of them however they end.
#![cfg(target_os = "linux")]

mod histories;

use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::shell::{Temporary, children_of, is_alive, signal, text, until};

/// A run that takes for ever, with all of its processes at work.
fn endless(temporary: &Temporary, transport: &str) -> (Child, Vec<u32>) {
    let operations = "1000000000";
    let child = temporary
        .command(&["ycsb", "--transport", transport, "--nodes", "2", "--workload", "C", "--records", "200"])
        .args(["--operations", operations, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the start of all processes", || children_of(child.id()).len() == 3);
    // Into the run, or at least into the load.
    thread::sleep(Duration::from_secs(1));
    let children = children_of(child.id());
    (child, children)
}

/// A run that takes no time: flags beyond these follow.
fn tiny<'a>(transport: &'a str, records: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = ["ycsb", "--transport", transport, "--nodes", "3", "--threads", "2", "--cache", "1MiB"];
    [&args[..], &["--records", records, "--operations", "900"], more].concat()
}

fn a_rack_of_processes_does_all_of_a_workload(transport: &str) {
    let temporary = Temporary::new(&format!("all-{transport}"));
    let report = temporary.json(&tiny(transport, "300", &["--workload", "A,C", "--warm-up", "100"]));
    assert_eq!(report["transport"], transport);
    for workload in report["workloads"].as_array().unwrap() {
        assert_eq!((&workload["operations"], &workload["complete"]), (&900.into(), &true.into()));
        assert_eq!(workload["absent"], 0);
        let counts =
            workload["latencies"].as_array().unwrap().iter().map(|kind| kind["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), 900);
        for counter in ["cache_hits", "cache_misses", "switch_packets"] {
            assert!(workload[counter].as_u64().unwrap() > 0, "{counter} in {workload}");
        }
        assert!(workload["travelled"]["messages"].as_u64().unwrap() > 0, "{workload}");
    }
}

#[test]
fn a_rack_over_shared_memory_does_all_of_a_workload() {
    a_rack_of_processes_does_all_of_a_workload("shm");
}

#[test]
fn a_rack_over_udp_does_all_of_a_workload() {
    a_rack_of_processes_does_all_of_a_workload("udp");
}

#[test]
fn round_trips_to_chains_are_reported_by_kind_of_operation() {
    let temporary = Temporary::new("trips");
    let report = temporary.json(&tiny("udp", "200", &["--workload", "A", "--store", "chain"]));
    for kind in report["workloads"][0]["latencies"].as_array().unwrap() {
        let trips = &kind["round_trips"];
        // Both steps of an append are in flight at once.
        assert!(trips["mean"].as_f64().unwrap() >= 1.0, "{kind}");
        assert!(trips["p99"].as_u64().unwrap() >= trips["p50"].as_u64().unwrap(), "{kind}");
    }
    let coherent = temporary.json(&tiny("udp", "200", &["--workload", "A"]));
    assert!(coherent["workloads"][0]["latencies"][0].get("round_trips").is_none());
}

#[test]
fn scans_run_across_processes_with_copies_and_without() {
    let temporary = Temporary::new("scans");
    for (transport, more) in [("shm", &["--copies", "2"][..]), ("udp", &[])] {
        let args = [&["--workload", "E,F", "--store", "ordered"], more].concat();
        let report = temporary.json(&tiny(transport, "200", &args));
        for (workload, kind) in report["workloads"].as_array().unwrap().iter().zip(["scan", "rmw"]) {
            assert_eq!((&workload["absent"], &workload["complete"]), (&0.into(), &true.into()), "{workload}");
            let kinds = workload["latencies"].as_array().unwrap();
            assert!(
                kinds.iter().any(|one| one["op"] == kind && one["count"].as_u64() > Some(50)),
                "{workload}"
            );
        }
    }
}

#[test]
fn clients_of_all_processes_ask_for_records_that_others_have_inserted() {
    let temporary = Temporary::new("inserts");
    for store in ["coherent", "chain"] {
        let args = ["--workload", "D", "--store", store, "--operations", "20000"];
        let report = temporary.json(&[&tiny("shm", "200", &[])[..11], &args].concat());
        let workload = &report["workloads"][0];
        assert_eq!((&workload["absent"], &workload["complete"]), (&0.into(), &true.into()), "{workload}");
        let inserts = workload["latencies"].as_array().unwrap().iter().find(|one| one["op"] == "insert");
        assert!(inserts.unwrap()["count"].as_u64() > Some(500), "{workload}");
    }
}

#[test]
fn what_cannot_work_across_processes_is_refused_before_any_is_started() {
    Temporary::new("refused").refuses(&[
        (&["ycsb", "--transport", "udp", "--nodes", "65"], "--nodes"),
        (&["ycsb", "--transport", "shm", "--cache", "0"], "--cache"),
        (&["ycsb", "--transport", "udp", "--steering", "all"], "--store chain"),
        (&["ycsb", "--transport", "udp", "--store", "chain", "--workload", "F"], "workload F"),
        (&["ycsb", "--store", "mapped"], "--transport shm"),
        (&["place"], "of no use"),
    ]);
}

#[test]
fn a_killed_node_ends_the_run_and_is_named() {
    let temporary = Temporary::new("killed");
    let (command, children) = endless(&temporary, "shm");
    signal("-KILL", *children.last().unwrap());
    let Output { status, stderr, .. } = command.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(1), "{}", text(&stderr));
    assert!(text(&stderr).contains("was killed by signal 9"), "{}", text(&stderr));
    assert!(!children.iter().any(|child| is_alive(*child)));
    temporary.assert_nothing_left();
}

fn nothing_is_left_of_a_killed_command(transport: &str) {
    let temporary = Temporary::new(&format!("kill9-{transport}"));
    let (mut command, children) = endless(&temporary, transport);
    command.kill().unwrap();
    command.wait().unwrap();
    until("the end of the children", || !children.iter().any(|child| is_alive(*child)));
    until("the end of the runtime directory", || temporary.runtime_directories().is_empty());
}

#[test]
fn nothing_is_left_of_a_killed_command_over_shared_memory() {
    nothing_is_left_of_a_killed_command("shm");
}

#[test]
fn nothing_is_left_of_a_killed_command_over_udp() {
    nothing_is_left_of_a_killed_command("udp");
}

#[test]
fn an_interrupted_run_reports_what_it_has_and_ends_its_processes() {
    let temporary = Temporary::new("sigint");
    let (command, children) = endless(&temporary, "shm");
    signal("-INT", command.id());
    let Output { status, stdout, stderr } = command.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130), "{}", text(&stderr));
    let report: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    assert!(!children.iter().any(|child| is_alive(*child)));
    temporary.assert_nothing_left();
}
