//! The rack that has the stores, in this process or in several: what the command asks of it.

use rackmem::{NodeHandle, NodeId, Rack};

use super::Args;
use super::place::{Event, Order, Task, Threads};
use super::worker::{self, Done, Kind, Load, Mine};
use crate::bench::rounds::rack;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::meeting::RuntimeDir;
use cli::processes::place::Seat;
use cli::processes::{Crew, Meeting, OnInterrupt, TransportKind};

/// Threads that use stores.
pub(super) enum Subject {
    /// In this process.
    Here { _rack: Rack, first: Box<NodeHandle>, threads: Threads, load: Load, interrupt: Interrupt },
    /// In a process for each node.
    Processes { crew: Crew<Order, Event>, nodes: usize },
}

impl Subject {
    pub(super) fn start(args: &Args, load: &Load, interrupt: &Interrupt) -> Result<Self, Fault> {
        let spec = args.spec();
        spec.check().map_err(Fault::usage)?;
        let each = u64::from(args.threads);
        let all = u64::from(args.nodes) * each;
        if args.transport == TransportKind::Inline {
            let rack = rack(spec.config())?;
            let node_of = |number: u64| NodeId(u16::try_from(number / each).expect("at most 64 nodes"));
            let threads =
                (0..all).map(|number| Mine::new(rack.node(node_of(number)), number, load)).collect();
            let threads = Threads::new(threads, all, load);
            let first = Box::new(rack.node(NodeId(0)));
            return Ok(Self::Here {
                _rack: rack,
                first,
                threads,
                load: load.clone(),
                interrupt: interrupt.clone(),
            });
        }
        let runtime = RuntimeDir::new()?;
        let meeting = Meeting::new(args.transport, spec.nodes, &runtime)?;
        let tasks = Seat::all(&spec, &meeting)
            .into_iter()
            .map(|(name, seat)| (name, Task { seat, threads: each, load: load.clone() }))
            .collect();
        let mut crew = Crew::start(tasks, runtime, interrupt)?;
        let nodes = spec.nodes;
        crew.answers(0..=nodes, OnInterrupt::End, |_, event| {
            Ok(matches!(event, Event::Seated).then_some(()))
        })?;
        Ok(Self::Processes { crew, nodes })
    }

    /// Makes a store with all keys in it.
    pub(super) fn load(&mut self, kind: Kind) -> Result<(), Fault> {
        let root = match self {
            Self::Here { first, load, .. } => worker::create(first, kind, load).map_err(failed)?,
            Self::Processes { crew, .. } => {
                // The switch comes first.
                crew.order(1, Order::Create(kind))?;
                let created = crew.answers([1], OnInterrupt::End, |_, event| {
                    Ok(match event {
                        Event::Created(root) => Some(root),
                        _ => None,
                    })
                })?;
                created.into_iter().next().ok_or_else(astray)?
            }
        };
        self.all(&Order::Open { kind, root })?;
        self.all(&Order::Load(kind)).map(drop)
    }

    /// What every thread has done; all of them ran at once.
    pub(super) fn run(&mut self, kind: Kind, millis: u64) -> Result<Vec<Done>, Fault> {
        let events = self.all(&Order::Run { kind, millis })?;
        let done = |event| match event {
            Event::Ran(done) => done,
            _ => Vec::new(),
        };
        Ok(events.into_iter().flat_map(done).collect())
    }

    /// Every key must be there, with a value that somebody wrote.
    pub(super) fn verify(&mut self, kind: Kind) -> Result<(), Fault> {
        for event in self.all(&Order::Verify(kind))? {
            if let Event::Verified(wrong @ 1..) = event {
                return Err(Fault::failed(format_args!(
                    "{wrong} keys of the store of layout {} are not as they were written: a bug in rackmem",
                    kind.name()
                )));
            }
        }
        Ok(())
    }

    fn all(&mut self, order: &Order) -> Result<Vec<Event>, Fault> {
        match self {
            Self::Here { threads, interrupt, .. } => {
                Ok(vec![threads.obey(order, interrupt).map_err(failed)?])
            }
            Self::Processes { crew, nodes } => {
                (1..=*nodes).try_for_each(|node| crew.order(node, order.clone()))?;
                // What was run so far counts.
                let then =
                    if matches!(order, Order::Run { .. }) { OnInterrupt::Stop } else { OnInterrupt::End };
                crew.answers(1..=*nodes, then, |_, event| Ok(Some(event)))
            }
        }
    }
}

fn astray() -> Fault {
    Fault::failed("an answer went astray")
}

fn failed(error: apps::objects::Error) -> Fault {
    Fault::failed(format_args!("an operation on a store failed: {error}"))
}
