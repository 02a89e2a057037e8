//! All states of a small rack that runs FlowCC.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | what the machines are asked: states, inputs, what comes of them |
//! | `real` | the machines, put into a state and given one input |
//! | `world` | what threads do |
//! | `successors` | what can happen next, beside packets |
//! | `shape` | packets in flight, as numbers |
//! | `canonicalization` | what makes two states one |
//! | `numbers` | what event numbers are compared with, and nothing else of them |
//! | `properties` | what must hold in every state, and at rest |
//! | `coverage` | which rows of the tables were reached |

mod canonicalization;
mod coverage;
mod machines;
mod numbers;
mod properties;
mod real;
mod scope;
mod shape;
mod successors;
mod world;

use node::Message;
use switch::coherence;
use wire::{Rule, Rules};

use super::engine::{self, Action, Call, Finds, Plan, Rack, Step};
use super::hashing::Table;
use super::search::{self, Explored, Progress, Protocol};
use super::world::{DUPLICATE, LOSS, Left};
pub use coverage::{Coverage, Row};
use machines::{AtRest, Facts, Local, Own, SwitchFacts, Told};
use real::Real;
pub use scope::{CoherenceStep, SCOPES, Scope, Thread};
use shape::Shapes;
use world::{ADD, Doing, PREMATURE, PURGE, REMOVE};

/// What a search of such a rack keeps: states of nodes in which a block has been written elsewhere, and states of places
/// with small numbers.
struct Blocks {
    aged: Table<(usize, u32, u64), u32>,
    renumbered: Table<Box<[u8]>, u32>,
    key: Vec<u8>,
    /// A number is compared with others of its parity only.
    knows_parities: bool,
}

type Engine = engine::Engine<Blocks>;
type Outside = engine::OutsideOf<Blocks>;

impl Rack for Blocks {
    type Scope = Scope;
    type Local = Local;
    type Switch = coherence::canonical::State;
    type Facts = Facts;
    type SwitchFacts = SwitchFacts;
    type Message = Message;
    type Again = coherence::Resubmit;
    type Input = Own;
    type Told = Told;
    type Doing = Doing;
    type More = ();
    type Timer = node::coherence::canonical::Timer;
    type Machines = dyn AtRest;
    type Packets = Shapes;
    type Coverage = Coverage;

    const PASSES_IN_ORDER: bool = true;

    fn turn(scope: &Scope, thread: usize, turn: u8) -> String {
        format!("{:?}", scope.threads[thread].may[usize::from(turn)])
    }

    fn note(reached: &mut Coverage, node: Option<usize>, sends: &[Message], _: &Told) {
        sends.iter().for_each(|message| reached.note(&message.packet, node));
    }
}

/// Coherence of blocks.
#[derive(Clone, Copy, Debug)]
pub enum FlowCC {}

impl Protocol for FlowCC {
    type Scope = Scope;
    type Coverage = Coverage;

    const NAME: &'static str = "coherence";
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
        let Scope { losses, duplicates, premature, adds, removes, purges, .. } = *scope;
        let left = [
            (LOSS, losses),
            (DUPLICATE, duplicates),
            (PREMATURE, premature),
            (ADD, adds),
            (REMOVE, removes),
            (PURGE, purges),
        ];
        let threads = scope.threads.iter().map(|thread| (thread.node, thread.turns)).collect();
        let plan = Plan { threads, reorder: scope.reorder, left: Left::of(&left) };
        let (aged, renumbered, key) = (Table::default(), Table::default(), Vec::new());
        let own = Blocks { aged, renumbered, key, knows_parities: rules.holds(Rule::AgentKnowsParities) };
        let mut machines = Real::new(rules, scope);
        let start = machines.start();
        let shapes = Shapes::new(usize::from(scope.nodes), scope.queue);
        let (mut engine, mut start) =
            Engine::new((*scope, plan), Box::new(machines), start, shapes, (own, ()));
        engine.make_canonical(&mut start);
        search::search(scope.name, engine, &start, most, &mut progress)
    }
}
