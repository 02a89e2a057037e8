//! `rackmem-lab bench hit --mapped` and `bench miss --mapped`: mapped memory, against private memory, bare faults and misses
//! of calls.
//!
//! The switch and both nodes are processes, over shared memory: embedded racks map nothing. Node 0 accesses what is at home on
//! node 1.
//!
//! | file | holds |
//! | --- | --- |
//! | `hits` | cached accesses through pointers, against the same on private memory |
//! | `faults` | what pointers wait for, against what calls wait for |
//! | `bare` | faults and revocations of pages without a rack |
//! | `node` | what the nodes are asked to do |

mod bare;
mod faults;
mod hits;
mod node;

use rackmem::BlockSize;

pub(crate) use node::Mapper;

use super::nodes::{How, Nodes, spec};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;

pub(super) use faults::run as run_faults;
pub(super) use hits::run as run_hits;

/// A rack of two processes that cache so many bytes, and resolve faults in place or leave that to their nodes.
fn start(
    block: BlockSize,
    bytes: u64,
    faults_in_place: bool,
    interrupt: &Interrupt,
) -> Result<Nodes<Mapper>, Fault> {
    let how = How { faults_in_place, ..How::default() };
    let spec = RackSpec { cache: (2 * bytes).max(16 << 20), memory: 4 * bytes + (64 << 20), ..spec(block) };
    Nodes::start_as(how, TransportKind::Shm, &spec, &(), interrupt)
}
