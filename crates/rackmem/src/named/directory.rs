//! The names that a node keeps, and what they name.
//!
//! A plain table: no thread, no message. What must always hold: a name stands for one thing at most; no two things that are ever made
//! under names of one keeper have the same number, and later ones have larger ones; what was named before this incarnation of the keeper
//! began, or was in memory that has died since, is lost, and nothing takes its place but what is made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::MOST_NAMES;
use super::spec::{NamedInfo, NamedSpec};

/// The names of a node, or of a memory with copies, in one of its incarnations.
pub(super) struct Directory {
    names: BTreeMap<String, Named>,
    /// Names that were made anew and removed again: there is nothing to be lost under them any more.
    settled: BTreeSet<String>,
    /// It has died before.
    returned: bool,
    /// The number of the last thing that was made.
    last: u64,
    /// Fencing numbers of locks that are made begin behind this epoch.
    fenced: u32,
}

/// What has a name.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) info: NamedInfo,
    /// Which call has made it: it may be repeated.
    pub(super) call: u64,
}

/// Tells whether what has a name is still there, as far as one knows without asking.
pub(super) type Lives<'a> = &'a dyn Fn(&NamedInfo) -> bool;

/// What is to be said of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// This has it; whether this very call has made it.
    There(Box<NamedInfo>, bool),
    /// Something else has it.
    Differs(Box<NamedInfo>),
    /// Nothing has it.
    Nothing,
    /// Whatever had it died with the node.
    Lost,
}

impl Directory {
    /// Of a node or a memory in this incarnation; whether it has had another one before.
    pub(super) fn new(incarnation: u32, returned: bool) -> Self {
        let last = u64::from(incarnation) << 31;
        Self { names: BTreeMap::new(), settled: BTreeSet::new(), returned, last, fenced: 0 }
    }

    /// The numbers of what is made are behind this one, and fencing numbers behind this epoch.
    pub(super) fn begin_behind(&mut self, last: u64, fenced: u32) {
        (self.last, self.fenced) = (self.last.max(last), self.fenced.max(fenced));
    }

    /// What a successor begins behind.
    pub(super) const fn begun(&self) -> (u64, u32) {
        (self.last, self.fenced)
    }

    /// What is known of a name.
    pub(super) fn find(&self, name: &str, (asked, call): (&NamedSpec, u64), lives: Lives<'_>) -> Found {
        match self.names.get(name) {
            Some(Named { info, .. }) if !lives(info) => Found::Lost,
            Some(named) if named.info.spec.suits(asked) => {
                Found::There(Box::new(named.info.clone()), named.call == call)
            }
            Some(named) => Found::Differs(Box::new(named.info.clone())),
            None => self.missing(name),
        }
    }

    /// What has a name, whatever it is.
    pub(super) fn look(&self, name: &str, lives: Lives<'_>) -> Found {
        match self.names.get(name) {
            Some(Named { info, .. }) if !lives(info) => Found::Lost,
            Some(named) => Found::There(Box::new(named.info.clone()), false),
            None => self.missing(name),
        }
    }

    fn missing(&self, name: &str) -> Found {
        if self.returned && !self.settled.contains(name) { Found::Lost } else { Found::Nothing }
    }

    /// Somebody has opened it.
    pub(super) fn opened(&mut self, name: &str) {
        if let Some(named) = self.names.get_mut(name) {
            named.info.opened += 1;
        }
    }

    /// True if there can be no more names.
    pub(super) fn is_full(&self) -> bool {
        self.names.len() >= MOST_NAMES
    }

    /// The number of what is about to be made, and the epoch behind which fencing numbers begin, if the rack is in this one.
    pub(super) fn next(&mut self, epoch: u32) -> (u64, u32) {
        self.last += 1;
        (self.last, epoch.max(self.fenced))
    }

    /// Something has been made, now or by whoever kept the names before.
    pub(super) fn insert(&mut self, named: Named) {
        let name = named.info.name.clone();
        self.settled.remove(&name);
        let before = self.names.insert(name.clone(), named);
        assert!(before.is_none(), "{name} stands for one thing");
    }

    /// Something is gone: the last fencing number of its lock, if it was one.
    pub(super) fn remove(&mut self, name: &str, fence: u64) {
        self.fenced = self.fenced.max((fence >> 32) as u32 + u32::from(fence > 0));
        if self.names.remove(name).is_some() && self.returned {
            // Where so many were, the oldest knowledge is forgotten: then such a name has to be made anew once more.
            if self.settled.len() >= MOST_NAMES {
                self.settled.pop_first();
            }
            self.settled.insert(name.to_owned());
        }
    }

