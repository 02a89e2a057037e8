//! What the operator of a rack must know, as lines of a log: through the facade of `tracing`, so it goes wherever the process
//! sends it, or nowhere.
//!
//! Runs in the switch's process and in each node's, where an epoch begins and with each heartbeat. What must always hold:
//! nothing here is on the way of a message; a line is about one event, and has the epoch; what grows with every
//! datagram of somebody who is hostile or misconfigured makes a line every ten seconds, not one each.

use membership::coordinator::{Change, Counters, End};
use tracing::{debug, error, info, warn};
use transport::{Cause, Counts};
use wire::{Incarnation, Nanos, NodeId, SwitchEpoch};

use super::report::NodeReport;

/// Between two lines about the same count.
const EVERY: Nanos = Nanos::from_millis(10_000);

/// What is refused because somebody is hostile, or something is broken. (Whose greetings are refused, and why, is said by
/// whoever watches the handshakes; other causes are those of a network.)
const REFUSED: [Cause; 3] = [Cause::Malformed, Cause::Replayed, Cause::BrokenRing];

/// A count that says something when it grows.
#[derive(Default)]
struct Grown {
    seen: u64,
    said: Option<Nanos>,
}

impl Grown {
    /// By how much it has grown, if that is to be said now.
    fn by(&mut self, now: Nanos, count: u64) -> Option<u64> {
        let quiet = self.said.is_some_and(|said| now < said + EVERY);
        if count <= self.seen || quiet {
            return None;
        }
        self.said = Some(now);
        Some(count - std::mem::replace(&mut self.seen, count))
    }
}

/// Messages that the transport has refused.
#[derive(Default)]
struct Refusals([Grown; REFUSED.len()]);

impl Refusals {
    fn look(&mut self, now: Nanos, epoch: SwitchEpoch, counts: &Counts) {
        for (cause, grown) in REFUSED.iter().zip(&mut self.0) {
            if let Some(count) = grown.by(now, counts.dropped_for(*cause)) {
                warn!(target: "rackmem", epoch = epoch.0, cause = cause.name(), count, "refused messages");
            }
        }
    }
}

/// The log of the switch's process.
#[derive(Default)]
pub(super) struct SwitchLog {
    refusals: Refusals,
    refused: Grown,
    stalls: Grown,
    cut_off: Grown,
}

impl SwitchLog {
    /// An epoch begins, with so many nodes up.
    pub(super) fn on_epoch(&self, epoch: SwitchEpoch, changes: &[(NodeId, Change)], up: u64) {
        let epoch = epoch.0;
        if changes.is_empty() {
            info!(target: "rackmem", epoch, up, "the rack goes on, with the same nodes");
        }
        for (node, change) in changes {
            let node = node.0;
            let Change::Ended { why, statistics } = change else {
                info!(target: "rackmem", node, epoch, up, "joined");
                continue;
            };
            let because = match why {
                End::Left => None,
                End::Silent => Some("it was not heard for the timeout"),
                End::Behind => Some("it was heard, but did not begin an epoch in time"),
                End::Replaced => Some("another process of this node has come"),
                End::Missing => Some("the switch was restarted, and has not heard it"),
            };
            match because {
                None => info!(target: "rackmem", node, epoch, up, "left"),
                Some(because) => {
                    warn!(target: "rackmem", node, epoch, up, why = why.name(), because, "declared dead");
                }
            }
            let bytes = NodeReport::parse(statistics).map_or(0, |report| report.memory_live);
            if bytes > 0 {
                error!(target: "rackmem", node, epoch, what = "allocations", bytes, "lost: they were in its memory");
            }
        }
    }

    /// Looks at what was counted.
    pub(super) fn look(&mut self, now: Nanos, epoch: SwitchEpoch, counters: &Counters, counts: &Counts) {
        self.refusals.look(now, epoch, counts);
        let epoch = epoch.0;
        if let Some(count) = self.refused.by(now, counters.refused) {
            warn!(target: "rackmem", epoch, count, "refused heartbeats: two processes are the same node, or have different racks");
        }
        if let Some(count) = self.stalls.by(now, counters.stalls) {
            warn!(target: "rackmem", epoch, count, "the switch got no processor for a while: this machine is too full");
        }
        if let Some(count) = self.cut_off.by(now, counters.cut_off) {
            warn!(target: "rackmem", epoch, count, "no node was heard for the timeout: the switch was cut off");
        }
    }
}

/// The log of a node's process.
#[derive(Default)]
pub(super) struct NodeLog {
    refusals: Refusals,
    blocks: u64,
    locks: u64,
    suspended: bool,
}

