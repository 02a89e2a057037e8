//! Rules that lose or multiply messages: by chance, or because there is no way.
//!
//! They run inside [`super::Rules`]. What must always hold: a rule of chance draws one number for each message
//! that it sees, whatever comes of it, so that two runs with the same messages draw the same numbers.

use std::collections::BTreeSet;

use wire::Nanos;

use super::{Rule, Verdict};
use crate::system::{Place, Random};

/// Loses so many messages in a thousand.
pub fn drop_per_mille<M>(per_mille: u16) -> impl Rule<M> {
    Chance::new(per_mille, |_: &mut Random| Verdict::Drop)
}

/// Loses every message. Inside of [`super::nth`] or [`super::during`] it makes a scenario.
pub fn drop_all<M>() -> impl Rule<M> {
    Always(Verdict::Drop)
}

/// Damages so many messages in a thousand.
pub fn corrupt_per_mille<M>(per_mille: u16) -> impl Rule<M> {
    Chance::new(per_mille, |_: &mut Random| Verdict::Corrupt)
}

/// Duplicates so many messages in a thousand. The copy comes at most this much later.
pub fn duplicate_per_mille<M>(per_mille: u16, within: Nanos) -> impl Rule<M> {
    Chance::new(per_mille, move |random: &mut Random| Verdict::Duplicate(up_to(within, random)))
}

/// Loses what passes from a place on one side to a place on the other, either way, from `from` on until before
/// `until`.
pub fn partition<M>(
    one_side: impl IntoIterator<Item = Place>,
    other_side: impl IntoIterator<Item = Place>,
    from: Nanos,
    until: Nanos,
) -> impl Rule<M> {
    let partition =
        Partition { one_side: one_side.into_iter().collect(), other_side: other_side.into_iter().collect() };
    super::during(from, until, partition)
}

/// A span of zero to `limit`, each as likely.
pub(super) const fn up_to(limit: Nanos, random: &mut Random) -> Nanos {
    Nanos(random.below(limit.0.saturating_add(1)))
}

struct Chance<F> {
    per_mille: u16,
    verdict: F,
}

impl<F: FnMut(&mut Random) -> Verdict> Chance<F> {
    fn new(per_mille: u16, verdict: F) -> Self {
        assert!(per_mille <= 1_000, "{per_mille} of a thousand");
        Self { per_mille, verdict }
    }
}

impl<M, F: FnMut(&mut Random) -> Verdict> Rule<M> for Chance<F> {
    fn apply(&mut self, _: Nanos, _: &M, _: Place, _: Place, random: &mut Random) -> Verdict {
        if random.below(1_000) < u64::from(self.per_mille) { (self.verdict)(random) } else { Verdict::Pass }
    }
}

struct Always(Verdict);

impl<M> Rule<M> for Always {
    fn apply(&mut self, _: Nanos, _: &M, _: Place, _: Place, _: &mut Random) -> Verdict {
        self.0
    }
}

struct Partition {
    one_side: BTreeSet<Place>,
    other_side: BTreeSet<Place>,
}

impl<M> Rule<M> for Partition {
    fn apply(&mut self, _: Nanos, _: &M, from: Place, to: Place, _: &mut Random) -> Verdict {
        let there = self.one_side.contains(&from) && self.other_side.contains(&to);
        let back = self.other_side.contains(&from) && self.one_side.contains(&to);
        if there || back { Verdict::Drop } else { Verdict::Pass }
    }
}
