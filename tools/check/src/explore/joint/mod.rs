//! All states of a small rack in which memory comes and goes: blocks, locks and words at one address, on the machines
//! of whole nodes with the real allocator, while the switch and nodes die.
//!
//! There is one block of memory. Threads have a few turns, one after the other, so that numbers need not be made small.
//! Every order of packets is looked at, with a few faults wherever they can happen. But a time-out comes only where no
//! packet is under way and no thread is in the midst of something, and then all that is armed on a node is due at once:
//! what a premature time-out does is left to the scopes of blocks and of locks alone, and to random runs. After a
//! restart, a scope may have the reports of the protocol that it is not about arrive before anything else.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | what the machines are asked: states, inputs, what comes of them |
//! | `real` | the machines, put into a state and given one input |
//! | `world` | what threads do, what the control plane knows, what is true of the memory |
//! | `packets` | packets under way, as numbers |
//! | `engine` | from a state to all that can follow it |
//! | `action` | one thing that happens, as a line of a trace |
//! | `coverage` | what became of the threads' turns |

mod action;
mod coverage;
mod engine;
mod machines;
mod packets;
mod real;
mod scope;
mod world;

use wire::{Faithful, LockRules, Rules};

use super::search::{self, Explored, Progress, Protocol};
pub use coverage::{Coverage, Ending};
use engine::Engine;
pub use scope::{Quick, SCOPES, Scope, Thread, Turn};

/// Explores a scope.
pub fn explore(scope: &Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Coverage> {
    explore_with_rules::<Faithful, Faithful>(scope, most, progress)
}

/// Explores a scope with machines to which some rules do not apply.
pub fn explore_with_rules<R: Rules, L: LockRules>(
    scope: &Scope,
    most: usize,
    mut progress: impl FnMut(Progress),
) -> Explored<Coverage> {
    let (engine, start) = Engine::new::<R, L>(scope);
    search::search(scope.name, engine, &start, most, &mut progress)
}

/// Allocations of all disciplines in one rack.
#[derive(Clone, Copy, Debug)]
pub enum Joint {}

impl Protocol for Joint {
    type Scope = Scope;
    type Coverage = Coverage;

    const NAME: &'static str = "joint";
    const SCOPES: &'static [Scope] = SCOPES;

    fn tell(scope: &Scope) -> (&'static str, &'static str) {
        (scope.name, scope.about)
    }

    fn explore(scope: &Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Coverage> {
        explore(scope, most, progress)
    }
}
