//! Names: what other nodes ask of this one's directory of names, and what this one asks of theirs.
//!
//! The directory itself belongs to the library (`rackmem::named`): it makes what is named by the same calls that applications
//! make. Here words pass. What must always hold: an answer waits for nobody; what has to wait is refused as locked, and asked again.

use wire::{NodeId, Refusal};

use super::NetworkedNode;
use crate::actor::{Failure, ThreadContext};
use nic::regions::{Call, Reply};

/// Answers what a node asks about the names of this one.
pub type NameServer = Box<dyn Fn(NodeId, &[u64]) -> Result<Box<[u64]>, Refusal> + Send + Sync>;

impl NetworkedNode {
    /// From now on this answers what other nodes ask. (Until then they are told to ask again.)
    pub fn serve_names(&self, server: NameServer) {
        // A node has one library.
        drop(self.names.set(server));
    }

    /// Does what a node has asked for.
    pub(in crate::networked) fn serve_named(&self, from: NodeId, words: &[u64]) -> Reply {
        let answer = self.names.get().map_or(Err(Refusal::Locked), |server| server(from, words));
        answer.map_or_else(Reply::Refused, Reply::Words)
    }

    /// Asks another node about its names, once: [`Refusal::Locked`] says that the answer is not there yet.
    ///
    /// # Errors
    /// If the home is down, or what it has refused.
    pub fn ask_named(
        &self,
        context: &mut ThreadContext,
        home: NodeId,
        words: &[u64],
    ) -> Result<Box<[u64]>, Failure> {
        let call = Call::Named { words: words.len() };
        match self.ask_once(context, (home, None), call, words)? {
            Reply::Words(words) => Ok(words),
            Reply::Refused(why) => Err(why.into()),
            Reply::Done(..) => Err(Failure::Broken),
        }
    }
}
