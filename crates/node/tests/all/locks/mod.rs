//! Every handler of a node's locks, with packets in order, late, twice, of other epochs, and of nobody honest.
//!
//! One real `node::LockNode` and one plain store stand on a bench ([`rig`]); whoever else would be in the rack is played by
//! hand-written packets. A test says what the node answered, or that it changed nothing and counted why.
//!
//! | file | holds |
//! | --- | --- |
//! | `asking` | a thread wants a lock: requests, answers, refusals |
//! | `holding` | the queue, and the lock on its way to others |
//! | `reading` | copies to read, and their end |
//! | `home` | the home's requests of the switch, its data, its directory |
//! | `freeing` | a lock ends, at its holder, its home and in the switch |
//! | `given_back` | its memory is given back, and nobody ends it |
//! | `reclaiming` | a lost lock is taken all the same |
//! | `epochs` | a new epoch: what is reported, and what a home makes of it |
//! | `hostile` | what no honest sender says |

mod rig;
mod transfer;

mod asking;
mod epochs;
mod freeing;
mod given_back;
mod holding;
mod home;
mod hostile;
mod reading;
mod reclaiming;
