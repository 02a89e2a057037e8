//! What must hold after every step, looked at from outside, by somebody who sees all clocks.

use std::collections::{BTreeMap, BTreeSet};

use membership::coordinator::Change;
use membership::{Roster, Session};
use node::View;
use switch::coherence::Dump;
use wire::{Incarnation, Nanos, NodeId, SwitchEpoch};

use super::world::{Rig, directory};

/// What has been seen so far.
#[derive(Default)]
pub(crate) struct Seen {
    rosters: BTreeMap<SwitchEpoch, Roster>,
    /// The last roster that any coordinator decided on.
    last: Option<Roster>,
    /// Sessions that this coordinator has declared dead.
    dead: BTreeSet<Session>,
    /// The incarnation that each session has been given.
    entries: BTreeMap<Session, Incarnation>,
    /// The latest of a node's.
    latest: BTreeMap<NodeId, Incarnation>,
    /// The epoch that each process was in.
    epochs: Vec<SwitchEpoch>,
    pub(crate) dumps: u32,
}

impl Seen {
    pub(crate) fn new_coordinator(&mut self) {
        self.dead.clear();
    }
}

impl Rig {
    /// After every step.
    pub(crate) fn check(&mut self) {
        self.seen.epochs.resize(self.processes.len(), SwitchEpoch(0));
        for (at, process) in self.processes.iter().enumerate().filter(|(_, it)| !it.killed) {
            let epoch = process.member.epoch();
            assert!(self.seen.epochs[at] <= epoch, "{}'s epochs go back", process.node);
            self.seen.epochs[at] = epoch;
            if process.member.holds(process.clock.at(self.now)) {
                let alive =
                    self.seen.last.as_ref().is_some_and(|it| it.is_alive(process.node, process.session));
                assert!(alive, "{} has a lease and was declared dead", process.node);
                assert!(!process.fenced && !process.left, "{} has a lease after its end", process.node);
            }
        }
    }

    /// A coordinator decides on a new epoch.
    pub(crate) fn check_decision(
        &mut self,
        epoch: SwitchEpoch,
        shadow: NodeId,
        changes: &[(NodeId, Change)],
    ) {
        let roster = self.coordinator().roster().clone();
        assert_eq!(roster.epoch, epoch);
        assert_eq!(
            shadow,
            roster.live().iter().next().unwrap_or_default(),
            "the lowest live node is the shadow"
        );
        if let Some(other) = self.seen.rosters.get(&epoch) {
            assert_eq!(*other, roster, "{epoch:?} names two views");
        }
        let up = |roster: &Roster| -> Vec<(NodeId, Session)> {
            roster.live().iter().map(|node| (node, roster.entries[node.index()].session)).collect()
        };
        for (node, session) in up(&roster) {
            assert!(!self.seen.dead.contains(&session), "{node} rises from the dead");
        }
        let added = changes.iter().filter(|(_, change)| *change == Change::Joined);
        let all_listed = added.map(|(node, _)| *node).all(|node| node.0 < self.listed);
        assert!(all_listed, "somebody has joined who is not on the list of {}: {changes:?}", self.listed);
        assert!((1..=usize::from(self.listed)).contains(&roster.founders), "{roster:?}");
        // Also by a coordinator that has none of its own: whoever was in the rack says so.
        for process in self.processes.iter().filter(|it| it.member.epoch().0 > 0) {
            if roster.is_alive(process.node, process.session) {
                let before = process.member.roster();
                assert_eq!(before.founders, roster.founders, "a rack that goes on counts as it did");
            }
        }
        self.check_the_dead_of_members(&roster);
        self.check_memories(&roster);
        for node in roster.live().iter() {
            let entry = roster.entries[node.index()];
            let latest = self.seen.latest.entry(node).or_default();
            let began = self.processes.iter().any(|it| it.session == entry.session && !it.begun.is_empty());
            match self.seen.entries.get(&entry.session) {
                Some(incarnation) if began => {
                    assert_eq!(entry.incarnation, *incarnation, "{node} entries once")
                }
                // Also of one that is given another number, as it was let in again before it heard of the first.
                Some(incarnation) if entry.incarnation == *incarnation => {}
                _ => assert!(entry.incarnation > *latest, "{node}'s incarnations do not grow"),
            }
            *latest = entry.incarnation.max(*latest);
            self.seen.entries.insert(entry.session, entry.incarnation);
        }
        // Of this coordinator's own rosters, whoever is not up in this one and was in the last is dead.
        let made = &self.control.as_ref().expect("it decides").made;
        if let Some(last) = made.last().and_then(|epoch| self.seen.rosters.get(epoch)) {
            let gone: Vec<_> =
                up(last).into_iter().filter(|(node, session)| !roster.is_alive(*node, *session)).collect();
            let come = up(&roster).into_iter().filter(|(node, session)| !last.is_alive(*node, *session));
            let told = |joined: bool| {
                let such =
                    changes.iter().filter(move |(_, change)| matches!(change, Change::Joined) == joined);
                such.map(|(node, _)| *node).collect::<Vec<_>>()
            };
            assert_eq!(told(true), come.map(|(node, _)| node).collect::<Vec<_>>(), "who has joined");
            assert_eq!(told(false), gone.iter().map(|(node, _)| *node).collect::<Vec<_>>(), "who has ended");
            self.seen.dead.extend(gone.into_iter().map(|(_, session)| session));
        }
        if std::env::var_os("RACKMEM_TRACE").is_some() {
            let up: Vec<_> = self
                .running()
                .map(|it| {
                    (
                        it.node.0,
                        it.session,
                        it.member.epoch(),
                        it.member.lease().map(|until| it.clock.when(until)),
                        it.stopped_until,
                    )
                })
                .collect();
            println!("{}: {roster:?}\n{:?}\n  {up:?}", self.now, self.coordinator().counters());
        }
        self.seen.rosters.insert(epoch, roster.clone());
        self.seen.last = Some(roster);
    }

