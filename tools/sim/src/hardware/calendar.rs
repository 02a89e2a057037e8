//! When something that does one thing at a time is taken.
//!
//! A link and the engines of a NIC each have one. What must always hold: reserved times never overlap, and
//! whoever asks in the order of time is served in the order of asking.
//!
//! Why this is more than "free from then on": a message is known to the model when it is posted, and a block's
//! bytes must first be fetched from memory. The link is reserved for them half a microsecond ahead, and a small
//! message that is posted meanwhile goes out before them, as it does in hardware.

use std::collections::VecDeque;

use super::bandwidth::Picos;

/// How many reserved times are remembered. Older ones count as one that has no gaps.
const REMEMBERED: usize = 16;

/// Reserved times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    /// Ascending, with gaps between them.
    reserved: VecDeque<Reserved>,
    /// Nothing before is given away any more.
    floor: Picos,
}

#[derive(Clone, Copy, Debug)]
struct Reserved {
    from: Picos,
    until: Picos,
}

impl Calendar {
    /// Reserves the first free time of this length that does not begin before `ready`. Returns when it begins.
    pub(crate) fn reserve(&mut self, ready: Picos, span: Picos) -> Picos {
        let ready = ready.max(self.floor);
        match self.reserved.back_mut() {
            Some(last) if ready < last.until => self.reserve_in_gap(ready, span),
            Some(last) if ready == last.until => {
                last.until = ready.plus(span);
                ready
            }
            _ => {
                self.reserved.push_back(Reserved { from: ready, until: ready.plus(span) });
                self.forget();
                ready
            }
        }
    }

    /// When the last reserved time ends.
    pub(super) fn free_from(&self) -> Picos {
        self.reserved.back().map_or(self.floor, |last| last.until)
    }

    #[cold]
    fn reserve_in_gap(&mut self, ready: Picos, span: Picos) -> Picos {
        let mut start = ready;
        // What ends before is in nobody's way. Most requests are for a time near the end, so it is looked for from there.
        let mut before = self.reserved.len();
        while before > 0 && self.reserved[before - 1].until > ready {
            before -= 1;
        }
        // The first reserved time that begins late enough is what the new one goes before.
        while let Some(next) = self.reserved.get(before) {
            if start.plus(span) <= next.from {
                break;
            }
            start = start.max(next.until);
            before += 1;
        }
        let new = Reserved { from: start, until: start.plus(span) };
        let touches_next = self.reserved.get(before).is_some_and(|next| next.from == new.until);
        let touches_last = before
            .checked_sub(1)
            .filter(|&at| self.reserved.get(at).is_some_and(|last| last.until == new.from));
        match (touches_last, touches_next) {
            (Some(last), true) => {
                let next = self.reserved.remove(before).map_or(new.until, |next| next.until);
                self.reserved[last].until = next;
            }
            (Some(last), false) => self.reserved[last].until = new.until,
            (None, true) => self.reserved[before].from = new.from,
            (None, false) => self.reserved.insert(before, new),
        }
        self.forget();
        start
    }

    fn forget(&mut self) {
        if self.reserved.len() > REMEMBERED
            && let Some(oldest) = self.reserved.pop_front()
        {
            self.floor = oldest.until;
        }
    }
}
