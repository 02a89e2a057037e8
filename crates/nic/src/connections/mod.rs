//! The queue pairs of a node to all others: which incarnations of two nodes each connects, and how it begins anew when it breaks.
//!
//! In every node, one for each other node. A driver tells what happens, and does the [`Change`]s that follow, in their order.
//!
//! A queue pair breaks when the other node is silent for long without being dead, or when somebody uses the key of a region that
//! ended long ago. Whoever notices fails what was in flight, counts the attempt up, and says so until the other node has done the
//! same.
//!
//! | file | holds |
//! | --- | --- |
//! | `incarnations` | what a connection connects, and the packet numbers that follow from it |
//! | `again` | what the two ends say about a connection that broke |
//!
//! What must always hold: nothing of a former incarnation of either node is executed; a connection that begins anew takes no packet of
//! the one before; both ends go to the larger attempt.

mod again;
mod incarnations;

use alloc::vec::Vec;

use wire::roce::{Psn, QpNumber};
use wire::{AllRules, Incarnation, Nanos, NodeId, Rule, Rules};

use crate::verbs::{Device, QueuePairState, ToReceive, ToSend};

pub use again::Again;
pub use incarnations::Incarnations;

/// Between two times that an attempt is said.
const BETWEEN: Nanos = Nanos::from_millis(10);

/// What a driver is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The connection has ended: what was in flight on it has failed, and its queue pair is reset.
    Ended(NodeId, Ended),
    /// It begins: to be connected, by [`Connections::connect`].
    Begun(NodeId),
    /// Say this to that node. It may be lost.
    Say(NodeId, Again),
}

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The other node, which was in this incarnation if it was connected, is not in the rack any more.
    Down(Option<Incarnation>),
    /// Its queue pair broke; another attempt begins.
    Broken,
}

#[derive(Debug)]
struct Connection {
    queue_pair: QpNumber,
    /// None: the other node is down.
    incarnations: Option<Incarnations>,
    /// It has failed, and has to begin anew.
    is_broken: bool,
    /// When to say once more which attempt this end is at.
    say_again: Nanos,
}

/// A node's connections to all nodes; that to itself is never connected.
#[derive(Debug)]
pub struct Connections<R: Rules = AllRules> {
    rules: R,
    me: NodeId,
    all: Vec<Connection>,
    /// Some of them is.
    is_any_broken: bool,
    say_again: Nanos,
}

impl Connections {
    /// Every node has made its queue pairs in the same order: so everybody knows the numbers of the others.
    pub fn new(me: NodeId, queue_pairs: impl Iterator<Item = QpNumber>) -> Self {
        Self::with_rules(AllRules, me, queue_pairs)
    }
}

