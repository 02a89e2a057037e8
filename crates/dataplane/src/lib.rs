//! The switch program in the kernel: what loads it, and what it runs on.
//!
//! | file | concern |
//! | --- | --- |
//! | `system` | bpf(2), and memory that the kernel shares: the only unsafe code |
//! | `types` | what the kernel wants to know of the lock's type |
//! | [`program`] | a program with its maps, loaded |
//! | [`kernel`] | the data plane of a rack's switch |
//! | `hooks` | where the programs see what comes in at each port |
//! | `netdev` | what the kernel says a device's driver can do |
//! | `at_ports` | a program at the ports, what it is told of nodes, where it is kept |
//! | [`pins`] | what outlives the process |
//! | [`network`] | a rack's network on one machine |
//! | `ports` | devices, and who is at the other end |
//!
//! The instructions come from [`switch::ebpf`], which needs nothing of the kernel. What must always hold: what is loaded goes
//! with the process that loaded it, unless it is to be kept.
//!
//! Unsafe code lives in one small module, each block with its reason.
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod at_ports;
mod hooks;
pub mod kernel;
mod netdev;
pub mod network;
pub mod pins;
mod ports;
pub mod program;
#[allow(unsafe_code, reason = "the kernel is called with addresses, and shares memory")]
mod system;
mod types;

pub use hooks::Ports;
pub use kernel::Kernel;
pub use pins::Claim;
pub use program::{Loaded, Refused, Run};
pub use switch::ebpf::Hook;
