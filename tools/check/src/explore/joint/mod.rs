//! All states of a small rack in which memory comes and goes: blocks, locks and words at one address, on the machines
//! of whole nodes with the real allocator, while the switch and nodes die.
//!
//! There is one block of memory. Threads have a few turns, one after the other, so that numbers need not be made small.
//! Every order of packets is looked at, with a few faults wherever they can happen. But a time-out comes only where no
//! packet is in flight and no thread is in the midst of something, and then all that is armed on a node is due at once:
//! what a premature time-out does is left to the scopes of blocks and of locks alone, and to random runs. After a
//! restart, a scope may have the reports of the protocol that it is not about arrive before anything else.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | what the machines are asked: states, inputs, what comes of them |
//! | `real` | the machines, put into a state and given one input |
//! | `world` | what threads do, what the control plane knows, what is true of the memory |
//! | `packets` | packets in flight, as numbers |
//! | `threads` | what threads do next, and what they are told |
//! | `successors` | what else can happen: time-outs, restarts and deaths |
//! | `properties` | what must hold in every state, and at rest |
//! | `coverage` | what became of the threads' turns |

mod coverage;
mod machines;
mod packets;
mod properties;
mod real;
mod scope;
mod successors;
mod threads;
mod world;

use node::View;
use wire::{Copyset, Incarnation, NodeId, Rule, Rules, SwitchEpoch};

use super::engine::{self, Action, Call, Finds, Plan, Rack, Step};
use super::hashing::Interner;
use super::search::{self, Explored, Progress, Protocol};
use super::world::{DUPLICATE, LOSS, Left};
pub use coverage::{Coverage, Ending};
use machines::{FIRST, Facts, Local, Outwards, Own, SwitchState, Told};
use packets::{Again, Known, Packet};
use real::Real;
pub use scope::{JointStep, Quick, SCOPES, Scope, Thread};
use world::{Control, DEATH, Doing, Memory, More, RESTART, RETURN};

/// What a search of such a rack keeps: what the control plane may know, by number.
struct Both {
    controls: Interner<Control>,
    /// Packets of another epoch are dropped wherever they arrive.
    block_epochs_are_fenced: bool,
    lock_epochs_are_fenced: bool,
}

type Engine = engine::Engine<Both>;
type Outside = engine::OutsideOf<Both>;

impl Both {
    fn fences_epochs(&self, is_lock: bool) -> bool {
        if is_lock { self.lock_epochs_are_fenced } else { self.block_epochs_are_fenced }
    }
}

impl Rack for Both {
    type Scope = Scope;
    type Local = Local;
    type Switch = SwitchState;
    type Facts = Facts;
    type SwitchFacts = SwitchEpoch;
    type Message = Packet;
    type Again = Again;
    type Input = Own;
    type Told = Told;
    type Doing = Doing;
    type More = More;
    type Timer = ();
    type Machines = dyn Outwards;
    type Packets = Known;
    type Coverage = Coverage;

    const PASSES_IN_ORDER: bool = false;

    fn turn(scope: &Scope, thread: usize, turn: u8) -> String {
        format!("{:?}", scope.threads[thread].does[usize::from(turn)])
    }
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

    fn explore_with_rules<R: Rules>(
        rules: R,
        scope: &Scope,
        most: usize,
        mut progress: impl FnMut(Progress),
    ) -> Explored<Coverage> {
        let Scope { losses, duplicates, restarts, dies, returns, .. } = *scope;
        let left = [
            (LOSS, losses),
            (DUPLICATE, duplicates),
            (RESTART, restarts),
            (DEATH, dies.is_some().into()),
            (RETURN, returns.into()),
        ];
        let threads = scope.threads.iter().map(|thread| (thread.node, thread.does.len() as u8)).collect();
        let plan = Plan { threads, reorder: true, left: Left::of(&left) };
        let incarnations = vec![Incarnation(0); scope.nodes.into()];
        let view = View {
            epoch: FIRST,
            incarnations: incarnations.iter().copied().map(Some).collect(),
            shadow: NodeId(0),
            memories: Vec::new(),
        };
        let (up, mut controls) = (view.live(), Interner::new());
        let (control, _) =
            controls.intern(Control { view, incarnations, up, changed: false, dumps: Vec::new() });
        let own = Both {
            controls,
            block_epochs_are_fenced: rules.holds(Rule::EpochsAreFenced),
            lock_epochs_are_fenced: rules.holds(Rule::LockEpochsAreFenced),
        };
        let more = More { control, memory: Memory::default(), timed_out: Copyset::EMPTY };
        let mut machines = Real::new(rules, scope);
        let locals = (0..scope.nodes).map(|node| machines.blank(node.into(), Incarnation(0))).collect();
        let start = (locals, machines.empty_switch(FIRST, NodeId(0)));
        let (engine, start) =
            Engine::new((*scope, plan), Box::new(machines), start, Known::new(), (own, more));
        search::search(scope.name, engine, &start, most, &mut progress)
    }
}
