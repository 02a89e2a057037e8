//! What a new backup begins with: all that the primary knows at some moment, as words.
//!
//! ```text
//!   inputs so far | clients: number, answer | verbs | chains that have begun of late | the machine
//! ```
//! What must always hold: whoever goes on from here does what the primary does, fed with the same inputs.

use alloc::vec::Vec;

use wire::{Nanos, Rules};

use super::log::Log;
use super::{Asked, Server, Wanted};
use crate::metadata::Metadata;
use crate::words::{Words, answer_of, answer_words, put_all, put_verb, verb_of};

impl<R: Rules> Server<R> {
    /// Puts all that it knows, but for what follows from that, or is of its own process.
    pub(super) fn put(&self, out: &mut Vec<u64>) {
        out.push(self.log.end());
        put_all(out, self.clients.iter(), |out, (client, Asked { number, answer })| {
            out.extend([client.0, u64::from(*number)]);
            let (words, follows) = match answer {
                Some((answer, follows)) => (answer_words(answer), *follows),
                None => (Vec::new(), 0),
            };
            out.push(follows);
            put_all(out, words.into_iter(), Vec::push);
        });
        put_all(out, self.verbs.iter(), |out, (key, Wanted { replica, verb, follows })| {
            out.extend([*key, *follows]);
            put_verb(out, *replica, *verb);
        });
        put_all(out, self.begun.iter(), |out, (input, key)| out.extend([*input, *key]));
        self.machine.put(out);
    }

    /// A backup that goes on from there, whose machine knows nothing yet. The primary's clock says `at`, and this process's `now`.
    pub fn from_words(
        (rules, machine): (R, Metadata<R>),
        (now, at): (Nanos, Nanos),
        words: &[u64],
    ) -> Option<Self> {
        let words = &mut Words(words);
        let has = words.word()?;
        let clients = words.all(|words| {
            let (client, number, follows) =
                (words.client()?, u32::try_from(words.word()?).ok()?, words.word()?);
            let answer: Vec<u64> = words.all(Words::word)?;
            let answer = if answer.is_empty() { None } else { Some((answer_of(&answer)?, follows)) };
            Some((client, Asked { number, answer }))
        })?;
        let verbs = words.all(|words| {
            let (key, follows) = (words.word()?, words.word()?);
            let (replica, verb) = verb_of(words)?;
            Some((key, Wanted { replica, verb, follows }))
        })?;
        let begun = words.all(|words| Some((words.word()?, words.word()?)))?;
        let machine = machine.take(words)?;
        let server = Self::new(rules, machine, Log::of_backup(has));
        words.0.is_empty().then_some(Self { clients, verbs, begun, clock: (now, at), ..server })
    }

    /// What its clock says.
    pub fn clock(&self, now: Nanos) -> Nanos {
        self.time(now)
    }
}
