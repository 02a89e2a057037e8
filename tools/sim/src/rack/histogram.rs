//! How often which spans of time occurred.
//!
//! What must always hold: a span is counted in a class whose bounds differ by less than 4 %.

use core::fmt;

use wire::Nanos;

/// Classes of a doubling.
const CLASSES: u64 = 32;
const SHIFT: u32 = CLASSES.ilog2();

/// Counts of spans, in classes that grow with them.
#[derive(Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: Nanos,
}

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, span: Nanos) {
        let class = class_of(span.0);
        if class >= self.counts.len() {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.total += 1;
        self.longest = self.longest.max(span);
    }

    /// The longest, exactly.
    pub const fn longest(&self) -> Nanos {
        self.longest
    }

    /// How many were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The span that this many of a thousand are not longer than: the lower bound of its class.
    pub fn per_mille(&self, per_mille: u64) -> Nanos {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Nanos(lower_bound(class as u64));
            }
        }
        Nanos::ZERO
    }
}

fn class_of(span: u64) -> usize {
    if span < 2 * CLASSES {
        return span as usize;
    }
    let doublings = u64::from(span.ilog2() - SHIFT);
    (doublings * CLASSES + (span >> doublings)) as usize
}

fn lower_bound(class: u64) -> u64 {
    if class < 2 * CLASSES {
        return class;
    }
    let doublings = class / CLASSES - 1;
    (class - doublings * CLASSES) << doublings
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |per_mille| self.per_mille(per_mille).0;
        f.debug_struct("Histogram")
            .field("total", &self.total)
            .field("p50", &at(500))
            .field("p99", &at(990))
            .field("p999", &at(999))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_and_hold_what_their_bounds_say() {
        for span in (0..5000).chain([1 << 20, (1 << 40) + 12345, u64::MAX]) {
            let class = class_of(span) as u64;
            let low = lower_bound(class);
            assert!(low <= span && span - low <= low / CLASSES, "{span} in class {class} from {low}");
            assert!(class_of(low) as u64 == class && (low == 0 || class_of(low - 1) as u64 == class - 1));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_spans_counted() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|span| histogram.record(Nanos(span)));
        for per_mille in [1, 10, 500, 990, 999] {
            let found = histogram.per_mille(per_mille).0;
            assert!(found <= per_mille && per_mille - found <= per_mille / CLASSES, "{per_mille}: {found}");
        }
    }
}
