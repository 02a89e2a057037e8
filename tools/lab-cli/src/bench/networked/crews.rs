//! The command's side: the crew of a bare exchange, and that of a rack.

use std::time::Duration;

use super::orders::{Event, Order, Role, Task};
use super::samples::Samples;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::meeting::RuntimeDir;
use cli::processes::place::{RackSpec, Seat};
use cli::processes::{Crew, Meeting, OnInterrupt, TransportKind};

/// The children, as they were started.
const NODE_0: usize = 1;
const NODE_1: usize = 2;

/// Three processes that exchange messages, or that are a rack: the switch, node 0 and node 1.
pub(in crate::bench) struct Three(Crew<Order, Event>);

impl Three {
    /// Starts them.
    pub(in crate::bench) fn start(
        kind: TransportKind,
        role: Role,
        spec: &RackSpec,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        Self::start_with(kind, role, spec, interrupt, true)
    }

    /// The same; without company, no message waits for another one to travel with.
    pub(in crate::bench) fn start_with(
        kind: TransportKind,
        role: Role,
        spec: &RackSpec,
        interrupt: &Interrupt,
        company: bool,
    ) -> Result<Self, Fault> {
        let runtime = RuntimeDir::new()?;
        let meeting = Meeting::new(kind, spec.nodes, &runtime)?;
        let meeting = if company { meeting } else { meeting.without_company() };
        let tasks = Seat::all(spec, &meeting)
            .into_iter()
            .map(|(place, seat)| {
                let task = Task { seat, role };
                (format!("{place} of the {}", role.name()), task)
            })
            .collect();
        let mut crew = Crew::start(tasks, runtime, interrupt)?;
        crew.answers(0..=NODE_1, OnInterrupt::End, |_, event| {
            Ok(matches!(event, Event::Seated).then_some(()))
        })?;
        Ok(Self(crew))
    }

    /// A round of bare exchanges.
    pub(in crate::bench) fn exchange(&mut self, times: u64) -> Result<Samples, Fault> {
        self.round(Order::Exchange(times))
    }

    /// A round of exchanges of two messages, between two of them.
    pub(in crate::bench) fn exchange_of_two(&mut self, times: u64) -> Result<Samples, Fault> {
        self.round(Order::ExchangeOfTwo(times))
    }

    /// A round of reads of blocks that nobody caches.
    pub(in crate::bench) fn read_fresh(&mut self, blocks: u64) -> Result<Samples, Fault> {
        self.round(Order::ReadFresh(blocks))
    }

    /// Memory at home on node 1.
    pub(in crate::bench) fn allocate(&mut self, blocks: u64) -> Result<u64, Fault> {
        self.ask(NODE_0, Order::Allocate(blocks), |event| match event {
            Event::Region(region) => Some(region),
            _ => None,
        })
    }

    /// A round of reads of blocks that their home, node 1, has just modified.
    pub(in crate::bench) fn read_modified(
        &mut self,
        region: u64,
        blocks: u64,
        value: u64,
    ) -> Result<Samples, Fault> {
        self.done(NODE_1, Order::Write { region, blocks, value })?;
        self.round(Order::Read { region, blocks, value })
    }

    /// Reads at a rate while node 1 computes on every core.
    pub(in crate::bench) fn read_from_busy(&mut self, reads: u64, every: Duration) -> Result<Samples, Fault> {
        self.done(NODE_1, Order::Compute)?;
        let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        // The first find out that the machine is full.
        self.round(Order::ReadPaced { reads: reads / 10 + 1, every })?;
        self.round(Order::ReadPaced { reads, every })
    }

    fn round(&mut self, order: Order) -> Result<Samples, Fault> {
        self.ask(NODE_0, order, |event| match event {
            Event::Round(samples) => Some(samples),
            _ => None,
        })
    }

    fn done(&mut self, at: usize, order: Order) -> Result<(), Fault> {
        self.ask(at, order, |event| matches!(event, Event::Done).then_some(()))
    }

    fn ask<T>(&mut self, at: usize, order: Order, answer: impl Fn(Event) -> Option<T>) -> Result<T, Fault> {
        self.0.order(at, order)?;
        let answers = self.0.answers([at], OnInterrupt::End, |_, event| Ok(answer(event)))?;
        answers.into_iter().next().ok_or_else(|| Fault::failed("an answer went astray"))
    }
}