impl<R: Rules> Connections<R> {
    /// The same, of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, me: NodeId, queue_pairs: impl Iterator<Item = QpNumber>) -> Self {
        let all = queue_pairs.map(|queue_pair| Connection {
            queue_pair,
            incarnations: None,
            is_broken: false,
            say_again: Nanos::MAX,
        });
        Self { rules, me, all: all.collect(), is_any_broken: false, say_again: Nanos::MAX }
    }

    /// The queue pair to another node.
    pub fn queue_pair(&self, peer: NodeId) -> QpNumber {
        self.all[peer.index()].queue_pair
    }

    /// The node at the other end.
    pub fn peer(&self, queue_pair: QpNumber) -> Option<NodeId> {
        let at = self.all.iter().position(|connection| connection.queue_pair == queue_pair)?;
        u16::try_from(at).ok().map(NodeId)
    }

    /// What is connected; None: the other node is down.
    pub fn incarnations(&self, peer: NodeId) -> Option<Incarnations> {
        self.all.get(peer.index())?.incarnations
    }

    /// True if another node can be asked for something that was told of in this incarnation of it: a key, say.
    pub fn reaches(&self, peer: NodeId, incarnation: Incarnation) -> bool {
        self.incarnations(peer).is_some_and(|incarnations| {
            incarnations.theirs == incarnation || !self.rules.holds(Rule::KeysAreOfIncarnations)
        })
    }

    /// A new epoch: connections to nodes that are down, or in another incarnation, have ended, and others begin.
    pub fn on_view(&mut self, incarnations: &[Option<Incarnation>], out: &mut Vec<Change>) {
        let me = self.me;
        let Some(mine) = incarnations[me.index()] else { return };
        for (peer, theirs) in (0..).map(NodeId).zip(incarnations).filter(|(peer, _)| *peer != me) {
            let before = self.all[peer.index()].incarnations;
            let is_same = |before: Incarnations| before.mine == mine && Some(before.theirs) == *theirs;
            if before.is_some_and(|before| {
                is_same(before) || !self.rules.holds(Rule::ConnectionsEndWithIncarnations)
            }) {
                continue;
            }
            self.end(peer, Ended::Down(before.map(|before| before.theirs)), out);
            if let Some(theirs) = *theirs {
                self.begin(peer, Incarnations { mine, theirs, attempt: 0 }, out);
            }
        }
    }

    /// This node counts no more.
    pub fn end_all(&mut self, out: &mut Vec<Change>) {
        for peer in (0..).map(NodeId).take(self.all.len()) {
            self.end(peer, Ended::Down(None), out);
        }
    }

    fn end(&mut self, peer: NodeId, why: Ended, out: &mut Vec<Change>) {
        let connection = &mut self.all[peer.index()];
        (connection.incarnations, connection.is_broken, connection.say_again) = (None, false, Nanos::MAX);
        out.push(Change::Ended(peer, why));
    }

    fn begin(&mut self, peer: NodeId, incarnations: Incarnations, out: &mut Vec<Change>) {
        self.all[peer.index()].incarnations = Some(incarnations);
        out.push(Change::Begun(peer));
    }

    /// Connects the queue pair of a connection that begins, with these attributes but for who the peer is and the first packets.
    ///
    /// # Panics
    /// If the queue pair was not reset.
    pub fn connect<V: Rules>(&self, device: &mut Device<V>, peer: NodeId, receive: ToReceive, send: ToSend) {
        let there = self.all[self.me.index()].queue_pair;
        let Connection { queue_pair, incarnations, .. } = self.all[peer.index()];
        let mut incarnations = incarnations.expect("it begins");
        if !self.rules.holds(Rule::AttemptsHaveNumbers) {
            incarnations.attempt = 0;
        }
        let first = |psn| Psn::new(psn);
        let receive = ToReceive {
            peer,
            peer_queue_pair: there,
            first_psn: first(incarnations.first_to_me(self.me, peer)),
            ..receive
        };
        let send = ToSend { first_psn: first(incarnations.first_to_peer(self.me, peer)), ..send };
        device.init(queue_pair).expect("it was reset");
        device.ready_to_receive(queue_pair, receive).expect("it was begun");
        device.ready_to_send(queue_pair, send).expect("it can receive");
    }

    /// True if the connection works.
    pub fn is_connected<V: Rules>(&self, device: &Device<V>, peer: NodeId) -> bool {
        let Connection { queue_pair, incarnations, .. } = self.all[peer.index()];
        incarnations.is_some() && device.state(queue_pair) == Some(QueuePairState::Rts)
    }

    /// The device says that a queue pair has failed.
    ///
    /// # Panics
    /// If it is none of these.
    pub fn on_broken(&mut self, queue_pair: QpNumber) {
        let broken = self.all.iter_mut().find(|connection| connection.queue_pair == queue_pair);
        broken.expect("one of ours").is_broken = true;
        self.is_any_broken = true;
    }

    /// Connections that have broken begin anew. To be called when the effects of the device are done.
    pub fn mend(&mut self, now: Nanos, out: &mut Vec<Change>) {
        if !core::mem::take(&mut self.is_any_broken) {
            return;
        }
        for peer in (0..).map(NodeId).take(self.all.len()) {
            if let Connection { is_broken: true, incarnations: Some(incarnations), .. } =
                self.all[peer.index()]
            {
                self.renew(
                    peer,
                    Incarnations { attempt: incarnations.attempt.wrapping_add(1), ..incarnations },
                    out,
                );
                self.say(now, peer, false, out);
            }
        }
    }

    fn renew(&mut self, peer: NodeId, incarnations: Incarnations, out: &mut Vec<Change>) {
        self.end(peer, Ended::Broken, out);
        self.begin(peer, incarnations, out);
    }

    /// Says which attempt this end is at; if it is no answer, until there is one.
    fn say(&mut self, now: Nanos, peer: NodeId, is_answer: bool, out: &mut Vec<Change>) {
        let connection = &mut self.all[peer.index()];
        let Some(incarnations) = connection.incarnations else { return };
        if !is_answer {
            connection.say_again = now + BETWEEN;
            self.say_again = self.say_again.min(now + BETWEEN);
        }
        out.push(Change::Say(peer, Again { incarnations, is_answer }));
    }

    /// What another node says.
    pub fn on_again(&mut self, now: Nanos, from: NodeId, said: &Again, out: &mut Vec<Change>) {
        let Some(mine) = self.incarnations(from) else { return };
        if (said.incarnations.mine, said.incarnations.theirs) != (mine.theirs, mine.mine) {
            return;
        }
        let attempt = said.incarnations.attempt;
        if attempt > mine.attempt && self.rules.holds(Rule::TheLaterAttemptCounts) {
            self.renew(from, Incarnations { attempt, ..mine }, out);
        } else if attempt == mine.attempt {
            // It is where we are.
            self.all[from.index()].say_again = Nanos::MAX;
        }
        if attempt < mine.attempt || !said.is_answer {
            self.say(now, from, attempt >= mine.attempt, out);
        }
    }

    /// When something is to be said once more.
    pub fn next_deadline(&self) -> Nanos {
        self.say_again
    }

    /// Says once more what has not been answered.
    pub fn on_deadline(&mut self, now: Nanos, out: &mut Vec<Change>) {
        if self.say_again > now {
            return;
        }
        let later = self.all.iter().map(|it| it.say_again).filter(|it| *it > now);
        self.say_again = later.min().unwrap_or(Nanos::MAX);
        for peer in (0..).map(NodeId).take(self.all.len()) {
            if self.all[peer.index()].say_again <= now {
                self.say(now, peer, false, out);
            }
        }
    }

    /// True if nothing is to be said.
    pub fn is_quiet(&self) -> bool {
        self.all.iter().all(|it| it.say_again == Nanos::MAX)
    }
}
