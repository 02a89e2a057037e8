//! The program's PHV fields, and the codes that they hold.

use wire::{NodeId, Term};

use crate::pipeline::{Field, ProgramBuilder};

/// Ways of the directory.
pub(super) const WAYS: usize = 2;

pub(super) const TAG_STAGE: usize = 0;
pub(super) const OWNERSHIP_STAGE: usize = 1;
pub(super) const MERGE_STAGE: usize = 2;
pub(super) const HOLDER_STAGE: usize = 3;
pub(super) const WHOSE_STAGE: usize = 4;
pub(super) const OPERATIONS_STAGE: usize = 5;
pub(super) const WAITERS_STAGE: usize = 8;
pub(super) const SHARERS_STAGE: usize = 9;
pub(super) const ROUTE_STAGE: usize = 10;

/// What kind of pass this is.
pub(super) mod class {
    pub(in super::super) const READ: u64 = 1;
    pub(in super::super) const WRITE: u64 = 2;
    pub(in super::super) const MOVE: u64 = 3;
    /// The second pass of a MOVE whose sender knows everybody.
    pub(in super::super) const COMMIT: u64 = 4;
    /// The second pass of one whose sender does not.
    pub(in super::super) const LOOK: u64 = 5;
    /// The control plane's: an entry comes.
    pub(in super::super) const INSTALL: u64 = 6;
    /// The control plane's: an entry goes.
    pub(in super::super) const REMOVE: u64 = 7;
}

/// What WAITERS, WRITERS and SHARERS do. 0: nothing.
pub(super) mod set_op {
    pub(in super::super) const READ: u64 = 1;
    pub(in super::super) const ADD: u64 = 2;
    /// WAITERS: clear it, if it is the operand.
    pub(in super::super) const CLEAR: u64 = 3;
    /// WRITERS: keep only those of the operand.
    pub(in super::super) const KEEP: u64 = 4;
    /// SHARERS: replace.
    pub(in super::super) const SET: u64 = 5;
}

/// What the deparser has to do.
pub(super) mod route {
    pub(in super::super) const IGNORE: u64 = 0;
    /// Let the home serve a reader.
    pub(in super::super) const SERVE: u64 = 1;
    /// Let the home lend the lock, and end the copies.
    pub(in super::super) const LEND: u64 = 2;
    /// Send it to the holder's queue.
    pub(in super::super) const FORWARD: u64 = 3;
    /// That term is over.
    pub(in super::super) const APPROVED: u64 = 4;
    /// Send a MOVE through again, to happen.
    pub(in super::super) const COMMIT: u64 = 5;
    /// Send a MOVE through again, to see who waits.
    pub(in super::super) const LOOK: u64 = 6;
    /// The lock goes on.
    pub(in super::super) const PASS_ON: u64 = 7;
    /// It does not.
    pub(in super::super) const DENIED: u64 = 8;
}

/// Routes are below this.
pub(super) const ROUTES: u64 = route::DENIED + 1;

/// The bit of a OWNERSHIP cell that says that somebody holds, and that no MOVE is between its passes. It is above the code of a
/// holder, so that raising a cell that was marked to what it was takes the mark away.
pub(super) const SETTLED: u64 = 1 << 7;

/// A OWNERSHIP cell: the term, and in its low byte the holder + 1 and [`SETTLED`], or 0.
pub(super) fn ownership(term: Term, holder: Option<NodeId>) -> u64 {
    let settled = if holder.is_some() { SETTLED } else { 0 };
    term.0 << 8 | settled | holder_code(holder)
}

pub(super) fn holder_code(holder: Option<NodeId>) -> u64 {
    holder.map_or(0, |node| u64::from(node.0) + 1)
}

