//! What takes time in a rack: NICs, links, the switch's ports, processors.
//!
//! The simulated rack asks these models when something that it starts now is finished. Each is a small state
//! machine that knows until when it is taken. Every constant is in [`Testbed`], with its source.
//!
//! What must always hold: a model never gives away the same time twice, and has no randomness. So a rate stated
//! in the testbed is never exceeded, and the same calls get the same answers.
//!
//! # The way of a message
//! ```text
//!  sender        NIC                link            switch                link            NIC           receiver
//!    │ post cost  │ Nic::post        │ Link::send     │ SwitchPorts::route  │               │ Nic::receive │ poll cost
//!    └───────────>└─────────────────>└───────────────>└─────────────────────┴──────────────>└─────────────>└─────>
//! ```
//! In a rack that does nothing else, 64 B take 1.15 us from doorbell to visible on [`Testbed::CONCORDIA`]:
//!
//! | doorbell | NIC | link | cable | switch | link | cable | NIC | PCIe |
//! | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
//! | 170 ns | 120 | 11 | 15 | 400 | 11 | 15 | 150 | 255 |
//!
//! With 80 ns to post and 40 ns to poll at each end, an empty request and its answer take 2.5 us. A 4 KiB
//! block, fetched from memory and written to memory, takes 2.9 us: 786 ns more for the fetch, 322 ns more on
//! each link, 286 ns more on the way to memory. What is commonly reported for such NICs and one switch of the
//! rack is near: 2 to 2.5 us for a one-sided read of 64 B (2.5 us here: one fetch, and no processor on the other
//! side), about 3 us for an RPC that does something.

mod bandwidth;
mod calendar;
mod link;
mod nic;
mod processor;
mod switch_ports;
mod testbed;

pub(crate) use bandwidth::Picos;
pub use bandwidth::{Bandwidth, MessageRate};
pub(crate) use calendar::Calendar;
pub use link::Link;
pub use nic::Nic;
pub use processor::Processor;
pub use switch_ports::SwitchPorts;
pub use testbed::{Framing, Testbed};
