//! A rule left out, and how its mutant is caught: what the tests of all protocols' mutants share.

use std::panic::{self, AssertUnwindSafe};

/// What became of a mutant: what was found wrong, or nothing.
pub(crate) type Found = Option<String>;

/// A rule, left out.
pub(crate) struct Mutant {
    pub(crate) rule: &'static str,
    pub(crate) without: &'static str,
    /// What catches it, in words.
    pub(crate) by: &'static str,
    pub(crate) check: fn() -> Found,
}

/// A scenario, which must go well with all rules in place.
pub(crate) fn scenario(
    mutant: impl FnOnce() -> Result<(), String>,
    faithful: impl FnOnce() -> Result<(), String>,
) -> Found {
    assert_eq!(faithful(), Ok(()), "the whole protocol must stand it");
    let caught = panic::catch_unwind(AssertUnwindSafe(mutant));
    caught.map_or_else(|_| Some("a panic".into()), Result::err)
}

/// What fits into a line of the output.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(140).collect()
}

/// Asserts that every mutant is caught, or the one that `RACKMEM_MUTANT` names; prints what caught it.
///
/// # Panics
/// If one is not.
pub(crate) fn assert_caught(mutants: &[Mutant]) {
    panic::set_hook(Box::new(|_| {}));
    let only = std::env::var("RACKMEM_MUTANT").unwrap_or_default();
    let chosen = mutants.iter().filter(|mutant| only.is_empty() || mutant.rule == only);
    let mut missed = Vec::new();
    for mutant in chosen {
        let start = std::time::Instant::now();
        let found = (mutant.check)();
        let took = start.elapsed();
        match found {
            Some(what) => println!("{:<30} {:<26} {took:>6.1?} {what}", mutant.rule, mutant.by),
            None => missed.push(mutant.rule),
        }
    }
    drop(panic::take_hook());
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}
