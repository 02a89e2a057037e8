//! One thing that happens, and how it is told.

use super::packets::Packets;
use super::scope::Scope;
use crate::explore::world::Item;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// A packet arrives, or makes its second pass.
    Deliver(Item),
    /// A packet arrives, and a copy of it is still under way.
    Duplicate(Item),
    /// A packet is lost.
    Lose(Item),
    /// A thread begins this turn.
    Begin(u8, u8),
    /// A thread goes on with it.
    GoOn(u8, u8, &'static str),
    /// All that a node waits for is overdue.
    Fire(u8),
    /// The switch stops, and starts again in a new epoch.
    Restart,
    /// A node dies.
    Die(u8),
    /// It comes back.
    Return(u8),
    /// The control plane has found out, and begins a new epoch.
    Announce,
    /// A node hears of it.
    Hear(u8),
}

impl Action {
    /// The action as a line of a trace.
    pub(super) fn tell(self, scope: &Scope, packets: &Packets) -> String {
        let who = |thread: u8| format!("thread {thread} on node {}", scope.threads[usize::from(thread)].node);
        let what = |thread: u8, turn: u8| scope.threads[usize::from(thread)].does[usize::from(turn)];
        match self {
            Self::Deliver(item) if packets.of(item).is_again() => {
                format!("second pass {}", packets.of(item).tell())
            }
            Self::Deliver(item) => format!("arrives     {}", packets.of(item).tell()),
            Self::Duplicate(item) => format!("arrives (*) {}", packets.of(item).tell()),
            Self::Lose(item) => format!("is lost     {}", packets.of(item).tell()),
            Self::Begin(thread, turn) => format!("{} begins: {:?}", who(thread), what(thread, turn)),
            Self::GoOn(thread, turn, does) => format!("{} {does}: {:?}", who(thread), what(thread, turn)),
            Self::Fire(node) => format!("node {node}: all that it waits for is overdue"),
            Self::Restart => "the switch restarts".into(),
            Self::Die(node) => format!("node {node} dies"),
            Self::Return(node) => format!("node {node} comes back"),
            Self::Announce => "a new epoch begins".into(),
            Self::Hear(node) => format!("node {node} hears of the epoch"),
        }
    }
}
