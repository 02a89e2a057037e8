//! Every handler of a node, with messages in order, from the past, from the future and duplicated.
//!
//! One real `node::Node` and one plain store stand on a bench ([`rig`]); whoever else would be in the rack is
//! played by hand-written packets ([`packets`]). A test says what the node answered, or that it changed nothing
//! and counted why.
//!
//! | file | handler |
//! | --- | --- |
//! | `ack_of_misses`, `ack_of_others`, `refusals` | the requester's `on_ack` |
//! | `write_back_acks`, `close_acks`, `unlock_acks` | what an event waits for before, and after, its unlock |
//! | `deadlines`, `backoff` | the requester's `on_deadline` |
//! | `agent_reads`, `agent_writes`, `agent_parked`, `agent_close` | the cache agent |
//! | `home_requests`, `home_refusals`, `home_unlocks`, `home_write_backs`, `home_calls` | the home agent |
//! | `additions`, `removals`, `epochs`, `shadow` | migration |
//! | `allocations`, `frees` | the allocator |
//! | `dropped` | what no handler may see |

mod packets;
mod rig;

mod ack_of_misses;
mod ack_of_others;
mod additions;
mod agent_close;
mod agent_parked;
mod agent_reads;
mod agent_writes;
mod allocations;
mod backoff;
mod close_acks;
mod deadlines;
mod dropped;
mod epochs;
mod frees;
mod home_calls;
mod home_refusals;
mod home_requests;
mod home_unlocks;
mod home_write_backs;
mod refusals;
mod removals;
mod shadow;
mod unlock_acks;
mod write_back_acks;
