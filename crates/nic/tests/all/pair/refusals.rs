//! Requests that must be refused, whatever the network does to the refusal. What must hold: the request ends with a
//! remote access error, nothing of it was done, and both queue pairs are in the error state.

use nic::verbs::*;
use wire::Rules;
use wire::roce::{Key, Opcode, Psn};

use crate::pair::{Faults, Link, Pair};

pub(crate) const BASE: u64 = 0x1000;

/// Two nodes with a region each, and a queue pair.
pub(crate) fn joined<R: Rules>(rules: R, access: Access) -> (Pair<R>, Link, [Key; 2]) {
    let mut pair = Pair::new(rules, 0, Faults::default());
    let keys =
        [pair.nodes[0].register(BASE, 16_384, Access::ALL), pair.nodes[1].register(BASE, 16_384, access)];
    let link = pair.connect(Mtu::B256, [Psn::new(7), Psn::new(0xff_fffe)], |_| {}, |_| {});
    (pair, link, keys)
}

/// A WRITE of 8 bytes.
pub(crate) fn write(id: u64, local: Key, remote: Key, address: u64) -> WorkRequest {
    let local = Span { key: local, address: BASE, len: 8 };
    let remote = Remote { key: remote, address };
    WorkRequest::new(WorkId(id), Operation::Write { local, remote, immediate: None })
}

/// What became of work that must be refused.
pub(crate) fn refused<R: Rules>(pair: &Pair<R>, link: Link, id: u64) -> Result<(), String> {
    let ended = pair.nodes[0].completions.iter().find(|completion| completion.id == WorkId(id));
    let status = ended.map(|completion| completion.status);
    let states = [0, 1].map(|at: usize| pair.nodes[at].device.state(link.0[at]));
    if status != Some(Status::RemoteAccess) || states != [Some(QueuePairState::Err); 2] {
        return Err(format!("work {id} ended with {status:?}, the queue pairs are in {states:?}"));
    }
    match pair.violations() {
        Some(violation) => Err(violation.clone()),
        None => Ok(()),
    }
}

/// A key is used after its region was deregistered, and its place in the table was given to another.
pub(crate) fn a_former_key<R: Rules>(rules: R) -> Result<(), String> {
    let (mut pair, link, keys) = joined(rules, Access::ALL);
    pair.nodes[1].deregister(keys[1]);
    let new = pair.nodes[1].register(BASE, 16_384, Access::ALL);
    assert_eq!(new.0 >> 8, keys[1].0 >> 8, "the same place");
    pair.post(0, link, write(1, keys[0], keys[1], BASE)).expect("there is room");
    pair.run();
    refused(&pair, link, 1)
}

/// The refusal is lost on its way.
pub(crate) fn a_lost_refusal<R: Rules>(rules: R) -> Result<(), String> {
    let (mut pair, link, keys) = joined(rules, Access::ALL);
    pair.lose = vec![(Opcode::Acknowledge, 1), (Opcode::Acknowledge, 2)];
    pair.post(0, link, write(1, keys[0], Key(keys[1].0 ^ 0x100), BASE)).expect("there is room");
    pair.run();
    refused(&pair, link, 1)
}
