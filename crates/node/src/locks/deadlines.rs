//! What was not answered is sent again.

use alloc::vec::Vec;

use wire::{LockEnd, LockKind, LockPacket, Rule, Rules};

use super::record::Lock;
use super::store::LockStore;
use super::{Context, LockEffect, LockNode, context};
use crate::store::Moment;

impl<R: Rules> LockNode<R> {
    /// Does what is due. Being called early is harmless.
    pub fn on_deadline<S: LockStore>(&mut self, at: Moment, store: &mut S, out: &mut Vec<LockEffect>) {
        while let Some(&(due, lock)) = self.due.first()
            && due <= at.now
        {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let it = self.locks.get_mut(&lock).expect("what is due is known");
            it.repeat(&mut cx);
            let after = cx.after(it);
            self.after(at, lock, after, store, out);
        }
        self.repeat_last_reports(at, store, out);
    }
}

impl Lock {
    fn repeat<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if let Some(request) = &mut self.request
            && request.again.is_due(cx)
            && cx.rules.holds(Rule::LockRequestsAreRepeated)
        {
            self.send_request(cx);
        }
        if let Some(holding) = &mut self.holding
            && !holding.awaiting.is_empty()
            && holding.again.is_due(cx)
            && cx.rules.holds(Rule::LockRequestsAreRepeated)
        {
            let (awaiting, term, by_hand) = (holding.awaiting, holding.term, holding.by_hand);
            // Those that the directory told are told again; those that were to read first are only asked.
            let kind = if by_hand { LockKind::Poll } else { LockKind::Invalidate };
            let again = LockPacket { term, next: Some(cx.config.id), ..self.packet(cx, kind) };
            for reader in awaiting.iter() {
                cx.send(LockPacket { to: LockEnd::Agent(reader), ..again }, None);
            }
        }
        if let Some(freeing) = &mut self.freeing
            && freeing.again.is_due(cx)
            && self.report.is_none()
        {
            self.send_free(cx);
        }
        if let Some(report) = &mut self.report
            && report.again.is_due(cx)
        {
            self.send_report(cx);
        }
        let Some(moving) = &mut self.moving else { return };
        if moving.again.is_due(cx) && cx.rules.holds(Rule::MovesAreRepeated) {
            if moving.approved {
                return self.send_what_is_missing(cx);
            }
            let packet = moving.packet;
            cx.send(packet, None);
        }
    }
}
