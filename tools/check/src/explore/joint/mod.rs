//! All states of a small rack in which memory comes and goes: blocks, locks and words at one address, on the machines
//! of whole nodes with the real allocator, while the switch and nodes die. And all states of one with memory that outlives
//! its node.
//!
//! There is one block of memory. Threads have a few turns, one after the other, so that numbers need not be made small.
//! Every order of packets is looked at, with a few faults wherever they can happen. But a time-out comes only where no
//! packet is in flight and no thread is in the midst of something, and then all that is armed on a node is due at once:
//! what a premature time-out does is left to the scopes of blocks and of locks alone, and to random runs. After a
//! restart, a scope may have the reports of the protocol that it is not about arrive before anything else.
//!
//! In a rack with copies, threads use the first block of each memory, which is live from the beginning. What is sent in an
//! epoch does not arrive before its receiver has heard of that: earlier it would be dropped, and be sent again. A dead
//! node's packets stay in flight. What happens if they are lost is among what is looked at: whoever hears of the epoch before
//! they arrive drops them. Who has copied a memory is known at once.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | what the machines are asked: states, inputs, what comes of them |
//! | `real` | the machines, put into a state and given one input |
//! | `world` | what threads do, what the control plane knows, what is true of the memory |
//! | `packets` | packets in flight, as numbers |
//! | `copied` | of memory with copies: what is true of it, what must hold, who has it |
//! | `threads` | what threads do next, and what they are told |
//! | `successors` | what else can happen: time-outs, restarts and deaths |
//! | `properties` | what must hold in every state, and at rest |
//! | `coverage` | what became of the threads' turns |

mod copied;
mod coverage;
mod machines;
mod packets;
mod properties;
mod real;
mod scope;
mod successors;
mod threads;
mod world;

use std::collections::BTreeMap;
use std::rc::Rc;

use node::{Kept, View};
use wire::{Copyset, Incarnation, NodeId, Rule, Rules, SwitchEpoch};

use super::engine::{self, Action, Call, Finds, Plan, Rack, Step};
use super::hashing::Interner;
use super::search::{self, Explored, Progress, Protocol};
use super::world::{DUPLICATE, LOSS, Left};
use crate::coherence::survival::Survival;
use copied::Copied;
pub use coverage::{Coverage, Ending};
use machines::{FIRST, Facts, Local, Outwards, Own, SwitchState, Told};
use packets::{Again, Known, Packet};
use real::Real;
pub use scope::{JointStep, Quick, SCOPES, Scope, Thread};
use world::{Control, DEATH, Doing, Memory, More, RESTART, RETURN};

/// What a search of such a rack keeps: what the control plane may know, and what may be true of memory with copies, by number.
struct Both {
    controls: Interner<Control>,
    copied: Interner<Copied>,
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
        let Scope { losses, duplicates, restarts, dies, deaths, returns, copies, .. } = *scope;
        let left = [
            (LOSS, losses),
            (DUPLICATE, duplicates),
            (RESTART, restarts),
            (DEATH, if dies.is_empty() { 0 } else { deaths }),
            (RETURN, returns.into()),
        ];
        let threads = scope.threads.iter().map(|thread| (thread.node, thread.does.len() as u8)).collect();
        let plan = Plan { threads, reorder: true, left: Left::of(&left) };
        let incarnations = vec![Incarnation(0); scope.nodes.into()];
        let view = View {
            epoch: FIRST,
            incarnations: incarnations.iter().copied().map(Some).collect(),
            shadow: NodeId(0),
            memories: if copies > 1 { vec![Kept::default(); scope.nodes.into()] } else { Vec::new() },
        };
        let memories = view.memories.clone();
        let mut control =
            Control { up: view.live(), view, incarnations, changed: false, dumps: Vec::new(), memories };
        if copies > 1 {
            let _ = control.place_memories(scope);
            control.view.epoch = SwitchEpoch(FIRST.0 + 1);
        }
        let (mut controls, mut copied) = (Interner::new(), Interner::new());
        let number = controls.intern(control).0;
        let control = Rc::clone(controls.get(number));
        let latest: BTreeMap<_, _> = scope.memories.iter().map(|nth| (scope.block(*nth), 0)).collect();
        let copied_number =
            copied.intern(Copied { latest, survival: Survival::that_is_told(), ..Copied::default() }).0;
        let own = Both {
            controls,
            copied,
            block_epochs_are_fenced: rules.holds(Rule::EpochsAreFenced),
            lock_epochs_are_fenced: rules.holds(Rule::LockEpochsAreFenced),
        };
        let (memory, timed_out) = (Memory::default(), Copyset::EMPTY);
        let more = More { control: number, memory, copied: copied_number, timed_out };
        let mut machines = Real::new(rules, scope);
        let start = if copies > 1 {
            machines.settled(&control)
        } else {
            let locals = (0..scope.nodes).map(|node| machines.blank(node.into(), Incarnation(0)));
            (locals.collect(), machines.empty_switch(&control.view))
        };
        let (engine, start) =
            Engine::new((*scope, plan), Box::new(machines), start, Known::new(), (own, more));
        search::search(scope.name, engine, &start, most, &mut progress)
    }
}
