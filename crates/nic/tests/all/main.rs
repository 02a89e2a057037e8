//! All tests of this crate, in one program.

mod capture;
mod errors;
mod hostile;
#[path = "pair/lone.rs"]
mod lone;
mod mutants;
mod objects;
mod our_requests;
mod pair;
#[path = "pair/refusals.rs"]
mod refusals;
mod regions;
mod replay_slots;
mod requester_events;
mod responder_events;
mod under_faults;
mod words;
#[path = "pair/workload.rs"]
mod workload;
