//! The rack that is measured, in this process or in several: what the command asks of it.

use rackmem::{NodeId, Rack};

use super::place::{Event, Order, Task};
use super::worker::{self, Done, Kind, Load, Mine, Part};
use crate::bench::networked::samples::Samples;
use crate::bench::rounds::{failed, rack};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::meeting::RuntimeDir;
use cli::processes::place::{RackSpec, Seat};
use cli::processes::{Crew, Meeting, OnInterrupt, TransportKind};

/// Threads that take locks.
pub(super) enum Subject {
    /// In this process, those of one node after those of another.
    Here { _rack: Rack, threads: Vec<Mine>, nodes: u64 },
    /// In a process for each node.
    Processes { crew: Crew<Order, Event>, nodes: usize },
}

impl Subject {
    pub(super) fn start(
        transport: TransportKind,
        spec: &RackSpec,
        threads: u64,
        load: &Load,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        spec.check().map_err(Fault::usage)?;
        match transport {
            TransportKind::Inline => Self::here(spec, threads, load),
            _ => Self::processes(transport, spec, threads, load, interrupt),
        }
    }

    fn here(spec: &RackSpec, threads: u64, load: &Load) -> Result<Self, Fault> {
        let rack = rack(spec.config())?;
        let ids = 0..u16::try_from(spec.nodes).expect("at most 64 nodes");
        let parts: Vec<Part> = ids
            .clone()
            .map(|node| Part::make(&mut rack.node(NodeId(node)), load))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let threads = ids
            .flat_map(|node| (0..threads).map(move |thread| (node, u64::from(node) * threads + thread)))
            .map(|(node, number)| Mine::new(rack.node(NodeId(node)), number as usize, &parts, load))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        Ok(Self::Here { _rack: rack, threads, nodes: spec.nodes as u64 })
    }

    fn processes(
        transport: TransportKind,
        spec: &RackSpec,
        threads: u64,
        load: &Load,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let runtime = RuntimeDir::new()?;
        let meeting = Meeting::new(transport, spec.nodes, &runtime)?;
        let tasks = Seat::all(spec, &meeting)
            .into_iter()
            .map(|(name, seat)| (name, Task { seat, threads, load: load.clone() }))
            .collect();
        let mut crew = Crew::start(tasks, runtime, interrupt)?;
        let nodes = spec.nodes;
        crew.answers(0..=nodes, OnInterrupt::End, |_, event| {
            Ok(matches!(event, Event::Seated).then_some(()))
        })?;
        let mut subject = Self::Processes { crew, nodes };
        let parts = subject.all(
            || Order::Make,
            |event| match event {
                Event::Made(part) => Some(part),
                _ => None,
            },
        )?;
        subject.all(|| Order::Open(parts.clone()), |event| matches!(event, Event::Opened).then_some(()))?;
        Ok(subject)
    }

    /// What every thread has done; all of them ran at once.
    pub(super) fn run(&mut self, kind: Kind, load: &Load) -> Result<Vec<Done>, Fault> {
        match self {
            Self::Here { threads, nodes, .. } => {
                worker::run(threads, 0, *nodes, (kind, load)).map_err(failed)
            }
            Self::Processes { .. } => {
                let ran = self.all(
                    || Order::Run { kind, load: load.clone() },
                    |event| match event {
                        Event::Ran(done) => Some(done),
                        _ => None,
                    },
                )?;
                Ok(ran.concat())
            }
        }
    }

    /// The times in which a node writes states that another one wrote last.
    pub(super) fn hand_overs(&mut self, kind: Kind, count: u64) -> Result<Samples, Fault> {
        self.write_all(1, kind, count)?;
        self.write_all(0, kind, count)
    }

    fn write_all(&mut self, node: usize, kind: Kind, count: u64) -> Result<Samples, Fault> {
        match self {
            Self::Here { threads, nodes, .. } => {
                let each = threads.len() / *nodes as usize;
                threads[node * each].write_all(kind, count).map_err(failed)
            }
            Self::Processes { .. } => self.ask(node, Order::WriteAll { kind, count }, |event| match event {
                Event::Wrote(samples) => Some(samples),
                _ => None,
            }),
        }
    }

    /// The sum of all states: how often they were written.
    pub(super) fn sum(&mut self, kind: Kind) -> Result<u64, Fault> {
        match self {
            Self::Here { threads, .. } => threads[0].sum(kind).map_err(failed),
            Self::Processes { .. } => self.ask(0, Order::Sum(kind), |event| match event {
                Event::Sum(sum) => Some(sum),
                _ => None,
            }),
        }
    }

    fn ask<T>(&mut self, node: usize, order: Order, answer: impl Fn(Event) -> Option<T>) -> Result<T, Fault> {
        let Self::Processes { crew, .. } = self else { unreachable!("nobody is asked in this process") };
        // The switch comes first.
        crew.order(node + 1, order)?;
        let answers = crew.answers([node + 1], OnInterrupt::End, |_, event| Ok(answer(event)))?;
        answers.into_iter().next().ok_or_else(|| Fault::failed("an answer went astray"))
    }

    fn all<T>(
        &mut self,
        order: impl Fn() -> Order,
        answer: impl Fn(Event) -> Option<T>,
    ) -> Result<Vec<T>, Fault> {
        let Self::Processes { crew, nodes } = self else { unreachable!("nobody is asked in this process") };
        (1..=*nodes).try_for_each(|node| crew.order(node, order()))?;
        crew.answers(1..=*nodes, OnInterrupt::End, |_, event| Ok(answer(event)))
    }
}
