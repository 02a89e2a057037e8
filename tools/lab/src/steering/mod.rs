//! The figures of the steering paper: a store of chains on memory without processors, and a switch that sends appends to the true tail.
//!
//! | file | figures |
//! | --- | --- |
//! | `clients` | 2: throughput against client threads |
//! | `state` | 3: memory of the switch against keys |
//! | `keys` | 4: throughput against keys that have state |
//! | `writes` | Clover's own drop from read-only to half writes, and both distributions |
//! | `nic` | what depends on the NIC's atomics |
//! | `failure` | the switch stops, and comes back empty |
//! | `axis` | stores of chains against one number |
//! | `method` | the constants of all of them |
//!
//! What must always hold: figures hold no constants; all share those of `method`, but `nic` and `keys` move one.

mod axis;
mod clients;
pub(crate) mod failure;
mod keys;
pub mod method;
mod nic;
mod state;
mod writes;

use crate::figure::Figure;

/// All figures, in their order.
pub const FIGURES: [&dyn Figure; 6] =
    [&clients::Clients, &state::Memory, &keys::Keys, &writes::Writes, &nic::Nic, &failure::SwitchFailure];
