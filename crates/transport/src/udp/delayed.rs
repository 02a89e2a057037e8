//! When a transport keeps messages that nobody waits for, and when it lets them go: [`super::coalescing`] says why, and how long.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use wire::Nanos;

use super::burst::Datagram;
use super::coalescing::LONGEST;
use super::session::{Peer, Session};
use super::transport::UdpTransport;
use crate::Cause;

/// What is kept for all peers together.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    /// Peers that something is kept for.
    peers: AtomicUsize,
    /// When the first of it is due, or earlier.
    due: AtomicU64,
}

impl UdpTransport {
    /// True if it keeps the messages of a datagram: nobody waits for them, and others are likely to follow soon. Otherwise what is
    /// kept for their peer goes with them.
    pub(super) fn keeps(&self, peer: &Peer, session: &Session, datagram: &mut Datagram) -> bool {
        if datagram.urgent && !peer.is_expecting.load(SeqCst) {
            return false;
        }
        let now = self.now();
        let mut coalescing = peer.coalescing();
        coalescing.followed(now);
        let was_kept = coalescing.is_kept();
        if !datagram.urgent {
            coalescing.wonder(now);
            // Whoever attends looks again, or leaves, and sees to it then.
            if self.waiting.has_attention() && coalescing.keep(datagram, self.most, now) {
                peer.is_expecting.store(true, SeqCst);
                if !was_kept && self.delayed.peers.fetch_add(1, SeqCst) == 0 {
                    self.delayed.due.store((now + LONGEST).0, SeqCst);
                }
                return true;
            }
        }
        let mut in_front = None;
        if was_kept {
            if !coalescing.join(datagram, self.most) {
                in_front = Some(coalescing.take());
            }
            self.delayed.peers.fetch_sub(1, SeqCst);
        }
        peer.is_expecting.store(coalescing.is_waiting(), SeqCst);
        drop(coalescing);
        if let Some(kept) = in_front {
            self.send_kept(peer, session, kept);
        }
        false
    }

    /// Lets go what has been kept for long enough. Returns in what time somebody has to look again; none if nothing is kept.
    pub(super) fn part_with_what_is_due(&self) -> Option<Nanos> {
        if self.delayed.peers.load(SeqCst) == 0 {
            return None;
        }
        let now = self.now();
        let due = self.delayed.due.load(SeqCst);
        if now.0 < due {
            return Some(Nanos(due - now.0));
        }
        let next = self.part_with_what_is_due_at(now)?;
        self.delayed.due.store(next.0, SeqCst);
        Some(next.saturating_sub(now))
    }

    /// Lets everything go.
    pub(super) fn part(&self) {
        if self.delayed.peers.load(SeqCst) > 0 {
            self.part_with_what_is_due_at(Nanos::MAX);
        }
    }

    /// Lets go what is due then. Returns when the rest is.
    fn part_with_what_is_due_at(&self, then: Nanos) -> Option<Nanos> {
        let mut next = None;
        for peer in self.peers.iter().flatten().filter(|peer| peer.is_expecting.load(SeqCst)) {
            let mut coalescing = peer.coalescing();
            match coalescing.due() {
                None => continue,
                Some(due) if due > then => {
                    next = Some(next.map_or(due, |next: Nanos| next.min(due)));
                    continue;
                }
                Some(_) => {}
            }
            if then != Nanos::MAX {
                coalescing.give_up();
            }
            let kept = coalescing.take();
            peer.is_expecting.store(coalescing.is_waiting(), SeqCst);
            self.delayed.peers.fetch_sub(1, SeqCst);
            drop(coalescing);
            match peer.session() {
                Some(session) => self.send_kept(peer, &session, kept),
                None => (0..kept.messages).for_each(|_| self.counters.dropped(Cause::Unreachable)),
            }
        }
        next
    }
}
