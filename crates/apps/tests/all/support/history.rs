//! Exact histories of a few operations on one key, with full values and all answers, and an exhaustive search
//! for an order that explains them (Wing and Gong). For long histories there is the `check` crate.

use std::collections::HashSet;

/// What was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Get,
    Put(Vec<u8>),
    Insert(Vec<u8>),
    Delete,
    /// Overwrite these bytes from this offset on.
    Update(usize, Vec<u8>),
    /// Append these bytes, and cut the value at this length from the front.
    Append(Vec<u8>, usize),
}

/// What was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Value(Option<Vec<u8>>),
    Bool(bool),
    Outside,
}

/// One operation and when it was in flight.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) worker: usize,
    pub(crate) key: usize,
    pub(crate) ask: Ask,
    pub(crate) answer: Answer,
    pub(crate) invoke: u64,
    pub(crate) ret: u64,
}

/// What [`Ask::Append`] does.
pub(crate) fn append(value: &mut Vec<u8>, bytes: &[u8], most: usize) {
    value.extend_from_slice(bytes);
    let cut = value.len().saturating_sub(most);
    value.drain(..cut);
}

/// What the operation does to a key's value, and answers.
pub(crate) fn apply(state: &mut Option<Vec<u8>>, ask: &Ask) -> Answer {
    let present = state.is_some();
    match ask {
        Ask::Get => Answer::Value(state.clone()),
        Ask::Put(value) => {
            *state = Some(value.clone());
            Answer::Bool(present)
        }
        Ask::Insert(value) => {
            state.get_or_insert_with(|| value.clone());
            Answer::Bool(!present)
        }
        Ask::Delete => Answer::Bool(state.take().is_some()),
        Ask::Update(offset, bytes) => match state {
            None => Answer::Bool(false),
            Some(value) if offset + bytes.len() > value.len() => Answer::Outside,
            Some(value) => {
                value[*offset..offset + bytes.len()].copy_from_slice(bytes);
                Answer::Bool(true)
            }
        },
        Ask::Append(bytes, most) => {
            if let Some(value) = state {
                append(value, bytes, *most);
            }
            Answer::Value(state.clone())
        }
    }
}

/// Fails unless, key by key, some order of the operations explains every answer.
pub(crate) fn assert_linearizable(calls: &[Call]) {
    let keys: HashSet<usize> = calls.iter().map(|call| call.key).collect();
    for key in keys {
        let mut calls: Vec<&Call> = calls.iter().filter(|call| call.key == key).collect();
        calls.sort_by_key(|call| call.invoke);
        assert!(calls.len() <= 64, "too many operations on one key for an exhaustive search");
        let mut seen = HashSet::new();
        if !explained(&calls, 0, &None, &mut seen) {
            let table: Vec<String> = calls.iter().map(|call| line(call)).collect();
            panic!("no order explains these operations on key {key}:\n{}", table.join("\n"));
        }
    }
}

/// Searches for an order of the calls that are not in the set `done`, from `state` on.
fn explained(
    calls: &[&Call],
    done: u64,
    state: &Option<Vec<u8>>,
    seen: &mut HashSet<(u64, Option<Vec<u8>>)>,
) -> bool {
    let open = |at: &usize| done & 1 << at == 0;
    let Some(deadline) = (0..calls.len()).filter(open).map(|at| calls[at].ret).min() else { return true };
    if !seen.insert((done, state.clone())) {
        return false;
    }
    (0..calls.len()).filter(open).filter(|at| calls[*at].invoke <= deadline).any(|at| {
        let mut next = state.clone();
        apply(&mut next, &calls[at].ask) == calls[at].answer && explained(calls, done | 1 << at, &next, seen)
    })
}

fn line(call: &Call) -> String {
    let short = |text: String| {
        if text.len() > 90 { format!("{}... ({} characters)", &text[..80], text.len()) } else { text }
    };
    let (ask, answer) = (short(format!("{:?}", call.ask)), short(format!("{:?}", call.answer)));
    format!("{:>6} to {:>6}  worker {}  {ask} -> {answer}", call.invoke, call.ret, call.worker)
}
