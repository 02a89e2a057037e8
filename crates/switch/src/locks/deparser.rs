//! What a packet becomes when it has passed the directory.

use alloc::vec::Vec;

use wire::{Copyset, LockEnd, LockKind, LockPacket, Mode, Rule, Rules};

use super::directory::{Directory, Effect, Resubmit};
use super::layout::{parse_ownership, route};

impl<R: Rules> Directory<R> {
    pub(super) fn deparse(&self, packet: &LockPacket, out: &mut Vec<Effect>) {
        let f = &self.fields;
        if self.phv.get(f.found) == 0 {
            return self.pass_to_home(packet, out);
        }
        let me = self.config.at;
        let mut send = |packet: LockPacket| out.push(Effect::Send(packet));
        let (term, holder) = parse_ownership(self.phv.get(f.ownership));
        let asker = LockEnd::Agent(packet.node);
        match self.phv.get(f.route) {
            route::SERVE => {
                let kind = if packet.len == 0 { LockKind::Granted } else { LockKind::Serve };
                let to = if packet.len == 0 { asker } else { LockEnd::Home(packet.lock.home()) };
                send(LockPacket { term, nodes: Copyset::EMPTY, next: None, ..packet.reply(kind, me, to) });
            }
            route::LEND => {
                // The cell as it was before, or as the first copy of this request left it.
                let term = if holder.is_some() { term } else { term.next() };
                let sharers = Copyset::from_bits(self.phv.get(f.sharers));
                let readers = sharers.without(packet.node);
                let lent = LockPacket {
                    term,
                    nodes: if self.rules.holds(Rule::ReadersAreInvalidated) {
                        readers
                    } else {
                        Copyset::EMPTY
                    },
                    has_copy: packet.has_copy && sharers.contains(packet.node),
                    next: None,
                    ..*packet
                };
                for reader in lent.nodes.iter() {
                    let to = LockEnd::Agent(reader);
                    let next = Some(packet.node);
                    send(LockPacket {
                        next,
                        nodes: Copyset::EMPTY,
                        ..lent.reply(LockKind::Invalidate, me, to)
                    });
                }
                if packet.len == 0 {
                    send(LockPacket { has_copy: true, ..lent.reply(LockKind::Lent, me, asker) });
                } else {
                    send(lent.reply(LockKind::Lend, me, LockEnd::Home(packet.lock.home())));
                }
            }
            route::FORWARD => {
                let Some(holder) = holder else { return };
                let forward =
                    LockPacket { term, ..packet.reply(LockKind::Forward, me, LockEnd::Agent(holder)) };
                send(forward);
            }
            route::APPROVED => send(packet.reply(LockKind::Approved, me, asker)),
            route::COMMIT => out.push(Effect::Resubmit(Resubmit { packet: *packet, approved: true })),
            route::LOOK => out.push(Effect::Resubmit(Resubmit { packet: *packet, approved: false })),
            route::PASS_ON => pass_on(packet, me, send),
            route::DENIED => send(LockPacket {
                nodes: packet.waiting,
                waiting: Copyset::from_bits(self.phv.get(f.waiting)),
                writers: Copyset::from_bits(self.phv.get(f.writers)),
                ..packet.reply(LockKind::Denied, me, asker)
            }),
            _ => {}
        }
    }

    /// The switch does not keep the entry: its home does, or knows what to do.
    fn pass_to_home(&self, packet: &LockPacket, out: &mut Vec<Effect>) {
        if self.config.at == LockEnd::Switch {
            let to = LockEnd::Home(packet.lock.home());
            out.push(Effect::Send(LockPacket { from: LockEnd::Switch, to, ..*packet }));
        }
    }
}

/// Who hears of a MOVE that is approved: readers and the next writer, to whom the holder has sent the data; the holder, if there
/// is no next writer: it sends the data home. The holder sends the very same once more to whoever did not receive it.
pub fn pass_on(packet: &LockPacket, from: LockEnd, mut send: impl FnMut(LockPacket)) {
    let goes_on = LockPacket { term: packet.term.next(), from, ..*packet };
    for reader in packet.nodes.iter() {
        send(LockPacket { kind: LockKind::Granted, mode: Mode::Read, to: LockEnd::Agent(reader), ..goes_on });
    }
    match packet.next {
        Some(next) => send(LockPacket { kind: LockKind::Hand, to: LockEnd::Agent(next), ..goes_on }),
        // Without data, readers will say that they have it.
        None if packet.len > 0 || packet.nodes.is_empty() => {
            let to = LockEnd::Agent(packet.node);
            send(LockPacket { kind: LockKind::Approved, term: packet.term, to, ..goes_on });
        }
        None => {}
    }
}
