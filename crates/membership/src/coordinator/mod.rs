//! The coordinator: hears the members, decides who is alive, and numbers the epochs.
//!
//! Runs in the switch's process. What must always hold: an epoch's number names one roster; nobody is declared dead
//! who may have a lease; who is dead stays dead.

mod contact;
mod forming;
mod running;

use alloc::vec::Vec;

use node::Placement;
use sorted::{Map, Set};
use switch::coherence::Dump;
use wire::{Copyset, Nanos, NodeId, SwitchEpoch};

use crate::message::{
    Beat, Drain, Know, MOST_PARTS, Message, PART, Pulse, Standing, ViewPart, encode_dump, encode_roster,
};
use crate::roster::{Roster, RosterEntry, Session};
use crate::timing::Timing;
use contact::Contact;

/// Dumps that are kept for members that are more than one epoch behind.
const KEPT_DUMPS: usize = 8;

/// What a coordinator has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoordinatorConfig {
    /// Nodes that the rack may come to have.
    pub nodes: usize,
    /// Those that may be in it now: the first so many. More may be [listed](Coordinator::list) later.
    pub listed: usize,
    /// On how many of them memory with copies is kept; 1: there is no such memory.
    pub copies: usize,
    /// Its epochs are later than this one. Seconds since some year will do: then a coordinator that hears of no
    /// earlier one does not reuse its numbers.
    pub origin: SwitchEpoch,
    /// A random number that no other coordinator has: its tickets begin there.
    pub session: u64,
    /// The rack's.
    pub timing: Timing,
}

/// What the driver has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Send this to that node.
    Send(NodeId, Message),
    /// An epoch ends. Read the switch's directory if it was in an epoch before (`Switch::dump`), restart it in this one
    /// (`Switch::restart`), with nothing in between, and say so: [`Coordinator::on_restarted`]. Nobody hears of
    /// the epoch before that.
    Restart {
        /// The epoch that begins.
        epoch: SwitchEpoch,
        /// The node that keeps the shadow of the switch's tags.
        shadow: NodeId,
        /// Who is in it and was not in the one before, and the other way round, by node: for whoever keeps a log.
        changes: Vec<(NodeId, Change)>,
    },
}

/// What an epoch changes about a node. A node that is replaced ends first, and then joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// An incarnation begins.
    Joined,
    /// One is over.
    Ended {
        /// Why.
        why: End,
        /// What it said about itself last.
        statistics: Vec<u8>,
    },
}

/// Why an incarnation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was not heard for the timeout.
    Silent,
    /// It was heard, and did not begin an epoch in time.
    Behind,
    /// It wished to.
    Left,
    /// A new process of the node has taken its place.
    Replaced,
    /// It was in the rack of the coordinator before this one, which has not heard it.
    Missing,
}

impl End {
    /// A name for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Behind => "behind",
            Self::Left => "left",
            Self::Replaced => "replaced",
            Self::Missing => "missing",
        }
    }
}

/// What the coordinator is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No node is up, or it is not known which ones: waiting for them.
    Forming,
    /// The switch is to be restarted.
    Restarting,
    /// The rack is in an epoch.
    Running,
}

/// Counts of what has happened, for whoever asks how the rack is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Epochs begun.
    pub epochs: u64,
    /// Incarnations that ended because they were not heard.
    pub silent: u64,
    /// Incarnations that ended because they did not begin an epoch in time.
    pub lost: u64,
    /// Incarnations that ended as they wished.
    pub left: u64,
    /// Incarnations that ended because a new one had taken their place.
    pub replaced: u64,
    /// BEATs that were late or doubled.
    pub old_beats: u64,
    /// Messages from nodes that there are not, from a second process of a node, or that no member sends.
    pub refused: u64,
    /// Times that the coordinator was called much too late, and blamed nobody for it.
    pub stalls: u64,
    /// Times that nobody at all was heard until somebody would have been declared dead, and nobody was blamed for it.
    pub cut_off: u64,
}

