//! The children's side: a node whose threads use the stores, or the switch.

use std::thread;

use rackmem::Rack;
use serde::{Deserialize, Serialize};

use super::worker::{self, Done, Kind, Load, Mine};
use cli::interrupt::Interrupt;
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
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make a store.
    Create(Kind),
    /// Open it.
    Open { kind: Kind, root: u64 },
    /// Put this node's share of the keys.
    Load(Kind),
    /// Let the threads run.
    Run { kind: Kind, millis: u64 },
    /// Look at every key.
    Verify(Kind),
}

/// What has happened.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// The place is there.
    Seated,
    /// Where the store is.
    Created(u64),
    /// It is so.
    Done,
    /// What each thread has done.
    Ran(Vec<Done>),
    /// How many keys are not as they should be.
    Verified(u64),
}

/// Threads of one node, or of all.
pub(super) struct Threads {
    threads: Vec<Mine>,
    /// Of all nodes.
    all: u64,
    load: Load,
}

impl Threads {
    pub(super) fn new(threads: Vec<Mine>, all: u64, load: &Load) -> Self {
        Self { threads, all, load: load.clone() }
    }

    /// Does what the command wants, but making stores.
    pub(super) fn obey(
        &mut self,
        order: &Order,
        interrupt: &Interrupt,
    ) -> Result<Event, apps::objects::Error> {
        let Self { threads, all, load } = self;
        Ok(match *order {
            Order::Create(_) => unreachable!("it takes a handle"),
            Order::Open { kind, root } => {
                threads.iter_mut().try_for_each(|mine| mine.open(kind, root))?;
                Event::Done
            }
            Order::Load(kind) => {
                threads.iter_mut().try_for_each(|mine| mine.load(kind, *all, load))?;
                Event::Done
            }
            Order::Run { kind, millis } => Event::Ran(worker::run(threads, kind, load, millis, interrupt)?),
            Order::Verify(kind) => Event::Verified(threads[0].verify(kind, load)?),
        })
    }
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "objects";
}

/// Is a place until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let seated = task.seat.take()?;
    teller.tell(Event::Seated);
    let Seated::Node(node, rack) = seated else {
        // The switch is at work in a thread of its own.
        loop {
            thread::park();
        }
    };
    rackmem::ask_for_short_slice();
    let all = task.seat.rack().nodes as u64 * task.threads;
    let mut threads = Threads::new(of_node(&rack, node.0, &task), all, &task.load);
    loop {
        let event = match orders.next() {
            Order::Create(kind) => {
                Event::Created(worker::create(&mut rack.here(), kind, &task.load).map_err(failed)?)
            }
            order => threads.obey(&order, &orders.interrupt).map_err(failed)?,
        };
        teller.tell(event);
    }
}

fn of_node(rack: &Rack, node: u16, task: &Task) -> Vec<Mine> {
    let first = u64::from(node) * task.threads;
    (first..first + task.threads).map(|number| Mine::new(rack.here(), number, &task.load)).collect()
}

fn failed(error: impl std::fmt::Display) -> Reason {
    format!("an operation on a store failed: {error}")
}
