//! What a thread has with it while it runs machines: reused buffers, its randomness, its waker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use node::locks::LockEffect;
use node::{Effect, Outcome};
use random::Random;
use transport::{Contents, Outgoing, Transport};
use wire::Nanos;

use super::inbox::Input;
use crate::memory::copy_contents;
use crate::waiting::Sleeper;

/// The thread-owned part of the driver. One for every application handle.
pub struct ThreadContext {
    pub(crate) effects: Vec<Effect>,
    pub(crate) lock_effects: Vec<LockEffect>,
    pub(crate) switch_effects: Vec<switch::coherence::Effect>,
    pub(crate) directory_effects: Vec<switch::locks::Effect>,
    pub(crate) batch: Vec<Input>,
    /// Where regions are put together that do not lie in one piece.
    pub(crate) scratch: Vec<u64>,
    /// Messages to other processes, to be flushed.
    pub(crate) outgoing: Outgoing,
    /// Places that something was left for, to be run.
    pub(crate) to_run: Vec<usize>,
    pub(crate) waker: Arc<Waker>,
    /// What the last read that ended with words alone has brought.
    peeked: Vec<AtomicU64>,
    random: Random,
}

impl ThreadContext {
    /// A context whose random choices follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            effects: Vec::new(),
            lock_effects: Vec::new(),
            switch_effects: Vec::new(),
            directory_effects: Vec::new(),
            batch: Vec::new(),
            scratch: Vec::new(),
            outgoing: Outgoing::new(),
            to_run: Vec::new(),
            waker: Arc::new(Waker::new()),
            peeked: Vec::new(),
            random: Random::new(seed),
        }
    }

    /// The next random number.
    pub(crate) fn random(&mut self) -> u32 {
        let upper = (self.random.bits() >> 32) as u32;
        // As it was before the last step of the finalizer, which reaches one of these bits: so seeds mean what they always have.
        upper ^ upper >> 31
    }

    /// Takes what the waker shows.
    pub(crate) fn take_peeked(&mut self) {
        std::mem::swap(
            &mut self.peeked,
            &mut self.waker.peeked.lock().unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// What the last read that ended with words alone has brought.
    pub fn peeked(&self) -> &[AtomicU64] {
        &self.peeked
    }

    /// The handle may have moved to another thread: the waker must wake that one.
    pub(crate) fn waker_of_this_thread(&mut self) -> &Arc<Waker> {
        if !self.waker.is_of_this_thread() {
            self.waker = Arc::new(Waker::new());
        }
        &self.waker
    }
}

/// Rings when an operation is over.
pub(crate) struct Waker {
    /// Of one operation, or of several that the thread has started together.
    outcomes: Mutex<Vec<Outcome>>,
    /// Words that go with the outcome.
    peeked: Mutex<Vec<AtomicU64>>,
    rung: AtomicBool,
    /// Somebody wants the thread to look around, whatever it waits for.
    nudged: AtomicBool,
    pub(crate) sleeper: Sleeper,
    thread: std::thread::ThreadId,
    /// Where the thread sleeps instead, while it waits for what comes from other processes.
    blocked: Mutex<Option<Arc<dyn Transport>>>,
}

impl Waker {
    fn new() -> Self {
        Self {
            outcomes: Mutex::default(),
            peeked: Mutex::new(Vec::new()),
            rung: AtomicBool::new(false),
            nudged: AtomicBool::new(false),
            sleeper: Sleeper::current(),
            thread: std::thread::current().id(),
            blocked: Mutex::new(None),
        }
    }

    /// Sleeps in the transport until something comes or this rings, at most so long.
    pub(crate) fn block_in(&self, transport: &Arc<dyn Transport>, most: Nanos) {
        *self.blocked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(transport));
        // Whoever rings from now on interrupts.
        if !self.rung.load(Ordering::Acquire) && !self.nudged.swap(false, Ordering::AcqRel) {
            transport.block(most);
        }
        *self.blocked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn is_of_this_thread(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Leaves the words that go with the outcome, before it rings.
    pub(crate) fn show(&self, words: Contents<'_>) {
        let mut peeked = self.peeked.lock().unwrap_or_else(PoisonError::into_inner);
        peeked.resize_with(words.bytes() / 8, AtomicU64::default);
        copy_contents(words, &peeked);
    }

    pub(crate) fn ring(&self, outcome: Outcome) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        self.rung.store(true, Ordering::Release);
        self.wake();
    }

    /// Has the thread look around once.
    pub(crate) fn nudge(&self) {
        self.nudged.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        self.sleeper.wake();
        let blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = &*blocked
            && !self.is_of_this_thread()
        {
            transport.interrupt();
        }
    }

    /// The outcome, once it has rung; one of several, in no order.
    pub(crate) fn heard(&self) -> Option<Outcome> {
        if !self.rung.load(Ordering::Acquire) {
            return None;
        }
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = outcomes.pop();
        self.rung.store(!outcomes.is_empty(), Ordering::Relaxed);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_of_a_seed_are_what_they_always_were() {
        let mut context = ThreadContext::new(42);
        let drawn = [(); 4].map(|()| context.random());
        assert_eq!(drawn, [3_184_996_903, 686_809_907, 1_196_582_743, 1_478_287_871]);
    }
}
