//! Chains, live: stores of versions on memory that nothing but a NIC looks after, driven by threads.
//!
//! The machines are [`chain`]'s. Here are what runs them: a client on each thread that uses a store, and a store's
//! metadata server on one node. What they ask of memory are READ, WRITE and CmpSwap on queue pairs of their own, which pass the
//! rack's switch, on every kind of rack, so that a program there can steer them. What clients ask of the metadata server are calls.
//!
//! | file | holds |
//! | --- | --- |
//! | `store.rs` | [`Store`]: where a store's memory is; which clients of it this process has |
//! | `session.rs` | [`Session`]: one client, one operation at a time |
//! | `pauses.rs` | how long a client waits until it asks again |
//! | `port.rs` | a client's queue pairs: verbs, and connections that break |
//! | `copying.rs` | a part on its way to other memory, while clients go on |
//! | `server.rs` | the metadata server |
//! | `ask.rs` | what is asked of other nodes, as words |
//! | `relay.rs` | the switch, which forwards verbs, and may steer |
//! | `times.rs` | how long things take, and how long what is known counts |
//! | `fabric.rs` | what delivers verbs and calls: the seam to the kinds of racks |
//!
//! What must always hold: a verb whose outcome is not known is not executed any more when that is said; a call is executed once.

mod ask;
mod copying;
mod fabric;
mod pauses;
mod port;
mod relay;
mod server;
mod session;
mod store;
mod times;

pub(crate) use ask::{Ask, Connect, MOST_CHANGED, store_of, store_words};
pub(crate) use copying::{Copying, LAST_PASS};
pub(crate) use fabric::{Fabric, client_id};
pub(crate) use relay::Relay;
pub use relay::SteeringCounts;
pub(crate) use server::Server;
pub use server::ServerCounts;
pub use session::{LONGEST_VALUE, Ran, Session, What};
pub(crate) use store::Pools;
pub use store::{Home, Setup, Store};
pub(crate) use switch::relay::Introduction;
pub(crate) use times::decide_after;
pub use times::least_quarantine;

pub use fabric::{Chains, Wanted};
