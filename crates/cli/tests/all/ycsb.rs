//! Workloads in one process, and the stage map: what is printed where, and exit codes.

use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io, thread};

use check::history::read_json_lines;
use check::linearizability::{Limits, Verdict, check_history};
use serde_json::Value;

use crate::COMMAND;
use crate::shell::{file, mistake, run, text};

/// Standard output of a command that must succeed.
fn output(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A run that takes no time: flags beyond these follow.
fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["ycsb", "--nodes", "3", "--cache", "1MiB", "--records", "300", "--operations", "2000"], more].concat()
}

#[test]
fn help_shows_the_subcommands_and_examples() {
    let help = output(&["--help"]);
    assert!(help.starts_with("One shared memory for a rack of machines"), "{help}");
    for word in ["ycsb", "switch", "pipeline", "up", "status", "Examples:", "--version"] {
        assert!(help.contains(word), "{word} in {help}");
    }
    let help = output(&["ycsb", "--help"]);
    for flag in [
        "--workload",
        "--transport",
        "--warm-up",
        "--nodes",
        "--threads",
        "--records",
        "--operations",
        "--block-size",
        "--cache",
        "--switch-entries",
        "--directory",
        "--seed",
        "--json",
        "--history",
        "Examples:",
    ] {
        assert!(help.contains(flag), "{flag} in {help}");
    }
}

/// The words of a transcript's lines, without numbers, units of time and the frame.
fn words(transcript: &str) -> Vec<Vec<&str>> {
    let is_word = |word: &&str| {
        word.chars().all(|letter| letter.is_alphabetic() || "/:%".contains(letter))
            && !["ns", "µs", "ms", "s"].contains(word)
    };
    transcript.lines().map(|line| line.split_whitespace().filter(is_word).collect()).collect()
}

