//! What a NIC executes one after the other: atomics to a region.
//!
//! What must always hold: they are executed in the order of their arrival.

use wire::Nanos;
use wire::roce::QpNumber;

use super::bench::Bench;

/// The atomics of the server's NIC, all to one region.
#[derive(Clone, Debug)]
pub(super) struct Atomics {
    /// How long one takes: it reads over PCIe.
    span: Nanos,
    apart: Nanos,
    alike: Nanos,
    /// Whose was the last one, and when it began.
    last: Option<(QpNumber, Nanos)>,
    /// When all are done.
    done: Nanos,
    busy: Nanos,
}

impl Atomics {
    pub(super) const fn new(bench: &Bench) -> Self {
        Self {
            span: bench.hardware.pcie_read,
            apart: bench.atomic_apart,
            alike: bench.atomic_alike,
            last: None,
            done: Nanos::ZERO,
            busy: Nanos::ZERO,
        }
    }

    /// One of this queue pair is there: when it has been executed.
    pub(super) fn execute(&mut self, now: Nanos, queue_pair: QpNumber) -> Nanos {
        let begun = match self.last {
            Some((last, begun)) => now.max(begun + if last == queue_pair { self.alike } else { self.apart }),
            None => now,
        };
        self.last = Some((queue_pair, begun));
        let done = begun + self.span;
        self.busy += done.saturating_sub(self.done.max(begun));
        self.done = done;
        done
    }

    /// How long one or more were executed.
    pub(super) const fn busy(&self) -> Nanos {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(queue_pairs: &[u32]) -> Vec<u64> {
        let mut atomics = Atomics::new(&Bench { atomic_apart: Nanos(400), ..Bench::PAPER });
        queue_pairs.iter().map(|number| atomics.execute(Nanos(1000), QpNumber::new(*number)).0).collect()
    }

    #[test]
    fn atomics_of_different_queue_pairs_wait_for_each_other() {
        assert_eq!(finished(&[1, 2, 3]), [1500, 1900, 2300]);
    }

    #[test]
    fn atomics_of_one_queue_pair_overlap() {
        assert_eq!(finished(&[1, 1, 1, 2]), [1500, 1619, 1738, 2138]);
    }
}
