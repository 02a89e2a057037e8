//! The program's PHV fields, the codes that they hold, and the score word.

use alloc::vec::Vec;

use crate::pipeline::{Field, ProgramBuilder, alu};

/// Ways of the directory: an entry may lie in any of so many arrays, at one index in all of them.
pub(super) const WAYS: usize = 7;
/// The stage of the first way's TAG. LOCK, G-STATUS and COPYSET of a way are in the stage behind its TAG.
pub(super) const FIRST_TAG_STAGE: usize = 1;
/// The stage behind the last TAG.
pub(super) const PLACEMENT_STAGE: usize = FIRST_TAG_STAGE + WAYS;
pub(super) const SCOREBOARD_STAGE: usize = PLACEMENT_STAGE + 1;
pub(super) const CHECK_STAGE: usize = SCOREBOARD_STAGE + 1;
pub(super) const FORWARD_STAGE: usize = CHECK_STAGE + 1;

/// A SCOREBOARD cell says what became of one event: the locks it took, and how it was answered first. It is 0
/// when no event of its requester and parity has reached the switch since the last unlock.
///
/// The marks are only ever set on a cell that is 0, so at most one of them is: the first decision stands.
pub(super) mod score {
    use super::alu;

    /// The event was refused. The value that a LOCK array puts out when it is busy.
    pub(in super::super) const REFUSED: u64 = alu::BUSY;
    /// The event went to the home agent, for no way had the tag.
    pub(in super::super) const HOME: u64 = 1 << 14;
    /// In a cell that has been unlocked: the lock went on to whoever stood behind.
    pub(in super::super) const FOLLOWED: u64 = alu::FOLLOWED;
    /// An ADD-TO-SWITCH is between its two passes.
    pub(in super::super) const CLAIMING: u64 = 1 << 13;
    /// All marks.
    pub(in super::super) const MARKS: u64 = REFUSED | HOME | CLAIMING;
    /// How many times the event took the lock: for a read lock, once per copy of the request. A requester that
    /// repeats one request more than 8191 times before it unlocks leaves readers behind.
    pub(in super::super) const COUNT: u64 = CLAIMING - 1;
}

/// What kind of pass this is.
pub(super) mod class {
    pub(in super::super) const REQUEST: u64 = 1;
    pub(in super::super) const UNLOCK: u64 = 2;
    pub(in super::super) const UNLOCK_AGAIN: u64 = 3;
    pub(in super::super) const ADD: u64 = 4;
    pub(in super::super) const ADD_AGAIN: u64 = 5;
    /// An unlock of an event whose lock the requester has handed over itself.
    pub(in super::super) const HANDED: u64 = 6;
    /// A PEEK: looks an entry up, and leaves it alone.
    pub(in super::super) const PEEK: u64 = 7;
}

/// What LAST-UNLOCK does. 0: nothing.
pub(super) mod last_op {
    pub(in super::super) const COMPARE: u64 = 1;
    pub(in super::super) const RAISE: u64 = 2;
}

/// What the TAG arrays do. 0: nothing.
pub(super) mod tag_op {
    pub(in super::super) const MATCH: u64 = 1;
    pub(in super::super) const CLEAR: u64 = 2;
    pub(in super::super) const PROBE: u64 = 3;
    /// Plus the way, in which alone it happens.
    pub(in super::super) const CLAIM: u64 = 8;
}

/// What the LOCK array of the way that has the tag does. 0: nothing.
pub(super) mod lock_op {
    pub(in super::super) const TRY_READ: u64 = 1;
    pub(in super::super) const TRY_WRITE: u64 = 2;
    pub(in super::super) const RELEASE: u64 = 3;
    pub(in super::super) const SET: u64 = 4;
    /// Release for writing, unless somebody stands behind.
    pub(in super::super) const LEAVE: u64 = 5;
}

/// What G-STATUS and COPYSET of the way that has the tag do. 0: nothing.
pub(super) mod meta_op {
    pub(in super::super) const READ: u64 = 1;
    pub(in super::super) const SET: u64 = 2;
    /// Set the status, merge the copysets: concurrent READ-MISSes end one after another (section 5.1).
    pub(in super::super) const UNION: u64 = 3;
}

/// What SCOREBOARD does, with the verdict as its operand.
pub(super) mod score_op {
    pub(in super::super) const COUNT_OR_MARK: u64 = 1;
    pub(in super::super) const READ_OR_MARK: u64 = 2;
    pub(in super::super) const SET: u64 = 3;
    /// Read it, and clear it if it says FOLLOWED.
    pub(in super::super) const TAKE: u64 = 4;
}

/// Where an ADD-TO-SWITCH found capacity: a way, or one of these.
pub(super) mod location {
    /// A PEEK found no entry that has a copyset.
    pub(in super::super) const NOWHERE: u64 = 13;
    pub(in super::super) const FULL: u64 = 14;
    pub(in super::super) const PRESENT: u64 = 15;
}