    /// The names behind this one that begin so, at most so many.
    pub(super) fn list(&self, prefix: &str, behind: &str, most: usize, lives: Lives<'_>) -> Vec<NamedInfo> {
        let from = if behind < prefix { Bound::Included(prefix) } else { Bound::Excluded(behind) };
        let names = self.names.range::<str, _>((from, Bound::Unbounded));
        let these = names.take_while(|(name, _)| name.starts_with(prefix));
        let these = these.filter(|(_, named)| lives(&named.info));
        these.take(most).map(|(_, named)| named.info.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Discipline, GlobalAddr, NodeId};

    const ALIVE: Lives<'static> = &|_| true;

    fn spec() -> NamedSpec {
        NamedSpec { discipline: Discipline::Word, len: 8, count: 1, tag: String::new(), version: 0 }
    }

    fn make(directory: &mut Directory, name: &str, call: u64) -> NamedInfo {
        let (making, _) = directory.next(0);
        let (addr, maker) = (GlobalAddr::new(NodeId(0), 64), NodeId(0));
        let (name, spec) = (name.to_owned(), spec());
        let info = NamedInfo { name, spec, addr, making, maker, copies: 1, life: 5, opened: 0 };
        directory.insert(Named { info: info.clone(), call });
        info
    }

    #[test]
    fn a_name_is_found_by_who_asks_for_what_it_names() {
        let mut directory = Directory::new(0, false);
        assert_eq!(directory.find("a", (&spec(), 1), ALIVE), Found::Nothing);
        let made = Box::new(make(&mut directory, "a", 7));
        assert_eq!(directory.find("a", (&spec(), 7), ALIVE), Found::There(made.clone(), true));
        assert_eq!(directory.find("a", (&spec(), 8), ALIVE), Found::There(made.clone(), false));
        assert_eq!(directory.find("a", (&NamedSpec { len: 4, ..spec() }, 7), ALIVE), Found::Differs(made));
        directory.remove("a", 0);
        assert_eq!(directory.find("a", (&spec(), 7), ALIVE), Found::Nothing);
    }

    #[test]
    fn what_a_former_incarnation_may_have_named_is_lost_until_it_is_made_anew() {
        let mut directory = Directory::new(9, true);
        assert_eq!(directory.look("a", ALIVE), Found::Lost);
        make(&mut directory, "a", 1);
        assert!(matches!(directory.look("a", ALIVE), Found::There(..)));
        directory.remove("a", 0);
        assert_eq!((directory.look("a", ALIVE), directory.look("b", ALIVE)), (Found::Nothing, Found::Lost));
    }

    #[test]
    fn no_two_things_have_one_number_in_whatever_incarnations() {
        let mut numbers: Vec<u64> = Vec::new();
        for incarnation in [0, 1, 5, 6] {
            let mut directory = Directory::new(incarnation, incarnation > 0);
            numbers.extend((0..1000).map(|_| directory.next(0).0));
        }
        assert!(numbers.is_sorted_by(|one, next| one < next));
        assert!(Directory::new(u32::MAX, true).next(0).0 < 1 << 63, "a bit is left for poison");
    }

    #[test]
    fn a_lock_that_is_made_after_another_was_removed_has_larger_fencing_numbers() {
        let mut directory = Directory::new(0, false);
        assert_eq!(directory.next(3).1, 3);
        make(&mut directory, "a", 1);
        directory.remove("a", (3 << 32) + 17);
        assert_eq!(directory.next(3).1, 4);
        directory.remove("b", 0);
        assert_eq!(directory.next(3).1, 4, "what is no lock has none");
    }

    #[test]
    fn names_are_listed_by_prefix_in_pieces() {
        let mut directory = Directory::new(0, false);
        for name in ["b/1", "a", "b/3", "b", "b/2", "c"] {
            make(&mut directory, name, 1);
        }
        let list = |prefix, behind, most| {
            let names = directory.list(prefix, behind, most, ALIVE);
            names.into_iter().map(|info| info.name).collect::<Vec<_>>()
        };
        assert_eq!(list("b/", "", 2), ["b/1", "b/2"]);
        assert_eq!(list("b/", "b/2", 2), ["b/3"]);
        assert_eq!(list("", "", 9), ["a", "b", "b/1", "b/2", "b/3", "c"]);
        assert!(list("d", "", 9).is_empty() && list("", "c", 9).is_empty());
    }

    #[test]
    fn what_was_in_memory_that_has_died_is_lost_and_not_listed_and_goes_away() {
        let mut directory = Directory::new(0, false);
        let info = make(&mut directory, "a", 7);
        let now: Lives<'_> = &|of| *of == info;
        let later: Lives<'_> = &|of| of.life == 6;
        assert!(matches!(directory.find("a", (&spec(), 7), now), Found::There(_, true)));
        assert_eq!(directory.find("a", (&spec(), 7), later), Found::Lost);
        assert_eq!((directory.look("a", later), directory.look("b", later)), (Found::Lost, Found::Nothing));
        assert_eq!((directory.list("", "", 9, now).len(), directory.list("", "", 9, later).len()), (1, 0));
        directory.remove("a", 0);
        assert_eq!(directory.look("a", later), Found::Nothing);
    }

    #[test]
    fn who_takes_the_names_over_goes_on_behind_what_was_given() {
        let mut first = Directory::new(2, false);
        let (number, _) = first.next(9);
        first.remove("a", 20 << 32);
        let (last, fenced) = first.begun();
        let mut second = Directory::new(2, false);
        second.begin_behind(last, fenced);
        assert_eq!(second.next(9), (number + 1, 21));
    }
}
