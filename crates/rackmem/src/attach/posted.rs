//! Operations on words on their way to a daemon: collected until somebody wants to know how one of them ended, or until a message
//! is full; then they are one question.
//!
//! On the application's thread. What must always hold: each operation is in one batch, in the order in which the thread began
//! them; a batch is sent once; an error of an operation that nobody asks for is said by the next flush.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::answer::Answer;
use super::conversation::Conversation;
use super::message::MOST_OPERATIONS;
use super::operation::{Operation, WordOf};
use crate::error::Error;
use crate::handle::NodeHandle;

/// Operations that travel together.
pub(crate) struct AskedWords {
    conversation: Arc<Conversation>,
    state: Mutex<AskedState>,
}

enum AskedState {
    /// What is to be sent; and of each, whether nobody but `flush` will ask how it ended.
    Open(Vec<u8>, Vec<bool>),
    /// What each word was, and whether it is a matter of `flush`.
    Over(Vec<(Result<u64, Error>, bool)>),
}

/// One operation's place in its batch.
#[derive(Clone)]
pub(crate) struct AskedIndex {
    batch: Arc<AskedWords>,
    at: usize,
}

impl AskedWords {
    fn new(conversation: &Arc<Conversation>) -> Self {
        let state = Mutex::new(AskedState::Open(Vec::new(), Vec::new()));
        Self { conversation: Arc::clone(conversation), state }
    }

    fn state(&self) -> MutexGuard<'_, AskedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None: it is full, or somebody has sent it.
    fn push(&self, word: WordOf, silent: bool) -> Option<usize> {
        match &mut *self.state() {
            AskedState::Open(encoded, silents) if silents.len() < MOST_OPERATIONS => {
                Operation::Word(word).encode(encoded);
                silents.push(silent);
                Some(silents.len() - 1)
            }
            _ => None,
        }
    }

    /// Sends it, if that was not done, and waits for the answers.
    fn finish(&self) -> MutexGuard<'_, AskedState> {
        let mut state = self.state();
        if let AskedState::Open(encoded, silents) = &*state {
            let was = |answer| match answer {
                Answer::Word(was) => Ok(was),
                Answer::Failed(why) => Err(why),
                _ => Err(self.conversation.cut()),
            };
            let outcomes = match self.conversation.ask(silents.len(), encoded) {
                Ok(answers) => answers.into_iter().map(was).zip(silents.iter().copied()).collect(),
                Err(why) => silents.iter().map(|silent| (Err(why), *silent)).collect(),
            };
            *state = AskedState::Over(outcomes);
        }
        state
    }

    /// The first error of an operation that nobody else asks for.
    fn failure(&self) -> Option<Error> {
        let AskedState::Over(outcomes) = &*self.finish() else { return None };
        outcomes.iter().find_map(|(outcome, silent)| outcome.err().filter(|_| *silent))
    }
}

impl AskedIndex {
    /// What the word was. Whether it is waited for or only looked at, it takes a round trip, which ends.
    pub(crate) fn wait(&self) -> Result<u64, Error> {
        match &*self.batch.finish() {
            AskedState::Over(outcomes) => outcomes[self.at].0,
            AskedState::Open(..) => unreachable!("it was finished"),
        }
    }
}

impl NodeHandle {
    /// Begins an operation on a word.
    pub(super) fn ask_word(&mut self, word: WordOf, silent: bool) -> Result<AskedIndex, Error> {
        loop {
            let batch = match self.pipeline.asked() {
                Some(batch) => Arc::clone(batch),
                None => {
                    let batch = Arc::new(AskedWords::new(self.conversation()?));
                    self.pipeline.begin_asked(Arc::clone(&batch));
                    batch
                }
            };
            if let Some(at) = batch.push(word, silent) {
                return Ok(AskedIndex { batch, at });
            }
            self.send_asked();
        }
    }

    /// What was begun is done when this returns.
    pub(crate) fn send_asked(&mut self) {
        if let Some(batch) = self.pipeline.asked() {
            let failure = batch.failure();
            self.pipeline.end_asked(failure);
        }
    }
}
