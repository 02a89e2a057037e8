//! The testbed of the SABRes paper in virtual time: two 16-core chips that implement soNUMA, connected directly (section 6, Table 2).
//!
//! Cores of one chip read objects in the memory of the other through RMCs that are part of their chips; cores of the other chip may
//! write them. What stands beside the memory is the engine of `crates/nic`, unchanged.
//!
//! ```text
//!  core ─post─> RGP front end ─mesh─> RGP back end ══35 ns══> R2P2 ─mesh─> bank of the LLC, directory ─mesh─> memory
//!   ^                                                          │  one of 4, engine of SABRes              50 ns, 4 channels
//!   └─poll── RCP front end <─mesh── RCP back end <══35 ns══════┘<── invalidations, when a core of this chip writes
//!                                      └─mesh─> the reader's buffer in its LLC
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `testbed` | what happens next |
//! | `chip`, `software` | all constants, with their sources |
//! | `load`, `report` | what is run, what it gave |
//! | `requester` | RGP and RCP |
//! | `r2p2` | the remote pipeline around the engine |
//! | `memory`, `cache` | directory, last-level cache, channels |
//! | `reader`, `writer` | threads |
//! | `event` | what happens, and the packets |
//!
//! The 90 ns of an average access (section 5.1) contain the memory's 50 ns, the mesh, the bank and the port of the R2P2; nothing is
//! counted twice.
//!
//! What is not modelled: links of the mesh that several packets want (only the ports at both ends are taken), rows of the
//! memory's banks, the first-level caches of readers but for what a method leaves there, page boundaries.

mod cache;
mod chip;
mod event;
mod load;
mod memory;
mod r2p2;
mod reader;
mod report;
mod requester;
mod software;
mod testbed;
mod writer;

pub use chip::Chip;
pub use load::{Choice, Load, Method, Where, Work};
pub use report::ObjectsReport;
pub use software::Software;
pub use testbed::Testbed;
