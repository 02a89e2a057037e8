//! Clients of chains whose processes are killed, memories, and metadata servers: by the kernel, between any two instructions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rackmem::rack_file::TransportKind;
use rackmem::{ChainsConfig, GlobalAddr, Nanos, NodeId, Rack, RackFile};

use crate::places::rig::Places;

/// Says to a process that it is the client, of which rack.
const FILE: &str = "RACKMEM_KILLED_FILE";
/// And of which store. Otherwise it reads that.
const STORE: &str = "RACKMEM_KILLED_STORE";

/// A process that puts one value after the other, and says which it has put, until it is killed.
fn put_for_ever(file: &Path) -> ! {
    let text = std::fs::read_to_string(file).unwrap();
    let rack = Rack::join(&RackFile::parse(file, &text).unwrap(), NodeId(2)).unwrap();
    let mut out = std::io::stdout();
    let addr = std::env::var(STORE).unwrap_or_else(|_| {
        // It has a part of the store's memory, so it is there first.
        writeln!(out, "put 0").unwrap();
        out.flush().unwrap();
        std::io::stdin().lines().next().unwrap().unwrap()
    });
    let mut here = rack.here();
    let mut store = here.chains_at(GlobalAddr::from_bits(addr.parse().unwrap())).unwrap();
    for number in 1_u64.. {
        store.put(&mut here, 1, &number.to_le_bytes().repeat(100)).unwrap();
        writeln!(out, "put {number}").unwrap();
        out.flush().unwrap();
    }
    unreachable!("it is killed before")
}

fn until(mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a process has put, from a line that it has written. The test's own lines come before.
fn put(line: &str) -> Option<u64> {
    line.split_once("put ").and_then(|(_, number)| number.parse().ok())
}

/// A value that such a process has put, as a whole.
fn number_of(found: &[u8]) -> u64 {
    let (words, left) = found.as_chunks::<8>();
    assert!(left.is_empty() && words.len() == 100 && words.iter().all(|word| *word == words[0]));
    u64::from_le_bytes(words[0])
}

/// The process has a copy of the store, as this one has, and the metadata server or its backup, and is in the middle of its puts.
fn memories_are_killed(test: &str, transport: TransportKind) {
    if let Some(file) = std::env::var_os(FILE) {
        put_for_ever(Path::new(&file));
    }
    let places = Places::start_some("killed", transport, "", 2);
    let mut here = places.nodes[0].here();
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("places::{test}"), "--nocapture"])
            .env(FILE, places.file())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.find_map(|line| put(&line)).expect("it joins");
        // It has the first copy of one half of all slots, and the second one of the other half.
        let (lease, quarantine) = (Nanos::from_millis(40), Some(Nanos::from_millis(60)));
        let homes = vec![NodeId(1), NodeId(2)];
        let server = NodeId(1 + round as u16 % 2);
        let config = ChainsConfig {
            homes,
            copies: 2,
            lease,
            quarantine,
            server,
            ..ChainsConfig::at(NodeId(1), 512 << 10)
        };
        let mut store = None;
        until(|| {
            store = here.chains(&config).ok();
            store.is_some()
        });
        let mut store = store.expect("it was made");
        for key in 10..30_u64 {
            store.put(&mut here, key, &key.to_le_bytes().repeat(100)).unwrap();
        }
        writeln!(child.stdin.as_mut().unwrap(), "{}", store.addr().bits()).unwrap();
        let mut said = lines.find_map(|line| put(&line)).expect("it begins");
        std::thread::sleep(Duration::from_millis(7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        said = lines.filter_map(|line| put(&line)).fold(said, u64::max);
        let mut found = Vec::new();
        // That is as long as it takes until it is taken for dead.
        assert!(store.get(&mut here, 1, &mut found).unwrap());
        let there = number_of(&found);
        assert!(there == said || there == said + 1, "{said} was said, {there} is there");
        for key in 10..30_u64 {
            assert!(store.get(&mut here, key, &mut found).unwrap());
            assert_eq!(number_of(&found), key);
            store.put(&mut here, key, &(key + 1).to_le_bytes().repeat(100)).unwrap();
            assert!(store.get(&mut here, key, &mut found).unwrap());
            assert_eq!(number_of(&found), key + 1);
        }
        // An append that it had begun may be there by now, and nothing after it.
        until(|| places.nodes[1].chain_counts().swept == 1);
        assert!(store.get(&mut here, 1, &mut found).unwrap());
        let later = number_of(&found);
        assert!(later == there || later == said + 1, "{there} was there, {later} is");
        // What it had is at another node by then.
        until(|| {
            let counts = places.nodes[1].chain_counts();
            counts.missing == 0 && counts.recopied == 2
        });
        for key in 10..30_u64 {
            assert!(store.get(&mut here, key, &mut found).unwrap());
            assert_eq!(number_of(&found), key + 1);
        }
        store.free(&mut here).unwrap();
    }
}

