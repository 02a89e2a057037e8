//! Memory by messages: what an attached handle does where others miss.
//!
//! What is atomic is what [`NodeHandle`] says: one message never ends in the middle of a block.

use node::Window;
use wire::{Discipline, GlobalAddr, Incarnation, NodeId};

use super::answer::Answer;
use super::conversation::Conversation;
use super::message::MOST_BYTES;
use super::operation::Operation;
use crate::addresses::in_range;
use crate::error::Error;
use crate::handle::NodeHandle;

/// An update whose closure runs.
struct InFlight<'a>(&'a Conversation);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.cut();
    }
}

impl NodeHandle {
    /// Bytes that one message carries.
    pub(crate) fn ask_to_read(&self, addr: GlobalAddr, len: usize) -> Result<Vec<u8>, Error> {
        self.ask(&Operation::Read { addr, len }, |answer| match answer {
            Answer::Bytes(bytes) if bytes.len() == len => Some(bytes),
            _ => None,
        })
    }

    /// Asks a node about its names.
    pub(crate) fn ask_named<R>(
        &self,
        home: NodeId,
        request: &[u8],
        take: impl FnOnce(&[u8]) -> Option<R>,
    ) -> Result<R, Error> {
        self.ask(&Operation::Named { home, request }, |answer| match answer {
            Answer::Bytes(bytes) => take(&bytes),
            _ => None,
        })
    }

    pub(crate) fn ask_to_write(&self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        self.conversation()?.done(&Operation::Write { addr, bytes })
    }

    /// Any number of bytes.
    pub(crate) fn ask_to_read_all(&self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        in_range(addr, into.len() as u64, self.memories(), self.inner.config.memory)?;
        let mut at = addr;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at_mut(self.left_in_message(at).min(rest.len()));
            piece.copy_from_slice(&self.ask_to_read(at, piece.len())?);
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        Ok(())
    }

    pub(crate) fn ask_to_write_all(&self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        in_range(addr, bytes.len() as u64, self.memories(), self.inner.config.memory)?;
        let mut at = addr;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.left_in_message(at).min(rest.len()));
            self.ask_to_write(at, piece)?;
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        Ok(())
    }

    pub(crate) fn ask_to_inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let bytes = self.ask_to_read(addr, len)?;
        Ok(look(&self.window_on(addr, &bytes)))
    }

    /// It takes two round trips, between which the daemon keeps the block for this thread; for half of the rack's timeout at
    /// most, or the connection is cut. The changes are all there when this returns `Ok`, and none of them if the application
    /// dies meanwhile. With [`Error::Detached`] they may be there or not.
    pub(crate) fn ask_to_update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        // What was posted goes first: nobody else may say anything while the update is in flight.
        self.send_asked();
        let conversation = std::sync::Arc::clone(self.conversation()?);
        let mut bytes = conversation.begin_update(addr, len)?;
        // If the closure panics, the daemon must not wait for what it would have written.
        let in_flight = InFlight(&conversation);
        let window = self.window_on(addr, &bytes);
        let changed = change(&window);
        window.read(0, &mut bytes);
        std::mem::forget(in_flight);
        conversation.end_update(&bytes).map(|()| changed)
    }

    pub(crate) fn ask_to_alloc(
        &self,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<GlobalAddr, Error> {
        self.ask(&Operation::Alloc { len, home, discipline }, |answer| match answer {
            Answer::Allocated(addr) => Some(addr),
            _ => None,
        })
    }

    pub(crate) fn ask_to_free(
        &self,
        addr: GlobalAddr,
        incarnation: Option<Incarnation>,
    ) -> Result<(), Error> {
        self.conversation()?.done(&Operation::Free { addr, incarnation })
    }

    pub(crate) fn ask_to_sync(&self) -> Result<(), Error> {
        self.conversation()?.done(&Operation::Sync)
    }

    /// A copy of bytes of a block, as aligned as they are there.
    fn window_on(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Window<'_> {
        let start = (addr.bits() % 8) as usize;
        let words = (start + bytes.len()).div_ceil(8);
        let asking = self.asking.as_mut().expect("whoever comes here has seen that it is attached");
        if asking.words.len() < words {
            asking.words.resize_with(words, Default::default);
        }
        let window = Window::new(&asking.words, start, bytes.len());
        window.write(0, bytes);
        window
    }

    /// Bytes from here that one message may carry, without an end in the middle of a block: that would cut in two what is
    /// atomic.
    fn left_in_message(&self, addr: GlobalAddr) -> usize {
        MOST_BYTES - self.block_size().offset_in_block(addr)
    }
}
