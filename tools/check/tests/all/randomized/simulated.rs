//! Clients of a perfect memory in virtual time: each operation happens at a random instant between its
//! invocation and its return. What they see is linearizable by construction.

use std::collections::HashMap;

use check::history::{Digest, Op, Operation};
use wire::Nanos;

use random::Dice;

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) operations: usize,
    pub(crate) clients: u64,
    pub(crate) keys: u64,
    /// Percent of updates, deletes, read-modify-writes and inserts; the rest are reads.
    pub(crate) updates: u64,
    pub(crate) deletes: u64,
    pub(crate) rmws: u64,
    pub(crate) inserts: u64,
    /// An operation takes up to so many nanoseconds.
    pub(crate) longest: u64,
    /// How many different digests there are; `None`: every write has its own.
    pub(crate) digests: Option<u64>,
    /// Percent of operations that never return.
    pub(crate) unreturned: u64,
}

/// An operation before its result is known.
struct Planned {
    client: u64,
    key: u64,
    dice: u64,
    invoke: u64,
    /// When it happens, and whether it does.
    at: u64,
    happens: bool,
    ret: Option<u64>,
}

pub(crate) fn simulate(rng: &mut Dice, shape: &Shape, initial: Option<Digest>) -> Vec<Operation<u64>> {
    let mut plan = plan(rng, shape);
    // Stable: operations of one client at one instant stay in their order.
    plan.sort_by_key(|planned| planned.at);
    let mut memory: HashMap<u64, Option<Digest>> = HashMap::new();
    let mut fresh = 1_000;
    let mut history = Vec::with_capacity(plan.len());
    for planned in plan {
        let cell = memory.entry(planned.key).or_insert(initial);
        fresh += 1;
        let new = shape.digests.map_or(fresh, |digests| rng.below(digests));
        let (op, value) = result(shape, planned.dice, *cell, new);
        if planned.happens {
            *cell = value;
        }
        history.push(Operation {
            client: planned.client,
            key: planned.key,
            op,
            invoke: Nanos(planned.invoke),
            ret: planned.ret.map(Nanos),
        });
    }
    history.sort_by_key(|operation| operation.invoke);
    history
}

fn plan(rng: &mut Dice, shape: &Shape) -> Vec<Planned> {
    let mut clients: Vec<(u64, u64)> =
        (0..shape.clients).map(|client| (client, rng.below(shape.longest + 1))).collect();
    let mut plan = Vec::with_capacity(shape.operations);
    for _ in 0..shape.operations {
        // Whoever is free first goes on.
        let who = (0..clients.len()).min_by_key(|&who| clients[who].1).expect("there are clients");
        let (client, invoke) = clients[who];
        let ret = invoke + rng.below(shape.longest + 1);
        let returns = !rng.percent(shape.unreturned);
        plan.push(Planned {
            client,
            key: rng.below(shape.keys),
            dice: rng.below(100),
            invoke,
            at: invoke + rng.below(ret - invoke + 1),
            happens: returns || rng.percent(50),
            ret: returns.then_some(ret),
        });
        // A client that waits for ever is replaced by another.
        let next_client = if returns { client } else { client + shape.clients };
        clients[who] = (next_client, ret + if rng.percent(50) { 0 } else { rng.below(shape.longest + 1) });
    }
    plan
}

/// The operation with its result, and what it leaves.
fn result(shape: &Shape, dice: u64, value: Option<Digest>, new: Digest) -> (Op, Option<Digest>) {
    let mut below = shape.updates;
    if dice < below {
        let updated = value.map(|_| new);
        return (Op::Update { value: updated }, updated);
    }
    below += shape.deletes;
    if dice < below {
        return (Op::Delete, None);
    }
    below += shape.rmws;
    if dice < below {
        return (Op::Rmw { value, new }, Some(new));
    }
    below += shape.inserts;
    if dice < below {
        return (Op::Insert { value: new }, Some(new));
    }
    (Op::Read { value }, value)
}
