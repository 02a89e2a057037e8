//! Work that is in flight, as the thread sees it that wants to know how it ends.
//!
//! Made by the thread, ended by whichever thread receives. What must always hold: a ticket is ended once; whoever waits for it
//! is woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nic::regions::Reply;
use wire::NodeId;

use crate::actor::{Failure, Waker};

/// How work has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// The words that came as an answer: of a batch, or of an object with its version.
    Answer(Box<[u64]>),
    /// What a word was.
    Original(u64),
    /// An object with its version.
    Object(u64, Box<[u64]>),
    /// Somebody was writing the object.
    Torn,
    /// What the home says to a call.
    Reply(Reply),
    /// It was not done, or nobody knows.
    Failed(Failure),
}

#[derive(Default)]
struct TicketState {
    ended: Option<Ended>,
    waiting: Vec<Arc<Waker>>,
}

/// A piece of work.
#[derive(Default)]
pub struct Ticket {
    is_over: AtomicBool,
    state: Mutex<TicketState>,
    /// Whose memory is asked, where the thread that waits delivers what is in flight.
    asks: Option<NodeId>,
}

impl Ticket {
    /// For work at a memory to and from which the thread that waits delivers packets.
    pub(crate) fn for_work_at(memory: NodeId) -> Self {
        Self { asks: Some(memory), ..Self::default() }
    }

    pub(crate) const fn asks(&self) -> Option<NodeId> {
        self.asks
    }

    fn state(&self) -> MutexGuard<'_, TicketState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// This is how it ended.
    pub(crate) fn end(&self, ended: Ended) {
        let mut state = self.state();
        debug_assert!(state.ended.is_none() && !self.is_over(), "work ends once");
        state.ended = Some(ended);
        self.is_over.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.iter().for_each(|waker| waker.nudge());
    }

    /// This thread is going to wait for it.
    pub(crate) fn wake(&self, waker: &Arc<Waker>) {
        let mut state = self.state();
        if !self.is_over() {
            state.waiting.push(Arc::clone(waker));
        }
    }

    /// How it ended: for one thread, once.
    pub(crate) fn take(&self) -> Option<Ended> {
        self.state().ended.take()
    }

    /// The answer to a batch: a bit for each entry that was refused because its region has ended, in as many words as
    /// [`refused_words`](super::refused_words) says; then what each word was that is fetched. To be asked once; None while it has
    /// not come.
    ///
    /// # Errors
    /// If the home is down, or nobody knows whether the batch was executed.
    ///
    /// # Panics
    /// If the work was no batch.
    pub fn answer(&self) -> Option<Result<Box<[u64]>, Failure>> {
        match self.take()? {
            Ended::Answer(words) => Some(Ok(words)),
            Ended::Failed(why) => Some(Err(why)),
            other => panic!("a batch ended with {other:?}"),
        }
    }
}
