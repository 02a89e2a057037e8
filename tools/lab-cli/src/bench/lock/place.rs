//! The children's side: a node whose threads take locks, or the switch.

use std::thread;

use rackmem::Rack;
use serde::{Deserialize, Serialize};

use super::worker::{self, Done, Kind, Load, Mine, Part};
use crate::bench::networked::samples::Samples;
use cli::processes::child::{Never, Reason};
use cli::processes::place::{Seat, Seated};
use cli::processes::{Orders, Teller};

/// A place, and how many threads it has if it is a node.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) seat: Seat,
    pub(super) threads: u64,
    pub(super) load: Load,
}

/// What the command wants of a node.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make the locks that are at home here.
    Make,
    /// These are all of them, node by node.
    Open(Vec<Part>),
    /// Let the threads run.
    Run { kind: Kind, load: Load },
    /// Write the first states, one after the other.
    WriteAll { kind: Kind, count: u64 },
    /// Add all states up.
    Sum(Kind),
}

/// What has happened.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// The place is there.
    Seated,
    /// The locks are there.
    Made(Part),
    /// All locks can be taken.
    Opened,
    /// What each thread has done.
    Ran(Vec<Done>),
    /// How long each took.
    Wrote(Samples),
    /// The sum.
    Sum(u64),
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "bench lock";
}

/// Is a place until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let seated = task.seat.take()?;
    teller.tell(Event::Seated);
    let Seated::Node(_, rack) = seated else {
        // The switch is at work in a thread of its own.
        loop {
            thread::park();
        }
    };
    rackmem::ask_for_short_slice();
    let nodes = task.seat.rack().nodes as u64;
    let mut node = Threads { rack: &rack, task: &task, threads: Vec::new() };
    loop {
        let event = match orders.next() {
            Order::Make => Event::Made(Part::make(&mut rack.here(), &task.load).map_err(failed)?),
            Order::Open(parts) => {
                node.open(&parts)?;
                Event::Opened
            }
            Order::Run { kind, load } => {
                let first = node.first();
                Event::Ran(worker::run(&mut node.threads, first, nodes, (kind, &load)).map_err(failed)?)
            }
            Order::WriteAll { kind, count } => {
                Event::Wrote(node.threads[0].write_all(kind, count).map_err(failed)?)
            }
            Order::Sum(kind) => Event::Sum(node.threads[0].sum(kind).map_err(failed)?),
        };
        teller.tell(event);
    }
}

struct Threads<'a> {
    rack: &'a Rack,
    task: &'a Task,
    threads: Vec<Mine>,
}

impl Threads<'_> {
    /// The number of the first thread here among all of the rack.
    fn first(&self) -> u64 {
        let node = self.rack.here().id();
        u64::from(node.0) * self.task.threads
    }

    fn open(&mut self, parts: &[Part]) -> Result<(), Reason> {
        let first = self.first();
        self.threads = (first..first + self.task.threads)
            .map(|number| Mine::new(self.rack.here(), number as usize, parts, &self.task.load))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> Reason {
    format!("an access of the benchmark failed: {error}")
}
