//! Clients that work on words until they are told to stop, and what they have seen, to be judged.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Error, GlobalAddr, Nanos, NodeHandle, Window};
use random::Random;

/// Between operations: the histories stay short enough to be judged at once.
const PAUSE: Duration = Duration::from_micros(500);

/// What clients do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Reads, writes, and changes of what was read.
    All,
    /// Only reads: what such a client's host has is never the only copy.
    Reads,
}

/// What all clients have done.
pub(crate) struct History {
    began: Instant,
    operations: Mutex<Vec<Operation<u64>>>,
    count: AtomicU64,
    stop: AtomicBool,
}

impl History {
    pub(crate) fn new() -> Self {
        let (operations, count, stop) = (Mutex::default(), AtomicU64::new(0), AtomicBool::new(false));
        Self { began: Instant::now(), operations, count, stop }
    }

    fn now(&self) -> Nanos {
        Nanos(1 + u64::try_from(self.began.elapsed().as_nanos()).expect("not for centuries"))
    }

    /// Operations that have returned so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Clients return after the operation that they are in.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Is a client on these words until somebody stops it, or the rack does: then with its error.
    pub(crate) fn work(
        &self,
        client: u64,
        node: &mut NodeHandle,
        words: &[GlobalAddr],
        work: Work,
    ) -> Result<(), Error> {
        let (mut dice, mut changes, mut ended) = (Random::new(client), 0, Ok(()));
        while ended.is_ok() && !self.stop.load(Ordering::SeqCst) {
            let addr = words[usize::try_from(dice.below(words.len() as u64)).expect("few words")];
            changes += 1;
            // Every value is new.
            let value = (1 + client) << 32 | changes;
            let kind = if work == Work::Reads { 0 } else { dice.below(3) };
            let invoke = self.now();
            let done = match kind {
                0 => node.read_word(addr).map(|value| Op::Read { value: Some(value) }),
                1 => node.write_word(addr, value).map(|()| Op::Insert { value }),
                _ => {
                    let swap = |word: &Window<'_>| {
                        let old = word.word(0);
                        word.set_word(0, value);
                        old
                    };
                    node.update(addr, 8, swap).map(|old| Op::Rmw { value: Some(old), new: value })
                }
            };
            let (client, key, ret) = (client, addr.bits(), Some(self.now()));
            match done {
                Ok(op) => self.note(Operation { client, key, op, invoke, ret }),
                Err(error) => {
                    // A write that has failed may have been done. A read, or what it would have read, is not known.
                    if kind == 1 {
                        self.note(Operation { client, key, op: Op::Insert { value }, invoke, ret: None });
                    }
                    ended = Err(error);
                }
            }
            thread::sleep(PAUSE);
        }
        ended
    }

    fn note(&self, operation: Operation<u64>) {
        self.operations.lock().unwrap().push(operation);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Every word's history is one that a single memory could have had.
    pub(crate) fn assert_linearizable(&self) {
        let mut operations = self.operations.lock().unwrap().clone();
        for key in operations.iter().map(|operation| operation.key).collect::<BTreeSet<_>>() {
            // Memory is zeroed before anybody can touch it.
            let (invoke, ret) = (Nanos(0), Some(Nanos(0)));
            operations.push(Operation { client: u64::MAX, key, op: Op::Insert { value: 0 }, invoke, ret });
        }
        match check_history(&operations, Limits::default()) {
            Verdict::Linearizable { operations: judged, .. } => assert_eq!(judged, operations.len()),
            verdict => panic!("{verdict:?}"),
        }
    }
}
