//! What is used today is measured where it is installed, and left out with a word where it is not.

use std::ffi::OsStr;
use std::fs;

use serde_json::Value;

use crate::shell::{Temporary, text};

#[test]
fn a_record_under_one_lock_is_updated_on_racks_also_where_no_peer_is_installed() {
    let temporary = Temporary::new("peer-locks");
    let mut command = temporary.command(&["peers", "--locks", "--json"]);
    let output = command.env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let clients: Vec<u64> = rows.iter().map(|row| row["clients"].as_u64().unwrap()).collect();
    assert_eq!(clients, [1, 2, 4, 8]);
    for row in rows {
        for rack in [&row["shm"], &row["udp"]] {
            assert!(rack["per_second"].as_f64().unwrap() > 0.0);
            assert!(rack["over_redis"].is_null() && rack["over_etcd"].is_null());
        }
        assert!(row["redis_per_second"].is_null() && row["etcd_per_second"].is_null());
    }
    temporary.assert_nothing_left();
}

/// A small run of `peers --words`, with the programs that it finds on this path, and what it said.
fn peers_of_words(test: &str, path: Option<&OsStr>) -> (Value, String) {
    let temporary = Temporary::new(test);
    let mut command = temporary.command(&["peers", "--words", "--processes", "2", "--json"]);
    command.args(["--millis", "10", "--rounds", "1"]);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    temporary.assert_nothing_left();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for row in report["rows"].as_array().unwrap() {
        assert!(row["per_second"].as_f64().unwrap() > 0.0, "{row}");
    }
    (report, said)
}

#[test]
fn peers_of_words_that_are_not_installed_are_left_out_with_a_word_on_how_to_install_them() {
    let (report, said) = peers_of_words("nowordpeers", Some(OsStr::new("")));
    assert!(said.contains("oshcc") && said.contains("mpicc"), "{said}");
    assert!(said.contains("apt-get install openmpi-bin libopenmpi-dev"), "{said}");
    // Three operations on random words and on one, over each of two transports, and the target that computes.
    assert_eq!(report["rows"].as_array().unwrap().len(), 13, "{report}");
    let targets = report["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 6);
    // Only that of the target that computes needs no peer.
    assert_eq!(targets.iter().filter(|target| target["met"].is_null()).count(), 5, "{report}");
}

#[test]
fn peers_of_words_that_are_installed_are_measured_and_have_ended() {
    let (report, said) = peers_of_words("wordpeers", None);
    let missing = report["missing"].as_array().unwrap();
    // OpenSHMEM has no operation that fetches and is not waited for.
    let shmem = if missing.contains(&"OpenSHMEM".into()) { 0 } else { 9 };
    let mpi = if missing.contains(&"MPI".into()) { 0 } else { 13 };
    assert_eq!(report["rows"].as_array().unwrap().len(), 13 + shmem + mpi, "{report}");
    if missing.is_empty() {
        assert!(report["targets"].as_array().unwrap().iter().all(|target| target["met"].is_boolean()));
    } else {
        println!("not tested here, because it is not installed: {missing:?}\n{said}");
    }
}

/// The systems that a small run of `peers` has measured, with the programs that it found on this path.
fn peers(test: &str, path: Option<&OsStr>) -> (Value, String) {
    let temporary = Temporary::new(test);
    let out = temporary.path("out");
    let mut command =
        temporary.command(&["peers", "--workload", "A,C", "--nodes", "2", "--connections", "6"]);
    command.args(["--records", "100", "--operations", "300", "--json", "--out"]).arg(&out);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let written: Value = serde_json::from_slice(&fs::read(out.join("peers.json")).unwrap()).unwrap();
    assert_eq!(report, written);
    temporary.assert_nothing_left();
    for system in report["systems"].as_array().unwrap() {
        let outcomes = system["outcomes"].as_array().unwrap();
        assert_eq!(outcomes.len(), 2, "{system}");
        assert!(outcomes.iter().all(|outcome| outcome["throughput_per_s"].as_f64().unwrap() > 0.0));
    }
    (report, said)
}

#[test]
fn peers_that_are_not_installed_are_left_out_with_a_word_on_how_to_install_them() {
    let (report, said) = peers("nopeers", Some(OsStr::new("")));
    for program in ["redis-server", "memcached"] {
        assert!(said.contains(&format!("apt-get install {program}")), "{said}");
    }
    assert_eq!(report["systems"].as_array().unwrap().len(), 2, "both racks");
    assert!(report["targets"].as_array().unwrap().iter().all(|target| target["met"].is_null()));
}

#[test]
fn peers_that_are_installed_are_measured_and_stopped() {
    let (report, said) = peers("peers", None);
    let missing = report["missing"].as_array().unwrap();
    // Redis is measured twice: with and without sending ahead.
    let redis = if missing.contains(&"redis-server".into()) { 0 } else { 2 };
    let memcached = usize::from(!missing.contains(&"memcached".into()));
    assert_eq!(report["systems"].as_array().unwrap().len(), redis + memcached + 2);
    if !missing.is_empty() {
        println!("not tested here, because it is not installed: {missing:?}\n{said}");
    }
}
