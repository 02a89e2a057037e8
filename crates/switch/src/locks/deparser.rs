//! What a packet becomes when it has passed the directory.

use wire::{LockEnd, LockField, LockKind, LockPacket, NodeId, Rule, Rules, addr};

use super::layout::{Fields, ROUTES, SETTLED, route};
use super::parser::OfLocks;
use crate::pipeline::{Headers, InSoftware, Op};

/// A packet about a lock, on its way out.
pub(super) trait Outgoing: Headers<Field = LockField> {
    /// The packet that goes out is for the agent, or the home, on a node.
    fn to_end(&mut self, end: fn(NodeId) -> LockEnd, node: Self::Word) {
        self.to(end(NodeId(0)).to_wire().0, node);
    }

    fn sent_by(&mut self, from: LockEnd) {
        let (agent, node) = from.to_wire();
        self.from(agent, node);
    }

    /// Sends it as one of this kind, to whoever asked.
    fn answer(&mut self, kind: LockKind) {
        let asker = self.field(LockField::Node);
        self.set(LockField::Kind, kind as u64);
        self.to_end(LockEnd::Agent, asker);
        self.send();
    }

    /// Sends it to the home of its lock.
    fn to_home(&mut self) {
        let lock = self.field(LockField::Lock);
        let home = self.with(Op::Shr, lock, u64::from(addr::OFFSET_BITS));
        self.to_end(LockEnd::Home, home);
        self.send();
    }

    /// Without data the directory answers itself, else the home does.
    fn answer_or_to_home(&mut self, without_data: impl FnOnce(&mut Self), kind: LockKind) {
        let len = self.field(LockField::Len);
        let no_data = self.not(len);
        self.when(no_data, without_data);
        self.when(len, |m| {
            m.set(LockField::Kind, kind as u64);
            m.to_home();
        });
    }
}

impl<M: Headers<Field = LockField>> Outgoing for M {}

/// Carries over to a second pass what the first has found, if the program decided that the packet makes one.
pub(super) fn resubmit<M: OfLocks>(m: &mut M, f: &Fields) {
    let (found, route) = (m.phv(f.found), m.phv(f.route));
    for (to, approved) in [(route::COMMIT, 1), (route::LOOK, 0)] {
        let is_route = m.with(Op::Equals, route, to);
        let again = m.compute(Op::And, found, is_route);
        m.when(again, |m| {
            let approved = m.number(approved);
            m.carry(approved);
        });
    }
}

/// Does what the program decided about the packet, if that is not another pass.
pub(super) fn deparse<M: OfLocks, R: Rules>(m: &mut M, rules: R, f: &Fields, me: LockEnd) {
    m.sent_by(me);
    let found = m.phv(f.found);
    if me == LockEnd::Switch {
        // The switch does not keep the entry: its home does, or knows what to do.
        let missing = m.not(found);
        m.when(missing, Outgoing::to_home);
    }
    m.when(found, |m| {
        let to = m.phv(f.route);
        m.dispatch(to, ROUTES, |m, to| {
            m.set(LockField::Payload, 0);
            let ownership = m.phv(f.ownership);
            let holder = m.with(Op::And, ownership, SETTLED - 1);
            let term = m.with(Op::Shr, ownership, 8);
            match to {
                route::SERVE => {
                    m.rewrite(LockField::Term, term);
                    m.set(LockField::Nodes, 0);
                    m.set(LockField::Next, 0);
                    m.answer_or_to_home(|m| m.answer(LockKind::Granted), LockKind::Serve);
                }
                route::LEND => {
                    // The cell as it was before, or as the first copy of this request left it.
                    let was_free = m.not(holder);
                    let term = m.compute(Op::Add, term, was_free);
                    m.rewrite(LockField::Term, term);
                    lend(m, rules, f);
                }
                route::FORWARD => m.when(holder, |m| {
                    let node = m.with(Op::Add, holder, u64::MAX);
                    m.rewrite(LockField::Term, term);
                    m.set(LockField::Kind, LockKind::Forward as u64);
                    m.to_end(LockEnd::Agent, node);
                    m.send();
                }),
                route::APPROVED => m.answer(LockKind::Approved),
                route::PASS_ON => goes_on(m),
                route::DENIED => {
                    let known = m.field(LockField::Waiting);
                    m.rewrite(LockField::Nodes, known);
                    let (waiting, writers) = (m.phv(f.waiting), m.phv(f.writers));
                    m.rewrite(LockField::Waiting, waiting);
                    m.rewrite(LockField::Writers, writers);
                    m.answer(LockKind::Denied);
                }
                _ => {}
            }
            m.number(0)
        });
    });
}

