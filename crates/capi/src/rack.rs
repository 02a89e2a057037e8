//! Racks, and the threads that use them.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::c_char;
use std::path::Path;
use std::time::Duration;

use rackmem::{Config, NodeHandle, NodeId, Processes, Rack, RackFile};

use crate::blocks::BlockLocked;
use crate::chains::Store;
use crate::handles::{Align64, Align1024, Slot, close_shared, close_thread, kind, look};
use crate::objects::ObjectsHere;
use crate::pointer::{To, bytes_mut, text};
use crate::rwlock::Lock;
use crate::status::{Failure, RackmemStatus, guarded};
use crate::value::ValueHere;
use crate::words::{Posted, WordsHere};

/// A rack in this process, this process's node of a rack of processes, or the use of a daemon's node. All OS threads may use it
/// at the same time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemRack {
    /// 0: null.
    pub id: u64,
}

/// One thread's access to a rack. One OS thread at a time may use it, and whatever was opened through it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemThread {
    /// 0: null.
    pub id: u64,
}

/// What a rack is.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RackmemInfo {
    /// How many nodes it began with; those that were added since have higher numbers.
    pub nodes: u16,
    /// The node that this process is, or whose daemon it uses; 0 in a rack inside this process.
    pub own_node: u16,
    /// All of its nodes are in this process.
    pub is_embedded: bool,
    /// The others take this process's node for dead, or the daemon has gone: every call fails from now on.
    pub is_fenced: bool,
    /// How often the rack has changed, as far as this process knows: deaths, returns and restarts of the switch. Of an attached
    /// process, when it was attached.
    pub epoch: u32,
    /// The nodes that are up, as far as this process knows: bit n is node n. An attached one knows of its daemon's only.
    pub up: u64,
    /// Bytes of a block: what lies inside one is read and written as a whole.
    pub block_size: u64,
    /// Bytes of memory of each node.
    pub memory: u64,
}

/// What the nodes of a rack in this process have counted, together.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RackmemCounters {
    /// Accesses that needed no message, as far as threads have said: they do when they miss and when they are closed.
    pub hits: u64,
    /// Accesses that needed messages.
    pub misses: u64,
    /// Copies that were given up because another node wrote.
    pub invalidations: u64,
    /// Packets that were sent again.
    pub retransmissions: u64,
    /// Blocks of this memory whose only current copy died with another node.
    pub lost_blocks: u64,
    /// Deaths, returns and restarts that were heard of.
    pub epochs: u64,
    /// Allocations that were made here and are not freed.
    pub allocations: u64,
    /// Bytes of memory here in blocks that hold allocations.
    pub memory_used: u64,
    /// Messages to other processes; 0 in a rack inside this process.
    pub messages_sent: u64,
    /// Messages from them.
    pub messages_received: u64,
}

/// An open rack.
pub(crate) struct OpenRack {
    /// What `rackmem_up` has started. It ends first, while this process's node is there for what the others send home.
    _processes: Option<Processes>,
    rack: Rack,
    /// The node that this process is, or whose daemon it uses; and the file of its rack.
    own: Option<(u16, Box<RackFile>)>,
}

impl OpenRack {
    fn own(&self) -> Option<u16> {
        self.own.as_ref().map(|(node, _)| *node)
    }
}

impl OpenRack {
    pub(crate) fn rack(&self) -> &Rack {
        &self.rack
    }
}

/// An open thread.
pub(crate) struct Thread {
    pub(crate) handle: NodeHandle,
    /// Addresses of the locks that were opened, and their handles: a lock may be open twice, and is taken once.
    pub(crate) locks: BTreeSet<(u64, u64)>,
}

kind!(OpenRack, 1, Align64, 1 << 8);
kind!(Thread, 2, Align1024, 1 << 12);

const NO_RACK: RackmemRack = RackmemRack { id: 0 };

fn cannot_open(error: impl std::fmt::Display) -> Failure {
    Failure::new(RackmemStatus::CannotOpen, error)
}

fn opened(
    to: To<RackmemRack>,
    rack: Rack,
    own: Option<(u16, Box<RackFile>)>,
    processes: Option<Processes>,
) -> Result<RackmemStatus, Failure> {
    to.set(RackmemRack { id: Slot::open(OpenRack { rack, own, _processes: processes }, None)? });
    Ok(RackmemStatus::Ok)
}

/// Opens a rack of `nodes` nodes (1 to 64) inside this process, with `memory` bytes on each. Any OS thread.
///
/// # Safety
/// `rack` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_open_embedded(
    nodes: u16,
    memory: u64,
    rack: *mut RackmemRack,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(rack, "rack", NO_RACK) }?;
        let config = Config { nodes: usize::from(nodes), memory, ..Config::default() };
        opened(to, Rack::embedded(config).map_err(cannot_open)?, None, None)
    })
}