/// What the deparser has to do.
pub(super) mod route {
    /// Drop it: an older number than LAST-UNLOCK's. What the parser sets; all others come from `decide`.
    pub(in super::super) const STALE: u64 = 0;
    /// Drop it: the first copy is between its passes.
    pub(in super::super) const IN_FLIGHT: u64 = 1;
    /// Answer that the entry is locked.
    pub(in super::super) const LOCKED: u64 = 2;
    /// Pass it on to the home agent.
    pub(in super::super) const TO_HOME: u64 = 3;
    /// Do what the forward table says.
    pub(in super::super) const FORWARD: u64 = 4;
    /// Send an unlock through again, with the score.
    pub(in super::super) const UNLOCK_AGAIN: u64 = 5;
    /// The unlock is done.
    pub(in super::super) const UNLOCKED: u64 = 6;
    /// Send an ADD through again, with its way.
    pub(in super::super) const ADD_AGAIN: u64 = 7;
    /// Answer that the entry is in the switch, and locked.
    pub(in super::super) const ADDED: u64 = 8;
    /// Answer that the switch had the entry before.
    pub(in super::super) const PRESENT: u64 = 9;
    /// Answer that there is no capacity.
    pub(in super::super) const COLLISION: u64 = 10;
    /// Tell the predecessor in the queue.
    pub(in super::super) const FOLLOW: u64 = 11;
    /// The unlock is done, but somebody stands behind.
    pub(in super::super) const FOLLOWED: u64 = 12;
}

/// Routes are below this.
pub(super) const ROUTES: u64 = route::FOLLOWED + 1;

/// The fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) class: Field,
    /// The request's kind; 0 for all but requests.
    pub(super) event: Field,
    pub(super) seq: Field,
    /// Index of LAST-UNLOCK and SCOREBOARD: requester and parity.
    pub(super) slot: Field,
    /// The tag's complement, which is what the TAG arrays hold: so an empty cell, 0, is no tag at home in the rack.
    pub(super) key: Field,
    /// Index of the ways' arrays: the key's hash.
    pub(super) set: Field,
    /// The requester's node, as a bit of a copyset.
    pub(super) node_bit: Field,
    pub(super) last_op: Field,
    pub(super) tag_op: Field,
    pub(super) lock_op: Field,
    pub(super) meta_op: Field,
    pub(super) score_op: Field,
    /// What a release takes from the lock, or what the lock is set to: with a queue, the last in it.
    pub(super) release: Field,
    pub(super) new_status: Field,
    pub(super) new_copyset: Field,
    /// Whether the number is news: LAST-UNLOCK's answer. In second passes the parser says so.
    pub(super) order: Field,
    /// Whether the request is: LAST-REQUEST's answer.
    pub(super) seen: Field,
    /// What [`score_op::TAKE`] takes.
    pub(super) followed: Field,
    /// Each way's answer.
    pub(super) hit: [Field; WAYS],
    /// What the lookup came to, in the form in which SCOREBOARD takes it: the parser supplies what holds if
    /// no way has the tag, the LOCK array of the way that has it overwrites that.
    pub(super) verdict: Field,
    /// Where an ADD may go.
    pub(super) location: Field,
    /// The metadata found.
    pub(super) status: Field,
    pub(super) copyset: Field,
    /// The event's SCOREBOARD cell: as it is now, or for READ_OR_MARK as it was.
    pub(super) score: Field,
    /// The requester's bit, if the copyset found has it.
    pub(super) member: Field,
    /// The check table's answer.
    pub(super) valid: Field,
    pub(super) route: Field,
    /// The forward table's answer; 0: the request is out of date.
    pub(super) forward: Field,
}

impl Fields {
    /// What is looked at when a pass is over: by the deparser, and to count entries.
    pub(super) fn results(&self) -> Vec<Field> {
        let out =
            [self.route, self.forward, self.score, self.verdict, self.status, self.copyset, self.location];
        out.into_iter().chain(self.hit).collect()
    }

    pub(super) fn declare(p: &mut ProgramBuilder) -> Self {
        Self {
            class: p.parsed("class", 3),
            event: p.parsed("event", 5),
            seq: p.parsed("seq", 64),
            slot: p.parsed("slot", 13),
            key: p.parsed("key", 64),
            set: p.metadata("set", 32),
            node_bit: p.parsed("node bit", 64),
            last_op: p.parsed("LAST-UNLOCK operation", 2),
            tag_op: p.parsed("TAG operation", 4),
            lock_op: p.parsed("LOCK operation", 3),
            meta_op: p.parsed("metadata operation", 2),
            score_op: p.parsed("SCOREBOARD operation", 3),
            release: p.parsed("release", 16),
            new_status: p.parsed("new status", 8),
            new_copyset: p.parsed("new copyset", 64),
            order: p.parsed("order", 2),
            seen: p.metadata("seen", 2),
            followed: p.parsed("followed", 16),
            hit: core::array::from_fn(|way| p.metadata(alloc::format!("way {way}"), 3)),
            verdict: p.parsed("verdict", 16),
            location: p.metadata("location", 4),
            status: p.metadata("status", 8),
            copyset: p.metadata("copyset", 64),
            score: p.metadata("score", 16),
            member: p.metadata("member", 64),
            valid: p.metadata("valid", 1),
            route: p.parsed("route", 4),
            forward: p.metadata("forward", 3),
        }
    }
}
