//! The rules that docs/papers.md names as mutants are rules.

use super::Wrong;
use super::page::Page;
use super::repository::Repository;

/// The names in the last column of a page's tables that no rule has. `known` is the file that declares the rules.
fn unknown(page: &Page, known: &str) -> Vec<Wrong> {
    let declared: Vec<&str> = known.split(|at: char| !at.is_ascii_alphanumeric()).collect();
    let rows = page.lines.iter().filter(|line| line.text.starts_with("| "));
    rows.flat_map(|line| {
        let last = line.text.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap_or_default();
        let names = last.split('`').skip(1).step_by(2).filter(|name| name.chars().all(char::is_alphanumeric));
        names.map(|name| (line.number, name.to_owned())).collect::<Vec<_>>()
    })
    .filter(|(_, name)| !declared.contains(&name.as_str()))
    .map(|(number, name)| (number, format!("`{name}` is no rule")))
    .collect()
}

#[test]
fn mutants_of_the_papers_are_rules() {
    let repository = Repository::here();
    let page = Page::new("docs/papers.md", &repository.text("docs/papers.md"));
    let wrong = unknown(&page, &repository.text("crates/wire/src/rules.rs"));
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_rule_that_there_is_not_is_found() {
    let page = Page::new("docs/a.md", "| a | `CheckTable` |\n| b | `CheckTable`, `NoSuchRule` |\n| c | |\n");
    assert_eq!(unknown(&page, "CheckTable, // and others"), [(2, "`NoSuchRule` is no rule".to_owned())]);
}
