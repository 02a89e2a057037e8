//! What threads do with a store.
//!
//! What must always hold: a value is its key, and then one word again and again, which says which write it is of. Whoever looks a
//! key up and finds anything else fails the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apps::objects::{Config, Error, ObjectStore, Sabres, Versioned};
use lab::one_sided::Lines;
use lab::one_sided::stamp::{stamp, stamp_of};
use rackmem::{GlobalAddr, NodeHandle};
use serde::{Deserialize, Serialize};

use crate::bench::networked::samples::{Recorder, Samples};
use cli::interrupt::Interrupt;
use cli::ycsb::random::Random;

/// How objects are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// As objects of the rack: read whole where the memory is
    Sabre,
    /// With a version in each cache line, which readers compare and strip
    Lines,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sabre => "sabre",
            Self::Lines => "lines",
        }
    }
}

/// What all threads do.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Load {
    pub(super) keys: u64,
    pub(super) value_bytes: u64,
    pub(super) slots: u64,
    /// Per cent of the operations that only read.
    pub(super) read_percent: u64,
    /// Popularity falls with the rank to the power of this; 0: all are equally popular.
    pub(super) theta: f64,
}

const KEY_BYTES: usize = 8;
/// Operations of which one is timed, and its value looked at: a look at the clock takes as long as a lookup nearby.
const TIMED: u64 = 16;
/// Operations after which a plan begins again.
const PLANNED: usize = 1 << 16;

impl Load {
    pub(super) fn config(&self) -> Config {
        Config {
            expected_keys: self.keys,
            key_bytes: KEY_BYTES,
            value_bytes: self.value_bytes as usize,
            slots: self.slots as usize,
            salt: 1,
        }
    }
}

/// What a thread has done.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(super) operations: u64,
    pub(super) nanos: u64,
    pub(super) gets: Samples,
    pub(super) updates: Samples,
}

/// A store of some kind, as one thread has it.
enum Store {
    Sabre(ObjectStore<Sabres>),
    Lines(ObjectStore<Lines>),
}

/// Does something with a store, whatever its kind.
macro_rules! with_store {
    ($store:expr, $inner:ident => $action:expr) => {
        match $store {
            Store::Sabre($inner) => $action,
            Store::Lines($inner) => $action,
        }
    };
}

/// Makes a store; where its root is.
pub(super) fn create(node: &mut NodeHandle, kind: Kind, load: &Load) -> Result<u64, Error> {
    let config = load.config();
    let root = match kind {
        Kind::Sabre => ObjectStore::<Sabres>::create(node, &config)?.root(),
        Kind::Lines => ObjectStore::<Lines>::create(node, &config)?.root(),
    };
    Ok(root.bits())
}

/// One thread of the load.
pub(super) struct Mine {
    node: NodeHandle,
    /// Of all threads.
    number: u64,
    stores: Vec<(Kind, Store)>,
    plan: Vec<(u32, bool)>,
    writes: u64,
}

/// What a value is.
fn value_of(key: u64, write: u64, value: &mut [u8]) {
    value[..8].copy_from_slice(&key.to_le_bytes());
    stamp(&mut value[8..], write.wrapping_mul(0x0101_0101_0101_0101));
}

fn is_of(key: u64, value: &[u8], len: u64) -> bool {
    value.len() as u64 == len && value[..8] == key.to_le_bytes() && stamp_of(&value[8..]).is_ok()
}

impl Mine {
    pub(super) fn new(node: NodeHandle, number: u64, load: &Load) -> Self {
        Self { node, number, stores: Vec::new(), plan: plan(load, number), writes: 0 }
    }

    /// Opens a store.
    pub(super) fn open(&mut self, kind: Kind, root: u64) -> Result<(), Error> {
        let root = GlobalAddr::from_bits(root);
        let store = match kind {
            Kind::Sabre => Store::Sabre(ObjectStore::open(&mut self.node, root)?),
            Kind::Lines => Store::Lines(ObjectStore::open(&mut self.node, root)?),
        };
        self.stores.push((kind, store));
        Ok(())
    }

    fn store(&mut self, kind: Kind) -> (&mut Store, &mut NodeHandle) {
        let found = self.stores.iter_mut().find(|(other, _)| *other == kind);
        (&mut found.expect("it was opened").1, &mut self.node)
    }

    /// Puts every key that is this thread's among so many.
    pub(super) fn load(&mut self, kind: Kind, threads: u64, load: &Load) -> Result<(), Error> {
        let (number, mut value) = (self.number, vec![0; load.value_bytes as usize]);
        let (store, node) = self.store(kind);
        for key in (number..load.keys).step_by(threads as usize) {
            value_of(key, key, &mut value);
            with_store!(store, store => store.put(node, &key.to_le_bytes(), &value))?;
        }
        Ok(())
    }

