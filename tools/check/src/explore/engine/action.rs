//! One thing that happens, and how it is told.

use std::fmt::Debug;

use wire::{Endpoint, LockEnd};

use super::{Engine, Packets, Rack};
use crate::explore::world::Item;

/// What happened. `T`: what a node's timers are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::explore) enum Action<T> {
    /// A packet arrives.
    Deliver(Item),
    /// A packet arrives, and a copy of it is still in flight.
    Duplicate(Item),
    /// A packet is lost.
    Lose(Item),
    /// A packet makes its second pass.
    Resubmit(Item),
    /// A thread does this in a turn.
    Thread(u8, u8, &'static str),
    /// A timer of a node goes off.
    Fire(u8, T),
    /// Something happens to a node.
    Node(u8, &'static str),
    /// Something happens to a block.
    Block(u8, &'static str),
    /// Something else happens.
    Other(&'static str),
}

impl<R: Rack> Engine<R> {
    /// The action as a line of a trace.
    pub(super) fn line(&self, action: Action<R::Timer>) -> String {
        let packet = |item: Item| self.packets.tell(item);
        match action {
            Action::Deliver(item) => format!("arrives     {}", packet(item)),
            Action::Duplicate(item) => format!("arrives (*) {}", packet(item)),
            Action::Lose(item) => format!("is lost     {}", packet(item)),
            Action::Resubmit(item) => format!("second pass {}", packet(item)),
            Action::Thread(thread, turn, does) => {
                let (node, what) = (self.node_of(thread.into()), R::turn(&self.scope, thread.into(), turn));
                format!("thread {thread} on node {node} {does}: {what}")
            }
            Action::Fire(node, timer) => format!("node {node}: {timer:?} is due"),
            Action::Node(node, does) => format!("node {node} {does}"),
            Action::Block(block, is) => format!("block {block} is {is}"),
            Action::Other(what) => what.to_owned(),
        }
    }
}

/// An end of a packet's way, for a trace.
pub(in crate::explore) fn end(endpoint: Endpoint) -> String {
    match endpoint {
        Endpoint::Switch => "switch".into(),
        Endpoint::Requester(node) => format!("requester {}", node.0),
        Endpoint::CacheAgent(node) => format!("agent {}", node.0),
        Endpoint::HomeAgent(node) => format!("home {}", node.0),
        Endpoint::Allocator(node) => format!("allocator {}", node.0),
        Endpoint::Shadow(node) => format!("shadow {}", node.0),
    }
}

/// The same, where locks are.
pub(in crate::explore) fn lock_end(it: LockEnd) -> String {
    end(match it {
        LockEnd::Switch => Endpoint::Switch,
        LockEnd::Agent(node) => Endpoint::CacheAgent(node),
        LockEnd::Home(node) => Endpoint::HomeAgent(node),
    })
}