/// Joins the rack of processes that the file `rack_toml` describes, as its node `node`. Returns when the rack has begun with
/// this node in it; see `rackmem up` and docs/running.md for the switch and the other nodes. Any OS thread.
///
/// # Safety
/// `rack_toml` ends with a zero; `rack` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_join(
    rack_toml: *const c_char,
    node: u16,
    rack: *mut RackmemRack,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (to, path) = unsafe { (To::cleared(rack, "rack", NO_RACK)?, text(rack_toml, "rack_toml")?) };
        let file = RackFile::read(path).map_err(cannot_open)?;
        opened(to, Rack::join(&file, NodeId(node)).map_err(cannot_open)?, Some((node, Box::new(file))), None)
    })
}

/// Attaches to the daemon (`rackmem node`) on this machine that is node `node` of the rack that the file describes. The process has
/// no node of its own; what it does takes a round trip to the daemon. Any OS thread.
///
/// # Safety
/// `rack_toml` ends with a zero; `rack` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_attach(
    rack_toml: *const c_char,
    node: u16,
    rack: *mut RackmemRack,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (to, path) = unsafe { (To::cleared(rack, "rack", NO_RACK)?, text(rack_toml, "rack_toml")?) };
        let file = RackFile::read(path).map_err(cannot_open)?;
        opened(
            to,
            Rack::attach(&file, NodeId(node)).map_err(cannot_open)?,
            Some((node, Box::new(file))),
            None,
        )
    })
}

/// Starts a rack of `nodes` nodes (2 to 64) on this machine, over shared memory, and joins it as the last one; the others and the
/// switch are processes. `command` is the `rackmem` that starts them; null is what the environment variable `RACKMEM_COMMAND` names, or
/// else the one on the `PATH`. What they log goes to standard error. They end when the rack is closed and when this process dies, with
/// all that is in their memories. Any OS thread.
///
/// # Safety
/// `command` is null, or ends with a zero; `rack` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_up(
    nodes: u16,
    command: *const c_char,
    rack: *mut RackmemRack,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(rack, "rack", NO_RACK) }?;
        // SAFETY: the caller promises it.
        let command =
            if command.is_null() { None } else { Some(Path::new(unsafe { text(command, "command") }?)) };
        let (rack, processes) = Rack::up(nodes, command).map_err(cannot_open)?;
        let file = processes.file().map_err(cannot_open)?;
        opened(to, rack, Some((nodes - 1, Box::new(file))), Some(processes))
    })
}

/// Closes a rack. Threads that are still open keep what they need of it, but the processes of `rackmem_up` end. Closing null does
/// nothing. Any OS thread, while no other one uses this handle.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_close(rack: RackmemRack) -> RackmemStatus {
    close_shared::<OpenRack>(rack.id)
}

/// This process's node leaves a rack of processes in order: what only it has cached goes home, then the others go on without it, and
/// without its memory. Every call fails from then on. `RACKMEM_BUSY`: that has not all arrived within so many nanoseconds. Nothing to
/// do in an embedded rack and in an attached process. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_leave(rack: RackmemRack, nanoseconds: u64) -> RackmemStatus {
    look::<OpenRack>(rack.id, |open| {
        if open.rack.leave(Duration::from_nanos(nanoseconds)) {
            return Ok(RackmemStatus::Ok);
        }
        let text = "not all that this node had changed has arrived at the others in that time";
        Err(Failure::new(RackmemStatus::Busy, text))
    })
}

/// What a rack is. Any OS thread.
///
/// # Safety
/// `info` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rack_info(rack: RackmemRack, info: *mut RackmemInfo) -> RackmemStatus {
    look::<OpenRack>(rack.id, |open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(info, "info") }?;
        let config = open.rack.config();
        to.set(RackmemInfo {
            nodes: u16::try_from(config.nodes).expect("at most 64 nodes"),
            own_node: open.own().unwrap_or(0),
            is_embedded: open.own.is_none(),
            is_fenced: open.rack.is_fenced(),
            epoch: open.rack.epoch(),
            up: (0..64).map(NodeId).filter(|id| open.rack.is_up(*id)).fold(0, |up, id| up | 1 << id.0),
            block_size: config.block_size.len() as u64,
            memory: config.memory,
        });
        Ok(RackmemStatus::Ok)
    })
}

