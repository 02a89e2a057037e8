//! When a transport keeps messages that nobody waits for, and when it lets them go: [`super::coalescing`] says why, and how long.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use wire::Nanos;

use super::burst::Burst;
use super::coalescing::{self, LONGEST};
use super::session::Peer;
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
    /// Keeps what nobody waits for, where others are likely to follow soon. What is kept for a peer leaves in front of what
    /// somebody does wait for.
    pub(super) fn coalesce(&self, burst: &mut Burst) {
        let mut at = 0;
        while let Some(datagram) = burst.datagrams().get(at) {
            let peer = self.peer(datagram.to).expect("only known peers are sent to");
            let is_usual = datagram.urgent && !peer.is_expecting.load(SeqCst);
            at = if is_usual || peer.session().is_none() {
                at + 1
            } else {
                self.coalesce_one(peer, burst, at)
            };
        }
    }

    /// One of a burst. Returns where the next one is.
    fn coalesce_one(&self, peer: &Peer, burst: &mut Burst, at: usize) -> usize {
        let now = self.now();
        let datagram = &burst.datagrams()[at];
        let mut coalescing = peer.coalescing();
        coalescing.followed(now);
        let was_kept = coalescing.is_kept();
        if !datagram.urgent {
            coalescing.wonder(now);
            // Whoever attends looks again, or leaves, and sees to it then.
            if self.waiting.has_attention() && coalescing.may_keep(datagram) {
                if let Some(spare) = coalescing.keep(burst.remove(at), self.most, now) {
                    burst.spare(spare);
                }
                peer.is_expecting.store(true, SeqCst);
                if !was_kept && self.delayed.peers.fetch_add(1, SeqCst) == 0 {
                    self.delayed.due.store((now + LONGEST).0, SeqCst);
                }
                return at;
            }
        }
        let mut kept = coalescing.take();
        if was_kept {
            self.delayed.peers.fetch_sub(1, SeqCst);
        }
        peer.is_expecting.store(coalescing.is_waiting(), SeqCst);
        drop(coalescing);
        let mut next = at + kept.len();
        // The records of what was kept last go in front, in the same datagram.
        let datagram = &burst.datagrams()[at];
        if kept.last_mut().is_some_and(|last| coalescing::join(last, datagram, self.most)) {
            let joined = burst.remove(at);
            burst.spare(joined);
        } else {
            next += 1;
        }
        kept.into_iter().rev().for_each(|kept| burst.insert(at, kept));
        next
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
            let all = coalescing.take();
            peer.is_expecting.store(coalescing.is_waiting(), SeqCst);
            self.delayed.peers.fetch_sub(1, SeqCst);
            drop(coalescing);
            for kept in all {
                match peer.session() {
                    Some(session) => self.send_kept(peer, &session, kept),
                    None => (0..kept.messages).for_each(|_| self.counters.dropped(Cause::Unreachable)),
                }
            }
        }
        next
    }
}
