//! Clients of the store that write down what they asked and what they were told.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use apps::kv::{Error, KvStore};

use super::history::{Answer, Ask, Call, append};
use super::memory::{Rack, Worker};

/// Asks the store.
pub(crate) async fn perform(store: &KvStore, mem: &mut Worker, key: &[u8], ask: &Ask) -> Answer {
    let mut value = Vec::new();
    match ask {
        Ask::Get => {
            let found = store.get(mem, key, &mut value).await.unwrap();
            Answer::Value(found.then_some(value))
        }
        Ask::Put(new) => Answer::Bool(store.put(mem, key, new).await.unwrap()),
        Ask::Insert(new) => Answer::Bool(store.insert(mem, key, new).await.unwrap()),
        Ask::Delete => Answer::Bool(store.delete(mem, key).await.unwrap()),
        Ask::Update(offset, bytes) => match store.update_in_place(mem, key, *offset, bytes).await {
            Ok(found) => Answer::Bool(found),
            Err(Error::OutsideValue { .. }) => Answer::Outside,
            Err(other) => panic!("{other}"),
        },
        Ask::Append(bytes, most) => {
            let change = |value: &mut Vec<u8>| append(value, bytes, *most);
            let found = store.read_modify_write(mem, key, &mut value, change).await.unwrap();
            Answer::Value(found.then_some(value))
        }
    }
}

/// The name of a key.
pub(crate) fn key(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// What the workers of one run share.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) rack: Arc<Rack>,
    clock: Rc<Cell<u64>>,
    calls: Rc<RefCell<Vec<Call>>>,
}

impl Run {
    pub(crate) fn on(rack: Arc<Rack>) -> Self {
        Self { rack, clock: Rc::default(), calls: Rc::default() }
    }

    /// What was asked so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Asks the store, and writes it down.
    pub(crate) async fn call(
        &self,
        store: &KvStore,
        mem: &mut Worker,
        worker: usize,
        number: usize,
        ask: Ask,
    ) {
        let answer = async |ask: &Ask| perform(store, mem, &key(number), ask).await;
        self.written_down(worker, number, ask, answer).await;
    }

    /// Asks whatever store, and writes it down.
    pub(crate) async fn written_down(
        &self,
        worker: usize,
        number: usize,
        ask: Ask,
        answer: impl AsyncFnOnce(&Ask) -> Answer,
    ) {
        let invoke = self.tick();
        let answer = answer(&ask).await;
        let ret = self.tick();
        self.calls.borrow_mut().push(Call { worker, key: number, ask, answer, invoke, ret });
    }
}
