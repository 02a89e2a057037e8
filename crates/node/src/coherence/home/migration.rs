//! Ownership migration (section 5.2): ADD-TO-SWITCH and REMOVE-FROM-SWITCH, one block at a time.
//!
//! Both are sequenced events of the requester slot [`SlotId::MIGRATION`], and end with an acknowledged unlock
//! like any other (PROTOCOLS.md, FlowCC 4):
//!
//! - ADD: the home locks its entry, the switch inserts its own *locked*, the home's unlock activates it. A
//!   refused ADD may still have got in by a late copy; its unlock takes that copy's entry out again. Either
//!   way the home's entry stays locked until the unlock is acknowledged.
//! - REMOVE: the switch locks its entry and reports it, the home stores the report, the home's unlock clears
//!   the entry (COMMIT). The home decides again when that is acknowledged.
//!
//! So at every moment at most one of the two would grant a request.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::{
    BlockTag, Copyset, Endpoint, GlobalStatus, Nanos, Packet, PacketKind, Refusal, RequesterId, Rule, Rules,
    Seq, SlotId, Status,
};

use super::HomeAgent;
use super::directory::Keeper;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;

/// Which blocks shall move, and the move in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Migration {
    pub(super) seq: Seq,
    add: VecDeque<BlockTag>,
    /// Were to move to the switch, but locked: they move at their unlock. Few: whatever is locked at one moment.
    waiting: Vec<BlockTag>,
    remove: VecDeque<BlockTag>,
    pub(super) step: Step,
    /// When the packet in flight is sent again.
    pub(super) deadline: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Step {
    Idle,
    /// The request is in flight.
    Asked(Packet),
    /// The unlock is in flight; its status says whether the move was granted.
    Unlocking(Packet),
}

/// A move whose unlock is in flight.
pub(super) enum Moving {
    /// To the switch.
    Added(BlockTag),
    /// Back home.
    Removed(BlockTag),
}

impl Migration {
    pub(crate) fn new() -> Self {
        let (add, remove) = (VecDeque::new(), VecDeque::new());
        Self { seq: Seq::NONE, add, waiting: Vec::new(), remove, step: Step::Idle, deadline: Nanos::MAX }
    }

    /// After a restart: nothing moves, and numbers go on.
    pub(super) fn after(former: &Self) -> Self {
        Self { seq: former.seq, ..Self::new() }
    }

    /// The block whose entry may have changed hands already, if there is one.
    pub(super) fn moving(&self) -> Option<Moving> {
        match self.step {
            Step::Unlocking(unlock) if unlock.status.is_granted() => Some(match unlock.event {
                PacketKind::AddToSwitch => Moving::Added(unlock.tag),
                _ => Moving::Removed(unlock.tag),
            }),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// Blocks that wait for their turn.
    pub(crate) fn backlog(&self) -> usize {
        self.add.len() + self.remove.len()
    }

    /// True while a move is in flight.
    pub(crate) fn is_moving(&self) -> bool {
        self.step != Step::Idle
    }
}

impl HomeAgent {
    /// The block shall move to the switch.
    pub(crate) fn want_added<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, tag: BlockTag) {
        self.migration.add.push_back(tag);
        self.next_move(cx);
    }

    /// The block shall come back from the switch.
    pub(crate) fn want_removed<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, tag: BlockTag) {
        self.migration.remove.push_back(tag);
        self.next_move(cx);
    }