#[test]
fn the_transcript_of_the_readme_is_what_the_command_prints_but_for_its_numbers() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, behind) = readme.split_once("<!-- transcript:ycsb -->\n```text\n").unwrap();
    let (transcript, _) = behind.split_once("```").unwrap();
    let printed = output(&["ycsb", "--operations", "2000"]);
    // A wider number moves columns, and nothing else.
    assert_eq!(words(&printed), words(transcript), "{printed}");
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(output(&["--version"]), format!("rackmem {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_subcommand_shows_the_help_as_a_mistake() {
    assert!(mistake(&[], 2).contains("Usage: rackmem <COMMAND>"));
}

#[test]
fn wrong_flags_are_usage_mistakes_that_name_the_flag() {
    for (args, said) in [
        (vec!["ycbs"], "ycsb"),
        (vec!["ycsb", "--wrkload", "A"], "--workload"),
        (vec!["ycsb", "--nodes", "0"], "--nodes"),
        (vec!["ycsb", "--nodes", "65"], "64"),
        (vec!["ycsb", "--block-size", "5000"], "--block-size"),
        (vec!["ycsb", "--cache", "0"], "cache"),
        (vec!["ycsb", "--workload", "Q"], "A, B, C, D, E, F"),
        (vec!["ycsb", "--workload", "E", "--store", "objects"], "no order of keys"),
    ] {
        let said_so = mistake(&args, 2);
        assert!(said_so.starts_with("error: ") && said_so.contains(said), "{args:?}: {said_so}");
    }
}

#[test]
fn workload_files_that_cannot_be_used_are_named_with_the_reason() {
    let scans = file(
        "scans",
        "recordcount=10\noperationcount=10\nscanproportion=0.5\nscanlengthdistribution=zipfian\n",
    );
    let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("binary");
    fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let missing = folder.join("missing");
    for (path, said) in [
        (&scans, "scanlengthdistribution=uniform"),
        (&binary, "not text"),
        (&folder, "directory"),
        (&missing, "No such file"),
    ] {
        let path = path.to_str().unwrap();
        let said_so = mistake(&["ycsb", "--workload", path], 2);
        assert!(said_so.contains(path) && said_so.contains(said), "{said_so}");
    }
}

#[test]
fn history_files_that_cannot_be_written_are_named_with_the_reason() {
    let history = "/nonexistent/history.jsonl";
    let said = mistake(&tiny(&["--history", history]), 2);
    assert!(said.contains(history) && said.contains("No such file"), "{said}");
}

#[test]
fn a_full_disk_under_the_history_ends_the_run() {
    // The device that is always full; where there is none, there is nothing to test with.
    if fs::metadata("/dev/full").is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return;
    }
    let output = run(&tiny(&["--history", "/dev/full"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/dev/full") && said.contains("make room"), "{said}");
}

#[test]
fn a_small_run_prints_a_table_with_each_workload_and_the_seed() {
    let table = output(&tiny(&["--workload", "A,D,F", "--threads", "2", "--seed", "7"]));
    for word in
        ["seed 7", "p99.9", "hit rate", "insert", "rmw", "3 nodes", "cache of 1 MiB", "300 records of 1000 B"]
    {
        assert!(table.contains(word), "{word} in\n{table}");
    }
}

#[test]
fn json_holds_one_document_with_numbers_that_fit_together() {
    let document: Value = serde_json::from_str(&output(&tiny(&["--workload", "B,E,F", "--json"]))).unwrap();
    assert_eq!((&document["nodes"], &document["seed"]), (&Value::from(3), &Value::from(42)));
    assert_eq!(document["interrupted"], Value::from(false));
    let workloads = document["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 3);
    for workload in workloads {
        let number = |key: &str| workload[key].as_f64().unwrap_or_else(|| panic!("{key} in {workload}"));
        let counted: u64 = workload["latencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| kind["count"].as_u64().unwrap())
            .sum();
        assert_eq!(
            (counted, &workload["absent"], &workload["complete"]),
            (2000, &Value::from(0), &Value::from(true))
        );
        assert!((number("throughput_per_s") - 2000.0 / number("run_ns") * 1e9).abs() < 1.0);
        assert!(number("hit_rate") > 0.0 && number("hit_rate") < 1.0, "three nodes share records");
        let packets = number("switch_packets") + number("home_packets");
        assert!(packets >= number("cache_misses"), "a miss takes at least a packet: {workload}");
    }
}

#[test]
fn unknown_properties_of_a_file_are_warned_of_and_the_run_goes_on() {
    let path = file("unknown", "recordcount=100\noperationcount=100\nreadpropotion=1\n");
    let output =
        run(&["ycsb", "--nodes", "2", "--cache", "1MiB", "--json", "--workload", path.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("warning: ") && said.contains("readpropotion (line 3)"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["workloads"][0]["workload"], Value::from("unknown"));
}

#[test]
fn the_files_that_ycsb_ships_run_unmodified() {
    for letter in ["a", "b", "c", "d", "f"] {
        let path = format!("{}/tests/ycsb/workload{letter}", env!("CARGO_MANIFEST_DIR"));
        let document: Value =
            serde_json::from_str(&output(&["ycsb", "--cache", "1MiB", "--json", "--workload", &path]))
                .unwrap();
        assert_eq!(document["workloads"][0]["operations"], Value::from(1000), "workload {letter}");
    }
}

#[test]
fn a_history_has_the_load_and_every_operation() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("history.jsonl");
    output(&tiny(&["--workload", "F,A", "--threads", "2", "--history", path.to_str().unwrap()]));
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |op: &str| lines.iter().filter(|line| line["op"] == op).count();
    assert_eq!((lines.len(), count("insert")), (2 * 2300, 600));
    assert_eq!(count("read") + count("update") + count("rmw"), 4000);
    assert!(count("update") > 900 && count("rmw") > 900);
    for line in &lines {
        assert!(line["client"].as_u64().unwrap() < 6, "{line}");
        assert!(line["key"].as_str().unwrap().starts_with("user"), "{line}");
        assert!(line["invoke"].as_u64().unwrap() <= line["return"].as_u64().unwrap(), "{line}");
        let digests = if line["op"] == "rmw" { ["value", "new"].as_slice() } else { &["value"] };
        for digest in digests {
            let digest = line[digest].as_str().unwrap();
            assert!(digest.len() == 16 && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{line}");
        }
    }
}

#[test]
fn histories_of_contended_runs_are_linearizable() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("contended.jsonl");
    let contended = ["--records", "20", "--operations", "20000", "--threads", "2", "--block-size"];
    for block_size in ["256", "4KiB"] {
        let run = ["ycsb", "--nodes", "4", "--cache", "1MiB", "--workload", "A,F,D"];
        output(&[&run[..], &contended, &[block_size, "--history", path.to_str().unwrap()]].concat());
        let history = read_json_lines(io::BufReader::new(fs::File::open(&path).unwrap())).unwrap();
        let verdict = check_history(&history, Limits::default());
        let Verdict::Linearizable { operations, .. } = verdict else {
            panic!("blocks of {block_size}: {verdict}")
        };
        assert_eq!(operations, 3 * 20_020);
    }
}

/// Starts a run without an end, and interrupts it soon after it has loaded its records.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_with_what_there_is() {
    let mut run = Command::new(COMMAND)
        .args(["ycsb", "--nodes", "2", "--cache", "1MiB", "--records", "100"])
        .args(["--operations", "1000000000", "--workload", "C,A", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = io::BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("load: 100 in") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "the load is reported");
    }
    thread::sleep(Duration::from_millis(500));
    let interrupted = Command::new("sh").args(["-c", &format!("kill -INT {}", run.id())]).status().unwrap();
    assert!(interrupted.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["interrupted"], Value::from(true));
    let workloads = document["workloads"].as_array().unwrap();
    assert_eq!((workloads.len(), &workloads[0]["complete"]), (1, &Value::from(false)));
    assert!(workloads[0]["operations"].as_u64().unwrap() > 0);
}

#[test]
fn the_stage_map_fits_the_chip_in_ten_stages_of_arrays() {
    assert!(output(&["pipeline"]).contains("12 stages"));
    let document: Value = serde_json::from_str(&output(&["pipeline", "--json"])).unwrap();
    assert_eq!(document["totals"]["stages_with_arrays"], Value::from(10), "as in the paper");
    let bytes = document["totals"]["register_bytes"].as_u64().unwrap();
    assert!((7_000_000..8_000_000).contains(&bytes), "the paper's 7.1 MB with a 64-bit copyset: {bytes}");
}

#[test]
fn a_switch_program_that_does_not_fit_is_refused_with_the_flag_to_change() {
    for flags in
        [["--switch-entries", "100000000"], ["--switch-entries", "0"], ["--nodes", "0"], ["--nodes", "65"]]
    {
        let said = mistake(&[&["pipeline"][..], &flags].concat(), 2);
        assert!(said.contains(flags[0]), "{flags:?}: {said}");
    }
}
