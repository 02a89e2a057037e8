//! Racks, and the threads that use them.
#![allow(unsafe_code)]

use std::ffi::c_char;

use rackmem::{Config, NodeHandle, NodeId, Rack, RackFile};

use crate::pointer::{give, result, shared, take_back, text};
use crate::rwlock::Held;
use crate::status::{Failure, RackmemStatus, guarded};

/// A rack in this process, or this process's node of a rack of processes. Threads may share it.
pub struct RackmemRack {
    rack: Rack,
    nodes: u16,
    /// The node that this process is, in a rack of processes.
    own: Option<u16>,
}

/// One thread's access to a rack. Only one thread may use it at a time.
pub struct RackmemThread {
    /// Before the handle, in this order: whatever is held is released first.
    pub(crate) held: Vec<Held>,
    pub(crate) handle: NodeHandle,
}

fn cannot_open(error: impl std::fmt::Display) -> Failure {
    Failure::new(RackmemStatus::CannotOpen, error)
}

/// Opens a rack of `nodes` nodes (1 to 64) inside this process, with `memory` bytes on each.
///
/// # Safety
/// `rack` may be written. The rack has to be closed with `rackmem_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_open_embedded(
    nodes: u16,
    memory: u64,
    rack: *mut *mut RackmemRack,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises it.
        let to = unsafe { result(rack, "rack") }?;
        let config = Config { nodes: usize::from(nodes), memory, ..Config::default() };
        let rack = Rack::embedded(config).map_err(cannot_open)?;
        *to = give(RackmemRack { rack, nodes, own: None });
        Ok(RackmemStatus::Ok)
    })
}

/// Joins the rack of processes that the file `rack_toml` describes, as its node `node`. Returns when the rack has begun with
/// this node in it. (`rackmem switch` has to run, and somebody has to be each of the other nodes.)
///
/// # Safety
/// `rack_toml` ends with a zero; `rack` may be written. The rack has to be closed with `rackmem_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_join(
    rack_toml: *const c_char,
    node: u16,
    rack: *mut *mut RackmemRack,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (to, path) = unsafe { (result(rack, "rack")?, text(rack_toml, "rack_toml")?) };
        let file = RackFile::read(path).map_err(cannot_open)?;
        let rack = Rack::join(&file, NodeId(node)).map_err(cannot_open)?;
        let nodes = u16::try_from(file.config.nodes).expect("at most 64 nodes");
        *to = give(RackmemRack { rack, nodes, own: Some(node) });
        Ok(RackmemStatus::Ok)
    })
}

/// Closes a rack. Threads and locks that are still open keep what they need of it. Null is nothing.
///
/// # Safety
/// `rack` is null, or comes from `rackmem_open_embedded` or `rackmem_join` and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_close(rack: *mut RackmemRack) {
    guarded(|| {
        if !rack.is_null() {
            // SAFETY: the caller promises it.
            drop(unsafe { take_back(rack, "rack") }?);
        }
        Ok(RackmemStatus::Ok)
    });
}

/// Opens a thread on a node: in a rack inside this process any of them, else the one that the process is.
///
/// # Safety
/// `rack` is open; `thread` may be written. The thread has to be closed with `rackmem_thread_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_thread_open(
    rack: *const RackmemRack,
    node: u16,
    thread: *mut *mut RackmemThread,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (to, rack) = unsafe { (result(thread, "thread")?, shared(rack, "rack")?) };
        if node >= rack.nodes || rack.own.is_some_and(|own| own != node) {
            return Err(Failure::new(
                RackmemStatus::InvalidArgument,
                format_args!("node {node} is not in this process"),
            ));
        }
        let handle = if rack.own.is_some() { rack.rack.here() } else { rack.rack.node(NodeId(node)) };
        *to = give(RackmemThread { held: Vec::new(), handle });
        Ok(RackmemStatus::Ok)
    })
}

/// Closes a thread. What it still holds is released; what it holds for writing is poisoned, as nobody knows whether it was
/// done. Null is nothing.
///
/// # Safety
/// `thread` is null, or comes from `rackmem_thread_open` and is not used any more, nor is any data pointer that it got.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_thread_close(thread: *mut RackmemThread) {
    guarded(|| {
        if !thread.is_null() {
            // SAFETY: the caller promises it.
            let mut thread = unsafe { take_back(thread, "thread") }?;
            thread.held.iter_mut().for_each(Held::poison);
        }
        Ok(RackmemStatus::Ok)
    });
}