/// A node, as the coordinator sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status<'a> {
    /// Its last incarnation.
    pub entry: RosterEntry,
    /// For how long it has not been heard; `None`: it is not up.
    pub silence: Option<Nanos>,
    /// The epoch that it said it was in.
    pub epoch: SwitchEpoch,
    /// How far it has come, if it drains.
    pub drain: Option<Drain>,
    /// The statistics in its last BEAT.
    pub statistics: &'a [u8],
}

/// Who calls as a node.
#[derive(Debug, Default)]
struct NodeSlot {
    /// The incarnation that is up.
    entry: Option<Contact>,
    /// Another one, that wants to be.
    caller: Option<Contact>,
}

/// Decides who is in the rack.
#[derive(Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    phase: Phase,
    born: Nanos,
    /// The last call.
    last: Nanos,
    /// When anybody was heard last.
    heard: Nanos,
    /// This coordinator has made the roster, and needs nobody to tell it.
    settled: bool,
    roster: Roster,
    /// Who could keep memories with copies when this epoch began.
    placed: Placement,
    /// The epoch that the switch is in.
    current: SwitchEpoch,
    /// The latest epoch that anybody has spoken of.
    highest: SwitchEpoch,
    slots: Vec<NodeSlot>,
    tickets: u64,
    /// Incarnations that are over.
    buried: Set<Session>,
    /// What the switch knew at the end of an epoch, encoded, for the homes that have not left it as far as known.
    dumps: Map<SwitchEpoch, Map<NodeId, Vec<u8>>>,
    /// A node that is not on the list has called.
    unlisted: Option<NodeId>,
    counters: Counters,
}

impl Coordinator {
    /// Knows nobody. The switch is restarted when the rack has formed.
    ///
    /// # Panics
    /// If a rack cannot have so many nodes.
    pub fn new(config: CoordinatorConfig, now: Nanos) -> Self {
        assert!((1..=config.nodes).contains(&config.listed) && config.nodes <= wire::Copyset::NODES);
        Self {
            config,
            phase: Phase::Forming,
            born: now,
            last: now,
            heard: now,
            settled: false,
            roster: Roster::empty(config.nodes),
            placed: Placement {
                nodes: config.nodes,
                copies: config.copies,
                up: Copyset::EMPTY,
                draining: Copyset::EMPTY,
            },
            current: SwitchEpoch(0),
            highest: config.origin,
            slots: (0..config.nodes).map(|_| NodeSlot::default()).collect(),
            tickets: config.session,
            buried: Set::new(),
            dumps: Map::new(),
            unlisted: None,
            counters: Counters::default(),
        }
    }

    /// The switch has been in this epoch, and may know what members do not say: later ones follow.
    pub fn hear_of(&mut self, epoch: SwitchEpoch) {
        self.highest = self.highest.max(epoch);
    }

    /// The list of nodes has become longer: so many may be in the rack. A shorter one changes nothing.
    pub fn list(&mut self, nodes: usize) {
        self.config.listed = self.config.listed.max(nodes.min(self.config.nodes));
    }

    /// A node that wants to join and is not on the list, and has called since this was asked last.
    pub fn take_unlisted(&mut self) -> Option<NodeId> {
        self.unlisted.take()
    }

    /// What it is doing.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Who is in the rack; while the switch is being restarted, who is going to be.
    pub const fn roster(&self) -> &Roster {
        &self.roster
    }

    /// How many nodes are to keep memory with copies; 1: there is none.
    pub const fn copies(&self) -> usize {
        self.config.copies
    }

