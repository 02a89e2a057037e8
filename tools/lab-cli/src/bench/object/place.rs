//! The children's side: the home of the objects, the node that reads them, or the switch.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::work::{Found, Kind, Made, Mode, Writers};
use cli::processes::child::{Never, Reason};
use cli::processes::place::{Seat, Seated};
use cli::processes::{Orders, Teller};

/// A place.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task(pub(super) Seat);

/// What the command wants of a node.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make objects that are at home here.
    Make { kind: Kind, bytes: u64, objects: u64 },
    /// Let so many threads write them.
    Write { made: Made, writers: u16 },
    /// End that.
    Stop,
    /// Read them.
    Read { made: Made, mode: Mode, millis: u64 },
}

/// What has happened.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// The place is there.
    Seated,
    /// The objects are there.
    Made(Made),
    /// It is so.
    Done,
    /// What was read.
    Found(Found),
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "bench object";
}

/// Is a place until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let seated = task.0.take()?;
    teller.tell(Event::Seated);
    let Seated::Node(_, rack) = seated else {
        // The switch is at work in a thread of its own.
        loop {
            thread::park();
        }
    };
    rackmem::ask_for_short_slice();
    let mut here = rack.here();
    let mut writing = Writers::default();
    loop {
        let event = match orders.next() {
            Order::Make { kind, bytes, objects } => {
                Event::Made(Made::make(&mut here, kind, bytes, objects).map_err(failed)?)
            }
            Order::Write { made, writers } => {
                writing = Writers::start(made, (0..writers).map(|_| rack.here()).collect());
                Event::Done
            }
            Order::Stop => {
                writing.stop().map_err(failed)?;
                Event::Done
            }
            Order::Read { made, mode, millis } => {
                Event::Found(made.read(&mut here, mode, Duration::from_millis(millis)).map_err(failed)?)
            }
        };
        teller.tell(event);
    }
}

fn failed(error: impl std::fmt::Display) -> Reason {
    format!("an access of the benchmark failed: {error}")
}
