//! The figures of the SABRes paper: whole objects, read over soNUMA and checked where the memory is.
//!
//! | file | figures |
//! | --- | --- |
//! | `transfers` | 7: latency and throughput without writers |
//! | `conflicts` | 8: 16 readers, and up to 16 writers |
//! | `lookups` | 1, 9 and 10: FaRM's look-ups, remote and local |
//! | `axis` | ways to read objects against one number |
//! | `method` | the constants of all of them |
//!
//! What must always hold: figures hold no constants; all share those of `method`.

mod axis;
mod conflicts;
mod lookups;
pub mod method;
mod transfers;

use crate::figure::Figure;

/// All figures, in their order.
pub const FIGURES: [&dyn Figure; 5] =
    [&lookups::Breakdown, &transfers::Transfers, &conflicts::Conflicts, &lookups::Remote, &lookups::Local];
