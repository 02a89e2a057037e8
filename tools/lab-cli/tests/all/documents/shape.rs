//! How long lines and pages are, and what a measurement says of itself.

use super::page::{LineKind, Page};
use super::repository::Repository;
use super::{Wrong, assert_all_true};

/// Columns of a line outside of tables and code blocks.
const COLUMNS: usize = 120;
/// Lines of ARCHITECTURE.md: one sitting.
const ARCHITECTURE: usize = 500;
/// Pages with longer lines, until they are written anew. Take out whichever is; add none.
const EXEMPT: &[&str] = &[];

fn long_lines(page: &Page) -> Vec<Wrong> {
    // A measurement's command is one line, as it is typed.
    let is_command = |text: &str| ["Command: ", "<!-- measured: "].iter().any(|it| text.starts_with(it));
    let text = page.lines.iter().filter(|line| line.kind == LineKind::Text && !is_command(&line.text));
    text.map(|line| (line.number, line.text.chars().count()))
        .filter(|(_, columns)| *columns > COLUMNS)
        .map(|(number, columns)| (number, format!("{columns} columns; {COLUMNS} are allowed")))
        .collect()
}

/// A line that begins with `Command: ` says which commit was measured, and when.
fn measurements(page: &Page) -> Vec<Wrong> {
    let lines = page.lines.iter().filter(|line| line.text.starts_with("Command: "));
    let words = |text: &str| -> Vec<String> {
        let apart = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        apart.map(str::to_owned).collect()
    };
    lines
        .filter(|line| {
            let words = words(&line.text);
            !words.iter().any(|word| is_commit(word)) || !words.iter().any(|word| is_date(word))
        })
        .map(|line| {
            (line.number, "a measurement without its commit (7 hex digits) or date (YYYY-MM-DD)".into())
        })
        .collect()
}

fn is_commit(word: &str) -> bool {
    word.len() == 7 && word.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'))
}

fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let digits = |part: &str, count| part.len() == count && part.chars().all(|digit| digit.is_ascii_digit());
    matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

#[test]
fn lines_are_short() {
    assert_all_true(&Repository::here(), |page| {
        if EXEMPT.contains(&&*page.name) { Vec::new() } else { long_lines(page) }
    });
}

#[test]
fn the_architecture_is_read_in_one_sitting() {
    let lines = Repository::here().text("ARCHITECTURE.md").lines().count();
    assert!(lines <= ARCHITECTURE, "ARCHITECTURE.md has {lines} lines; {ARCHITECTURE} are allowed");
}

#[test]
fn measurements_name_their_commit_and_date() {
    assert_all_true(&Repository::here(), |page| {
        if page.name.starts_with("docs/") { measurements(page) } else { Vec::new() }
    });
}

#[test]
fn long_lines_and_nameless_measurements_are_found() {
    let long = "x".repeat(COLUMNS + 1);
    let page = Page::new("docs/a.md", &format!("{long}\n| {long} |\n```\n{long}\n```\n{}\n", &long[1..]));
    assert_eq!(long_lines(&page).iter().map(|wrong| wrong.0).collect::<Vec<_>>(), [1]);
    let found = |text: &str| measurements(&Page::new("docs/a.md", text)).len();
    assert_eq!(found("Command: `cargo lab bench hit`; commit f51345a, 2026-11-23.\nCommanding: no"), 0);
    for false_one in
        ["commit f51345a", "2026-11-23", "commit f51345, 2026-11-23", "commit f51345g, 2026-11-23"]
    {
        assert_eq!(found(&format!("Command: `x`; {false_one}")), 1, "{false_one}");
    }
}
