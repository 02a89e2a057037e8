//! What clients write into a history: it must tell the truth about each record, step by step.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use super::*;
use crate::interrupt::Interrupt;
use crate::ycsb::history::History;
use crate::ycsb::measure::{Setting, measure};
use crate::ycsb::store::Traffic;
use crate::ycsb::store::mock::MockStore;
use crate::ycsb::workload::Mix;

/// The history of one client's run.
fn history_of(workload: &Workload, name: &str) -> Vec<Value> {
    let path = std::env::temp_dir().join(format!("rackmem-client-{}-{name}", std::process::id()));
    let history = History::create(&path).unwrap();
    let (store, interrupt) = (MockStore::default(), Interrupt::default());
    let setting = Setting { seed: 1, ordinal: 0, history: Some(&history), warm_up: 0, interrupt: &interrupt };
    let measured = measure(workload, || vec![&store], &setting, Traffic::default).unwrap().unwrap();
    assert_eq!(measured.absent, 0);
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn all_kinds() -> Workload {
    let mix = Mix::new(0.25, 0.25, 0.25, 0.25);
    Workload { mix, records: 20, operations: 2000, ..Workload::letter('D').unwrap() }
}

/// Replays the lines of one client, which must be a plain sequential run.
fn replay(lines: &[Value]) {
    let mut records: HashMap<&str, &Value> = HashMap::new();
    let mut clock = 0;
    for line in lines {
        let (key, value) = (line["key"].as_str().unwrap(), &line["value"]);
        let (invoke, returned) = (line["invoke"].as_u64().unwrap(), line["return"].as_u64().unwrap());
        assert!(clock <= invoke && invoke <= returned, "{line}");
        clock = returned;
        match line["op"].as_str().unwrap() {
            "read" => assert_eq!(records[key], value, "{line}"),
            "insert" => assert_eq!(records.insert(key, value), None, "{line}"),
            "update" => assert_ne!(records.insert(key, value), Some(value), "{line}"),
            "rmw" => assert_eq!(records.insert(key, &line["new"]), Some(value), "{line}"),
            other => panic!("operation {other}"),
        }
    }
}

#[test]
fn the_load_and_every_operation_are_in_the_history_and_fit_together() {
    let lines = history_of(&all_kinds(), "fields");
    assert_eq!(lines.len(), 2020);
    replay(&lines);
}

#[test]
fn updates_of_all_fields_are_recorded_like_those_of_one() {
    let lines = history_of(&Workload { write_all_fields: true, ..all_kinds() }, "records");
    assert_eq!(lines.len(), 2020);
    replay(&lines);
}

#[test]
fn a_change_of_a_record_that_is_too_short_stays_inside_it() {
    let mut record = *b"abcdef";
    overwrite(&mut record, 4, b"XYZ");
    overwrite(&mut record, 9, b"XYZ");
    assert_eq!(&record, b"abcdXY");
}