/// What the nodes in this process have counted; all zeroes of an attached process, which has none. Any OS thread.
///
/// # Safety
/// `counters` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rack_counters(
    rack: RackmemRack,
    counters: *mut RackmemCounters,
) -> RackmemStatus {
    look::<OpenRack>(rack.id, |open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(counters, "counters") }?;
        let counted = open.rack.counters();
        let protocol = counted.protocol();
        let messages = open.rack.transport_counts().unwrap_or_default();
        to.set(RackmemCounters {
            hits: counted.hits(),
            misses: counted.misses(),
            invalidations: protocol.invalidations,
            retransmissions: protocol.retransmissions,
            lost_blocks: protocol.lost,
            epochs: protocol.new_epochs,
            allocations: counted.nodes.iter().map(|node| node.allocations).sum(),
            memory_used: counted.nodes.iter().map(|node| node.memory_live).sum(),
            messages_sent: messages.sent,
            messages_received: messages.received,
        });
        Ok(RackmemStatus::Ok)
    })
}

/// How the rack is: the JSON document that `rackmem status --json` prints (without line breaks; times in nanoseconds, sizes in bytes), at
/// `into`, with a zero behind it. `*len` is its length without that; if it does not fit `capacity` bytes, `RACKMEM_TOO_LONG`: so ask with
/// 0 first, and give some more, as counts grow. It has the switch, who is up, what each node has counted as of its last beat, and
/// all locks that have names. The switch's process is asked: if it does not answer within two seconds, `RACKMEM_BUSY`. The nodes are
/// asked about locks: one that does not answer is waited for until it is declared dead; if none can be asked, `locks_unknown` says why.
/// An embedded rack has no processes: its name is `embedded`, its transport `none`. Any OS thread.
///
/// # Safety
/// `into` is null, or `capacity` bytes may be written there; `len` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_status_json(
    rack: RackmemRack,
    into: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> RackmemStatus {
    look::<OpenRack>(rack.id, |open| {
        // SAFETY: the caller promises both.
        let (to, into) = unsafe { (To::cleared(len, "len", 0)?, bytes_mut(into.cast(), capacity, "into")?) };
        let status = match &open.own {
            Some((_, file)) => status::of(&open.rack, file).map_err(|why| {
                let text = format_args!("the switch of rack `{}` does not say how it is: {why}", file.name);
                Failure::new(RackmemStatus::Busy, text)
            })?,
            None => status::of_embedded(&open.rack).expect("it is embedded"),
        };
        let text =
            serde_json::to_string(&status).map_err(|why| Failure::new(RackmemStatus::Internal, why))?;
        to.set(text.len());
        let Some((text_to, rest)) =
            into.split_at_mut_checked(text.len()).filter(|(_, rest)| !rest.is_empty())
        else {
            let why = format_args!("the status takes {} bytes, and a zero: give more", text.len());
            return Err(Failure::new(RackmemStatus::TooLong, why));
        };
        text_to.copy_from_slice(text.as_bytes());
        rest[0] = 0;
        Ok(RackmemStatus::Ok)
    })
}

/// Opens a thread on a node: in a rack inside this process any of them, else the one that the process is or is attached to. Any OS
/// thread; each opens its own.
///
/// # Safety
/// `thread` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_thread_open(
    rack: RackmemRack,
    node: u16,
    thread: *mut RackmemThread,
) -> RackmemStatus {
    look::<OpenRack>(rack.id, |open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(thread, "thread", RackmemThread { id: 0 }) }?;
        let nodes = open.rack.config().nodes;
        if open.own().map_or(usize::from(node) >= nodes, |own| own != node) {
            let here =
                open.own().map_or_else(|| format!("nodes 0 to {}", nodes - 1), |own| format!("node {own}"));
            let text = format_args!("node {node} is not in this process: it has {here}");
            return Err(Failure::new(RackmemStatus::InvalidArgument, text));
        }
        let thread = Thread { handle: open.rack.node(NodeId(node)), locks: BTreeSet::new() };
        to.set(RackmemThread { id: Slot::open(thread, None)? });
        Ok(RackmemStatus::Ok)
    })
}

/// Closes a thread, and all that was opened through it. What it holds is released; what it holds for writing is poisoned, as nobody
/// knows whether it was done. Pointers to the data of its locks are void. Closing null does nothing. The OS thread that uses it.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_thread_close(thread: RackmemThread) -> RackmemStatus {
    close_thread(thread.id, |slot| {
        Slot::<Lock>::close_all_of(slot, Lock::abandon);
        Slot::<BlockLocked>::close_all_of(slot, |_| ());
        Slot::<Posted>::close_all_of(slot, |_| ());
        Slot::<WordsHere>::close_all_of(slot, |_| ());
        Slot::<ObjectsHere>::close_all_of(slot, |_| ());
        Slot::<Store>::close_all_of(slot, |_| ());
        Slot::<ValueHere>::close_all_of(slot, |_| ());
    })
}
