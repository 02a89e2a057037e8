//! The locks that have names: who has them, who waits, how long that takes. What all nodes say of them, put together.
//!
//! What must always hold: only what has a name now is shown. What a node still knows of a lock that was removed is left out.

use std::collections::BTreeMap;

use rackmem::{Discipline, GlobalAddr, LockTimes, NameError, NamedInfo, NodeHandle, NodeId, WatchedLock};
use serde::{Deserialize, Serialize};

/// A lock that has a name, as of some moment of the last few milliseconds on each node.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug, Default)]
pub struct Lock {
    pub name: String,
    pub address: String,
    /// The node on which a thread is inside to write.
    pub writer: Option<u16>,
    /// Threads that are inside to read, by node.
    pub readers: BTreeMap<u16, u32>,
    /// The node that keeps it: threads there may write without asking.
    pub kept_by: Option<u16>,
    /// Threads that wait, by node.
    pub waiting: BTreeMap<u16, u64>,
    /// Write grants since it was made.
    pub writes: u64,
    /// How long threads waited that had to ask, and got in.
    pub waits: Times,
    /// How long threads held it to write, of some.
    pub holds: Times,
}

/// How long something took, of many.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug, Default)]
pub struct Times {
    pub count: u64,
    pub sum_ns: u64,
    /// Of half of them, and of 99 of a hundred, the longest, rounded up to a bucket; none if there are none, or it was longer than all.
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    /// Those that are not empty, by what they have took at most.
    pub buckets: Vec<Bucket>,
}

/// How many took so long at most, and longer than the bucket before says.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Bucket {
    /// None: longer than any other bucket.
    pub at_most_ns: Option<u64>,
    pub count: u64,
}

impl From<&LockTimes> for Times {
    fn from(times: &LockTimes) -> Self {
        let buckets = times.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let buckets = buckets.map(|(at, count)| Bucket {
            at_most_ns: LockTimes::at_most(at).map(|most| most.0),
            count: *count,
        });
        let permille = |many| times.permille(many).map(|most| most.0).filter(|most| *most < u64::MAX);
        Self {
            count: times.count(),
            sum_ns: times.sum.0,
            p50_ns: permille(500),
            p99_ns: permille(990),
            buckets: buckets.collect(),
        }
    }
}

/// Asks all nodes. The busiest come first: those with the most write grants and waits.
///
/// # Errors
/// If the node of this handle is not in the rack any more.
pub fn all(handle: &mut NodeHandle) -> Result<Vec<Lock>, NameError> {
    let names = handle.names("")?;
    let nodes = (0..handle.nodes_known()).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")));
    let mut watched = Vec::new();
    for node in nodes {
        watched.extend(of(handle, node)?.into_iter().map(|lock| (node, lock)));
    }
    Ok(put_together(&names, &watched))
}

fn of(handle: &mut NodeHandle, node: NodeId) -> Result<Vec<WatchedLock>, NameError> {
    match handle.watched_locks(node) {
        Err(NameError::Failed(rackmem::Error::NodeDown { .. } | rackmem::Error::NoSuchNode { .. })) => {
            Ok(Vec::new())
        }
        answer => answer,
    }
}

fn put_together(names: &[NamedInfo], watched: &[(NodeId, WatchedLock)]) -> Vec<Lock> {
    let named = names.iter().filter(|info| info.spec.discipline == Discipline::Locked);
    let mut all: BTreeMap<(GlobalAddr, u64), (Lock, LockTimes, LockTimes)> = named
        .map(|info| {
            let lock = Lock { name: info.name.clone(), address: info.addr.to_string(), ..Lock::default() };
            ((info.addr, info.making), (lock, LockTimes::default(), LockTimes::default()))
        })
        .collect();
    for (node, seen) in watched {
        let Some((lock, waits, holds)) = all.get_mut(&(seen.addr, seen.making)) else { continue };
        if seen.writer {
            lock.writer = Some(node.0);
        }
        if seen.readers > 0 {
            lock.readers.insert(node.0, seen.readers);
        }
        if seen.may_write {
            lock.kept_by = Some(node.0);
        }
        if seen.waiting > 0 {
            lock.waiting.insert(node.0, seen.waiting);
        }
        // The upper half is the epoch in which it was made.
        lock.writes = lock.writes.max(seen.fence & u64::from(u32::MAX));
        waits.add(&seen.waits);
        holds.add(&seen.holds);
    }
    let together =
        |(lock, waits, holds)| Lock { waits: Times::from(&waits), holds: Times::from(&holds), ..lock };
    let mut locks: Vec<Lock> = all.into_values().map(together).collect();
    locks.sort_by(|one, other| other.busy().cmp(&one.busy()).then_with(|| one.name.cmp(&other.name)));
    locks
}

impl Lock {
    /// How much has come of it, or is about to.
    fn busy(&self) -> u64 {
        self.writes + self.waits.count + self.waiting()
    }

    /// Threads that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.values().sum()
    }

    /// Who has it, in words.
    pub fn holder(&self) -> String {
        match (self.writer, self.readers.is_empty(), self.kept_by) {
            (Some(node), ..) => format!("node {node} writes"),
            (None, false, _) => {
                let all = self.readers.iter().map(|(node, threads)| format!("{threads} on node {node}"));
                format!("read by {}", all.collect::<Vec<_>>().join(", "))
            }
            (None, true, Some(node)) => format!("free, kept by node {node}"),
            (None, true, None) => "free".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rackmem::{Config, Locked, Rack, Value};

    use super::*;

    #[test]
    fn what_nodes_say_of_one_lock_is_put_together_and_of_others_left_out() {
        let config = Config { nodes: 2, cache: 1 << 20, memory: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
        let quiet = here.named::<Locked<u64>>("quiet").create(0).unwrap();
        let busy = here.named::<Locked<u64>>("busy").create(0).unwrap();
        let same = there.named::<Locked<u64>>("busy").open().unwrap();
        here.named::<Value<u64>>("value").create(0).unwrap();
        here.named::<Locked<u64>>("gone").create(0).unwrap();
        let before = rack.watched_locks();
        here.remove_name("gone").unwrap();
        for _ in 0..3 {
            *busy.write(&mut here).unwrap() += 1;
            *same.write(&mut there).unwrap() += 1;
        }
        let readers = (quiet.read(&mut here).unwrap(), same.write(&mut there).unwrap());
        let mut watched = rack.watched_locks();
        watched.extend(before.into_iter().filter(|(_, lock)| *lock.name == *"gone"));
        let all = put_together(&here.names("").unwrap(), &watched);
        assert_eq!(all.iter().map(|lock| &*lock.name).collect::<Vec<_>>(), ["busy", "quiet"]);
        assert_eq!((all[0].writes, all[0].writer, all[0].waiting()), (7, Some(1), 0));
        assert!(all[0].waits.count >= 5, "the lock went to and fro: {all:?}");
        assert_eq!(all[0].waits.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), all[0].waits.count);
        assert_eq!(
            (all[0].holder(), all[1].holder()),
            ("node 1 writes".into(), "read by 1 on node 0".into())
        );
        drop(readers);
        let all = put_together(&here.names("b").unwrap(), &rack.watched_locks());
        assert_eq!(all[0].holder(), "free, kept by node 1");
    }
}
