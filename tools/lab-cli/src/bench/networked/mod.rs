//! What misses cost on a rack of processes, beside the bare exchange of the same messages.
//!
//! | file | holds |
//! | --- | --- |
//! | `orders` | what the command and its children tell each other |
//! | `bare` | a child as a place of the bare exchange: no rack, only a transport and the waiting of one |
//! | `node` | a child as a node of a rack whose misses are timed |
//! | `crews` | the command's side: both crews, their rounds |
//! | `pingpong` | `rackmem-lab bench pingpong` |
//! | `misses` | `rackmem-lab bench miss --transport` |
//! | `samples` | times, as a histogram that processes can tell each other |

mod bare;
pub(super) mod crews;
pub(super) mod misses;
mod node;
mod orders;
pub(crate) mod pingpong;
pub(crate) mod samples;

pub(super) use node::compute;
pub(super) use orders::Role;
pub(crate) use orders::Task;

use cli::processes::child::{Never, Reason};
use cli::processes::{Orders, Teller};
use orders::{Event, Order};

impl cli::processes::Task for Task {
    const NAME: &'static str = "bench";
}

/// Is a place until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    match task.role {
        Role::Bare => bare::place(&task.seat, orders, teller),
        Role::Rack { realtime } => node::place(&task.seat, realtime, orders, teller),
    }
}
