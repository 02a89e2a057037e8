//! Blocks that are on the wire. A message names one by a number, because messages are small and copied freely.
//!
//! What must always hold: a payload is opened exactly once, by the receiver of the message that names it.

use super::blocks::Value;

/// Names a block on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload(u32);

/// All blocks on the wire.
#[derive(Debug, Default)]
pub struct Payloads {
    slots: Vec<Option<Value>>,
    free: Vec<u32>,
}

impl Payloads {
    /// Wraps a block up.
    pub fn wrap(&mut self, value: Value) -> Payload {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(value);
            return Payload(slot);
        }
        self.slots.push(Some(value));
        Payload(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 blocks are on the wire"))
    }

    /// Unwraps it.
    ///
    /// # Panics
    /// If that was done before.
    pub fn open(&mut self, payload: Payload) -> Value {
        let value = self.slots[payload.0 as usize].take().expect("a payload is opened once");
        self.free.push(payload.0);
        value
    }

    /// How many are on the wire.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
