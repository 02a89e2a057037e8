//! Connections: which queue pairs belong together, and which of them began in this incarnation of the switch.
//!
//! On the chip: an exact-match table from the packet's destination to a number, which the control plane writes. What must always
//! hold: a queue pair is an end of one connection.

use alloc::vec;
use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::NodeId;
use wire::roce::{Key, Psn, QpNumber};

/// A queue pair of the rack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End {
    /// Its node.
    pub node: NodeId,
    /// Its number there.
    pub queue_pair: QpNumber,
}

/// A connection of a client, or of the metadata server, to the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// Whose requests are steered.
    pub client: End,
    /// Who executes them.
    pub memory: End,
    /// The first number that the client sends, or the next one if everything before it is answered.
    pub first_psn: Psn,
    /// The store's memory region.
    pub region: Key,
    /// The address of unit 0 in it.
    pub base: u64,
}

/// The connections that are known.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    known: Map<End, (Option<usize>, Connection)>,
    /// Clients whose reads are executed as they ask.
    as_asked: Set<End>,
    /// By number.
    numbered: Vec<Option<Connection>>,
    free: Vec<usize>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self {
            known: Map::new(),
            as_asked: Set::new(),
            numbered: vec![None; most],
            free: (0..most).rev().collect(),
        }
    }

    /// Takes a connection in; the number that it gets, if there is one left.
    pub(super) fn add(&mut self, connection: Connection) -> Option<usize> {
        let number = self.free.pop();
        if let Some(number) = number {
            self.numbered[number] = Some(connection);
        }
        self.known.insert(connection.client, (number, connection));
        self.known.insert(connection.memory, (number, connection));
        number
    }

    /// Forgets the connection of this end, and returns its number.
    pub(super) fn remove(&mut self, end: End) -> Option<usize> {
        let (number, connection) = self.known.remove(&end)?;
        self.known.remove(&connection.client);
        self.known.remove(&connection.memory);
        self.as_asked.remove(&connection.client);
        if let Some(number) = number {
            self.numbered[number] = None;
            self.free.push(number);
        }
        number
    }

    pub(super) fn read_as_asked(&mut self, client: End) {
        self.as_asked.insert(client);
    }

    pub(super) fn reads_as_asked(&self, client: End) -> bool {
        self.as_asked.contains(&client)
    }

    /// The connection with this number.
    pub(super) fn of(&self, number: usize) -> Option<Connection> {
        self.numbered.get(number).copied().flatten()
    }

    /// The connection that a packet to this end belongs to, with its number if it has one.
    pub(super) fn find(&self, to: End) -> Option<&(Option<usize>, Connection)> {
        self.known.get(&to)
    }
}

sorted::key!(End: (NodeId, QpNumber) = |it| (it.node, it.queue_pair));
