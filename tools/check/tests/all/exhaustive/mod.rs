//! All states of small racks: how many there are, exactly, and that everything holds in each of them.
//!
//! The counts are asserted because they are the protocols' fingerprint: whoever changes a machine and finds another
//! count here has changed what can happen. `rackmem-lab check` explores these scopes, and larger ones. Scopes also catch
//! mutants, here and in `tests/mutants` and `tests/lock_mutants`: that they can fail is not taken on trust.
//!
//! | file | holds |
//! | --- | --- |
//! | `coherence` | racks of coherent blocks |
//! | `locks` | racks of locks that carry their data |
//! | `joint` | racks of both, in which memory comes and goes |
//! | `copies` | racks with memory that outlives its node |
//! | `kernel` | both, with the switch's programs for a kernel beside their models |

mod coherence;
mod copies;
mod joint;
mod kernel;
mod locks;

use std::fmt::Write;

use check::explore::{Counterexample, Explored, Protocol, Reached, Verdict};

/// More than any has.
const MOST: usize = 12_000_000;

/// Set where scopes are explored, too, that take minutes: in `.ci/run deep`.
const LARGE_TOO: &str = "RACKMEM_LARGE";

fn large_too() -> bool {
    std::env::var_os(LARGE_TOO).is_some()
}

/// States, steps between them, and states at rest.
type Counts = [usize; 3];

fn explore<P: Protocol>(name: &str, most: usize) -> Explored<P::Coverage> {
    P::explore(P::scope(name).unwrap_or_else(|| panic!("there is no scope {name}")), most, |_| {})
}

/// Explores all of these scopes, and says of all that are not as they should be; and what all of them reach.
#[track_caller]
fn holds<P: Protocol>(scopes: &[(&str, Counts)]) -> P::Coverage {
    let (mut reached, mut wrong) = (P::Coverage::default(), String::new());
    for (name, counts) in scopes {
        let explored = explore::<P>(name, MOST);
        reached.add(&explored.coverage);
        let found = [explored.states, explored.steps, explored.at_rest];
        match explored.verdict {
            Verdict::Holds if found == *counts => Ok(()),
            Verdict::Holds => writeln!(wrong, "{name}: {found:?}, and not {counts:?}"),
            Verdict::Incomplete => writeln!(wrong, "{name}: more than {} states", explored.states),
            Verdict::Broken(it) => writeln!(wrong, "{name}: {}\n  {}", it.what, it.trace.join("\n  ")),
        }
        .expect("a string takes everything");
    }
    assert!(wrong.is_empty(), "{}, states, steps between them, and states at rest:\n{wrong}", P::NAME);
    reached
}

/// What is wrong in a scope without a rule.
#[track_caller]
fn broken<R>(explored: Explored<R>) -> Counterexample {
    match explored.verdict {
        Verdict::Broken(found) => found,
        other => panic!("{}: {other:?}", explored.scope),
    }
}

/// Scopes have names of their own; two runs find the same states in the same order; and a search that is not allowed to
/// finish says so.
#[track_caller]
fn is_as_any<P: Protocol>(name: &str) {
    for (at, scope) in P::SCOPES.iter().enumerate() {
        let (name, about) = P::tell(scope);
        assert!(P::SCOPES[..at].iter().all(|other| P::tell(other).0 != name), "{name} stands twice");
        assert!(!about.is_empty());
    }
    let facts = || {
        let Explored { states, steps, depth, local_states, .. } = explore::<P>(name, 6_000_000);
        (states, steps, depth, local_states)
    };
    assert_eq!(facts(), facts());
    let explored = explore::<P>(name, 100);
    assert_eq!(explored.verdict, Verdict::Incomplete);
    assert!((100..1000).contains(&explored.states), "{}", explored.states);
}
