//! A node's side of membership: it says that it is there, holds a lease as long as it is heard, and begins the views
//! that it is told.
//!
//! Runs in the node's process. What must always hold: the lease ends before the coordinator may declare this incarnation
//! dead; epochs never go back; after [`Effect::Fenced`] or [`Effect::Left`] nothing comes any more.

use alloc::vec::Vec;

use node::View;
use switch::coherence::Dump;
use wire::{Copyset, Nanos, NodeId, SwitchEpoch};

use crate::message::{Beat, Contents, Drain, Know, MOST_STATISTICS, Message, Pulse, Standing, ViewPart};
use crate::roster::{Roster, Session};
use crate::timing::Timing;

/// Who a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberConfig {
    /// Its node.
    pub node: NodeId,
    /// Nodes that the rack may come to have.
    pub nodes: usize,
    /// This incarnation of the node: a random number that no other incarnation has.
    pub session: Session,
    /// No other process of this node is running, or can while this one does: say, because this one holds what only one
    /// can hold, such as the node's own address and port. A new incarnation that cannot say so waits until the last
    /// one's lease must have run out.
    pub sole: bool,
    /// The rack's.
    pub timing: Timing,
}

/// What the driver has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Send this to the coordinator.
    Send(Message),
    /// Hand this view to the node: `Node::on_new_epoch`. The first one says which incarnation it is.
    Begin {
        /// Who is in the rack now.
        view: View,
        /// What the switch knew of this home's blocks at the end of the epoch that the node leaves.
        dump: Option<Dump>,
    },
    /// The lease runs until then.
    Leased {
        /// On the clock that all times here are of.
        until: Nanos,
    },
    /// The lease has run out: others may have declared this incarnation dead, so what it has cached may be stale. It goes on
    /// beating, and may be leased again.
    Suspended,
    /// This incarnation was declared dead. The process must throw away what it has; a new incarnation may join.
    Fenced,
    /// The rack goes on without this node, as it wished.
    Left,
}

/// Where a member is in its incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Here,
    Leaving,
    Over,
}

/// A view of which not all parts are here.
#[derive(Debug)]
struct Gathering {
    epoch: SwitchEpoch,
    of: u32,
    next: u32,
    bytes: Vec<u8>,
}

/// A node's side of membership.
#[derive(Debug)]
pub struct Member {
    config: MemberConfig,
    phase: Phase,
    /// The last view that has begun.
    roster: Roster,
    /// The rack is in this epoch, as far as heard.
    heard: SwitchEpoch,
    gathering: Option<Gathering>,
    lease: Option<Nanos>,
    ticket: u64,
    number: u64,
    next_beat: Nanos,
    statistics: Vec<u8>,
    /// It is about to leave. How far that has come, as of the BEAT of that time.
    draining: bool,
    /// The coordinator's list of nodes does not have this one.
    unlisted: bool,
    drain: (Nanos, Option<Drain>),
    /// The memories with copies that the node has whole, and in which epoch.
    whole: (SwitchEpoch, Copyset),
    dropped: u64,
}

