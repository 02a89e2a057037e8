//! Every rule of the protocol is needed, and some checker notices when it is left out.
//!
//! For each mutant of `wire::rules` the table names what catches it: all states of a scope, or a random run with
//! this seed. `RACKMEM_SCAN=1` looks for something that catches a mutant whose entry does not, any more.

use std::panic;

use check::explore::{SCOPES, Scope, Verdict, explore_with_rules};
use check::rack::{Plan, Rack};
use wire::Rules;

/// What catches a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// The exhaustive search of this scope.
    Scope(&'static str),
    /// The random run with this seed.
    Seed(u64),
    /// The random run with restarts with this seed.
    Restarts(u64),
    /// Nothing can: why is said beside it.
    Nothing(&'static str),
}
use By::{Nothing, Restarts, Seed};

/// A scope is left when it has so many states.
const MOST: usize = 700_000;

fn scope<R: Rules>(name: &str) -> Option<String> {
    let scope = Scope::named(name).unwrap_or_else(|| panic!("there is no scope {name}"));
    let explored = explore_with_rules::<R>(scope, MOST, |_| {});
    let Verdict::Broken(found) = explored.verdict else { return None };
    let what = found.what.lines().next().unwrap_or_default().to_owned();
    Some(format!("{what} ({} states, way of {})", explored.states, found.trace.len()))
}

fn run<R: Rules>(plan: Plan, seed: u64) -> Option<String> {
    match panic::catch_unwind(|| Rack::<R>::with_rules(plan, seed).run(3000)) {
        Ok(Ok(_)) => None,
        Ok(Err(what)) => Some(what.lines().next().unwrap_or_default().to_owned()),
        Err(panic) => Some(panic.downcast_ref::<String>().cloned().unwrap_or_default()),
    }
}

fn caught<R: Rules>(by: By) -> Option<String> {
    match by {
        By::Scope(name) => scope::<R>(name),
        Seed(seed) => run::<R>(Plan::from_seed(seed), seed),
        Restarts(seed) => run::<R>(Plan::with_restarts(seed), seed),
        Nothing(_) => None,
    }
}

/// The first of all checkers that catches a mutant.
fn find<R: Rules>() -> Option<(By, String)> {
    let small = SCOPES.iter().filter(|scope| scope.nodes == 2 && scope.blocks == 1);
    let scopes = small.map(|scope| By::Scope(scope.name));
    let runs = (0..40).flat_map(|seed| [Seed(seed), Restarts(seed)]);
    scopes.chain(runs).find_map(|by| caught::<R>(by).map(|what| (by, what)))
}

#[test]
fn every_mutant_is_caught() {
    panic::set_hook(Box::new(|_| {}));
    let scan = std::env::var_os("RACKMEM_SCAN").is_some();
    let only = std::env::var("RACKMEM_MUTANT").unwrap_or_default();
    let mut missed = Vec::new();
    macro_rules! mutant {
        ($name:expr, $mutant:ty) => {
            if only.is_empty() || only == $name {
                let by = table($name);
                let start = std::time::Instant::now();
                let found = by.and_then(|by| caught::<$mutant>(by).map(|what| (by, what)));
                let found = if scan && found.is_none() { find::<$mutant>() } else { found };
                match (&found, by) {
                    (Some((by, what)), _) => {
                        println!("{:<30} {by:?} {:.1?}: {what:.120}", $name, start.elapsed())
                    }
                    (None, Some(Nothing(why))) => println!("{:<30} {why}", $name),
                    (None, _) => {
                        println!("{:<30} SURVIVES", $name);
                        missed.push($name);
                    }
                }
            }
        };
    }
    wire::for_each_mutant!(mutant);
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}

fn table(name: &str) -> Option<By> {
    let entry = MUTANTS.iter().find(|(of, _)| *of == name);
    entry.map(|(_, by)| *by)
}

const MUTANTS: &[(&str, By)] = &[];
