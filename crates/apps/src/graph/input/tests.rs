use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::*;

/// A file of this test's own.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rackmem-graph-{}-{name}", std::process::id()));
    fs::write(&path, content).unwrap();
    path
}

fn scanned(name: &str, content: &[u8], threads: usize) -> Result<EdgeList, String> {
    let path = file(name, content);
    let found = EdgeList::scan(&path, threads, &AtomicBool::new(false), |_, _| {});
    fs::remove_file(path).unwrap();
    found.map(|found| found.unwrap()).map_err(|error| error.to_string())
}

#[test]
fn edge_lists_are_read_in_any_number_of_parts() {
    let text = b"# Nodes: 5 Edges: 4\r\n0\t1\n\n  2 3\r\n#4 4\n10   11\n12\t0";
    let path = file("parts", text);
    let list = EdgeList::scan(&path, 3, &AtomicBool::new(false), |_, _| {}).unwrap().unwrap();
    assert_eq!((list.edges, list.vertices), (4, 13));
    for parts in 1..=text.len() + 2 {
        let of_part = |part| list.part(part, parts).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let edges: Vec<_> = (0..parts).flat_map(of_part).collect();
        assert_eq!(edges, [(0, 1), (2, 3), (10, 11), (12, 0)], "{parts} parts");
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_to_do() {
    let long = [b'7'; 5000];
    for (name, text, says) in [
        ("word", &b"# two\n0 1\n1 2 9\n"[..], ["line 3", "3 words", "cut -f1,2"]),
        ("one", b"5\n", ["line 1", "one word", "complete"]),
        ("name", b"0 1\n\n0 alice\n", ["line 3", "`alice`", "numbers from 0"]),
        ("minus", b"0 -1\n", ["line 1", "`-1`", "numbers from 0"]),
        ("large", b"0 1\n0 4294967296\n", ["line 2", "4294967296", "anew"]),
        ("huge", b"0 99999999999999999999999\n", ["line 1", "99999999999999999999999", "2^32"]),
        ("long", &long, ["line 1", "4096", "gunzip"]),
        ("empty", b"", ["no line is an edge", "write one", "numbers"]),
        ("comments", b"# nothing\n\n", ["no line is an edge", "write one", "numbers"]),
    ] {
        for threads in [1, 4] {
            let error = scanned(name, text, threads).unwrap_err();
            says.iter().for_each(|words| assert!(error.contains(words), "{name}: {error}"));
        }
    }
    assert!(scanned("largest", b"0 4294967295\n", 1).is_ok_and(|list| list.vertices == 1 << 32));
}

#[test]
fn the_first_wrong_line_is_named_whoever_finds_it() {
    let lines: String =
        (0..1000).map(|line| if line == 300 || line == 900 { "x y\n" } else { "1 2\n" }).collect();
    assert!(scanned("first", lines.as_bytes(), 4).unwrap_err().contains("line 301:"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = EdgeList::scan("no/such/list".as_ref(), 2, &AtomicBool::new(false), |_, _| {}).unwrap_err();
    assert!(error.to_string().starts_with("no/such/list: cannot be read"), "{error}");
}

#[test]
fn a_scan_stops_when_it_is_asked_to() {
    let path = file("stop", &b"1 2\n".repeat(200_000));
    let stopped = EdgeList::scan(&path, 2, &AtomicBool::new(true), |_, _| {}).unwrap();
    fs::remove_file(path).unwrap();
    assert_eq!(stopped, None);
}