impl NodeLog {
    pub(super) fn on_joined(&self, node: NodeId, epoch: SwitchEpoch, incarnation: Incarnation) {
        info!(target: "rackmem", node = node.0, epoch = epoch.0, incarnation = incarnation.0, "joined");
    }

    pub(super) fn on_epoch(&self, node: NodeId, epoch: SwitchEpoch, up: u64) {
        debug!(target: "rackmem", node = node.0, epoch = epoch.0, up, "began an epoch");
    }

    pub(super) fn on_suspended(&mut self, node: NodeId, epoch: SwitchEpoch) {
        self.suspended = true;
        warn!(target: "rackmem", node = node.0, epoch = epoch.0, "the lease has run out: the switch does not answer");
    }

    pub(super) fn on_leased(&mut self, node: NodeId, epoch: SwitchEpoch) {
        if std::mem::take(&mut self.suspended) {
            info!(target: "rackmem", node = node.0, epoch = epoch.0, "leased again: the switch answers");
        }
    }

    pub(super) fn on_user_mode_only(&self, node: NodeId) {
        warn!(
            target: "rackmem", node = node.0,
            "system calls on mapped pages that are not there fail (EFAULT): this process may resolve faults of its own instructions only; pin the pages first, or make /dev/userfaultfd readable"
        );
    }

    pub(super) fn on_fenced(&self, node: NodeId, epoch: SwitchEpoch) {
        warn!(
            target: "rackmem", node = node.0, epoch = epoch.0,
            "fenced: it was declared dead, as the switch had not heard it for too long"
        );
    }

    pub(super) fn on_left(&self, node: NodeId, epoch: SwitchEpoch) {
        info!(target: "rackmem", node = node.0, epoch = epoch.0, "left");
    }

    /// Looks at what was counted: what this node is home of and has lost, and what was refused.
    pub(super) fn look(&mut self, now: Nanos, at: (NodeId, SwitchEpoch), report: &NodeReport, locks: u64) {
        let (node, epoch) = (at.0.0, at.1.0);
        let blocks = report.lost - std::mem::replace(&mut self.blocks, report.lost);
        if blocks > 0 {
            error!(target: "rackmem", node, epoch, what = "blocks", count = blocks, "lost: their only copies died");
        }
        let locks = locks - std::mem::replace(&mut self.locks, locks);
        if locks > 0 {
            error!(target: "rackmem", node, epoch, what = "locks", count = locks, "lost: the only copies of what they guard died");
        }
        self.refusals.look(now, at.1, &report.transport);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::{Arc, Mutex};

    use tracing::field::Field;

    use super::*;

    /// Every event as a line, for a test.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl tracing::Subscriber for Heard {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            let mut line = event.metadata().level().to_string();
            event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
                line.push_str(&format!(" {field}={value:?}"));
            });
            self.0.lock().unwrap().push(line);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn a_node_says_what_it_lost_once_and_when_its_lease_comes_back() {
        let heard = Heard::default();
        let at = (NodeId(3), SwitchEpoch(8));
        tracing::subscriber::with_default(heard.clone(), || {
            let mut log = NodeLog::default();
            let mut report = NodeReport::default();
            log.on_leased(at.0, at.1);
            log.look(Nanos(1), at, &report, 0);
            report.lost = 2;
            log.look(Nanos(2), at, &report, 5);
            log.look(Nanos(3), at, &report, 6);
            log.on_suspended(at.0, at.1);
            log.on_leased(at.0, at.1);
            log.on_leased(at.0, at.1);
        });
        assert_eq!(
            *heard.0.lock().unwrap(),
            [
                r#"ERROR message=lost: their only copies died node=3 epoch=8 what="blocks" count=2"#,
                r#"ERROR message=lost: the only copies of what they guard died node=3 epoch=8 what="locks" count=5"#,
                r#"ERROR message=lost: the only copies of what they guard died node=3 epoch=8 what="locks" count=1"#,
                "WARN message=the lease has run out: the switch does not answer node=3 epoch=8",
                "INFO message=leased again: the switch answers node=3 epoch=8",
            ]
        );
    }

    #[test]
    fn what_goes_on_growing_is_said_every_ten_seconds_and_nothing_of_it_is_left_out() {
        let mut grown = Grown::default();
        let said: Vec<(u64, u64)> = (0..100)
            .filter_map(|tenth| Some((tenth, grown.by(Nanos::from_millis(100 + 300 * tenth), tenth)?)))
            .collect();
        assert_eq!(said, [(1, 1), (35, 34), (69, 34)]);
        assert_eq!(grown.by(Nanos::from_millis(100_000), 69), None, "it has not grown");
    }
}
