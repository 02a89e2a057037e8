//! Looking at what a node's requesters wait for, from outside: for whoever asks why a rack does not get on.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::{BlockTag, Copyset, Rules, SlotId};

use super::{Requesters, Slot, Work};
use crate::Node;

/// What a requester is at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Its slot.
    pub slot: SlotId,
    /// The block or lock.
    pub tag: Option<BlockTag>,
    /// What it does, and what it waits for, as a line of text.
    pub what: String,
}

impl Slot {
    fn tag(&self) -> Option<BlockTag> {
        match self.work {
            Work::Fetch(fetch) => Some(fetch.tag),
            Work::Lock { entry, .. } => Some(entry),
            Work::Purge { tag, .. } => Some(tag),
            Work::None | Work::Call(_) | Work::Sync => self.event.map(|event| event.request.tag),
        }
    }

    fn describe(&self) -> String {
        let mut text = match self.work {
            Work::None => String::from("is done"),
            Work::Fetch(fetch) if fetch.leaves != super::Leaves::No => String::from("sends its copy home"),
            Work::Fetch(fetch) => {
                format!("fetches to have it {:?}, refused {}x", fetch.access, fetch.refusals)
            }
            Work::Lock { write, refusals, .. } => format!("locks, write {write}, refused {refusals}x"),
            Work::Purge { refusals, .. } => format!("purges, refused {refusals}x"),
            Work::Call(_) => String::from("allocates or frees"),
            Work::Sync => String::from("waits until its node's writes are in all copies"),
        };
        text += &format!(", waits for {:?}", self.wait);
        if let Some(event) = &self.event {
            let request = &event.request;
            text += &format!(
                "; {:?} {:?}#{} {:?}, repeated {}x, answered by {:?}",
                request.kind, request.tag, request.seq.0, event.stage, event.repeats, event.answered
            );
        }
        for unlock in self.unlocks.iter().flatten() {
            text += &format!("; unlock of {:?}#{}", unlock.packet.tag, unlock.packet.seq.0);
        }
        text
    }
}

impl Requesters {
    fn pending(&self) -> Vec<Pending> {
        let slots = self.slots.iter().zip(0..).filter(|(slot, _)| {
            slot.work != Work::None || slot.event.is_some() || slot.unlocks.iter().any(Option::is_some)
        });
        let pending =
            slots.map(|(slot, at)| Pending { slot: SlotId(at), tag: slot.tag(), what: slot.describe() });
        pending.collect()
    }
}

impl<R: Rules> Node<R> {
    /// What its requesters are at.
    pub fn pending(&self) -> Vec<Pending> {
        self.requesters.pending()
    }

    /// The nodes whose reports its home waits for, until it decides anything.
    pub fn awaits_reports_of(&self) -> Option<Copyset> {
        self.home.rebuilding_from()
    }
}
