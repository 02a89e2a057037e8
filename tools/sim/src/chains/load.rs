//! What is run on the testbed.

use chain::client::Request;
use switch::chains;

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// To which key.
    pub key: u64,
    /// What.
    pub request: Request,
}

/// Where requests come from.
pub trait Requests {
    /// The next one of a thread. Values must be of [`Load::value`] bytes.
    fn next(&mut self, thread: u16) -> Ask;
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Load {
    /// Client threads, on two machines in turn.
    pub threads: u16,
    /// Keys: 0 and on. All have a value when time begins, and both machines know where.
    pub keys: u64,
    /// Bytes of a value.
    pub value: u32,
    /// What the program in the switch is built for; none: packets pass it as they are. Window and connections are set to those of the
    /// testbed, and its lifetime where reads are steered.
    pub steering: Option<chains::SteeringConfig>,
}