/// The lock is whose who asked, once the readers' copies have ended.
fn lend<M: OfLocks, R: Rules>(m: &mut M, rules: R, f: &Fields) {
    let (node, one) = (m.field(LockField::Node), m.number(1));
    let me = m.compute(Op::Shl, one, node);
    let all_but_me = m.with(Op::Xor, me, u64::MAX);
    let sharers = m.phv(f.sharers);
    let readers = if rules.holds(Rule::ReadersAreInvalidated) {
        m.compute(Op::And, sharers, all_but_me)
    } else {
        m.number(0)
    };
    let mine = m.compute(Op::And, sharers, me);
    let (none, says) = (m.not(mine), m.field(LockField::HasCopy));
    let shares = m.not(none);
    let has_copy = m.compute(Op::And, shares, says);
    m.rewrite(LockField::HasCopy, has_copy);
    m.set(LockField::Kind, LockKind::Invalidate as u64);
    m.set(LockField::Nodes, 0);
    let next = m.with(Op::Add, node, 1);
    m.rewrite(LockField::Next, next);
    m.each(readers, |m, reader| {
        m.to_end(LockEnd::Agent, reader);
        m.send();
    });
    m.rewrite(LockField::Nodes, readers);
    m.set(LockField::Next, 0);
    let without_data = |m: &mut M| {
        m.set(LockField::HasCopy, 1);
        m.answer(LockKind::Lent);
    };
    m.answer_or_to_home(without_data, LockKind::Lend);
}

/// Who hears of a MOVE that is approved: readers and the next writer, to whom the holder has sent the data; the holder, if there
/// is no next writer: it sends the data home. The holder sends the very same once more to whoever did not receive it.
pub fn pass_on(packet: &LockPacket, from: LockEnd, mut send: impl FnMut(LockPacket)) {
    let mut m = InSoftware::new(packet, |packet: &LockPacket| send(*packet), ());
    m.sent_by(from);
    goes_on(&mut m);
}

fn goes_on<M: Headers<Field = LockField>>(m: &mut M) {
    let (term, writes) = (m.field(LockField::Term), m.field(LockField::Writes));
    let begins = m.with(Op::Add, term, 1);
    m.rewrite(LockField::Term, begins);
    m.set(LockField::Kind, LockKind::Granted as u64);
    m.set(LockField::Writes, 0);
    let nodes = m.field(LockField::Nodes);
    m.each(nodes, |m, reader| {
        m.to_end(LockEnd::Agent, reader);
        m.send();
    });
    m.rewrite(LockField::Writes, writes);
    let next = m.field(LockField::Next);
    m.when(next, |m| {
        let node = m.with(Op::Add, next, u64::MAX);
        m.set(LockField::Kind, LockKind::Hand as u64);
        m.to_end(LockEnd::Agent, node);
        m.send();
    });
    // Without data, readers will say that they have it.
    let (len, nobody, alone) = (m.field(LockField::Len), m.not(next), m.not(nodes));
    let told = m.compute(Op::Or, len, alone);
    let untold = m.not(told);
    let tells = m.not(untold);
    let to_mover = m.compute(Op::And, tells, nobody);
    m.when(to_mover, |m| {
        m.rewrite(LockField::Term, term);
        m.answer(LockKind::Approved);
    });
}
