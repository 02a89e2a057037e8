//! `rackmem-lab peers`: the same YCSB mixes on what is used today, and on a rack of processes on this machine.
//!
//! The servers listen on loopback and save nothing. They get the same records, keys and mixes as the rack, from as many
//! client processes as the rack has nodes, over connections that they share among them; every connection is a closed
//! loop. All of it in one run, taking turns mix by mix.
//!
//! | file | concern |
//! | --- | --- |
//! | `args` | flags |
//! | `protocol` | Redis' and memcached's requests and replies |
//! | `client` | a child with its connections |
//! | `server` | a server, started and stopped |
//! | `locks` | `--locks`: one record under one lock, instead of the mixes |
//! | `words` | `--words`: operations on words of another process, instead of the mixes |
//! | `command` | who is measured, in which order |
//! | `targets` | what the rack has to reach |
//! | `report` | table, JSON, drawing |

mod args;
mod client;
mod command;
mod locks;
mod protocol;
mod report;
mod server;
mod targets;
mod words;

pub(crate) use words::routines;

pub(crate) use args::Args;
pub(crate) use client::place;
pub(crate) use command::{Peer, measure_whole, run};
pub(crate) use locks::{Redis, RedisServer};
pub(crate) use server::{installed, serve};
