//! The children's side: a node with a thread that operates on words, or the switch.

use std::thread;

use serde::{Deserialize, Serialize};

use super::turns::{Done, Mine, Operation, Place, Turn};
use crate::bench::networked::compute;
use cli::processes::child::{Never, Reason};
use cli::processes::place::{Seat, Seated};
use cli::processes::{Orders, Teller};

/// A place.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) seat: Seat,
    /// With words of its own to compare with.
    pub(super) bare: bool,
}

/// What the command wants of a node.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Allocate so many words here.
    Make(u64),
    /// These are the words.
    Open(Place),
    /// Operate on them.
    Run(Turn),
    /// Do one so many times, on the first word, for a program that counts instructions.
    Count(Operation, u64),
    /// Add them all up.
    Sum,
    /// Compute on every core from now on.
    Compute,
}

/// What has happened.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// The place is there.
    Seated,
    /// The words are there.
    Made(Place),
    /// They can be operated on; or, what else was ordered is done.
    Ready,
    /// What the thread has done.
    Ran(Done),
    /// The sum.
    Sum(u64),
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "bench word";
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
    let mut mine = None;
    loop {
        let order = orders.next();
        let event = match (order, &mut mine) {
            (Order::Make(count), _) => Event::Made(Place::make(&mut rack.here(), count).map_err(failed)?),
            (Order::Open(place), _) => {
                mine = Some(Mine::new(rack.here(), &place, task.bare).map_err(failed)?);
                Event::Ready
            }
            (Order::Run(turn), Some(mine)) => Event::Ran(mine.run(&turn).map_err(failed)?),
            (Order::Count(operation, times), Some(mine)) => {
                mine.counted_operations(operation, times).map_err(failed)?;
                Event::Ready
            }
            (Order::Sum, Some(mine)) => Event::Sum(mine.sum().map_err(failed)?),
            (Order::Compute, _) => {
                compute()?;
                Event::Ready
            }
            (Order::Run(_) | Order::Count(..) | Order::Sum, None) => {
                return Err("no words were opened".to_owned());
            }
        };
        teller.tell(event);
    }
}

fn failed(error: impl std::fmt::Display) -> Reason {
    format!("an access of the benchmark failed: {error}")
}
