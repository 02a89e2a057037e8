//! One thing that happens, and how it is told.

use node::LockMessage;
use node::locks::canonical::Timer;
use wire::{Copyset, LockEnd, LockPacket, Mode, Status};

use super::scope::Scope;
use super::shape::{LATEST, Shapes, lock_number};
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
    /// A MOVE makes its second pass.
    Resubmit(Item),
    /// A thread wants a lock.
    Begin(u8, u8),
    /// A thread leaves a lock, or ends it.
    Leave(u8, u8),
    /// A thread gives up.
    Cancel(u8, u8),
    /// A timer of a node goes off.
    Fire(u8, Timer),
    /// A node sends home what it reigns over.
    Leaving(u8),
    /// The switch stops, and starts again.
    Restart,
    /// The switch gets room for an entry.
    Vacancy,
    /// A node hears of a new life of the switch.
    Hear(u8),
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
            Self::Leave(thread, turn) => format!("{} leaves: {:?}", who(thread), what(thread, turn)),
            Self::Cancel(thread, turn) => format!("{} gives up: {:?}", who(thread), what(thread, turn)),
            Self::Fire(node, timer) => format!("node {node}: {timer:?} is due"),
            Self::Leaving(node) => format!("node {node} sends home what it has"),
            Self::Restart => "the switch restarts".to_owned(),
            Self::Vacancy => "the switch gets room for an entry".to_owned(),
            Self::Hear(node) => format!("node {node} hears of the epoch"),
        }
    }
}

fn packet(item: Item, shapes: &Shapes) -> String {
    let LockMessage { packet, data } = shapes.packet(item);
    let LockPacket { kind, mode, lock, node, tenure, from, to, .. } = packet;
    let set = |name: &str, nodes: Copyset| match nodes.is_empty() {
        true => String::new(),
        false => format!(", {name} {nodes:?}"),
    };
    let mut text = format!("{kind:?} t{}, {} -> {}: node {}", tenure.0, place(from), place(to), node.0);
    text += if mode == Mode::Write { " to write" } else { "" };
    if lock.offset() > 4096 {
        text += &format!(" lock {}", lock_number(lock));
    }
    text += &set("nodes", packet.nodes);
    text += &set("waiting", packet.waiting);
    text += &set("writers", packet.writers);
    if let Some(next) = packet.next {
        text += &format!(", next {}", next.0);
    }
    if !packet.queue.is_empty() {
        text += &format!(", queue {:?}", packet.queue);
    }
    for (set, name) in [(packet.once, ", once"), (packet.has_copy, ", has a copy")] {
        text += if set { name } else { "" };
    }
    if packet.status != Status::Granted {
        text += &format!(", {:?}", packet.status);
    }
    if let Some(data) = data {
        text += if data.0 == LATEST { ", latest data" } else { ", old data" };
    }
    match shapes.of(item).approved {
        Some(true) => text + ", approved",
        Some(false) => text + ", not approved",
        None => text,
    }
}

fn place(end: LockEnd) -> String {
    match end {
        LockEnd::Switch => "switch".into(),
        LockEnd::Agent(node) => format!("agent {}", node.0),
        LockEnd::Home(node) => format!("home {}", node.0),
    }
}
