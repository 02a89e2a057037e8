//! Racks in virtual time: the same applications, the same protocol machines, on simulated hardware.
//!
//! A [`SimulatedRack`] runs workers that are written against [`rackmem::Memory`], or, with locks that carry their data,
//! [`rackmem::LockMemory`]. Each is one future on one
//! thread of a node; it waits for the rack's memory only, and virtual time passes while it does. One seed gives
//! one run.
//!
//! ```
//! use rackmem::{Discipline, Memory, NodeId};
//! use simulated::{SimulatedConfig, SimulatedRack, Until};
//!
//! let mut rack = SimulatedRack::new(SimulatedConfig { nodes: 2, ..SimulatedConfig::default() })?;
//! let addr = rack.run_one(NodeId(0), 0, |mut mem| async move {
//!     mem.alloc(8, NodeId(1), Discipline::Coherent).await.expect("there is room")
//! });
//! for node in [0, 1].map(NodeId) {
//!     rack.spawn(node, 0, move |mut mem| async move {
//!         let add = |window: &rackmem::Window<'_>| window.set_word(0, window.word(0) + 1);
//!         mem.update(addr, 8, add).await.expect("it is allocated");
//!     });
//! }
//! let report = rack.run(Until::WorkersDone);
//! assert!(report.time > rackmem::Nanos::from_micros(2), "two nodes cannot have met sooner");
//! # Ok::<(), rackmem::ConfigError>(())
//! ```

#![warn(missing_docs)]

pub mod faulty;
mod handle;
mod lock;
mod rack;

pub use handle::{Done, Shape, SimulatedHandle, WorkTime};
pub use lock::{SimulatedBlockLock, SimulatedLock};
pub use rack::{SimulatedConfig, SimulatedRack};
pub use sim::coherence::Contents;
pub use sim::fault;
pub use sim::hardware::Testbed;
pub use sim::joint::Joint;
pub use sim::rack::{Ended, RackReport, Until};
pub use sim::system::Fault;
