//! A node that is to leave, and what it keeps for others.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use live::networked::Draining;

use crate::error::Error;
use crate::rack::{Places, Rack};

/// Between two looks at how far it has come.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// However little time is left: going takes some.
const LEAVING: Duration = Duration::from_secs(1);

/// What becomes of allocations without copies in the memory of a node that is to leave: their addresses name it, so nobody else can
/// have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// If there are any, it does not leave.
    Keep,
    /// They are lost.
    Lose,
}

/// What somebody wants of a node that may be about to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DrainOrder {
    Look,
    Begin(Rest),
    Stop,
}

/// A node has left, and no memory has a copy fewer for that, as far as nodes stayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drained {
    /// On how many nodes each memory with copies was when it left: [`Config::copies`](crate::Config::copies), or as many as stayed.
    pub copies: usize,
    /// What only this node had cached has gone home.
    pub in_order: bool,
}

/// Why a node has not left.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DrainError {
    /// Allocations without copies are in its memory.
    Homed {
        /// So many bytes.
        bytes: u64,
        /// On how many nodes memory with copies is; 1: the rack has none.
        copies: usize,
    },
    /// Others do not have all yet. It goes on draining, and does not leave by itself.
    Late {
        /// Memories with copies that too few others have.
        memories: u64,
        /// Bytes of allocations in them.
        bytes: u64,
        /// How many nodes are up and stay; `None`: the switch has not said.
        staying: Option<u8>,
    },
    /// Somebody else has told it to stay.
    Stopped,
    /// It was declared dead, or the daemon does not answer.
    Failed(Error),
}

impl From<Error> for DrainError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for DrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Homed { bytes, copies } => {
                write!(
                    f,
                    "{bytes} bytes of allocations without copies are in its memory, and would be lost: free them"
                )?;
                match copies {
                    1 => f.write_str(" (the rack keeps no copies: `copies` in its file)"),
                    _ => f.write_str(", or allocate with copies what is to outlive a node"),
                }
            }
            Self::Late { staying: None, .. } => {
                f.write_str("the switch has not answered; it goes on draining")
            }
            Self::Late { staying: Some(0), .. } => {
                f.write_str("no node stays that could take what it keeps; it goes on draining")
            }
            Self::Late { memories, bytes, .. } => write!(
                f,
                "{memories} memories with copies ({bytes} bytes) are not on enough other nodes yet; it goes on draining"
            ),
            Self::Stopped => f.write_str("somebody else has told it to stay"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DrainError {}

impl Rack {
    /// Leaves the rack as [`Rack::leave`] does, when others have what this process's node keeps of memory with copies: until then it
    /// goes on, and others work on. However soon another node dies then, nothing is lost with it. Attached, it is the daemon's node that
    /// leaves, and the daemon that ends. Takes no longer than `timeout` and a second. Does nothing on an embedded rack.
    ///
    /// # Errors
    /// If something would be lost that has no copies, or others do not have all in time: then it goes on draining, and a further call
    /// goes on waiting ([`Rack::stop_drain`] has it stay).
    pub fn drain(&self, timeout: Duration, rest: Rest) -> Result<Drained, DrainError> {
        let (began, copies) = (Instant::now(), self.config().copies);
        let on = |staying: u8| copies.min(staying.into());
        if self.inner.is_embedded() {
            return Ok(Drained { copies, in_order: true });
        }
        let mut state = self.begin_drain(rest)?;
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            match (state, self.inner.joined()) {
                (Draining::Left { staying, in_order }, _) => {
                    return Ok(Drained { copies: on(staying), in_order });
                }
                (Draining::Done { staying }, Some(node)) => {
                    let in_order = node.leave(left.max(LEAVING));
                    return Ok(Drained { copies: on(staying), in_order });
                }
                (Draining::Refused { bytes }, _) => return Err(DrainError::Homed { bytes, copies }),
                (Draining::No, _) => return Err(DrainError::Stopped),
                (_, Some(_)) if self.is_fenced() => return Err(Error::Fenced.into()),
                (Draining::Moving { memories, bytes, staying }, _) if left.is_zero() => {
                    return Err(DrainError::Late { memories, bytes, staying });
                }
                _ => thread::sleep(LOOK_EVERY),
            }
            state = self.draining()?;
        }
    }

    /// Has this process's node drain, and says how far that has come. It leaves when somebody calls [`Rack::leave`]; the node of a
    /// daemon does so by itself when others have all.
    ///
    /// # Errors
    /// Of a daemon: if it does not answer.
    pub fn begin_drain(&self, rest: Rest) -> Result<Draining, Error> {
        self.order(DrainOrder::Begin(rest))
    }

    /// Has it stay. What others have got by then is not taken away from them before the next epoch.
    ///
    /// # Errors
    /// As [`Rack::begin_drain`].
    pub fn stop_drain(&self) -> Result<Draining, Error> {
        self.order(DrainOrder::Stop)
    }

    /// Whether it drains, and how far it has come.
    ///
    /// # Errors
    /// As [`Rack::begin_drain`].
    pub fn draining(&self) -> Result<Draining, Error> {
        self.order(DrainOrder::Look)
    }

    pub(crate) fn order(&self, order: DrainOrder) -> Result<Draining, Error> {
        match &self.inner.places {
            Places::Embedded(_) => Ok(Draining::No),
            Places::Joined { node, .. } => Ok(match order {
                DrainOrder::Look => node.draining(),
                DrainOrder::Begin(rest) => node.begin_drain(rest == Rest::Lose),
                DrainOrder::Stop => node.stop_drain(),
            }),
            Places::Attached(daemon) => daemon.ask_to_drain(order),
        }
    }
}
