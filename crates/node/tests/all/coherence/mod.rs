//! Every handler of a node, with messages in order, from the past, from the future and duplicated.
//!
//! One real `node::Node` and one plain store stand on a bench ([`rig`]); whoever else would be in the rack is
//! played by hand-written packets ([`packets`]). A test says what the node answered, or that it changed nothing
//! and counted why.
//!
//! | file | handler |
//! | --- | --- |
//! | `on_ack`, `refusals` | the requester's `on_ack` |
//! | `on_closing`, `on_unlock_ack` | what an event waits for before, and after, its unlock |
//! | `deadlines`, `backoff` | the requester's `on_deadline` |
//! | `wait_queue` | waiting in the queue: the lock comes from one requester and goes to the next |
//! | `cache_agent`, `agent_parked` | the cache agent's `on_request`, `on_unpinned` and `on_close` |
//! | `home_request`, `home_refusals` | the home agent's `on_request` |
//! | `home_unlock`, `write_back`, `calls` | the home agent's other handlers |
//! | `migration`, `epochs`, `shadow` | blocks that move to the switch and back |
//! | `allocation` | the allocator: answers of homes, and frees |
//! | `copies` | memory with copies: whoever keeps one |
//! | `dropped` | what no handler may see |
//! | `leaving` | a node that leaves |
//! | `recovery` | a new epoch: what is reported, and what a home makes of it |
//! | `hostile` | what no honest sender says |

mod packets;
mod rig;

mod agent_parked;
mod allocation;
mod backoff;
mod cache_agent;
mod calls;
mod copies;
mod deadlines;
mod dropped;
mod epochs;
mod hold_time;
mod home_refusals;
mod home_request;
mod home_unlock;
mod hostile;
mod leaving;
mod migration;
mod on_ack;
mod on_closing;
mod on_unlock_ack;
mod recovery;
mod refusals;
mod shadow;
mod wait_queue;
mod write_back;