impl Member {
    /// A new incarnation, which wants to join. It has to be called at once: [`next_deadline`](Self::next_deadline) is `now`.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn new(config: MemberConfig, now: Nanos) -> Self {
        assert!(config.node.index() < config.nodes && config.nodes <= wire::Copyset::NODES);
        Self {
            config,
            phase: Phase::Here,
            roster: Roster::empty(config.nodes),
            heard: SwitchEpoch(0),
            gathering: None,
            lease: None,
            ticket: 0,
            number: 0,
            next_beat: now,
            statistics: Vec::new(),
            draining: false,
            unlisted: false,
            drain: (Nanos::ZERO, None),
            whole: (SwitchEpoch(0), Copyset::EMPTY),
            dropped: 0,
        }
    }

    /// The memories with copies that the node has whole, counted from the first of them; and in which epoch that is so.
    pub fn set_whole(&mut self, whole: (SwitchEpoch, Copyset)) {
        self.whole = whole;
    }

    /// The node is about to leave, or is not any more: others get what it keeps, and it stays until it [leaves](Self::leave).
    pub fn set_draining(&mut self, now: Nanos, draining: bool, out: &mut Vec<Effect>) {
        if self.phase == Phase::Here && self.draining != draining {
            (self.draining, self.drain) = (draining, (now, None));
            self.beat(now, out);
        }
    }

    /// How far that has come, as last heard; `None`: it does not drain, or the coordinator has not said.
    pub const fn drain(&self) -> Option<Drain> {
        self.drain.1
    }

    /// What BEATs carry from now on; what is longer than [`MOST_STATISTICS`] is cut.
    pub fn set_statistics(&mut self, bytes: &[u8]) {
        self.statistics.clear();
        self.statistics.extend(&bytes[..bytes.len().min(MOST_STATISTICS)]);
    }

    /// True while this incarnation cannot have been declared dead. An access that must never be stale asks after it has
    /// read.
    pub fn holds(&self, now: Nanos) -> bool {
        self.lease.is_some_and(|until| now < until)
    }

    /// When the lease runs out; `None`: there is none.
    pub const fn lease(&self) -> Option<Nanos> {
        self.lease
    }

    /// The epoch that the node is in; 0: none yet.
    pub const fn epoch(&self) -> SwitchEpoch {
        self.roster.epoch
    }

    /// The last view that has begun.
    pub const fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Messages that were malformed in what they say, late, doubled, or meant for another incarnation.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True if the coordinator's list of nodes does not have this one, as last heard. It calls on, as the list may become longer.
    pub const fn is_unlisted(&self) -> bool {
        self.unlisted
    }

    /// True after [`Effect::Fenced`] and [`Effect::Left`].
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// When [`on_deadline`](Self::on_deadline) wants to be called; [`Nanos::MAX`]: never again.
    pub fn next_deadline(&self) -> Nanos {
        match self.phase {
            Phase::Over => Nanos::MAX,
            _ => self.next_beat.min(self.lease.unwrap_or(Nanos::MAX)),
        }
    }

    /// The deadline passed.
    pub fn on_deadline(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        self.expire(now, out);
        if self.phase != Phase::Over && now >= self.next_beat {
            self.beat(now, out);
        }
    }

    /// The node wants to leave: its lease ends now. [`Effect::Left`] says that the others have let it go; whoever
    /// cannot wait for that just stops.
    pub fn leave(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        if self.phase != Phase::Here {
            return;
        }
        self.phase = Phase::Leaving;
        if self.lease.take().is_some() {
            out.push(Effect::Suspended);
        }
        self.beat(now, out);
    }

    /// Something came from the coordinator.
    pub fn on_message(&mut self, now: Nanos, message: Message, out: &mut Vec<Effect>) {
        self.expire(now, out);
        match message {
            _ if self.phase == Phase::Over => self.dropped += 1,
            Message::Pulse(pulse) if pulse.session == self.config.session => self.on_pulse(now, &pulse, out),
            Message::View(part) if part.session == self.config.session => self.on_view(now, part, out),
            _ => self.dropped += 1,
        }
    }

    fn on_pulse(&mut self, now: Nanos, pulse: &Pulse, out: &mut Vec<Effect>) {
        if pulse.echo > now {
            self.dropped += 1;
            return;
        }
        self.heard = self.heard.max(pulse.epoch);
        // Answers overtake each other; and to whoever leaves nothing is said of it any more, who wants to know how it was.
        if self.draining && self.phase == Phase::Here && pulse.echo >= self.drain.0 {
            self.drain = (pulse.echo, pulse.drain);
        }
        self.unlisted = pulse.standing == Standing::Unlisted;
        match pulse.standing {
            Standing::Dead => {
                self.lease = None;
                out.push(if self.phase == Phase::Leaving { Effect::Left } else { Effect::Fenced });
                self.phase = Phase::Over;
                return;
            }
            Standing::Alive if self.phase == Phase::Here => self.renew(now, pulse.echo, out),
            Standing::Asked if self.roster.epoch.0 > 0 => {
                let know = Know {
                    node: self.config.node,
                    session: self.config.session,
                    roster: self.roster.clone(),
                };
                out.push(Effect::Send(Message::Know(know)));
            }
            _ => {}
        }
        if self.ticket != pulse.ticket {
            self.ticket = pulse.ticket;
            self.beat(now, out);
        }
    }

    /// The lease runs from when the BEAT was sent: the coordinator cannot have counted from earlier than that.
    fn renew(&mut self, now: Nanos, sent: Nanos, out: &mut Vec<Effect>) {
        let until = sent + self.config.timing.lease();
        if now < until && self.lease.is_none_or(|lease| lease < until) {
            self.lease = Some(until);
            out.push(Effect::Leased { until });
        }
    }

    fn expire(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        if self.lease.is_some_and(|until| until <= now) {
            self.lease = None;
            out.push(Effect::Suspended);
        }
    }

    fn on_view(&mut self, now: Nanos, view: ViewPart, out: &mut Vec<Effect>) {
        let gathered = self.gathering.as_ref().map_or(SwitchEpoch(0), |it| it.epoch);
        // What the switch knew at the end of another epoch than this node's would not be looked at. Nor can a view be
        // older than what it leaves: so epochs never go back.
        if view.left != self.roster.epoch || view.epoch < gathered || self.phase != Phase::Here {
            self.dropped += 1;
            return;
        }
        self.heard = self.heard.max(view.epoch);
        if view.epoch > gathered {
            self.gathering = Some(Gathering { epoch: view.epoch, of: view.of, next: 0, bytes: Vec::new() });
        }
        let Some(gathering) = self.gathering.as_mut() else { unreachable!("begun above, or before") };
        if gathering.next != view.part || gathering.of != view.of {
            self.dropped += 1;
            return;
        }
        gathering.bytes.extend(view.bytes);
        gathering.next += 1;
        if gathering.next == gathering.of
            && let Some(whole) = self.gathering.take()
        {
            self.begin(&whole, out);
        }
        self.beat(now, out);
    }

    fn begin(&mut self, whole: &Gathering, out: &mut Vec<Effect>) {
        let me = &self.config;
        let fits = |it: &Contents| {
            it.roster.epoch == whole.epoch
                && it.roster.entries.len() == me.nodes
                && it.roster.founders > 0
                && me.nodes + it.roster.memories.len() <= wire::Copyset::NODES
                && it.roster.is_alive(me.node, me.session)
                && it.dump.as_ref().is_none_or(|dump| dump.epoch == self.roster.epoch)
        };
        let Some(contents) = Contents::parse(&whole.bytes).ok().filter(fits) else {
            self.dropped += 1;
            return;
        };
        self.roster = contents.roster;
        out.push(Effect::Begin { view: self.roster.view(), dump: contents.dump });
    }

    fn beat(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        let timing = self.config.timing;
        let waits = self.lease.is_none() || self.heard > self.roster.epoch;
        self.next_beat = now + if waits { timing.retry() } else { timing.heartbeat() };
        self.number += 1;
        out.push(Effect::Send(Message::Beat(Beat {
            node: self.config.node,
            session: self.config.session,
            number: self.number,
            time: now,
            epoch: self.roster.epoch,
            wants: self.gathering.as_ref().map_or((SwitchEpoch(0), 0), |it| (it.epoch, it.next)),
            ticket: self.ticket,
            leased: self.holds(now),
            leaving: self.phase == Phase::Leaving,
            draining: self.draining,
            sole: self.config.sole,
            whole: if self.whole.0 == self.roster.epoch { self.whole.1 } else { Copyset::EMPTY },
            statistics: self.statistics.clone(),
        })));
    }
}
