//! Racks whose places talk over the real transports: shared memory, and UDP.
#![cfg(target_os = "linux")]

mod attached;
mod chains;
mod killed;
mod lock_regions;
mod locks;
mod names;
mod one_sided;
mod rig;

use rackmem::rack_file::TransportKind;
use rig::Places;

#[test]
fn small_reads_bring_no_copy_over_shared_memory() {
    let places = Places::start("peek-near", TransportKind::SharedMemory, "peek = true");
    crate::peeks_everywhere::small_reads_bring_no_copy(&places.nodes);
}

#[test]
fn small_reads_bring_no_copy_over_udp() {
    let places = Places::start("peek-far", TransportKind::Udp, "peek = true");
    crate::peeks_everywhere::small_reads_bring_no_copy(&places.nodes);
}