    /// Memories with copies are on nodes that are up, and on as many of those that stay as can be, or on their way there; nothing is
    /// thrown away that somebody has.
    fn check_memories(&self, roster: &Roster) {
        let (live, coordinator) = (roster.live(), self.coordinator());
        let drains = |node: &NodeId| coordinator.status(*node, Nanos(0)).is_some_and(|it| it.drain.is_some());
        let staying = live.iter().filter(|node| !drains(node)).count();
        for (i, kept) in roster.memories.iter().enumerate() {
            let all = kept.by.union(kept.to);
            assert!(all.without_all(live).is_empty() && !kept.by.intersects(kept.to), "{kept:?} of {live:?}");
            assert!(
                !kept.to.iter().any(|node| drains(&node)),
                "{kept:?} comes to one that is about to leave"
            );
            let stay = all.iter().filter(|node| !drains(node)).count();
            assert!(stay >= staying.min(self.copies), "memory {i} is on too few of {staying}: {kept:?}");
            assert!(live.is_empty() || !kept.by.is_empty(), "memory {i} is nowhere");
            let Some(last) = self.seen.last.as_ref().filter(|_| coordinator.counters().epochs > 0) else {
                continue;
            };
            let goes_on = |node: NodeId| roster.is_alive(node, last.entries[node.index()].session);
            let lives = last.memories[i].by.iter().any(goes_on);
            assert!(
                !lives || last.memories[i].life == kept.life,
                "memory {i} begins anew, and {last:?} is there"
            );
        }
    }

    /// Whoever goes on has been in epochs in which others were dead: those stay dead, also under a new coordinator.
    fn check_the_dead_of_members(&self, roster: &Roster) {
        let lived =
            |session: Session| self.processes.iter().any(|it| it.session == session && !it.begun.is_empty());
        for process in self.processes.iter().filter(|it| roster.is_alive(it.node, it.session)) {
            for epoch in &process.begun {
                for (node, entry) in self.seen.rosters[epoch].entries.iter().enumerate() {
                    let node = NodeId(node as u16);
                    let back = !entry.alive && lived(entry.session) && roster.is_alive(node, entry.session);
                    assert!(!back, "{node} was dead when {} was in {epoch:?}", process.node);
                }
            }
        }
    }

    /// A member begins an epoch.
    pub(crate) fn check_begin(&mut self, process: usize, view: &View, dump: Option<&Dump>) {
        let it = &self.processes[process];
        let roster = self.seen.rosters.get(&view.epoch).expect("some coordinator decided on it");
        assert_eq!(*view, roster.view(), "{} is told another view", it.node);
        assert_eq!(it.member.roster(), roster);
        assert!(roster.is_alive(it.node, it.session), "{} begins an epoch that it is not in", it.node);
        let left = it.begun.last().copied().unwrap_or_default();
        assert!(view.epoch > left, "{}'s epochs go back", it.node);
        let made = &self.control.as_ref().map_or(&[][..], |control| &control.made);
        let since = made.iter().filter(|epoch| **epoch > left && **epoch <= view.epoch).count();
        match dump {
            Some(dump) => {
                let whole = directory(left, self.nodes);
                let own = whole.entries.iter().filter(|(tag, _)| tag.home() == it.node);
                assert!(own.eq(&dump.entries) && dump.holders == whole.holders && dump.epoch == left);
                assert!(dump.entries.iter().all(|(tag, _)| dump.has_queue(*tag) == whole.has_queue(*tag)));
                self.seen.dumps += 1;
            }
            None => {
                // The switch that is there now ended the epoch, and not too many epochs ago.
                let known = made.contains(&left) && made.contains(&view.epoch) && since <= 8;
                assert!(!known, "{} is not told what the switch knew at the end of {left:?}", it.node);
            }
        }
    }
}
