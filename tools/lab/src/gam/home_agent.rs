//! What a home does: it orders the requests for its blocks, one transition of a block at a time.
//!
//! Runs on the home, in a background thread, or in an application thread of the home for its own accesses. What must
//! always hold: an entry says who may have copies, at every moment between two transitions.

use std::collections::VecDeque;

use node::Access;
use sim::system::{Call, Processor, ThreadId};
use wire::{BlockTag, Copyset, GlobalStatus, NodeId};

use super::directory::{Entry, Evicted, Given, Phase, Request, Requester};
use super::message::{Body, Message};
use super::operations::Served;
use super::{Gam, Rules};
use crate::home::Payload;

impl<R: Rules> Gam<R> {
    pub(super) fn on_request(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        from: NodeId,
        tag: BlockTag,
        access: Access,
        has_copy: bool,
    ) {
        let by = self.agent_of(home, tag);
        self.admit(call, by, tag, Request { requester: Requester::Remote(from, has_copy), access });
    }

    /// A request is served, begins a transition, or waits for one to end.
    pub(super) fn admit(
        &mut self,
        call: &mut Call<'_, Message>,
        by: Processor,
        tag: BlockTag,
        request: Request,
    ) {
        let block = self.index(tag);
        match self.machine(tag.home()).directory.transition(block) {
            Some(transition) => {
                transition.queue.push_back(request);
                self.counters.queued += 1;
            }
            None => self.proceed(call, by, tag, VecDeque::from([request])),
        }
    }

    /// Serves requests in order, up to the first that takes a transition.
    fn proceed(
        &mut self,
        call: &mut Call<'_, Message>,
        by: Processor,
        tag: BlockTag,
        mut queue: VecDeque<Request>,
    ) {
        let block = self.index(tag);
        while let Some(request) = queue.pop_front() {
            if let Some(phase) = self.start(call, by, tag, request) {
                call.charge(self.config.costs.transition());
                return self.machine(tag.home()).directory.begin(block, phase, queue);
            }
        }
    }

    /// Serves a request at once, or says what its transition waits for.
    fn start(
        &mut self,
        call: &mut Call<'_, Message>,
        by: Processor,
        tag: BlockTag,
        request: Request,
    ) -> Option<Phase> {
        let (home, block) = (tag.home(), self.index(tag));
        let entry = self.machine(home).directory.entry(block);
        let Request { requester, access } = request;
        match (requester, entry.status) {
            (_, GlobalStatus::Modified) => {
                let node = match requester {
                    Requester::Remote(node, _) => node,
                    Requester::Local(_) => home,
                };
                let owner = entry.owner();
                assert_ne!(owner, node, "an owner asks for nothing");
                self.send(call, by, home, owner, tag, Body::Fetch { access, requester: node });
                Some(Phase::Fetching(request, Given::default()))
            }
            (Requester::Local(thread), status) => {
                if access == Access::Modified && status == GlobalStatus::Shared {
                    return self.invalidate(call, by, tag, request, entry);
                }
                Some(self.serve(call, thread))
            }
            (Requester::Remote(node, _), _) if access == Access::Shared => {
                let data = self.current(tag);
                self.send(call, by, home, node, tag, Body::Grant { access, data: Some(data) });
                self.machine(home).directory.set(block, Entry::shared(entry.copies.with(node)));
                None
            }
            (Requester::Remote(node, has_copy), _) => {
                if !entry.copies.without(node).is_empty() {
                    return self.invalidate(call, by, tag, request, entry);
                }
                self.grant_write(call, by, tag, node, has_copy);
                None
            }
        }
    }

    /// The home's contents of a block, wrapped up.
    fn current(&mut self, tag: BlockTag) -> Payload {
        let block = self.index(tag);
        let value = self.machine(tag.home()).memory.copy(block);
        self.payloads.wrap(value)
    }

    /// Asks all sharers but the requester to drop their copies.
    fn invalidate(
        &mut self,
        call: &mut Call<'_, Message>,
        by: Processor,
        tag: BlockTag,
        request: Request,
        entry: Entry,
    ) -> Option<Phase> {
        let sharers = match request.requester {
            Requester::Remote(node, _) => entry.copies.without(node),
            Requester::Local(_) => entry.copies,
        };
        for sharer in sharers.iter() {
            self.send(call, by, tag.home(), sharer, tag, Body::Invalidate);
        }
        Some(Phase::Invalidating(request, sharers))
    }

    /// No other node has a copy: this one becomes the owner. It gets the block unless it has it.
    fn grant_write(
        &mut self,
        call: &mut Call<'_, Message>,
        by: Processor,
        tag: BlockTag,
        node: NodeId,
        has_copy: bool,
    ) {
        let (home, block) = (tag.home(), self.index(tag));
        // A copy that the request speaks of may have been invalidated while the request waited.
        let still = has_copy && self.machine(home).directory.entry(block).copies.contains(node);
        let data = if still { None } else { Some(self.current(tag)) };
        self.send(call, by, home, node, tag, Body::Grant { access: Access::Modified, data });
        self.machine(home).directory.set(block, Entry::dirty(node));
    }

    /// A thread of the home may access the block, before anything else happens to it.
    fn serve(&mut self, call: &mut Call<'_, Message>, thread: ThreadId) -> Phase {
        self.threads[usize::from(thread.0)].served = Some(Served::Home);
        call.wake(thread);
        Phase::Serving(thread)
    }

