//! What threads ask of homes, what homes do about it, and what threads are told.
//!
//! As the library does it. What must always hold: a call is served once, and answered.

use nic::regions::{self, Call, Message as Said, Reply};
use node::Message as BlockMessage;
use wire::{GlobalAddr, Incarnation, NodeId, Refusal, Rules};

use super::chained::{CHAIN_ASK, CHAIN_REPLY, ForChains};
use super::nic::{Message, Payload, What, Work};
use super::threads::{Doing, Known, Use};
use super::truth::DATA;
use super::world::Regions;
use crate::coherence::Blocks;
use crate::rack::Bench;

impl<R: Rules> Regions<R> {
    /// A call, of another node or of the thread's own.
    pub(super) fn ask<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        thread: usize,
        (call, stamp, earnest): (Call, u64, bool),
    ) {
        let (me, home) = (self.node_of(thread), home_of(&call));
        let number = self.next_call;
        self.next_call += 1;
        self.threads[thread] = Doing::Asking { number, call, stamp, earnest };
        bench
            .note(Some(addr_of(&call).bits()), || format!("thread {thread} of {me} asks {number}: {call:?}"));
        let (incarnation, mine) = (bench.control.incarnation(home), bench.control.incarnation(me));
        let data: &[u64] = if let Call::Write { .. } = call { &[stamp; DATA] } else { &[] };
        if me == home {
            let reply = self.serve(blocks, home, incarnation, (&call, data));
            return self.told(bench, thread, Some(&reply));
        }
        let Some(theirs) = self.nics[me.index()].incarnation_of(home) else {
            return self.told(bench, thread, None);
        };
        self.truth.is_made(number, (me, mine), (home, theirs));
        self.calls.insert(number, (thread, home));
        let words = [&call.words(number), data].concat();
        let work = Work {
            peer: home,
            what: What::Send,
            thread: None,
            source: Payload::of(&words),
            landing: Payload::default(),
            chain: None,
        };
        self.post(bench, me, work);
    }

    fn serve(
        &mut self,
        blocks: &mut Blocks<R>,
        node: NodeId,
        incarnation: Incarnation,
        (call, data): (&Call, &[u64]),
    ) -> Reply {
        self.touch(node);
        let (machine, store) = &mut blocks.nodes[node.index()];
        let reply = regions::serve(self.rules, &mut self.here((machine, store), incarnation), call, data);
        self.seen.calls_refused += u64::from(matches!(reply, Reply::Refused(_)));
        self.truth.is_of_its_incarnation(call, (node, incarnation), &reply);
        reply
    }

    /// A home does the next thing that was asked of it.
    pub(super) fn serve_next<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        node: NodeId,
    ) {
        let (from, payload) = self.asked[node.index()].pop_front().expect("somebody has asked");
        if let [CHAIN_ASK, number] = *payload.words() {
            return self.for_chains.push((node, ForChains::Asked(from, number)));
        }
        let Some(Said::Call(number, call, data)) = Said::parse(payload.words()) else {
            return self.truth.fails(|| format!("{node} was asked by {from} what is no call: {payload:?}"));
        };
        let incarnation = bench.control.incarnation(node);
        let Some(theirs) = self.nics[node.index()].incarnation_of(from) else {
            return self.truth.fails(|| format!("{node} serves a call of {from}, which is down: {call:?}"));
        };
        self.truth.is_served(number, (from, theirs), (node, incarnation));
        let reply = self.serve(blocks, node, incarnation, (&call, data));
        bench.note(Some(addr_of(&call).bits()), || {
            format!("{node} serves {number} of {from}: {call:?}: {reply:?}")
        });
        let work = Work {
            peer: from,
            what: What::Send,
            thread: None,
            source: Payload::of(&reply.words(number)),
            landing: Payload::default(),
            chain: None,
        };
        self.post(bench, node, work);
    }

    pub(super) fn message_comes<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        node: NodeId,
        peer: NodeId,
        payload: Payload,
    ) {
        match *payload.words() {
            [CHAIN_ASK, _] => return self.asked[node.index()].push_back((peer, payload)),
            [CHAIN_REPLY, number] => return self.for_chains.push((node, ForChains::Told(peer, number))),
            _ => {}
        }
        match Said::parse(payload.words()) {
            Some(Said::Call(..)) => self.asked[node.index()].push_back((peer, payload)),
            Some(Said::Reply(number, reply)) => match self.calls.remove(&number) {
                Some((thread, asked)) if asked == peer => self.told(bench, thread, Some(&reply)),
                other => self.truth.fails(|| {
                    format!("{node} gets a reply of {peer} to call {number}, which is {other:?}: {reply:?}")
                }),
            },
            None => self.truth.fails(|| format!("{node} gets what is no message: {payload:?}")),
        }
    }

    /// What became of a call. None: nobody knows, or the home is down.
    pub(super) fn told<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        reply: Option<&Reply>,
    ) {
        let Doing::Asking { number, call, stamp, earnest } = self.threads[thread] else {
            let doing = self.threads[thread];
            return self.truth.fails(|| format!("thread {thread} is told {reply:?}, and is {doing:?}"));
        };
        let addr = addr_of(&call);
        bench.note(Some(addr.bits()), || format!("thread {thread} is told of call {number}: {reply:?}"));
        self.threads[thread] = Doing::Idle;
        let me = self.node_of(thread);
        let is_mine = self.uses.get(&addr) == Some(&Use::Busy(thread));
        if let (Call::Begin { .. } | Call::Open { .. }, Some(Reply::Done(..))) = (&call, reply) {
            let known = self.known(bench, me, addr, reply.expect("it is one"));
            let is_to_know = matches!(self.uses.get(&addr), Some(Use::Unknown));
            if let Some(known) = known.filter(|_| earnest && (is_mine || is_to_know)) {
                self.seen.begun += u64::from(is_mine);
                self.uses.insert(addr, Use::Usable(known));
            }
            return;
        }
        match (call, reply) {
            (_, Some(Reply::Refused(Refusal::Locked))) => {
                self.threads[thread] = Doing::ToAsk { call, stamp, earnest };
            }
            // As the library does it: nobody has seen it.
            (Call::Begin { .. }, _) if is_mine && earnest => {
                self.give_back(bench, thread, addr);
            }
            (Call::Open { .. }, Some(Reply::Refused(Refusal::Unallocated))) if earnest => {
                if let Some(it @ Use::Unknown) = self.uses.get_mut(&addr) {
                    *it = Use::Fresh { zeroed: false };
                }
            }
            (Call::End { .. }, Some(Reply::Done(..) | Reply::Refused(Refusal::NotAnAllocation))) => {
                self.seen.ended += 1;
                if is_mine {
                    self.give_back(bench, thread, addr);
                }
            }
            (Call::End { .. }, _) if is_mine => drop(self.uses.insert(addr, Use::Unknown)),
            (Call::Write { .. }, Some(Reply::Done(..))) => self.seen.writes += 1,
            (Call::Write { .. }, None) => self.seen.indeterminate += 1,
            _ => {}
        }
    }

    /// The region that a home has told a node of.
    fn known<M: Copy>(
        &mut self,
        bench: &Bench<M>,
        me: NodeId,
        addr: GlobalAddr,
        reply: &Reply,
    ) -> Option<Known> {
        let home = addr.home();
        let incarnation = match me == home {
            true => bench.control.incarnation(home),
            false => self.nics[me.index()].incarnation_of(home)?,
        };
        let told = reply.region();
        let number = told.and_then(|(key, _)| self.truth.named(home, incarnation, key));
        match (told, number) {
            (Some((key, shape)), Some(number)) if self.truth.region(number).addr == addr => {
                Some(Known { addr, key, shape, incarnation, number })
            }
            _ => {
                self.truth
                    .fails(|| format!("{me} is told of a region at {addr} that there is not: {reply:?}"));
                None
            }
        }
    }
}

/// What a call is about.
pub(super) const fn addr_of(call: &Call) -> GlobalAddr {
    match *call {
        Call::Begin { addr, .. }
        | Call::Open { addr }
        | Call::End { addr }
        | Call::Write { addr, .. }
        | Call::Chain { addr, .. } => addr,
        Call::Named { .. } => panic!("nothing is named in these runs"),
    }
}

fn home_of(call: &Call) -> NodeId {
    addr_of(call).home()
}
