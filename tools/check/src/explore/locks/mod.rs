//! All states of a small rack of locks that carry their data.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | what the machines are asked: states, inputs, what comes of them |
//! | `real` | the machines, put into a state and given one input |
//! | `world` | what threads do |
//! | `shape` | packets under way, as numbers |
//! | `engine` | from a state to all that can follow it |
//! | `action` | one thing that happens, as a line of a trace |
//! | `coverage` | which rows of the directory's program, and which kinds of packets, were reached |

mod action;
mod coverage;
mod engine;
mod machines;
mod real;
mod scope;
mod shape;
mod world;

use wire::{Faithful, LockRules};

use super::search::{self, Explored, Progress, Protocol};
pub use coverage::Coverage;
use engine::Engine;
pub use scope::{Keeper, SCOPES, Scope, Thread, Turn};

/// Explores a scope.
pub fn explore(scope: &Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Coverage> {
    explore_with_rules::<Faithful>(scope, most, progress)
}

/// Explores a scope with machines to which some rules do not apply.
pub fn explore_with_rules<R: LockRules>(
    scope: &Scope,
    most: usize,
    mut progress: impl FnMut(Progress),
) -> Explored<Coverage> {
    let (engine, start) = Engine::new::<R>(scope);
    search::search(scope.name, engine, &start, most, &mut progress)
}

/// Locks that carry their data.
#[derive(Clone, Copy, Debug)]
pub enum Locks {}

impl Protocol for Locks {
    type Scope = Scope;
    type Coverage = Coverage;

    const NAME: &'static str = "locks";
    const SCOPES: &'static [Scope] = SCOPES;

    fn tell(scope: &Scope) -> (&'static str, &'static str) {
        (scope.name, scope.about)
    }

    fn explore(scope: &Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Coverage> {
        explore(scope, most, progress)
    }
}