    /// The shadow node thinks that the block is cold.
    pub(crate) fn on_demote<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let tag = packet.tag;
        if tag.home() != self.node || tag.is_lock_entry() || !self.directory.covers(tag) {
            return cx.counters.drop(Drop::Nonsense);
        }
        if self.is_rebuilding() {
            return cx.counters.drop(Drop::Stale);
        }
        self.want_removed(cx, tag);
    }

    /// Starts the next move that is possible now. Removals go first: they make room.
    fn next_move<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        while self.migration.step == Step::Idle {
            let (kind, tag) = if let Some(tag) = self.migration.remove.pop_front() {
                (PacketKind::RemoveFromSwitch, tag)
            } else if let Some(tag) = self.migration.add.pop_front() {
                (PacketKind::AddToSwitch, tag)
            } else {
                return;
            };
            let live = self.chunks.discipline_of(tag).is_some();
            let entry = self.directory.entry(tag);
            let waits = cx.config.persistent && live && entry.keeper == Keeper::Home && entry.is_locked();
            let possible = match kind {
                PacketKind::AddToSwitch => {
                    let here = live && entry.keeper == Keeper::Home;
                    here && if cx.rules.holds(Rule::AddLocksAtHome) {
                        entry.try_lock(false)
                    } else {
                        !entry.is_locked()
                    }
                }
                _ => entry.keeper == Keeper::Switch,
            };
            if !possible {
                // Busy this moment, or overtaken by events: if it stays hot, it comes again next epoch. The hottest are busy
                // most of the time, and would stay here for long.
                if waits && kind == PacketKind::AddToSwitch && !self.migration.waiting.contains(&tag) {
                    self.migration.waiting.push(tag);
                }
                continue;
            }
            let (global_status, copyset) = match kind {
                PacketKind::AddToSwitch => (entry.status, entry.copyset),
                _ => (GlobalStatus::Unshared, Copyset::EMPTY),
            };
            self.migration.seq = self.migration.seq.next();
            let requester = RequesterId { node: self.node, slot: SlotId::MIGRATION };
            let request = Packet {
                global_status,
                copyset,
                epoch: cx.config.switch_epoch,
                incarnation: cx.config.incarnation,
                ..Packet::request(kind, tag, requester, self.migration.seq)
            };
            cx.counters.events[kind as usize] += 1;
            self.send_move(cx, Step::Asked(request), request);
        }
    }

    /// An entry was unlocked. If it is free, waits to move, and nothing else moves, it is its turn.
    pub(super) fn on_free_entry<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, tag: BlockTag) {
        let waiting = &mut self.migration.waiting;
        if self.migration.step != Step::Idle || self.directory.entry(tag).is_locked() {
            return;
        }
        if let Some(at) = waiting.iter().position(|waits| *waits == tag) {
            waiting.remove(at);
            self.want_added(cx, tag);
        }
    }

    /// A new epoch chooses anew.
    pub(super) fn stop_waiting(&mut self) {
        self.migration.waiting.clear();
    }

    fn send_move<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, step: Step, packet: Packet) {
        self.migration.step = step;
        self.migration.deadline = cx.repeat_at();
        cx.send(packet);
    }

    /// The switch has decided.
    pub(crate) fn on_move_ack<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let Step::Asked(request) = self.migration.step else { return cx.counters.drop(Drop::Stale) };
        if packet.seq != request.seq || packet.event != request.kind || packet.tag != request.tag {
            return cx.counters.drop(Drop::Stale);
        }
        let mut unlock = Packet {
            status: packet.status,
            in_switch: packet.in_switch,
            ..request.reply(PacketKind::Unlock, request.from, Endpoint::Switch)
        };
        match (request.kind, packet.status) {
            (PacketKind::RemoveFromSwitch, Status::Granted) => {
                let entry = self.directory.entry(packet.tag);
                entry.status = packet.global_status;
                entry.copyset = packet.copyset;
                unlock.global_status = packet.global_status;
                unlock.copyset = packet.copyset;
            }
            (kind, Status::Refused(why)) => cx.counters.refuse(kind, why),
            _ => {}
        }
        self.send_move(cx, Step::Unlocking(unlock), unlock);
    }

    /// The move is over: from here on the new keeper decides.
    pub(crate) fn on_move_unlocked<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let Step::Unlocking(unlock) = self.migration.step else { return cx.counters.drop(Drop::Stale) };
        if packet.seq != unlock.seq {
            return cx.counters.drop(Drop::Stale);
        }
        let entry = self.directory.entry(unlock.tag);
        match (unlock.event, unlock.status) {
            (PacketKind::AddToSwitch, status) => {
                if cx.rules.holds(Rule::AddLocksAtHome) {
                    entry.unlock(false);
                }
                if status.is_granted() {
                    entry.keeper = Keeper::Switch;
                    cx.counters.added_to_switch += 1;
                }
            }
            (_, Status::Granted) => {
                entry.keeper = Keeper::Home;
                cx.counters.removed_from_switch += 1;
            }
            // The block was in use: it is asked for again.
            (_, Status::Refused(Refusal::Locked)) => self.migration.remove.push_back(unlock.tag),
            (_, Status::Refused(_)) => {}
        }
        self.migration.step = Step::Idle;
        self.migration.deadline = Nanos::MAX;
        if unlock.status != Status::Refused(Refusal::Locked) {
            self.next_move(cx);
        }
    }

    /// Repeats what is overdue.
    pub(crate) fn on_move_deadline<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if cx.now < self.migration.deadline {
            return;
        }
        let (Step::Asked(packet) | Step::Unlocking(packet)) = self.migration.step else { return };
        cx.counters.retransmissions += 1;
        let step = self.migration.step;
        self.send_move(cx, step, packet);
    }

    /// Tries again what was refused because the block was in use.
    pub(crate) fn resume_moves<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        self.next_move(cx);
    }
}