    /// Looks every key up; how many are not as they should be.
    pub(super) fn verify(&mut self, kind: Kind, load: &Load) -> Result<u64, Error> {
        let (mut wrong, mut value) = (0, Vec::new());
        let (store, node) = self.store(kind);
        for key in 0..load.keys {
            let found = with_store!(store, store => store.get(node, &key.to_le_bytes(), &mut value))?;
            wrong += u64::from(!found || !is_of(key, &value, load.value_bytes));
        }
        Ok(wrong)
    }

    /// Runs the mix until it is told to stop.
    pub(super) fn run(&mut self, kind: Kind, load: &Load, stop: &AtomicBool) -> Result<Done, Error> {
        let (plan, first) = (std::mem::take(&mut self.plan), (self.number + 1) << 32 | self.writes);
        let (store, node) = self.store(kind);
        let done = with_store!(store, store => mix(store, node, &plan, first, load, stop));
        self.plan = plan;
        let done = done?;
        self.writes += done.operations;
        Ok(done)
    }
}

fn mix<L: Versioned>(
    store: &mut ObjectStore<L>,
    node: &mut NodeHandle,
    plan: &[(u32, bool)],
    first: u64,
    load: &Load,
    stop: &AtomicBool,
) -> Result<Done, Error> {
    let (mut gets, mut updates) = (Recorder::new(), Recorder::new());
    let (mut value, mut new) = (Vec::new(), vec![0; load.value_bytes as usize]);
    let mut operations = 0;
    let began = Instant::now();
    for (write, (key, is_read)) in (first..).zip(plan.iter().cycle()) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = u64::from(*key).to_le_bytes();
        let timed = (operations % TIMED == 0).then(Instant::now);
        if *is_read {
            let found = store.get(node, &name, &mut value)?;
            if let Some(began) = timed {
                gets.record(began.elapsed());
                assert!(found && is_of(u64::from(*key), &value, load.value_bytes), "key {key}: a bug");
            }
        } else {
            value_of(u64::from(*key), write, &mut new);
            store.put(node, &name, &new)?;
            if let Some(began) = timed {
                updates.record(began.elapsed());
            }
        }
        operations += 1;
    }
    let took = began.elapsed();
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    Ok(Done { operations, nanos, gets: gets.samples(took), updates: updates.samples(took) })
}

/// Which keys a thread looks up (true) or updates.
fn plan(load: &Load, thread: u64) -> Vec<(u32, bool)> {
    let mut sum = 0.0;
    let below: Vec<f64> = (1..=load.keys)
        .map(|rank| {
            sum += (rank as f64).powf(-load.theta);
            sum
        })
        .collect();
    let mut random = Random::new(1, thread);
    (0..PLANNED)
        .map(|_| {
            let at = random.unit() * sum;
            let key = below.partition_point(|below| *below <= at).min(below.len() - 1);
            (u32::try_from(key).expect("at most ten million"), random.below(100) < load.read_percent)
        })
        .collect()
}

/// How often somebody looks whether the run was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// All threads of a node at once, for so long, or until somebody has enough.
pub(super) fn run(
    threads: &mut [Mine],
    kind: Kind,
    load: &Load,
    millis: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Done>, Error> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> = threads
            .iter_mut()
            .map(|mine| {
                let stop = &stop;
                scope.spawn(move || mine.run(kind, load, stop))
            })
            .collect();
        let until = Instant::now() + Duration::from_millis(millis);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || interrupt.requested() {
                break;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        stop.store(true, Ordering::Relaxed);
        running.into_iter().map(|thread| thread.join().expect("a thread of the load panicked")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_the_mix_and_the_skew_that_was_asked_for() {
        let load = |read_percent, theta| Load { keys: 100, value_bytes: 16, slots: 1, read_percent, theta };
        let share = |plan: &[(u32, bool)], of: &dyn Fn(&(u32, bool)) -> bool| {
            plan.iter().filter(|turn| of(turn)).count() as f64 / plan.len() as f64
        };
        let even = plan(&load(75, 0.0), 0);
        assert!((share(&even, &|(_, read)| *read) - 0.75).abs() < 0.01);
        assert!((share(&even, &|(key, _)| *key == 99) - 0.01).abs() < 0.003);
        let skewed = plan(&load(100, 0.99), 0);
        let sum: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.99)).sum();
        assert!((share(&skewed, &|(key, _)| *key == 0) - 1.0 / sum).abs() < 0.01);
        assert_ne!(plan(&load(75, 0.0), 1), even, "threads differ");
    }

    #[test]
    fn a_value_of_another_key_or_of_two_writes_is_recognised() {
        let mut value = vec![0; 40];
        value_of(7, 3, &mut value);
        assert!(is_of(7, &value, 40));
        assert!(!is_of(8, &value, 40) && !is_of(7, &value[..32], 40));
        let mut other = value.clone();
        value_of(7, 4, &mut other);
        value[24..].copy_from_slice(&other[24..]);
        assert!(!is_of(7, &value, 40));
    }
}
