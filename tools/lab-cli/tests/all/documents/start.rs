//! The program of the first page is the example, which a test of the other command runs (`daemons/start.rs`).

use super::page::Page;
use super::repository::Repository;

const EXAMPLE: &str = "crates/rackmem/examples/start.rs";

/// The lines of the page's first block of Rust.
fn program(page: &Page) -> Option<String> {
    let block = page.blocks().into_iter().find(|(language, _)| *language == "rust")?;
    Some(block.1.iter().map(|(_, line)| format!("{line}\n")).collect())
}

#[test]
fn the_program_of_the_first_page_is_the_example() {
    let repository = Repository::here();
    let page = Page::new("docs/start.md", &repository.text("docs/start.md"));
    assert_eq!(
        program(&page),
        Some(repository.text(EXAMPLE)),
        "docs/start.md has to show {EXAMPLE} as it is"
    );
}

#[test]
fn another_program_is_not_taken_for_it() {
    let page = Page::new(
        "docs/a.md",
        "```sh\na\n```\n```rust\nfn b() {}\n\nfn c() {}\n```\n```rust\nfn d() {}\n```\n",
    );
    assert_eq!(program(&page).as_deref(), Some("fn b() {}\n\nfn c() {}\n"));
}
