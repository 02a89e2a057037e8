//! Racks of several hosts, on one machine: every place of a rack in a network namespace of its own.
//!
//! Skipped, with the reason on standard error, where the machine does not permit such namespaces (it takes root and
//! iproute2); with `RACKMEM_HOSTS=required` that is a failure.
//!
//! | file | scenarios |
//! | --- | --- |
//! | `paths` | what one host writes another one reads, whatever the path between them carries |
//! | `cuts` | a link is cut for longer than the timeout |
//! | `losses` | links that fail for moments, and a lossy network at the switch |
//! | `keys` | hosts that do not have the rack's key |
//! | `names` | nodes that are known by name |
//! | `languages` | programs of different languages share what has names |

mod cuts;
mod history;
mod keys;
mod languages;
mod losses;
mod names;
mod network;
mod paths;
mod rig;