#[test]
fn a_memory_that_is_killed_under_load_takes_nothing_with_it_that_was_put_where_there_is_another_copy_near() {
    let test = "killed::a_memory_that_is_killed_under_load_takes_nothing_with_it_that_was_put_where_there_is_another_copy_near";
    memories_are_killed(test, TransportKind::SharedMemory);
}

#[test]
fn a_memory_that_is_killed_under_load_takes_nothing_with_it_that_was_put_where_there_is_another_copy_far() {
    let test = "killed::a_memory_that_is_killed_under_load_takes_nothing_with_it_that_was_put_where_there_is_another_copy_far";
    memories_are_killed(test, TransportKind::Udp);
}

fn clients_are_killed(test: &str, transport: TransportKind) {
    if let Some(file) = std::env::var_os(FILE) {
        put_for_ever(Path::new(&file));
    }
    let places = Places::start_some("killed", transport, "", 2);
    let mut here = places.nodes[0].here();
    let (lease, quarantine) = (Nanos::from_millis(40), Some(Nanos::from_millis(60)));
    let config = ChainsConfig { lease, quarantine, ..ChainsConfig::at(NodeId(1), 2 << 20) };
    let mut store = here.chains(&config).unwrap();
    for round in 1..=4 {
        store.delete(&mut here, 1).unwrap();
        let mut client = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("places::{test}"), "--nocapture"])
            .env(FILE, places.file())
            .env(STORE, store.addr().bits().to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut said = lines.find_map(|line| put(&line)).expect("it begins");
        std::thread::sleep(Duration::from_millis(7 * round));
        client.kill().unwrap();
        client.wait().unwrap();
        said = lines.filter_map(|line| put(&line)).fold(said, u64::max);
        let swept = || places.nodes[1].chain_counts().swept;
        until(|| swept() == round);
        let mut found = Vec::new();
        assert!(store.get(&mut here, 1, &mut found).unwrap());
        let there = number_of(&found);
        assert!(there == said || there == said + 1, "{said} was said, {there} is there");
        // But for what this process has in hand, and the tail.
        until(|| {
            let counts = places.nodes[1].chain_counts();
            store.get(&mut here, 2, &mut Vec::new()).unwrap();
            counts.bytes_made - counts.bytes_free <= 17 * 64 + 1024
        });
    }
}

#[test]
fn a_client_that_is_killed_in_the_middle_of_puts_leaves_a_whole_value_and_its_slots_come_back_near() {
    let test = "killed::a_client_that_is_killed_in_the_middle_of_puts_leaves_a_whole_value_and_its_slots_come_back_near";
    clients_are_killed(test, TransportKind::SharedMemory);
}

#[test]
fn a_client_that_is_killed_in_the_middle_of_puts_leaves_a_whole_value_and_its_slots_come_back_far() {
    let test = "killed::a_client_that_is_killed_in_the_middle_of_puts_leaves_a_whole_value_and_its_slots_come_back_far";
    clients_are_killed(test, TransportKind::Udp);
}
