//! `Type::member`, `module::Type` and `module::function` in backticks are defined.

use super::page::Page;
use super::repository::Repository;
use super::sources::Sources;
use super::tokens::{Token, tokens};
use super::{Wrong, assert_all_true};

/// Of the standard library, or of others.
const NOT_OURS: &[&str] = &[
    "std",
    "core",
    "alloc",
    "parking_lot",
    "zerocopy",
    "clap",
    "proptest",
    "loom",
    "tracing",
    "rustix",
    "Arc",
    "AtomicU64",
    "Duration",
    "Instant",
    "Mutex",
    "Option",
    "Ordering",
    "Result",
    "RwLock",
    "String",
    "Vec",
    "Self",
];

fn wrong(sources: &Sources, page: &Page) -> Vec<Wrong> {
    let mut all = Vec::new();
    for (line, span) in page.spans() {
        // Paths of files have a rule of their own, and commands name tests.
        if span.contains(".rs") || span.starts_with("cargo ") || page.is_past(line) {
            continue;
        }
        for path in named(&tokens(&span)) {
            let path: Vec<&str> = path.iter().map(String::as_str).filter(|part| !is_relative(part)).collect();
            if path.first().is_some_and(|first| NOT_OURS.contains(first)) {
                continue;
            }
            let why = path.windows(2).find_map(|pair| match is_type(pair[0]) {
                true => sources.wrong_member(pair[0], pair[1]),
                false => sources.wrong_item(pair[0], pair[1]),
            });
            all.extend(why.map(|why| (line, format!("`{span}`: {why}"))));
        }
    }
    all
}

fn is_relative(part: &str) -> bool {
    matches!(part, "crate" | "self" | "super")
}

fn is_type(name: &str) -> bool {
    name.starts_with(|first: char| first.is_uppercase())
}

/// Paths of two names and more, without what stands in angle brackets.
fn named(tokens: &[Token]) -> Vec<Vec<String>> {
    let sign = |at: usize, sign: char| tokens.get(at).is_some_and(|token| token.is_sign(sign));
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(name) = tokens[at].name() else {
            at += 1;
            continue;
        };
        let mut path = vec![name.to_owned()];
        at += 1;
        loop {
            let turbofish = sign(at, ':') && sign(at + 1, ':') && sign(at + 2, '<');
            let open = if turbofish { at + 2 } else { at };
            let close = (open..tokens.len()).find(|end| sign(*end, '>'));
            if sign(open, '<')
                && let Some(close) = close
            {
                at = close + 1;
            } else if sign(at, ':')
                && sign(at + 1, ':')
                && let Some(Token::Name(name)) = tokens.get(at + 2)
            {
                path.push(name.clone());
                at += 3;
            } else {
                break;
            }
        }
        if path.len() > 1 {
            all.push(path);
        }
    }
    all
}

#[test]
fn names_are_defined() {
    let repository = Repository::here();
    let sources = Sources::of(&repository);
    assert_all_true(&repository, |page| wrong(&sources, page));
}

#[test]
fn a_name_that_nothing_has_is_found() {
    let sources = Sources::of(&Repository::here());
    let found = |text: &str| wrong(&sources, &Page::new("docs/a.md", &format!("`{text}`"))).len();
    for true_one in [
        "Rack::join",
        "Rack::join(&file, NodeId(3))?",
        "Locked<T>::at",
        "Locked::<u64>::BYTES",
        "rackmem::Locked",
        "Error::Lost",
        "wire::PacketKind::ReadMiss",
        "Words::fetch_add",
        "std::thread::nobody",
        "cli::command",
    ] {
        assert_eq!(found(true_one), 0, "{true_one}");
    }
    for false_one in [
        "Rack::nobody",
        "Nobody::join",
        "Locked<T>::nobody",
        "rackmem::Nobody",
        "Error::Nobody",
        "nobody::PacketKind",
        "wire::PacketKind::Nobody",
        "let a = Rack::nobody();",
    ] {
        assert_eq!(found(false_one), 1, "{false_one}");
    }
}
