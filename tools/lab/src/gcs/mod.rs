//! The figures of GCS, the paper of locks that carry their data.
//!
//! | file | figures |
//! | --- | --- |
//! | `store` | 7: the key-value store, against a layered lock |
//! | `ablations` | 8 and 9: blades, and threads on each, without one mechanism or the other |
//! | `inside` | 10 and 11: how long a thread stays inside, and how much a lock guards |
//! | `apart` | locks and data one after the other, as a system |
//! | `guarded` | regions that locks guard, as a thread of each system has them |
//! | `axis` | locks against one number |
//! | `method` | the constants of all of them |
//!
//! What must always hold: figures hold no constants; all share those of `method`.

mod ablations;
pub mod apart;
mod axis;
pub(crate) mod guarded;
mod inside;
pub mod method;
mod store;

use crate::figure::Figure;

/// All figures, in their order.
pub const FIGURES: [&dyn Figure; 5] =
    [&store::KeyValue, &ablations::Blades, &ablations::Threads, &inside::CriticalSection, &inside::StateSize];
