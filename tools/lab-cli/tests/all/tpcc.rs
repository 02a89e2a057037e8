//! TPC-C on racks in one process and of processes: consistent, counted, and what is wrong with flags is said.

use crate::racks::{a_dead_node_is_named, ctrl_c_ends_it};
use crate::shell::{Temporary, can_have_kernel, mistake};

fn a_run_is_consistent_and_counted(transport: &str, nodes: &str, more: &[&str]) {
    let temporary = Temporary::new(&format!("tpcc-{transport}-{nodes}"));
    let args = ["tpcc", "--transport", transport, "--nodes", nodes, "--threads", "2", "--scale", "100"];
    let run = ["--transactions", "200", "--rounds", "2", "--distribution", "20"];
    let report = temporary.json(&[&args[..], &run, more].concat());
    let count: u64 = 2 * nodes.parse::<u64>().unwrap();
    assert_eq!(report["checks"], 2 * (1 + 2), "after loading and each round, on both sides");
    assert_eq!([&report["warehouses"], &report["rows_shrunk_by"]], [count, 100], "{report}");
    let rounds = report["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        let number = |name: &str| round[name].as_f64().unwrap_or_else(|| panic!("{name}: {round}"));
        assert_eq!(number("committed") + number("undone"), 200.0 * count as f64, "{round}");
        let times = round["times"].as_array().unwrap();
        let committed: f64 = times.iter().map(|times| times["count"].as_f64().unwrap()).sum();
        assert_eq!(committed, number("committed"), "{round}");
        let minutes = number("seconds") / 60.0;
        let new_orders = times[0]["count"].as_f64().unwrap();
        assert!((number("new_orders_per_minute") * minutes - new_orders).abs() < 1e-6, "{round}");
        let aborts: f64 = round["aborts"].as_object().unwrap().values().map(|n| n.as_f64().unwrap()).sum();
        let share = 100.0 * aborts / (aborts + 200.0 * count as f64);
        assert!((number("abort_percent") - share).abs() < 1e-9, "{round}");
        assert!(number("plain_new_orders_per_minute") > 0.0, "{round}");
        assert!(number("messages_per_transaction") > 0.0, "{round}");
        assert_eq!(round["bytes_per_transaction"].is_null(), transport == "embedded", "{round}");
    }
}

#[test]
fn tpcc_in_one_process_is_consistent() {
    a_run_is_consistent_and_counted("embedded", "4", &[]);
}

#[test]
fn tpcc_over_shared_memory_is_consistent() {
    a_run_is_consistent_and_counted("shm", "2", &["--block-size", "512"]);
}

#[test]
fn tpcc_with_the_switch_in_the_kernel_is_consistent() {
    if can_have_kernel() {
        a_run_is_consistent_and_counted("wire", "2", &[]);
        a_run_is_consistent_and_counted("wire", "3", &["--copies", "2"]);
    }
}

#[test]
fn tpcc_over_udp_is_consistent() {
    a_run_is_consistent_and_counted("udp", "2", &[]);
}

#[test]
fn tpcc_on_memory_with_copies_is_consistent() {
    a_run_is_consistent_and_counted("shm", "3", &["--copies", "2"]);
    let said = mistake(&["tpcc", "--copies", "2", "--transport", "embedded"], 2);
    assert!(said.contains("use --transport shm or udp"), "{said}");
}

#[test]
fn without_distribution_nothing_is_aborted() {
    let temporary = Temporary::new("tpcc-apart");
    let args = ["tpcc", "--scale", "100", "--transactions", "300", "--rounds", "1", "--distribution", "0"];
    let report = temporary.json(&args);
    assert_eq!(report["rounds"][0]["aborts"], serde_json::json!({}), "{report}");
}

#[test]
fn what_is_wrong_with_flags_and_memory_is_said_before_a_rack_is_started() {
    Temporary::new("tpcc-refused").refuses(&[
        (&["tpcc", "--memory", "1MiB"], "--memory 1 MiB is too little"),
        (&["tpcc", "--scale", "1", "--nodes", "8", "--threads", "8", "--rounds", "1000"], "this machine has"),
        (&["tpcc", "--nodes", "33"], "66 threads are too many"),
        (&["tpcc", "--block-size", "256"], "need blocks of 512 B or more"),
        (&["tpcc", "--distribution", "101"], "101 is not in 0..=100"),
        (&["tpcc", "--scale", "0"], "0 is not in 1..=300"),
        (&["tpcc", "--warehouses", "4"], "--warehouses"),
    ]);
    // With the amount that is needed.
    let why = mistake(&["tpcc", "--memory", "1MiB"], 2);
    assert!(
        why.contains("4 warehouses with 1/10 of the specified rows")
            && why.contains(" MiB on each of 2 nodes"),
        "{why}"
    );
}

#[test]
fn ctrl_c_ends_loading_in_one_process_and_in_several() {
    ctrl_c_ends_it("tpcc", &["tpcc", "--scale", "1", "--threads", "1"]);
}

#[test]
fn a_node_that_dies_is_named() {
    a_dead_node_is_named("tpcc", &["tpcc", "--scale", "1", "--threads", "1"]);
}
