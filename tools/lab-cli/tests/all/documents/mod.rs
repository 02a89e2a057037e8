//! What the Markdown files say is so: paths, names, flags, links, numbers and message sequences.
//!
//! | file | rule |
//! | --- | --- |
//! | `page` | what a Markdown file is made of |
//! | `repository` | which files there are |
//! | `paths` | a path in backticks leads to a file, and `path.rs::function` to a function of it |
//! | `tokens`, `sources` | what types, members and modules the sources define |
//! | `names` | `Type::member` and `module::Type` in backticks are defined |
//! | `commands` | what can be typed, from the commands themselves |
//! | `flags` | subcommands and flags can be typed |
//! | `links` | a link leads to a file, and to a heading of it |
//! | `shape` | lengths of lines and pages; what a measurement says of itself |
//! | `rules` | mutants that the page of the papers names are rules |
//! | `start` | the program of the first page is the example |
//! | `walks`, `live_append` | the message sequences in ARCHITECTURE.md are those of real runs |
//!
//! Every rule looks at all pages, and tells all that is wrong at once. Beside each stands a test that it finds a false statement.

mod commands;
mod flags;
mod links;
mod live_append;
mod names;
mod page;
mod paths;
mod repository;
mod rules;
mod shape;
mod sources;
mod start;
mod tokens;
mod walks;

use page::Page;
use repository::Repository;

/// Something that is not so: where it is said, and why it is not.
type Wrong = (usize, String);

/// Fails with everything that a rule finds wrong on any page.
fn assert_all_true(repository: &Repository, mut rule: impl FnMut(&Page) -> Vec<Wrong>) {
    let mut all = Vec::new();
    for page in repository.pages() {
        all.extend(rule(&page).into_iter().map(|(line, what)| format!("{}:{line}: {what}", page.name)));
    }
    assert!(all.is_empty(), "{} statements are not so:\n{}", all.len(), all.join("\n"));
}
