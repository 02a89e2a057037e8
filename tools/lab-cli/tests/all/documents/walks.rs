//! The message sequences in ARCHITECTURE.md are those of real runs.
//!
//! Before each walk stands a comment, `<!-- walk: NAME: KIND, KIND, ... -->`. Kinds are what the code calls them, as `ReadMiss`; case,
//! blanks and hyphens do not count, so `READ-MISS` is the same.
//!
//! | walk | the run |
//! | --- | --- |
//! | `read-miss`, `lock-hand-over` | the scenarios of these names (`rackmem-lab explain`) |
//! | `append` | a put on a rack of processes that steers: opcodes of what the nodes send (`live_append`) |
//! | `datagram` | a request between two UDP transports: the kind of the datagram and those of its records |

use lab::explain::{self, What};

use super::live_append;
use super::page::Page;
use super::repository::Repository;
use crate::tapped::Pair;

const PAGE: &str = "ARCHITECTURE.md";

/// The kinds of a walk as the page has them, with the line.
fn told(page: &Page, walk: &str) -> Option<(usize, Vec<String>)> {
    let begin = format!("<!-- walk: {walk}:");
    let line = page.lines.iter().find(|line| line.text.trim_start().starts_with(&begin))?;
    // The comment may go on in the next lines.
    let rest: Vec<&str> = page.lines[line.number - 1..].iter().map(|line| line.text.as_str()).collect();
    let rest = rest.join(" ");
    let kinds = rest.trim_start()[begin.len()..].split("-->").next()?;
    Some((line.number, kinds.split(',').map(bare).filter(|kind| !kind.is_empty()).collect()))
}

/// A kind, however it is spelled; what it carries does not count.
fn bare(kind: &str) -> String {
    let kind = kind.split(['(', '+', ':']).next().unwrap_or("");
    kind.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// What is wrong with a walk, if this is the run.
fn wrong(page: &Page, walk: &str, run: &[String]) -> Option<String> {
    let Some((line, told)) = told(page, walk) else {
        return Some(format!("{}: there is no <!-- walk: {walk}: ... -->", page.name));
    };
    let is_so = run.iter().map(|kind| bare(kind)).eq(told.iter().cloned());
    let (told, run) = (told.join(", "), run.join(", "));
    (!is_so).then(|| format!("{}:{line}: the walk {walk} tells {told}; what travels is {run}", page.name))
}

fn assert_told(walk: &str, run: &[String]) {
    let page = Page::new(PAGE, &Repository::here().text(PAGE));
    let wrong = wrong(&page, walk, run);
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
}

/// The messages of a scenario.
fn scenario(name: &str) -> Vec<String> {
    let steps = explain::play(explain::find(name).expect("there is such a scenario")).steps;
    let label = |what| match what {
        What::Message { label, .. } => label.split(' ').next().map(str::to_owned),
        What::Note { .. } => None,
    };
    steps.into_iter().filter_map(|step| label(step.what)).collect()
}

/// What a datagram says of itself and of its records (`udp/envelope.rs`, `udp/record.rs`).
fn kinds(datagram: &[u8]) -> Vec<String> {
    let name = |names: &[&str], number: u8| (*names.get(usize::from(number)).expect("a kind")).to_owned();
    const RECORDS: &[&str] = &[
        "",
        "Packet",
        "Zeroes",
        "Control",
        "PacketSegment",
        "ControlSegment",
        "Lock",
        "LockSegment",
        "Verbs",
        "VerbsSegment",
        "Whereabouts",
    ];
    let mut all = vec![name(&["", "Data", "Hello"], datagram[3])];
    let end = datagram.len() - if datagram[6] == 1 { 16 } else { 0 };
    let mut at = 32;
    while datagram[3] == 1 && at < end {
        let length = u32::from_le_bytes(datagram[at..at + 4].try_into().expect("4 bytes"));
        all.push(name(RECORDS, datagram[at + 4]));
        at += 8 + (length as usize).next_multiple_of(8);
    }
    all
}

/// A request between two places that know each other.
fn datagram() -> Vec<String> {
    let request = Pair::connected(1_500).sealed([1], 0);
    assert_eq!(request.len(), 1, "one datagram");
    kinds(&request[0])
}

#[test]
fn the_walk_of_a_read_miss_is_so() {
    assert_told("read-miss", &scenario("read-miss"));
}

#[test]
fn the_walk_of_a_lock_hand_over_is_so() {
    assert_told("lock-hand-over", &scenario("lock-hand-over"));
}

#[test]
fn the_walk_of_an_append_is_so() {
    assert_told("append", &live_append::opcodes());
}

#[test]
fn the_walk_of_a_datagram_is_so() {
    assert_told("datagram", &datagram());
}

/// What the page may say.
const TRUE: &str = "\
<!-- walk: read-miss: ReadMiss, ReadMiss, Ack, Unlock, UnlockAck -->
<!-- walk: lock-hand-over: ACQUIRE, FORWARD, DATA + data,
     MOVE, HAND, RECEIVED -->
<!-- walk: append: WriteOnly, CompareSwap, AtomicAcknowledge -->
<!-- walk: datagram: Data, Packet -->
";

#[test]
fn walks_that_are_so_are_taken_and_others_found() {
    let runs = [
        ("read-miss", scenario("read-miss")),
        ("lock-hand-over", scenario("lock-hand-over")),
        ("append", live_append::opcodes()),
        ("datagram", datagram()),
    ];
    for (walk, run) in &runs {
        assert_eq!(wrong(&Page::new("a.md", TRUE), walk, run), None);
        assert!(wrong(&Page::new("a.md", ""), walk, run).is_some(), "nothing is told");
        let mut other = run.clone();
        other.swap(0, run.len() - 1);
        for false_one in [&run[1..], &run[..run.len() - 1], &other] {
            let text = format!("<!-- walk: {walk}: {} -->", false_one.join(", "));
            assert!(wrong(&Page::new("a.md", &text), walk, run).is_some(), "{text}");
        }
    }
}
