//! The rack that is measured, in this process or in several: what the command asks of it.

use std::ffi::OsString;

use rackmem::{BlockSize, NodeId, Rack};

use super::place::{Event, Order, Task};
use super::turns::{Done, Mine, Operation, Place, Turn};
use crate::bench::networked::pingpong;
use crate::bench::rounds::{failed, rack};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::meeting::RuntimeDir;
use cli::processes::place::{RackSpec, Seat};
use cli::processes::{Crew, Meeting, OnInterrupt, TransportKind, Under};

/// The child that is the words' home: the switch comes first.
const HOME: usize = 1;

/// Nodes: the first has the words.
pub(super) enum Subject {
    /// In this process.
    Here { _rack: Rack, threads: Vec<Mine> },
    /// In a process for each.
    Processes { crew: Crew<Order, Event>, nodes: usize },
}

/// A rack with room for the words, twice.
fn spec(nodes: u16, words: u64) -> RackSpec {
    let common = pingpong::spec(BlockSize::DEFAULT);
    RackSpec {
        nodes: usize::from(nodes),
        memory: (2 * words * 8 + (1 << 20)).next_power_of_two().max(common.memory),
        ..common
    }
}

impl Subject {
    pub(super) fn start(
        transport: TransportKind,
        nodes: u16,
        words: u64,
        bare: bool,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        Self::start_under(transport, nodes, words, bare, interrupt, &[])
    }

    /// The same; the process of node 1, if it has one of its own, runs under this program.
    pub(super) fn start_under(
        transport: TransportKind,
        nodes: u16,
        words: u64,
        bare: bool,
        interrupt: &Interrupt,
        program: &[OsString],
    ) -> Result<Self, Fault> {
        let spec = spec(nodes, words);
        spec.check().map_err(Fault::usage)?;
        if transport == TransportKind::Inline {
            let rack = rack(spec.config())?;
            let place = Place::make(&mut rack.node(Place::HOME), words).map_err(failed)?;
            let thread = |node| Mine::new(rack.node(NodeId(node)), &place, bare && node > 0);
            let threads = (0..nodes).map(thread).collect::<Result<_, _>>().map_err(failed)?;
            return Ok(Self::Here { _rack: rack, threads });
        }
        let runtime = RuntimeDir::new()?;
        let meeting = Meeting::new(transport, spec.nodes, &runtime)?;
        let tasks = (0..)
            .zip(Seat::all(&spec, &meeting))
            .map(|(at, (name, seat))| (name, Task { seat, bare: bare && at > HOME }))
            .collect();
        let under = Under { at: HOME + 1, program };
        let mut crew = Crew::start_under(tasks, runtime, interrupt, Some(under))?;
        let nodes = spec.nodes;
        crew.answers(0..=nodes, OnInterrupt::End, |_, event| {
            Ok(matches!(event, Event::Seated).then_some(()))
        })?;
        let mut subject = Self::Processes { crew, nodes };
        let made = subject.ask(HOME..=HOME, &|| Order::Make(words), |event| match event {
            Event::Made(place) => Some(place),
            _ => None,
        })?;
        let place = made.into_iter().next().ok_or_else(astray)?;
        subject
            .ask(HOME..=nodes, &|| Order::Open(place), |event| matches!(event, Event::Ready).then_some(()))?;
        Ok(subject)
    }

    /// What every node but the words' home has done; all of them at once.
    pub(super) fn run(&mut self, turn: Turn) -> Result<Vec<Done>, Fault> {
        match self {
            Self::Here { threads, .. } => std::thread::scope(|scope| {
                let running: Vec<_> =
                    threads[1..].iter_mut().map(|mine| scope.spawn(move || mine.run(&turn))).collect();
                running
                    .into_iter()
                    .map(|thread| thread.join().expect("a thread of the benchmark panicked").map_err(failed))
                    .collect()
            }),
            Self::Processes { nodes, .. } => {
                let all = HOME + 1..=*nodes;
                self.ask(all, &|| Order::Run(turn), |event| match event {
                    Event::Ran(done) => Some(done),
                    _ => None,
                })
            }
        }
    }

    /// Node 1 does one operation so many times.
    pub(super) fn count(&mut self, operation: Operation, times: u64) -> Result<(), Fault> {
        let ready = |event| matches!(event, Event::Ready).then_some(());
        self.ask(HOME + 1..=HOME + 1, &|| Order::Count(operation, times), ready).map(drop)
    }

    /// What all words add up to.
    pub(super) fn sum(&mut self) -> Result<u64, Fault> {
        match self {
            Self::Here { threads, .. } => threads[0].sum().map_err(failed),
            Self::Processes { .. } => {
                let sum = self.ask(HOME..=HOME, &|| Order::Sum, |event| match event {
                    Event::Sum(sum) => Some(sum),
                    _ => None,
                })?;
                sum.into_iter().next().ok_or_else(astray)
            }
        }
    }

    /// From now on the process of the words' home computes on every core.
    pub(super) fn compute(&mut self) -> Result<(), Fault> {
        let ready = |event| matches!(event, Event::Ready).then_some(());
        self.ask(HOME..=HOME, &|| Order::Compute, ready).map(drop)
    }

    fn ask<T>(
        &mut self,
        whom: std::ops::RangeInclusive<usize>,
        order: &dyn Fn() -> Order,
        answer: impl Fn(Event) -> Option<T>,
    ) -> Result<Vec<T>, Fault> {
        let Self::Processes { crew, .. } = self else { unreachable!("nobody is asked in this process") };
        whom.clone().try_for_each(|at| crew.order(at, order()))?;
        crew.answers(whom, OnInterrupt::End, |_, event| Ok(answer(event)))
    }
}

fn astray() -> Fault {
    Fault::failed("an answer went astray")
}