    /// Each memory with copies: the nodes that have it whole, and those to which it is being copied, as far as heard.
    pub fn memories(&self) -> impl Iterator<Item = (Copyset, Copyset)> + '_ {
        let (view, copied) = (self.roster.view(), self.copied());
        (0..view.memories.len()).map(move |i| {
            let say_so = copied.iter().filter(|(_, whole)| whole.contains(NodeId(i as u16)));
            let have: Copyset = view.hosts(i).chain(say_so.map(|(node, _)| *node)).collect();
            let getting = view.filling(i).filter(|node| !have.contains(*node));
            (have, getting.collect())
        })
    }

    /// What has happened.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A node. `None`: the rack has no such node, and has had none.
    pub fn status(&self, node: NodeId, now: Nanos) -> Option<Status<'_>> {
        let slot = self.slots.get(node.index())?;
        if !self.is_listed(node) && self.roster.entries[node.index()].session == Session::default() {
            return None;
        }
        let contact = slot.entry.as_ref();
        Some(Status {
            entry: self.roster.entries[node.index()],
            silence: contact.map(|it| now.saturating_sub(it.heard)),
            epoch: contact.map_or(SwitchEpoch(0), |it| it.epoch),
            drain: self.drain(node),
            statistics: contact.map_or(&[], |it| &it.statistics),
        })
    }

    /// When [`on_deadline`](Self::on_deadline) wants to be called: a heartbeat after the last call at the latest, so that
    /// the coordinator notices if it was stopped.
    pub fn next_deadline(&self) -> Nanos {
        let timing = self.config.timing;
        let tick = self.last + timing.heartbeat();
        if self.phase != Phase::Running || self.is_cut_off(self.last) {
            return tick;
        }
        let entries = self.slots.iter().filter_map(|slot| slot.entry.as_ref());
        entries.map(|it| it.heard + timing.timeout).fold(tick, Nanos::min)
    }

    /// The deadline passed.
    pub fn on_deadline(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        self.notice_stall(now);
        self.review(now, out);
    }

    /// Something came from this node.
    pub fn on_message(&mut self, now: Nanos, from: NodeId, message: Message, out: &mut Vec<Effect>) {
        self.notice_stall(now);
        match message {
            Message::Beat(beat) if beat.node == from && from.index() < self.config.nodes => {
                self.on_beat(now, &beat, out);
            }
            Message::Know(know) if know.node == from && from.index() < self.config.nodes => {
                self.on_know(now, know, out);
            }
            _ => self.counters.refused += 1,
        }
    }

    /// The switch has begun the epoch of [`Effect::Restart`]. `dump` is what was read out of it before; `None`: it had
    /// not been in any. What is of an epoch that no member is in does no harm.
    pub fn on_restarted(&mut self, now: Nanos, dump: Option<&Dump>, out: &mut Vec<Effect>) {
        if self.phase != Phase::Restarting {
            return;
        }
        self.notice_stall(now);
        self.current = self.roster.epoch;
        self.counters.epochs += 1;
        let live = self.roster.live();
        self.phase = if live.is_empty() { Phase::Forming } else { Phase::Running };
        if let Some(dump) = dump {
            let homes = live.iter().map(|home| (home, encode_dump(dump, home)));
            self.dumps.insert(dump.epoch, homes.collect());
            while self.dumps.len() > KEPT_DUMPS {
                self.dumps.pop_first();
            }
        }
        for node in live.iter() {
            if let Some(contact) = &mut self.slots[node.index()].entry {
                contact.behind.get_or_insert(now);
            }
            self.send_part(node, 0, out);
        }
        self.review(now, out);
    }

    /// Between two calls lies a heartbeat at most. If it was much more, this process was stopped, or had no processor:
    /// BEATs may have come and got lost meanwhile, and nobody is to blame for silence. But for a heartbeat of it: a
    /// coordinator that is late every time, on a machine that is full, would never find out that somebody has died.
    fn notice_stall(&mut self, now: Nanos) {
        let gap = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        let heartbeat = self.config.timing.heartbeat();
        if gap.0 < heartbeat.0 * 2 {
            return;
        }
        self.counters.stalls += 1;
        let forgiven = gap.saturating_sub(heartbeat);
        self.born += forgiven;
        self.heard += forgiven;
        self.contacts().for_each(|contact| contact.forgive(forgiven));
    }

    fn contacts(&mut self) -> impl Iterator<Item = &mut Contact> {
        self.slots.iter_mut().flat_map(|slot| slot.entry.iter_mut().chain(&mut slot.caller))
    }

    /// True while nobody at all is heard, for two heartbeats now. It is more likely this place that is cut off than that all
    /// nodes have died at once; and if they have, nobody is there who would wait for the dead.
    pub(super) fn is_cut_off(&self, now: Nanos) -> bool {
        now.saturating_sub(self.heard).0 >= self.config.timing.heartbeat().0 * 2
    }

    /// A member is heard. If nobody was for a while, the others are not to blame for their silence, either.
    fn notice_voice(&mut self, now: Nanos, whose: Session) {
        let timing = self.config.timing;
        if self.is_cut_off(now) {
            let gap = now.saturating_sub(self.heard);
            let others = || self.slots.iter().filter_map(|slot| slot.entry.as_ref());
            self.counters.cut_off +=
                u64::from(others().any(|entry| entry.is_silent(now, timing)) || gap >= timing.timeout);
            for contact in self.contacts() {
                if contact.session == whose { contact.forgive_behind(gap) } else { contact.forgive(gap) }
            }
        }
        self.heard = self.heard.max(now);
    }

    pub(super) const fn is_listed(&self, node: NodeId) -> bool {
        node.index() < self.config.listed
    }

    fn on_beat(&mut self, now: Nanos, beat: &Beat, out: &mut Vec<Effect>) {
        self.highest = self.highest.max(beat.epoch);
        let at = beat.node.index();
        // Whoever has been in the rack was on the list of the coordinator before this one.
        if !self.is_listed(beat.node) && beat.epoch.0 == 0 {
            self.unlisted = Some(beat.node);
            return self.pulse(beat, 0, Standing::Unlisted, out);
        }
        if self.is_over(beat.node, beat.session, beat.epoch) {
            drop(self.slots[at].caller.take_if(|caller| caller.session == beat.session));
            self.pulse(beat, 0, Standing::Dead, out);
            return;
        }
        let known = match &mut self.slots[at] {
            NodeSlot { entry: Some(entry), .. } if entry.session == beat.session => {
                entry.on_beat(now, beat, self.current)
            }
            NodeSlot { caller: Some(caller), .. } if caller.session == beat.session => {
                caller.on_beat(now, beat, self.current)
            }
            NodeSlot { caller: Some(caller), .. }
                if !beat.sole && now.saturating_sub(caller.heard).0 < self.config.timing.grace().0 =>
            {
                // A second process of a node: the first that calls is heard, for as long as it calls.
                self.counters.refused += 1;
                return;
            }
            slot => {
                self.tickets = self.tickets.wrapping_add(1);
                slot.caller = Some(Contact::new(now, beat, self.tickets));
                true
            }
        };
        if !known {
            self.counters.old_beats += 1;
            return;
        }
        let answered = |it: &Contact| it.session == beat.session && it.answered.is_some();
        let slot = &self.slots[at];
        if slot.entry.iter().chain(&slot.caller).any(answered) {
            self.notice_voice(now, beat.session);
        }
        self.review(now, out);
        self.answer(now, beat, out);
    }

    /// True if the incarnation has been declared dead: by this coordinator, or by one before it, as far as known. An incarnation that
    /// has been in an epoch and is not up in a later one will never be again.
    fn is_over(&self, node: NodeId, session: Session, epoch: SwitchEpoch) -> bool {
        let last = self.roster.entries[node.index()];
        let was_up = epoch.0 > 0 && (self.settled || epoch <= self.roster.epoch);
        self.buried.contains(&session)
            || last.session == session && !last.alive && self.roster.epoch.0 > 0
            || was_up && !self.roster.is_alive(node, session)
    }

    fn on_know(&mut self, now: Nanos, know: Know, out: &mut Vec<Effect>) {
        let new = know.roster.epoch > self.roster.epoch;
        if self.settled || !new || !self.fits(&know.roster) {
            self.counters.refused += u64::from(!self.settled && new);
            return;
        }
        self.highest = self.highest.max(know.roster.epoch);
        self.roster = know.roster;
        self.review(now, out);
    }

    /// True for a roster of a rack of this shape.
    fn fits(&self, roster: &Roster) -> bool {
        let memories = if self.config.copies > 1 { roster.founders } else { 0 };
        roster.entries.len() == self.config.nodes && roster.founders > 0 && roster.memories.len() == memories
    }

    fn answer(&mut self, now: Nanos, beat: &Beat, out: &mut Vec<Effect>) {
        let slot = &self.slots[beat.node.index()];
        let is = |contact: &&Contact| contact.session == beat.session;
        if let Some(entry) = slot.entry.as_ref().filter(is) {
            let (ticket, behind) = (entry.ticket, entry.epoch < self.current);
            let standing =
                if self.may_lease(now, beat.node, entry) { Standing::Alive } else { Standing::Admitted };
            self.pulse(beat, ticket, standing, out);
            if behind && self.phase == Phase::Running {
                let part = if beat.wants.0 == self.current { beat.wants.1 } else { 0 };
                self.send_part(beat.node, part, out);
            }
        } else if let Some(caller) = slot.caller.as_ref().filter(is) {
            let asked = !self.settled && caller.epoch > self.roster.epoch;
            let standing = if asked { Standing::Asked } else { Standing::Waiting };
            self.pulse(beat, caller.ticket, standing, out);
        } else {
            self.pulse(beat, 0, Standing::Dead, out);
        }
    }

    /// A lease is a promise not to declare this incarnation dead while it runs, which a coordinator that comes after this one
    /// must keep, too. It learns of incarnations from the members. So a new incarnation gets no lease before all older ones have
    /// heard of it. (Those that came with it, or later, hear of it before they get one themselves.)
    fn may_lease(&self, now: Nanos, node: NodeId, entry: &Contact) -> bool {
        let since = self.roster.entries[node.index()].incarnation;
        let older = self.roster.entries.iter().zip(&self.slots).filter(|(it, _)| it.incarnation < since);
        let mut older = older.filter_map(|(_, slot)| slot.entry.as_ref());
        let known = entry.epoch.0 >= since.0 && older.all(|other| other.epoch.0 >= since.0);
        known && !entry.leaving && !entry.is_late(now, self.config.timing)
    }

    fn pulse(&self, beat: &Beat, ticket: u64, standing: Standing, out: &mut Vec<Effect>) {
        let (session, echo, epoch) = (beat.session, beat.time, self.current);
        let entry = self.slots[beat.node.index()].entry.as_ref();
        let drain = self.drain(beat.node).filter(|_| entry.is_some_and(|it| it.session == session));
        let pulse = Pulse { session, echo, epoch, ticket, standing, drain };
        out.push(Effect::Send(beat.node, Message::Pulse(pulse)));
    }

    fn send_part(&self, node: NodeId, part: u32, out: &mut Vec<Effect>) {
        let Some(entry) = &self.slots[node.index()].entry else { return };
        let mut bytes = Vec::new();
        encode_roster(&self.roster, &mut bytes);
        let kept = self.dumps.get(&entry.epoch).and_then(|homes| homes.get(&node));
        // A directory too large to be sent counts as unknown, like that of a switch that died.
        let fits = |dump: &&Vec<u8>| dump.len() + bytes.len() <= MOST_PARTS as usize * PART;
        let dump = kept.filter(fits).map_or(&[][..], |dump| dump);
        let length = bytes.len() + dump.len();
        let (from, to) = (part as usize * PART, length.min((part as usize + 1) * PART));
        if from >= to {
            return;
        }
        let of = u32::try_from(length.div_ceil(PART)).expect("as checked above");
        let rest = bytes.len();
        let mut chunk = bytes[from.min(rest)..to.min(rest)].to_vec();
        chunk.extend(&dump[from.saturating_sub(rest)..to.saturating_sub(rest)]);
        let (session, epoch, left) = (entry.session, self.current, entry.epoch);
        let view = ViewPart { session, epoch, left, part, of, bytes: chunk };
        out.push(Effect::Send(node, Message::View(view)));
    }
}
