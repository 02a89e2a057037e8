//! What a node does about blocks of others that it caches: it asks for them, takes grants, and gives copies away.
//!
//! Runs in the node's background threads; asking, in [`HandOver::Direct`](super::HandOver), in the application thread.
//! What must always hold: a thread that was woken for a block finds it as it was granted, because a message that
//! would change it waits for the thread's access. (The home has at most one message in flight to a node that may
//! have to wait.)

use node::Access;
use sim::system::{Call, Processor, ThreadId};
use wire::{BlockTag, NodeId};

use super::cache::{LineId, LineState};
use super::directory::{Request, Requester};
use super::message::{Body, Message};
use super::operations::Served;
use super::{Gam, Rules};
use crate::home::Payload;

/// A block that threads of the node wait for.
#[derive(Debug, Default)]
pub(super) struct Busy {
    waiters: Vec<ThreadId>,
    /// The block was invalidated before it arrived, when so many threads waited.
    overtaken: Option<usize>,
    deferred: Option<Deferred>,
}

/// A message that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deferred {
    Fetch { access: Access, requester: NodeId },
    Invalidate,
}

impl<R: Rules> Gam<R> {
    /// A thread needs a block that it cannot access now, and waits from now on.
    pub(super) fn demand(
        &mut self,
        call: &mut Call<'_, Message>,
        by: Processor,
        thread: ThreadId,
        tag: BlockTag,
        access: Access,
    ) {
        let node = self.node_of(thread);
        if tag.home() == node {
            return self.admit(call, by, tag, Request { requester: Requester::Local(thread), access });
        }
        let cache = &mut self.machine(node).cache;
        let line = cache.find(tag);
        let has_copy = match line.map(|line| (line, cache.line(line).state)) {
            None => {
                cache.insert(tag, LineState::Fetching(access));
                false
            }
            Some((line, LineState::Shared)) if access == Access::Modified => {
                cache.set(line, LineState::Upgrading);
                true
            }
            // It came while the work request was in flight.
            Some((line, LineState::Shared | LineState::Dirty)) => {
                return self.hand_out(call, node, line, &[thread]);
            }
            Some((
                _,
                LineState::Fetching(_) | LineState::Upgrading | LineState::Leaving | LineState::Overtaken,
            )) => {
                return self.wait(node, tag, thread);
            }
            Some((_, LineState::Free)) => unreachable!("a free line holds no block"),
        };
        self.wait(node, tag, thread);
        call.charge(self.config.costs.miss());
        self.send(call, by, node, tag.home(), tag, Body::Request { access, has_copy });
        self.make_space(call, by, node);
    }

    fn wait(&mut self, node: NodeId, tag: BlockTag, thread: ThreadId) {
        self.machine(node).busy.entry(tag).or_default().waiters.push(thread);
    }

    /// While the cache is too large, the block that was used least recently goes.
    fn make_space(&mut self, call: &mut Call<'_, Message>, by: Processor, node: NodeId) {
        while let Some(line) = self.machine(node).cache.victim() {
            call.charge(self.config.costs.eviction());
            let cache = &mut self.machine(node).cache;
            let (tag, state) = (cache.line(line).tag, cache.line(line).state);
            let body = if state == LineState::Dirty {
                // The contents stay until the home has them: it may ask for them meanwhile.
                cache.set(line, LineState::Leaving);
                let value = cache.blocks.copy(line as usize);
                self.counters.evicted_dirty += 1;
                Body::WriteBack { data: self.payloads.wrap(value) }
            } else {
                cache.remove(line);
                self.counters.evicted_shared += 1;
                Body::EvictShared
            };
            self.send(call, by, node, tag.home(), tag, body);
        }
    }

    /// Lets threads access a line, before anything else happens to it.
    fn hand_out(&mut self, call: &mut Call<'_, Message>, node: NodeId, line: LineId, threads: &[ThreadId]) {
        self.machine(node).cache.pin(line, threads.len());
        for thread in threads {
            self.threads[usize::from(thread.0)].served = Some(Served::Line(line));
            call.wake(*thread);
        }
    }

    /// Forgets that a block is waited for, if it is not.
    fn tidy(&mut self, node: NodeId, tag: BlockTag) {
        let busy = &mut self.machine(node).busy;
        if busy.get(&tag).is_some_and(|busy| busy.waiters.is_empty() && busy.deferred.is_none()) {
            busy.remove(&tag);
        }
    }

    pub(super) fn on_grant(
        &mut self,
        call: &mut Call<'_, Message>,
        node: NodeId,
        from: NodeId,
        tag: BlockTag,
        access: Access,
        data: Option<Payload>,
    ) {
        let value = data.map(|data| self.payloads.open(data));
        let Self { machines, .. } = self;
        let machine = &mut machines[node.index()];
        let line = machine.cache.find(tag).expect("what is waited for has a line");
        let state = machine.cache.line(line).state;
        assert!(
            matches!(state, LineState::Fetching(_) | LineState::Upgrading),
            "{node} did not ask for {tag:?}: {state:?}"
        );
        match value {
            Some(value) => machine.cache.blocks.put(line as usize, value),
            None => {
                assert_eq!(state, LineState::Upgrading, "a grant without data is for a copy that is there")
            }
        }
        let busy = machine.busy.get_mut(&tag).expect("what is waited for has waiters");
        // Grants of the home and its invalidations come in the order in which it sent them: that one was about an
        // older copy.
        let overtaken = busy.overtaken.take().filter(|_| R::DROPS_OVERTAKEN_BLOCKS && from != tag.home());
        let waiters: Vec<_> = match overtaken {
            Some(number) => busy.waiters.drain(..number).collect(),
            None => core::mem::take(&mut busy.waiters),
        };
        machine.cache.set(
            line,
            match (overtaken, access) {
                (Some(_), _) => LineState::Overtaken,
                (None, Access::Shared) => LineState::Shared,
                (None, Access::Modified) => LineState::Dirty,
            },
        );
        self.hand_out(call, node, line, &waiters);
        self.tidy(node, tag);
    }

