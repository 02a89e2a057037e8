//! All tests of this crate, in one program.

mod bodies;
mod conformance;
#[path = "../../../../fuzz/feed.rs"]
mod feed;
mod inline_conformance;
mod shm_conformance;
mod shm_fuzz;
mod shm_peers;
mod shm_processes;
mod shm_rack;
mod shm_sharing;
mod simulated;
mod simulated_conformance;
mod tapped;
mod udp_binding;
mod udp_coalescing;
mod udp_conformance;
mod udp_fuzz;
mod udp_hostile;
mod udp_messages;
mod udp_names;
mod udp_refusals;
mod udp_segments;
mod udp_sessions;