    /// It has done so.
    pub(super) fn on_served(&mut self, call: &mut Call<'_, Message>, thread: ThreadId, tag: BlockTag) {
        let block = self.index(tag);
        let by = self.agent_of(tag.home(), tag);
        let directory = &mut self.machine(tag.home()).directory;
        let phase = directory.transition(block).map(|transition| transition.phase);
        assert_eq!(phase, Some(Phase::Serving(thread)), "nobody else could go on with the block");
        let queue = directory.end(block);
        self.proceed(call, by, tag, queue);
    }

    pub(super) fn on_invalidate_ack(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        from: NodeId,
        tag: BlockTag,
    ) {
        let (block, by) = (self.index(tag), self.agent_of(home, tag));
        let directory = &mut self.machine(home).directory;
        let waiting = directory.transition(block).map(|transition| &mut transition.phase);
        let Some(Phase::Invalidating(request, sharers)) = waiting else {
            assert!(
                !R::COLLECTS_EVERY_ACKNOWLEDGEMENT,
                "nobody waits for {from}'s acknowledgement of {tag:?}"
            );
            return;
        };
        *sharers = sharers.without(from);
        if R::COLLECTS_EVERY_ACKNOWLEDGEMENT && !sharers.is_empty() {
            return;
        }
        let request = *request;
        let queue = directory.end(block);
        match request.requester {
            Requester::Remote(node, has_copy) => {
                self.grant_write(call, by, tag, node, has_copy);
                self.proceed(call, by, tag, queue);
            }
            Requester::Local(thread) => {
                self.machine(home).directory.set(block, Entry::default());
                let phase = self.serve(call, thread);
                self.machine(home).directory.begin(block, phase, queue);
            }
        }
    }

    /// The owner has sent the block where the request wanted it.
    pub(super) fn on_fetched(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        tag: BlockTag,
        data: Option<Payload>,
    ) {
        let (block, by) = (self.index(tag), self.agent_of(home, tag));
        if let Some(data) = data {
            let value = self.payloads.open(data);
            self.machine(home).memory.put(block, value);
        }
        let directory = &mut self.machine(home).directory;
        let owner = directory.entry(block).owner();
        let phase = directory.transition(block).map(|transition| transition.phase);
        let Some(Phase::Fetching(request, given)) = phase else {
            panic!("nobody asked {owner} for {tag:?}: {phase:?}")
        };
        let queue = directory.end(block);
        let keeps = request.access == Access::Shared && !given.by_owner;
        let kept = if keeps { Entry::shared(Copyset::only(owner)) } else { Entry::default() };
        match request.requester {
            Requester::Remote(node, _) => {
                let entry = match (request.access, given.by_requester) {
                    (_, Some(_)) => kept,
                    (Access::Shared, None) => Entry::shared(kept.copies.with(node)),
                    (Access::Modified, None) => Entry::dirty(node),
                };
                directory.set(block, entry);
                if let Some(Evicted::Dirty(data)) = given.by_requester {
                    self.take_back(call, home, node, tag, data);
                }
                self.proceed(call, by, tag, queue);
            }
            Requester::Local(thread) => {
                directory.set(block, kept);
                let phase = self.serve(call, thread);
                self.machine(home).directory.begin(block, phase, queue);
            }
        }
    }

    /// Notice: a clean copy is gone. An invalidation that is in flight to it is acknowledged all the same.
    pub(super) fn on_evict_shared(&mut self, home: NodeId, from: NodeId, tag: BlockTag) {
        let block = self.index(tag);
        let directory = &mut self.machine(home).directory;
        if let Some(Phase::Fetching(Request { requester: Requester::Remote(node, _), .. }, given)) =
            directory.transition(block).map(|transition| &mut transition.phase)
            && *node == from
        {
            given.by_requester = Some(Evicted::Shared);
        }
        let entry = directory.entry(block);
        if entry.status == GlobalStatus::Shared {
            directory.set(block, Entry::shared(entry.copies.without(from)));
        }
    }

    pub(super) fn on_write_back(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        from: NodeId,
        tag: BlockTag,
        data: Payload,
    ) {
        let (block, by) = (self.index(tag), self.agent_of(home, tag));
        let directory = &mut self.machine(home).directory;
        let owner = directory.entry(block).owner();
        match directory.transition(block).map(|transition| &mut transition.phase) {
            // The owner is asked for the block already, and still has it: its answer is what counts.
            Some(Phase::Fetching(_, given)) if owner == from => {
                given.by_owner = true;
                self.payloads.open(data);
                self.send(call, by, home, from, tag, Body::WriteBackAck);
            }
            // The next owner is quicker than the one before: it has to wait for that one's answer.
            Some(Phase::Fetching(_, given)) => given.by_requester = Some(Evicted::Dirty(data)),
            other => {
                assert_eq!((owner, other), (from, None), "only the owner of {tag:?} writes it back");
                directory.set(block, Entry::default());
                self.take_back(call, home, from, tag, data);
            }
        }
    }

    /// The home is current, and the owner before need not keep the block.
    fn take_back(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        from: NodeId,
        tag: BlockTag,
        data: Payload,
    ) {
        let (block, by) = (self.index(tag), self.agent_of(home, tag));
        let value = self.payloads.open(data);
        self.machine(home).memory.put(block, value);
        self.send(call, by, home, from, tag, Body::WriteBackAck);
    }
}
