//! What the threads of a node's process share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rackmem::Error;

use super::node::{Event, Word};
use cli::clock::Moment;
use cli::processes::Teller;

/// What the clients of a node share.
pub(super) struct Shared {
    pub(super) words: Mutex<Arc<Vec<Word>>>,
    pub(super) version: AtomicU64,
    /// The round that is being worked in; 0: none. Rounds count from 1 here.
    pub(super) round: AtomicU64,
    pub(super) working: AtomicU64,
    pub(super) gone: Mutex<BTreeSet<u64>>,
    pub(super) fenced: AtomicBool,
    /// The process was stopped, and has not been heard by the rest of the rack since.
    pub(super) continued: AtomicBool,
    /// What every client is in the middle of; at the end, what orders are.
    pub(super) doing: Box<[Mutex<Option<Doing>>]>,
}

/// An operation: what, with which word, since when.
pub(super) type Doing = (&'static str, u64, Moment);

impl Shared {
    /// For so many clients.
    pub(super) fn new(clients: u16) -> Self {
        Self {
            words: Mutex::default(),
            version: AtomicU64::new(0),
            round: AtomicU64::new(0),
            working: AtomicU64::new(0),
            gone: Mutex::default(),
            fenced: AtomicBool::new(false),
            continued: AtomicBool::new(false),
            doing: (0..=clients).map(|_| Mutex::default()).collect(),
        }
    }

    pub(super) fn words(&self) -> MutexGuard<'_, Arc<Vec<Word>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what an operation that failed says about the rack, once.
    pub(super) fn on_error(&self, error: Error, key: u64, teller: &Teller<Event>) {
        match error {
            Error::Fenced => self.on_fenced(teller),
            // The home came back empty, in a new incarnation: its addresses belong to nothing.
            Error::Lost { .. } | Error::NodeDown { .. } | Error::Unallocated { .. } => {
                if self.gone.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
                    teller.tell(Event::Gone { key, why: error.to_string() });
                }
            }
            // Not from the rack, but a mistake of ours.
            other => panic!("a client met {other}"),
        }
    }

    pub(super) fn on_fenced(&self, teller: &Teller<Event>) {
        if !self.fenced.swap(true, Ordering::SeqCst) {
            teller.tell(Event::Fenced);
        }
    }

    pub(super) fn doing(&self, who: usize, what: Option<(&'static str, u64)>) {
        let what = what.map(|(what, key)| (what, key, Moment::now()));
        *self.doing[who].lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    pub(super) fn does(&self, who: usize) -> Option<Doing> {
        *self.doing[who].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What threads are in the middle of, in words.
    pub(super) fn in_flight(&self) -> String {
        let mut text = format!(
            "round {} (0: none), clients at work: {}, words given up: {:?}\n",
            self.round.load(Ordering::SeqCst),
            self.working.load(Ordering::SeqCst),
            self.gone.lock().unwrap_or_else(PoisonError::into_inner),
        );
        for who in 0..self.doing.len() {
            if let Some((what, key, since)) = self.does(who) {
                let (words, since) = (self.words(), (Moment::now() - since).as_millis());
                let addr = words.iter().find(|word| word.key == key).map_or(0, |word| word.addr);
                text += &format!("thread {who}: waits {since} ms {what} word {key}, at {addr:#x}\n");
            }
        }
        text
    }

    pub(super) fn is_gone(&self, key: u64) -> bool {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}