    /// A thread that was woken for a line has accessed it.
    pub(super) fn on_accessed(&mut self, call: &mut Call<'_, Message>, node: NodeId, line: LineId) {
        let machine = self.machine(node);
        let (tag, state) = (machine.cache.line(line).tag, machine.cache.line(line).state);
        if !machine.cache.unpin(line) {
            return;
        }
        if state == LineState::Overtaken {
            machine.cache.remove(line);
            return self.let_retry(call, node, tag);
        }
        let deferred = machine.busy.get_mut(&tag).and_then(|busy| busy.deferred.take());
        self.tidy(node, tag);
        match deferred {
            Some(Deferred::Fetch { access, requester }) => self.on_fetch(call, node, tag, access, requester),
            Some(Deferred::Invalidate) => self.on_invalidate(call, node, tag),
            None => {}
        }
    }

    /// Those who wait for a block try again.
    fn let_retry(&mut self, call: &mut Call<'_, Message>, node: NodeId, tag: BlockTag) {
        let Some(busy) = self.machine(node).busy.remove(&tag) else { return };
        assert_eq!(busy.deferred, None, "nobody asks for a block that is gone");
        for thread in busy.waiters {
            call.wake(thread);
        }
    }

    fn defer(&mut self, node: NodeId, tag: BlockTag, message: Deferred) {
        let before = self.machine(node).busy.entry(tag).or_default().deferred.replace(message);
        assert_eq!(before, None, "the home waits for an answer about {tag:?} before it asks {node} again");
    }

    /// The home wants the block of its owner.
    pub(super) fn on_fetch(
        &mut self,
        call: &mut Call<'_, Message>,
        node: NodeId,
        tag: BlockTag,
        access: Access,
        requester: NodeId,
    ) {
        let by = self.agent_of(node, tag);
        let cache = &mut self.machine(node).cache;
        let line = cache.find(tag).expect("the owner has the block until the home has it");
        let leaving = match cache.line(line).state {
            LineState::Dirty if cache.line(line).pins == 0 => false,
            LineState::Leaving => true,
            // It is on its way here, from the owner before.
            LineState::Dirty | LineState::Fetching(Access::Modified) => {
                return self.defer(node, tag, Deferred::Fetch { access, requester });
            }
            other => panic!("{node} does not own {tag:?}: {other:?}"),
        };
        let value = cache.blocks.copy(line as usize);
        if !leaving && access == Access::Shared {
            cache.set(line, LineState::Shared);
        } else if !leaving {
            cache.remove(line);
        }
        let home = tag.home();
        if requester == home {
            let data = Some(self.payloads.wrap(value));
            return self.send(call, by, node, home, tag, Body::Fetched { data });
        }
        let for_home = (access == Access::Shared).then(|| self.payloads.wrap(value.clone()));
        let data = Some(self.payloads.wrap(value));
        self.send(call, by, node, requester, tag, Body::Grant { access, data });
        self.send(call, by, node, home, tag, Body::Fetched { data: for_home });
    }

    /// The home wants a copy dropped. If there is none, because the notice of its eviction is in flight or because
    /// it was dropped on arrival, the home wants to hear that, too.
    pub(super) fn on_invalidate(&mut self, call: &mut Call<'_, Message>, node: NodeId, tag: BlockTag) {
        let by = self.agent_of(node, tag);
        let machine = self.machine(node);
        if let Some(line) = machine.cache.find(tag) {
            let pinned = machine.cache.line(line).pins > 0;
            match machine.cache.line(line).state {
                LineState::Shared | LineState::Upgrading if pinned => {
                    return self.defer(node, tag, Deferred::Invalidate);
                }
                LineState::Shared => machine.cache.remove(line),
                LineState::Upgrading => machine.cache.set(line, LineState::Fetching(Access::Modified)),
                // Either this is about an older copy, or it has overtaken the block, which comes from its former owner.
                // To wait for it could be to wait for ever. So it is not kept when it comes; who waits for it
                // already may read it, for its access began before the write that this makes room for ends.
                LineState::Fetching(Access::Shared) => {
                    let busy = machine.busy.get_mut(&tag).expect("what is waited for has waiters");
                    let waiters = busy.waiters.len();
                    busy.overtaken.get_or_insert(waiters);
                }
                LineState::Fetching(Access::Modified) | LineState::Overtaken => {}
                other => panic!("an owner is not asked to invalidate {tag:?}: {other:?}"),
            }
        }
        self.send(call, by, node, tag.home(), tag, Body::InvalidateAck);
    }

    pub(super) fn on_write_back_ack(&mut self, call: &mut Call<'_, Message>, node: NodeId, tag: BlockTag) {
        let cache = &mut self.machine(node).cache;
        let line = cache.find(tag).expect("what is written back has a line");
        assert_eq!(cache.line(line).state, LineState::Leaving);
        cache.remove(line);
        self.let_retry(call, node, tag);
    }

    pub(super) fn on_work(
        &mut self,
        call: &mut Call<'_, Message>,
        node: NodeId,
        tag: BlockTag,
        thread: ThreadId,
        access: Access,
    ) {
        let by = self.agent_of(node, tag);
        self.demand(call, by, thread, tag, access);
    }
}