/// What a OWNERSHIP cell says.
pub(super) fn parse_ownership(cell: u64) -> (Term, Option<NodeId>) {
    let holder = u16::try_from(cell & (SETTLED - 1)).expect("7 bits").checked_sub(1).map(NodeId);
    (Term(cell >> 8), holder)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    // From the parser.
    pub(super) class: Field,
    pub(super) key: Field,
    /// The set. On the chip the sender puts it into the header: the hash of the lock's address.
    pub(super) set: Field,
    /// The cells of the set's ways.
    pub(super) cells: [Field; WAYS],
    /// OWNERSHIP's operand.
    pub(super) claim: Field,
    /// The same, marked.
    pub(super) marked_claim: Field,
    /// The requester as a holder, and what it writes to become one.
    pub(super) me: Field,
    pub(super) taker: Field,
    /// The bits of a holder.
    pub(super) holder_bits: Field,
    pub(super) one: Field,
    /// The requester's bit; the waiters that a MOVE knows of; those who wait behind it.
    pub(super) waiters_operand: Field,
    /// The requester's bit; all but those that a MOVE serves.
    pub(super) writers_operand: Field,
    /// The requester's bit; the readers that a MOVE serves.
    pub(super) sharers_operand: Field,
    // Found on the way.
    pub(super) hit: [Field; WAYS],
    pub(super) found: Field,
    pub(super) cell: Field,
    /// What OWNERSHIP of each way said: 0 but for the one that was hit.
    pub(super) ownerships: [Field; WAYS],
    pub(super) ownership: Field,
    pub(super) owned: Field,
    /// A MOVE of this term is between its passes.
    pub(super) marked: Field,
    pub(super) holder: Field,
    pub(super) free: Field,
    pub(super) mine: Field,
    pub(super) waiters_op: Field,
    pub(super) writers_op: Field,
    pub(super) sharers_op: Field,
    pub(super) waiting: Field,
    pub(super) writers: Field,
    pub(super) sharers: Field,
    pub(super) all_known: Field,
    pub(super) route: Field,
}

impl Fields {
    /// What is looked at when a pass is over: by the deparser, and by whoever wants to know what it found.
    pub(super) const fn results(&self) -> [Field; 6] {
        [self.found, self.route, self.ownership, self.sharers, self.waiting, self.writers]
    }

    /// What steps ask for on the way.
    pub(super) const fn decisions(&self) -> [Field; 8] {
        let [one, other] = self.hit;
        [one, other, self.found, self.free, self.mine, self.owned, self.marked, self.all_known]
    }

    pub(super) fn declare(p: &mut ProgramBuilder) -> Self {
        Self {
            class: p.parsed("class", 3),
            key: p.parsed("lock key", 64),
            set: p.parsed("lock set", 32),
            cells: [p.parsed("cell of way 0", 32), p.parsed("cell of way 1", 32)],
            claim: p.parsed("claim", 64),
            marked_claim: p.parsed("marked claim", 64),
            me: p.parsed("me", 8),
            taker: p.parsed("taker", 8),
            holder_bits: p.parsed("holder's bits", 64),
            one: p.parsed("one", 64),
            waiters_operand: p.parsed("waiters' operand", 64),
            writers_operand: p.parsed("writers' operand", 64),
            sharers_operand: p.parsed("sharers' operand", 64),
            hit: [p.metadata("hit in way 0", 1), p.metadata("hit in way 1", 1)],
            found: p.metadata("found", 1),
            cell: p.metadata("cell", 32),
            ownerships: [p.metadata("ownership of way 0", 64), p.metadata("ownership of way 1", 64)],
            ownership: p.metadata("ownership", 64),
            owned: p.metadata("owned", 1),
            marked: p.metadata("marked", 1),
            holder: p.metadata("holder", 64),
            free: p.metadata("free", 1),
            mine: p.metadata("mine", 1),
            waiters_op: p.metadata("waiters' operation", 3),
            writers_op: p.metadata("writers' operation", 3),
            sharers_op: p.metadata("sharers' operation", 3),
            waiting: p.metadata("waiting", 64),
            writers: p.metadata("writers", 64),
            sharers: p.metadata("sharers", 64),
            all_known: p.metadata("all known", 1),
            route: p.metadata("route", 4),
        }
    }
}
