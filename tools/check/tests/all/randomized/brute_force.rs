//! Linearizability by its definition: every order is tried. For histories of one key and few operations.
//! Shares nothing with the checker but the types.

use check::history::{Digest, Op, Operation};

pub(crate) fn is_linearizable(initial: Option<Digest>, history: &[Operation<u64>]) -> bool {
    let all = (0..history.len()).collect::<Vec<_>>();
    can_finish(history, &all, initial)
}

/// Whether the remaining operations have an order from here. What never returned may stay undone.
fn can_finish(history: &[Operation<u64>], remaining: &[usize], value: Option<Digest>) -> bool {
    if remaining.iter().all(|&i| history[i].ret.is_none()) {
        return true;
    }
    remaining.iter().any(|&next| {
        let is_first = remaining.iter().all(|&other| other == next || !precedes(history, other, next));
        let left: Vec<usize> = remaining.iter().copied().filter(|&i| i != next).collect();
        is_first && apply(&history[next].op, value).is_some_and(|value| can_finish(history, &left, value))
    })
}

fn precedes(history: &[Operation<u64>], a: usize, b: usize) -> bool {
    let Some(ret) = history[a].ret else { return false };
    let order = |i: usize| (history[i].invoke, history[i].ret.is_none(), history[i].ret, i);
    ret < history[b].invoke
        || (history[a].client == history[b].client && ret == history[b].invoke && order(a) < order(b))
}

/// What the operation leaves; `None`: it does not fit here.
fn apply(op: &Op, value: Option<Digest>) -> Option<Option<Digest>> {
    match *op {
        Op::Read { value: seen } => (seen == value).then_some(value),
        Op::Insert { value: new } => Some(Some(new)),
        Op::Update { value: None } => value.is_none().then_some(None),
        Op::Update { value: new } => value.is_some().then_some(new),
        Op::Delete => Some(None),
        Op::Rmw { value: seen, new } => (seen == value).then_some(Some(new)),
    }
}
