//! `rackmem check`: properties of the protocol, decided by looking at all states of small racks.

mod flowcc;

use crate::fault::Fault;

/// What can be checked.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Check {
    /// Explore every state of small racks that run FlowCC, with faults wherever they can happen
    Flowcc(flowcc::Args),
}

/// Runs the command.
pub(crate) fn run(check: &Check) -> Result<(), Fault> {
    match check {
        Check::Flowcc(args) => flowcc::run(args),
    }
}
