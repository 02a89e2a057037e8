//! All states of a small rack that runs FlowCC.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | the machines, put into a state and given one input |
//! | `world` | what threads do |
//! | `shape` | packets under way, as numbers |
//! | `numbers` | what event numbers are compared with, and nothing else of them |
//! | `engine` | from a state to all that can follow it |
//! | `action` | one thing that happens, as a line of a trace |
//! | `coverage` | which rows of the tables were reached |

mod action;
mod coverage;
mod engine;
mod machines;
mod numbers;
mod scope;
mod shape;
mod world;

use wire::{Faithful, Rules};

use super::search::{self, Explored, Progress, Protocol};
pub use coverage::{Coverage, Row};
use engine::Engine;
pub use scope::{SCOPES, Scope, Thread, Turn};

/// Explores a scope.
pub fn explore(scope: &Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Coverage> {
    explore_with_rules::<Faithful, Faithful>(scope, most, progress)
}

/// Explores a scope with nodes (`N`) or a switch (`S`) to which some rules do not apply.
pub fn explore_with_rules<N: Rules, S: Rules>(
    scope: &Scope,
    most: usize,
    mut progress: impl FnMut(Progress),
) -> Explored<Coverage> {
    let (engine, start) = Engine::new::<N, S>(scope);
    search::search(scope.name, engine, &start, most, &mut progress)
}

/// Coherence of blocks.
#[derive(Clone, Copy, Debug)]
pub enum FlowCC {}

impl Protocol for FlowCC {
    type Scope = Scope;
    type Coverage = Coverage;

    const NAME: &'static str = "flowcc";
    const SCOPES: &'static [Scope] = SCOPES;

    fn tell(scope: &Scope) -> (&'static str, &'static str) {
        (scope.name, scope.about)
    }

    fn explore(scope: &Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Coverage> {
        explore(scope, most, progress)
    }
}
