//! Metrics of locks that have names: of the busiest of a node, so that there are not more and more of them.

use rackmem::{NodeId, WatchedLock};

use super::page::{MetricKind, Page};

/// Locks of a node that are shown: those of which the node has counted most.
const BUSIEST: usize = 10;

pub(super) fn add(page: &mut Page, watched: Vec<(NodeId, WatchedLock)>) {
    let mut watched = watched;
    let counted = |lock: &WatchedLock| lock.waits.count() + lock.holds.count() + lock.waiting;
    watched.sort_by(|(_, one), (_, other)| {
        counted(other).cmp(&counted(one)).then_with(|| (&one.name, one.addr).cmp(&(&other.name, other.addr)))
    });
    // One of two that had one name, after another, is no more.
    let mut shown: Vec<(NodeId, WatchedLock)> = Vec::new();
    for (node, lock) in watched {
        match shown.iter_mut().find(|(_, other)| other.name == lock.name) {
            Some((_, other)) if other.making < lock.making => *other = lock,
            Some(_) => {}
            None => shown.push((node, lock)),
        }
    }
    for (node, lock) in shown.iter().take(BUSIEST) {
        let labels = [("node", node.0.to_string()), ("name", lock.name.to_string())];
        for (name, help, count) in [
            ("rackmem_lock_waiting", "Threads of the node that wait for the lock.", lock.waiting),
            (
                "rackmem_lock_readers",
                "Threads of the node that are inside the lock to read.",
                lock.readers.into(),
            ),
            ("rackmem_lock_writers", "1 while a thread of the node is inside to write.", lock.writer.into()),
        ] {
            page.add(MetricKind::Gauge, name, help, &labels, count);
        }
        let help = "How long threads of the node waited for the lock that had to ask, and got in.";
        page.times("rackmem_lock_wait_seconds", help, &labels, lock.waits);
        let help = "How long threads of the node held the lock to write, of some.";
        page.times("rackmem_lock_hold_seconds", help, &labels, lock.holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(number: u64, waits: u64) -> (NodeId, WatchedLock) {
        let mut lock =
            WatchedLock { name: format!("{number}").into(), making: number, ..WatchedLock::default() };
        lock.waits.buckets[2] = waits;
        lock.waits.sum.0 = 1000 * waits;
        (NodeId(3), lock)
    }

    #[test]
    fn of_many_locks_the_busiest_are_shown_and_each_name_once() {
        let mut page = Page::default();
        let mut all: Vec<_> = (0..100).map(|number| lock(number, number)).collect();
        let (node, again) = lock(99, 5);
        all.push((node, WatchedLock { making: 100, ..again }));
        add(&mut page, all);
        let text = page.finish();
        assert_eq!(text.matches("rackmem_lock_wait_seconds_count{").count(), BUSIEST);
        for line in [
            "rackmem_lock_wait_seconds_count{node=\"3\",name=\"90\"} 90\n",
            "rackmem_lock_wait_seconds_sum{node=\"3\",name=\"90\"} 0.00009\n",
            "rackmem_lock_wait_seconds_count{node=\"3\",name=\"99\"} 5\n",
            "rackmem_lock_wait_seconds_bucket{le=\"5.12e-7\",node=\"3\",name=\"90\"} 0\n",
            "rackmem_lock_wait_seconds_bucket{le=\"0.000001024\",node=\"3\",name=\"90\"} 90\n",
            "rackmem_lock_wait_seconds_bucket{le=\"+Inf\",node=\"3\",name=\"90\"} 90\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
