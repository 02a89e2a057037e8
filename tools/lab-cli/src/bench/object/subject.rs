//! The rack that is measured, in this process or in several: what the command asks of it.

use std::time::Duration;

use rackmem::{NodeHandle, Rack};

use super::Args;
use super::place::{Event, Order, Task};
use super::work::{Found, HOME, Kind, Made, Mode, READER, Writers};
use crate::bench::rounds::{failed, rack};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::meeting::RuntimeDir;
use cli::processes::place::Seat;
use cli::processes::{Crew, Meeting, OnInterrupt, TransportKind};

/// A home of objects, and who reads them.
pub(super) enum Subject {
    /// In this process.
    Here { rack: Rack, reader: Box<NodeHandle>, writing: Writers },
    /// In a process for each node.
    Processes(Crew<Order, Event>),
}

/// The switch comes first.
const OF_READER: usize = 1 + READER.index();
const OF_HOME: usize = 1 + HOME.index();

impl Subject {
    pub(super) fn start(args: &Args, interrupt: &Interrupt) -> Result<Self, Fault> {
        let spec = args.spec();
        spec.check().map_err(Fault::usage)?;
        if args.transport == TransportKind::Inline {
            let rack = rack(spec.config())?;
            let reader = Box::new(rack.node(READER));
            return Ok(Self::Here { rack, reader, writing: Writers::default() });
        }
        let runtime = RuntimeDir::new()?;
        let meeting = Meeting::new(args.transport, spec.nodes, &runtime)?;
        let tasks = Seat::all(&spec, &meeting).into_iter().map(|(name, seat)| (name, Task(seat))).collect();
        let mut crew = Crew::start(tasks, runtime, interrupt)?;
        crew.answers(0..=spec.nodes, OnInterrupt::End, |_, event| {
            Ok(matches!(event, Event::Seated).then_some(()))
        })?;
        Ok(Self::Processes(crew))
    }

    pub(super) fn make(&mut self, kind: Kind, bytes: u64, objects: u64) -> Result<Made, Fault> {
        match self {
            Self::Here { rack, .. } => Made::make(&mut rack.node(HOME), kind, bytes, objects).map_err(failed),
            Self::Processes(crew) => {
                ask(crew, OF_HOME, Order::Make { kind, bytes, objects }, |event| match event {
                    Event::Made(made) => Some(made),
                    _ => None,
                })
            }
        }
    }

    /// So many threads of the home write, until they are stopped.
    pub(super) fn write(&mut self, made: &Made, writers: u16) -> Result<(), Fault> {
        match self {
            Self::Here { rack, writing, .. } => {
                *writing = Writers::start(*made, (0..writers).map(|_| rack.node(HOME)).collect());
                Ok(())
            }
            Self::Processes(crew) => done(crew, OF_HOME, Order::Write { made: *made, writers }),
        }
    }

    pub(super) fn stop(&mut self) -> Result<(), Fault> {
        match self {
            Self::Here { writing, .. } => writing.stop().map_err(failed),
            Self::Processes(crew) => done(crew, OF_HOME, Order::Stop),
        }
    }

    pub(super) fn read(&mut self, made: &Made, mode: Mode, millis: u64) -> Result<Found, Fault> {
        match self {
            Self::Here { reader, .. } => {
                made.read(reader, mode, Duration::from_millis(millis)).map_err(failed)
            }
            Self::Processes(crew) => {
                ask(crew, OF_READER, Order::Read { made: *made, mode, millis }, |event| match event {
                    Event::Found(found) => Some(found),
                    _ => None,
                })
            }
        }
    }
}

fn done(crew: &mut Crew<Order, Event>, at: usize, order: Order) -> Result<(), Fault> {
    ask(crew, at, order, |event| matches!(event, Event::Done).then_some(()))
}

fn ask<T>(
    crew: &mut Crew<Order, Event>,
    at: usize,
    order: Order,
    answer: impl Fn(Event) -> Option<T>,
) -> Result<T, Fault> {
    crew.order(at, order)?;
    let answers = crew.answers([at], OnInterrupt::End, |_, event| Ok(answer(event)))?;
    answers.into_iter().next().ok_or_else(|| Fault::failed("an answer went astray"))
}
