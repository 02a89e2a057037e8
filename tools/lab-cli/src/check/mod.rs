//! `rackmem-lab check`: properties of the protocols, decided by looking at all states of small racks.

mod explore;

use ::check::explore::coherence::FlowCC;
use ::check::explore::joint::Joint;
use ::check::explore::locks::Locks;

use cli::fault::Fault;

/// What can be checked.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Check {
    /// Explore every state of small racks that run FlowCC, with faults wherever they can happen
    Coherence(explore::Args),
    /// Explore every state of small racks with locks that carry their data, with faults wherever they can happen
    Locks(explore::Args),
    /// Explore every state of small racks in which blocks, locks and words come and go, while places die
    Joint(explore::Args),
}

/// Runs the command.
pub(crate) fn run(check: &Check) -> Result<(), Fault> {
    match check {
        Check::Coherence(args) => explore::run::<FlowCC>(args),
        Check::Locks(args) => explore::run::<Locks>(args),
        Check::Joint(args) => explore::run::<Joint>(args),
    }
}
