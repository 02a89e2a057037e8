//! Is a history linearizable? Could each operation have happened at one instant between its invocation and
//! its return, so that every result is explained?
//!
//! Keys are independent objects, and a history is linearizable if the part on each key is (Herlihy and Wing's
//! locality), so each key is checked alone. A key is a register that may be absent:
//!
//! | module | does |
//! | --- | --- |
//! | `register` | puts the operations of one key into the form that the search needs |
//! | `search` | walks through time, keeping every state that the register may be in |
//! | `rules` | which of the next steps need not be tried |
//! | `evidence` | cuts a history that failed to the part that shows why |
//! | `violation` | the evidence, and how it reads |
//!
//! The search is Wing and Gong's with Lowe's two improvements: operations are put in order just in time (an
//! operation only when its return, or one before that, demands it), and a configuration (the register's state
//! and the open operations that have happened) is looked at once. Written digests that are unique, as they are
//! in our runs, decide nearly every choice: a read names the write it follows. A history of unique inserts, reads,
//! updates and read-modify-writes hardly ever branches, however hot the key; deletes and repeated digests do branch.
//!
//! What must always hold: `Linearizable` and `Violation` are proofs. Whatever gets in the way of one, a limit
//! or a history that contradicts itself, is [`Verdict::Unknown`] with the reason.

mod evidence;
mod register;
mod rules;
mod search;
mod violation;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::history::{Digest, Operation};
use evidence::Evidence;
use register::Register;
use search::Outcome;

pub use violation::Violation;

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most configurations of one key to look at between one return and the next. Each takes about 100
    /// bytes. Histories with unique digests and no deletes need no more than there are clients.
    pub configurations: usize,
    /// The most time for the whole history.
    pub time: Duration,
}

impl Default for Limits {
    /// A million configurations (about 100 MB), ten minutes.
    fn default() -> Self {
        Self { configurations: 1 << 20, time: Duration::from_secs(600) }
    }
}

/// What the checker found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a verdict that nobody reads checks nothing"]
pub enum Verdict<K = String> {
    /// The history is linearizable.
    Linearizable {
        /// How many keys it has.
        keys: usize,
        /// How many operations it has.
        operations: usize,
    },
    /// It is not.
    Violation(Violation<K>),
    /// It could not be decided.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl<K: fmt::Debug> fmt::Display for Verdict<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linearizable { keys, operations } => {
                write!(f, "linearizable: {operations} operations on {keys} keys")
            }
            Self::Violation(violation) => write!(f, "not linearizable: {violation}"),
            Self::Unknown { why } => write!(f, "undecided: {why}"),
        }
    }
}

/// The operations of one key, in the order of the history.
type OneKey = Vec<Operation<()>>;

/// Checks a history of keys that are all absent before it begins. The operations may come in any order.
pub fn check_history<K: Hash + Eq + Clone>(history: &[Operation<K>], limits: Limits) -> Verdict<K> {
    check_history_from(None, history, limits)
}

/// Checks a history of keys that all have the value `initial` before it begins: zeroed words have `Some(0)`.
pub fn check_history_from<K: Hash + Eq + Clone>(
    initial: Option<Digest>,
    history: &[Operation<K>],
    limits: Limits,
) -> Verdict<K> {
    if let Some(at) = history.iter().position(|op| op.ret.is_some_and(|ret| ret < op.invoke)) {
        return Verdict::Unknown { why: format!("operation {at} returned before it was invoked") };
    }
    let deadline = Instant::now().checked_add(limits.time);
    let mut undecided = None;
    let mut failed: Option<(u64, usize, usize)> = None;
    let mut failures = 0;
    let keys = by_key(history);
    for (index, (_, operations)) in keys.iter().enumerate() {
        let register = Register::new(initial, operations);
        match search::run(&register, limits.configurations, deadline) {
            Outcome::Linearizable => {}
            Outcome::Violation { event } => {
                failures += 1;
                let at = register.events[event].at;
                // Report the failure that shows first: the others may be its consequences.
                if failed.is_none_or(|(earliest, ..)| at < earliest) {
                    failed = Some((at, index, event));
                }
            }
            Outcome::TooMany if undecided.is_none() => {
                let most = limits.configurations;
                undecided = Some(format!(
                    "key {} of {} ({} operations) needs more than {most} configurations: write values with \
                     unique digests, use fewer clients per key, or raise the limit",
                    index + 1,
                    keys.len(),
                    operations.len(),
                ));
            }
            Outcome::TooMany => {}
            Outcome::TooLate => {
                undecided = Some(format!(
                    "the time limit of {:?} passed at key {} of {}: raise it, or check a shorter history",
                    limits.time,
                    index + 1,
                    keys.len(),
                ));
                break;
            }
        }
    }
    if let Some((_, index, event)) = failed {
        let (key, operations) = &keys[index];
        let evidence = Evidence { initial, configurations: limits.configurations, deadline };
        return Verdict::Violation(evidence.gather((*key).clone(), operations, event, failures - 1));
    }
    match undecided {
        Some(why) => Verdict::Unknown { why },
        None => Verdict::Linearizable { keys: keys.len(), operations: history.len() },
    }
}

/// The history of each key. Keys are in the order of their first appearance: nothing depends on hashing.
fn by_key<K: Hash + Eq>(history: &[Operation<K>]) -> Vec<(&K, OneKey)> {
    let mut places = HashMap::new();
    let mut keys: Vec<(&K, OneKey)> = Vec::new();
    for operation in history {
        let place = *places.entry(&operation.key).or_insert_with(|| {
            keys.push((&operation.key, OneKey::new()));
            keys.len() - 1
        });
        let Operation { client, op, invoke, ret, .. } = *operation;
        keys[place].1.push(Operation { client, key: (), op, invoke, ret });
    }
    keys
}
