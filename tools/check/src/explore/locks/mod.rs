//! All states of a small rack of locks that carry their data.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | what the machines are asked: states, inputs, what comes of them |
//! | `real` | the machines, put into a state and given one input |
//! | `world` | what threads do |
//! | `successors` | what can happen next, beside packets |
//! | `shape` | packets in flight, as numbers |
//! | `numbers` | the numbers of requests, made small |
//! | `properties` | what must hold in every state, and at rest |
//! | `coverage` | which rows of the directory's program, and which kinds of packets, were reached |

mod coverage;
mod machines;
mod numbers;
mod properties;
mod real;
mod scope;
mod shape;
mod successors;
mod world;

use node::LockMessage;
use switch::locks::Resubmit;
use wire::{Rule, Rules};

use super::engine::{self, Action, Call, Finds, Plan, Rack, Step};
use super::hashing::Table;
use super::search::{self, Explored, Progress, Protocol};
use super::world::{DUPLICATE, LOSS, Left};
pub use coverage::Coverage;
use machines::{Facts, Local, Outwards, Own, SwitchFacts, SwitchState, Told};
use numbers::Numbers;
use real::Real;
pub use scope::{Keeper, LocksStep, SCOPES, Scope, Thread};
use shape::Shapes;
use world::{CANCEL, Doing, LEAVE, PREMATURE, RESTART, VACANCY};

/// What a search of such a rack keeps: states of nodes with other contents of a region, and with small numbers.
struct Regions {
    changed: Table<(usize, u32, u8, u64), u32>,
    renumbered: Table<(usize, u32, Numbers), u32>,
    /// Packets of another epoch are dropped wherever they arrive.
    fences_epochs: bool,
}

type Engine = engine::Engine<Regions>;
type Outside = engine::OutsideOf<Regions>;

impl Rack for Regions {
    type Scope = Scope;
    type Local = Local;
    type Switch = SwitchState;
    type Facts = Facts;
    type SwitchFacts = SwitchFacts;
    type Message = LockMessage;
    type Again = Resubmit;
    type Input = Own;
    type Told = Told;
    type Doing = Doing;
    type More = ();
    type Timer = node::locks::canonical::Timer;
    type Machines = dyn Outwards;
    type Packets = Shapes;
    type Coverage = Coverage;

    const PASSES_IN_ORDER: bool = false;

    fn turn(scope: &Scope, thread: usize, turn: u8) -> String {
        format!("{:?}", scope.threads[thread].may[usize::from(turn)])
    }

    fn note(reached: &mut Coverage, node: Option<usize>, sends: &[LockMessage], told: &Told) {
        let in_switch = node.is_none();
        told.pass.into_iter().for_each(|row| reached.note_pass(in_switch, row));
        sends.iter().for_each(|message| reached.note_packet(in_switch, &message.packet));
    }
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

    fn explore_with_rules<R: Rules>(
        rules: R,
        scope: &Scope,
        most: usize,
        mut progress: impl FnMut(Progress),
    ) -> Explored<Coverage> {
        let Scope { losses, duplicates, premature, cancels, leaves, restarts, vacancies, .. } = *scope;
        let left = [
            (LOSS, losses),
            (DUPLICATE, duplicates),
            (PREMATURE, premature),
            (CANCEL, cancels),
            (LEAVE, leaves),
            (RESTART, restarts),
            (VACANCY, vacancies),
        ];
        let threads = scope.threads.iter().map(|thread| (thread.node, thread.turns)).collect();
        let plan = Plan { threads, reorder: scope.reorder, left: Left::of(&left) };
        let (changed, renumbered) = (Table::default(), Table::default());
        let own = Regions { changed, renumbered, fences_epochs: rules.holds(Rule::LockEpochsAreFenced) };
        let mut machines = Real::new(rules, scope);
        let start = machines.start();
        let (engine, start) =
            Engine::new((*scope, plan), Box::new(machines), start, Shapes::new(), (own, ()));
        search::search(scope.name, engine, &start, most, &mut progress)
    }
}
