//! Rules that change when messages arrive.
//!
//! They run inside [`super::Rules`]. What must always hold: [`delay`] keeps the order of each way from one
//! place to another, [`reorder`] keeps none.

use std::collections::BTreeMap;

use wire::Nanos;

use super::chance::up_to;
use super::{Rule, Verdict};
use crate::system::{Place, Random};

/// Delays each message by up to this, each span as likely, and keeps the order: what was sent from the same
/// place to the same place before does not come later. So a delay can be made longer, up to the limit, and
/// never beyond.
pub fn delay<M>(up_to: Nanos) -> impl Rule<M> {
    Jitter { limit: up_to, last: BTreeMap::new() }
}

/// Delays each message by up to `window`, each span as likely and by itself. So messages sent less than the
/// window apart may change places, and others do not.
pub fn reorder<M>(window: Nanos) -> impl Rule<M> {
    Reorder { window }
}

/// Delays each message by exactly this. Inside of [`super::nth`] it lets one message be overtaken.
pub fn hold<M>(span: Nanos) -> impl Rule<M> {
    Hold(span)
}

/// A delay of nothing is none.
fn late_by(span: Nanos) -> Verdict {
    if span == Nanos::ZERO { Verdict::Pass } else { Verdict::Delay(span) }
}

struct Jitter {
    limit: Nanos,
    /// When the last message of each way was let through.
    last: BTreeMap<(Place, Place), Nanos>,
}

impl<M> Rule<M> for Jitter {
    fn apply(&mut self, now: Nanos, _: &M, from: Place, to: Place, random: &mut Random) -> Verdict {
        let last = self.last.entry((from, to)).or_default();
        *last = (now + up_to(self.limit, random)).max(*last);
        late_by(last.saturating_sub(now))
    }
}

struct Reorder {
    window: Nanos,
}

impl<M> Rule<M> for Reorder {
    fn apply(&mut self, _: Nanos, _: &M, _: Place, _: Place, random: &mut Random) -> Verdict {
        late_by(up_to(self.window, random))
    }
}

struct Hold(Nanos);

impl<M> Rule<M> for Hold {
    fn apply(&mut self, _: Nanos, _: &M, _: Place, _: Place, _: &mut Random) -> Verdict {
        late_by(self.0)
    }
}
