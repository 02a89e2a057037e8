//! How long a node holds a block for which others wait in the queue ([`NodeConfig::queue`](crate::NodeConfig::queue)).
//!
//! A queue that hands a block over after each single access moves it all the time: every access costs a transfer. So a
//! node that is asked for a block through a queue waits with its answer as long as its own threads write in the block
//! again and again, without a pause of [`HoldTime::pause`](crate::HoldTime::pause), but no longer than
//! [`HoldTime::most`](crate::HoldTime::most).
//!
//! Nothing depends on it but time: to the protocol, such an agent is a slow one. Requests that did not come through a
//! queue are answered at once, and so are those for blocks that this node only reads.
//!
//! What must always hold: a request waits at most `most` after it came, however busy the threads are; then
//! it is executed like any other.
//!
//! # How the two times were chosen
//! By a sweep on 8 nodes of the simulated rack: 100,000 to 200,000 operations, Mops; columns are pause and most, and the
//! longest wait is that of half reads.
//!
//! | | refusing | no hold time | 300 ns, 8 us | 400 ns, 8 us | 400 ns, 16 us | 150 ns, 8 us |
//! | --- | ---: | ---: | ---: | ---: | ---: | ---: |
//! | one word, half reads | 6.0 | 4.4 | 9.1 | 10.2 | 11.8 | 4.8 |
//! | one word, writes only | 6.9 | 1.9 | 11.8 | 11.8 | 13.8 | 2.7 |
//! | longest wait | 1.4 ms | 0.11 ms | 0.17 ms | 0.18 ms | 0.25 ms | 0.11 ms |
//! | Figure 14, 95 % GET | 9.12 | 9.34 | 9.32 | 9.32 | | 9.32 |
//! | Figure 14, 50 % GET | 4.61 | 5.28 | 5.26 | 5.21 | | 4.88 |
//!
//! The pause must be longer than an access (240 ns there), or the hold time ends between two of them. But whoever is asked
//! for a block that it does not use makes the other wait for it.

use switch::coherence::wait_queue;
use wire::{Nanos, Packet, PacketKind, Rules};

use super::{Answer, CacheAgent};
use crate::coherence::config::HoldTime;
use crate::coherence::context::Context;
use crate::store::{Access, FrameId, Store};

/// A request that waits until this node's hold time is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) frame: FrameId,
    pub(super) packet: Packet,
    /// What [`Store::writes`] said at the last look.
    writes: u64,
    /// When to look again.
    look: Nanos,
    /// When the hold time is over in any case.
    end: Nanos,
}

impl CacheAgent {
    /// True if the request must wait until this node's hold time is over.
    pub(super) fn must_wait<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> bool {
        let HoldTime { pause, most } = cx.config.hold_time;
        let queued = cx.config.queue && wait_queue::code_in(packet.arg).is_some();
        if !queued
            || most == Nanos::ZERO
            || !matches!(packet.event, PacketKind::ReadMiss | PacketKind::WriteMiss)
        {
            return false;
        }
        let Some((frame, Access::Modified)) = cx.store.lookup(packet.tag) else { return false };
        self.last(cx.rules, packet.requester, packet.seq).answer = Answer::Parked;
        let (look, end) = (cx.now + pause.min(most), cx.now + most);
        self.held.push(Waiting { frame, packet: *packet, writes: cx.store.writes(frame), look, end });
        cx.counters.held += 1;
        true
    }

    /// Looks whether hold times are over. Being called early is harmless.
    pub(crate) fn on_deadline<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let mut index = 0;
        while let Some(waiting) = self.held.get_mut(index) {
            if waiting.look > cx.now {
                index += 1;
                continue;
            }
            let writes = cx.store.writes(waiting.frame);
            if waiting.writes != writes && waiting.end > cx.now {
                waiting.writes = writes;
                waiting.look = (cx.now + cx.config.hold_time.pause).min(waiting.end);
                index += 1;
            } else {
                let packet = self.held.remove(index).packet;
                self.execute(cx, &packet);
            }
        }
    }

    /// When to look at the held blocks again.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.held.iter().map(|waiting| waiting.look).min().unwrap_or(Nanos::MAX)
    }
}
