//! One thing that happens, and how it is told.

use node::canonical::Timer;
use wire::{Endpoint, Packet};

use super::scope::Scope;
use super::shape::Shapes;
use crate::explore::world::Item;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// A packet arrives.
    Deliver(Item),
    /// A packet arrives, and a copy of it is still under way.
    Duplicate(Item),
    /// A packet is lost.
    Lose(Item),
    /// A packet makes its second pass.
    Resubmit(Item),
    /// A thread begins a turn.
    Begin(u8, u8),
    /// A thread accesses the frame that is pinned for it.
    Access(u8, u8),
    /// A thread releases its lock.
    Release(u8),
    /// A timer of a node goes off.
    Fire(u8, Timer),
    /// A block is to move to the switch.
    Hot(u8),
    /// A block is to move back.
    Cold(u8),
    /// A block's copies are to be purged.
    Purge(u8),
}

impl Action {
    /// The action as a line of a trace.
    pub(super) fn tell(self, scope: &Scope, shapes: &Shapes) -> String {
        let who = |thread: u8| format!("thread {thread} on node {}", scope.threads[usize::from(thread)].node);
        let what = |thread: u8, turn: u8| scope.threads[usize::from(thread)].may[usize::from(turn)];
        match self {
            Self::Deliver(item) => format!("arrives     {}", packet(item, shapes)),
            Self::Duplicate(item) => format!("arrives (*) {}", packet(item, shapes)),
            Self::Lose(item) => format!("is lost     {}", packet(item, shapes)),
            Self::Resubmit(item) => format!("second pass {}", packet(item, shapes)),
            Self::Begin(thread, turn) => format!("{} begins: {:?}", who(thread), what(thread, turn)),
            Self::Access(thread, turn) => format!("{} does: {:?}", who(thread), what(thread, turn)),
            Self::Release(thread) => format!("{} releases its lock", who(thread)),
            Self::Fire(node, timer) => format!("node {node}: {timer:?} is due"),
            Self::Hot(block) => format!("block {block} is to move to the switch"),
            Self::Cold(block) => format!("block {block} is to move back to its home"),
            Self::Purge(block) => format!("block {block} is to be purged"),
        }
    }
}

fn packet(item: Item, shapes: &Shapes) -> String {
    let message = shapes.packet(item);
    let Packet { kind, event, requester, seq, .. } = message.packet;
    let of = if kind == event { String::new() } else { format!(" of {event:?}") };
    let Packet { from, to, status, global_status, copyset, .. } = message.packet;
    let flags = [
        (message.packet.provider, " provider"),
        (message.packet.in_switch, " in-switch"),
        (message.packet.repeated, " repeated"),
    ];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    let data = match item & 3 {
        0 => "",
        1 => ", old contents",
        _ => ", latest contents",
    };
    let status = if status.is_granted() { String::new() } else { format!(" {status:?}") };
    format!(
        "{kind:?}{of} #{} of node {} slot {}, {} -> {}: block {}{status} {global_status:?} {copyset:?}{flags}{data}",
        seq.0,
        requester.node.0,
        requester.slot.0,
        place(from),
        place(to),
        super::shape::block_of(&message.packet),
    )
}

fn place(endpoint: Endpoint) -> String {
    match endpoint {
        Endpoint::Switch => "switch".into(),
        Endpoint::Requester(node) => format!("requester {}", node.0),
        Endpoint::CacheAgent(node) => format!("agent {}", node.0),
        Endpoint::HomeAgent(node) => format!("home {}", node.0),
        Endpoint::Allocator(node) => format!("allocator {}", node.0),
        Endpoint::Shadow(node) => format!("shadow {}", node.0),
    }
}
