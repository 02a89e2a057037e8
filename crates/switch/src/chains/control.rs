//! The control plane: connections begin and end, tails are forgotten and told.
//!
//! Its calls are made by whoever runs the switch, in the order in which things happen. What must always hold: a connection is known before
//! its first packet, and what is forgotten is forgotten wherever it stood.

use wire::Rules;
use wire::chains::{EntryVersion, Location};
use wire::roce::{Key, Psn};

use super::connections::{Connection, Connections, End};
use super::expiry::Expiry;
use super::layout;
use super::machine::Steering;
use super::program::Arrays;

impl<R: Rules> Steering<R> {
    /// A connection begins, before its first packet; one without a region (key 0) passes as it is. False if there is no number left for it: then its packets pass as they are.
    pub fn connect(&mut self, connection: Connection) -> bool {
        self.disconnect(connection.client);
        self.disconnect(connection.memory);
        if connection.region != Key(0) {
            self.last = Some(connection);
        }
        let number = self.connections.add(connection);
        if let Some(number) = number {
            let next = u64::from(connection.first_psn.get()) << 8 | 1;
            self.program.set_cell(self.arrays.numbers, number, next);
        }
        number.is_some()
    }

    /// Reads of this client are never sent elsewhere: it follows chains entry by entry, as the metadata server does. Until it is connected
    /// anew.
    pub fn read_as_asked(&mut self, client: End) {
        self.connections.read_as_asked(client);
    }

    /// The connection of this end is over. Who stands behind its appends cannot be told what became of them.
    pub fn disconnect(&mut self, end: End) {
        let Some(number) = self.connections.remove(end) else { return };
        self.program.set_cell(self.arrays.numbers, number, 0);
        self.strange_until = None;
        let first = self.record(number, Psn::new(0)) as usize;
        let records = first..first + self.config.window as usize;
        let Arrays { appends, of_keys, behind, states, tails, .. } = self.arrays;
        self.waiting.retain(|waiting| !records.contains(&(waiting.record as usize)));
        self.fill_holes(&records);
        for record in records.clone() {
            for array in [appends, of_keys, behind, states] {
                self.program.set_cell(array, record, 0);
            }
        }
        for index in 1..=self.sizes.indexes() {
            let tail = self.program.cell(tails, index).and_then(layout::parse_tail);
            if tail.is_some_and(|(.., record)| records.contains(&(record as usize))) {
                self.program.set_cell(tails, index, 0);
            }
        }
        // Its client may use its slots for other keys, without being seen.
        self.forget_outstanding();
    }

    /// Somebody has found this entry at the end of a key's chain, not long ago: it is taken for the tail, if none is known. If it is none
    /// any more, the next append is refused, and that ends it. False if the key has no index, or its tail is known.
    pub fn preload(&mut self, key: u64, at: Location, version: EntryVersion) -> bool {
        if !self.admit(key) {
            return false;
        }
        let index = self.keys.index(key).expect("it was let in");
        let is_unknown = self.program.cell(self.arrays.tails, index as usize) == Some(0);
        if is_unknown {
            self.program.set_cell(self.arrays.tails, index as usize, layout::tail(at, version, 0));
            self.keys.name(index);
            self.counters.preloaded += 1;
        }
        is_unknown
    }

    /// A new incarnation of the switch: nothing is known, and nobody.
    pub fn restart(&mut self) {
        self.program.clear();
        self.connections = Connections::new(self.config.connections);
        self.keys.clear();
        self.expiry = Expiry::default();
        self.bound.fill(None);
        self.sent.clear();
        self.waiting.clear();
        self.strange_until = None;
    }
}
