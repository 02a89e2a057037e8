//! What application threads ask of regions at other nodes.
//!
//! On the application's own thread, which receives for its node while it waits. What must always hold: whatever is asked ends,
//! with what came of it, or with why nobody knows.

use std::sync::Arc;

use nic::regions::{Call, Reply, refused_words};
use nic::verbs::Remote;
use wire::roce::Key;
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, Refusal};
use zerocopy::IntoBytes as _;

use super::ticket::{Ended, Ticket};
use super::works::{What, Work};
use crate::actor::{Allocated, Driver, Failure, ThreadContext};
use crate::memory::regions::{Region, Shape};
use crate::networked::NetworkedNode;

/// How long another process may take to give this one its memory.
const MAPPING: Nanos = Nanos::from_millis(200);

/// A node, in one of its incarnations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HomeIncarnation {
    /// The node.
    pub node: NodeId,
    /// Its incarnation.
    pub incarnation: Incarnation,
}

/// A region at another node, beyond the reach of loads and stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Far {
    /// Where it begins.
    pub addr: GlobalAddr,
    /// The incarnation of its home in which it was told of: in another one, the key is another region's.
    pub incarnation: Incarnation,
    /// What its home's NIC calls it.
    pub key: Key,
    /// What it is made of.
    pub shape: Shape,
}

impl Far {
    /// Where an element is, as the home's NIC counts.
    pub fn address_of(&self, number: usize) -> u64 {
        self.addr.offset() + (number * self.shape.stride()) as u64 * 8
    }

    /// What everybody calls it.
    pub const fn name(&self) -> RegionName {
        RegionName { addr: self.addr, incarnation: self.incarnation, key: self.key }
    }

    /// Whose memory it is.
    pub const fn home(&self) -> HomeIncarnation {
        HomeIncarnation { node: self.addr.home(), incarnation: self.incarnation }
    }

    fn remote(&self, number: usize) -> Remote {
        Remote { key: self.key, address: self.address_of(number) }
    }
}

/// A region that may be used.
#[derive(Clone)]
pub enum Opened {
    /// By loads and stores.
    Near(Arc<Region>),
    /// By asking its home.
    Far(Far),
}

impl Opened {
    /// Where it begins.
    pub fn addr(&self) -> GlobalAddr {
        match self {
            Self::Near(region) => region.addr(),
            Self::Far(far) => far.addr,
        }
    }

    /// The incarnation of its home that it dies with. None: it is in this process's own memory.
    pub fn incarnation(&self) -> Option<Incarnation> {
        match self {
            Self::Near(region) => region.incarnation(),
            Self::Far(far) => Some(far.incarnation),
        }
    }

    /// What it is made of.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Near(region) => region.shape(),
            Self::Far(far) => far.shape,
        }
    }
}

/// What a region is called by everybody in the rack: no other one ever is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionName {
    /// Where it begins.
    pub addr: GlobalAddr,
    /// The incarnation of its home that it dies with.
    pub incarnation: Incarnation,
    /// What its home's NIC calls it.
    pub key: Key,
}

/// What a read of an object brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// All of it, of this version.
    Whole(u64),
    /// Nothing: somebody was writing.
    Torn,
}

/// What a write to an object came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// The version that it has since then.
    Done(u64),
    /// Nothing: it has another version than was expected.
    Changed,
}

impl NetworkedNode {
    /// Makes a fresh allocation a region.
    ///
    /// # Errors
    /// If its home is down, or in another incarnation, or knows of no such allocation.
    pub fn begin_region(
        &self,
        context: &mut ThreadContext,
        Allocated { addr, incarnation, zeroed }: Allocated,
        shape: Shape,
    ) -> Result<(Opened, RegionName), Failure> {
        let reply = self.ask(context, addr.home(), Call::Begin { addr, incarnation, shape, zeroed }, &[])?;
        self.opened(addr, incarnation, &reply)
    }

    /// The region that begins at an address, of whatever shape.
    ///
    /// # Errors
    /// If there is none, or its home is down.
    pub fn open_region(
        &self,
        context: &mut ThreadContext,
        addr: GlobalAddr,
    ) -> Result<(Opened, RegionName), Failure> {
        let incarnation = self.incarnation_asked(addr.home())?;
        let reply = self.ask(context, addr.home(), Call::Open { addr }, &[])?;
        self.opened(addr, incarnation, &reply)
    }

    /// That incarnation of a node is in the rack, as far as this node knows.
    ///
    /// # Errors
    /// If it is not; or this node is not, and cannot know.
    pub fn confirm_incarnation(&self, node: NodeId, incarnation: Incarnation) -> Result<(), Failure> {
        // The look at the lease comes last: what was known before it was of some worth.
        let known = self.incarnation_asked(node);
        if self.is_fenced() {
            return Err(Failure::Fenced);
        }
        if known? == incarnation { Ok(()) } else { Err(Failure::Refused(Refusal::NodeDown)) }
    }

    /// The incarnation of a home that is about to be asked: not a later one than that which answers.
    fn incarnation_asked(&self, home: NodeId) -> Result<Incarnation, Failure> {
        if home == self.id() {
            return Ok(self.incarnation);
        }
        // A node that counts no more has no connections, and it is not its peers that are down.
        if self.is_fenced() {
            return Err(Failure::Fenced);
        }
        self.verbs.incarnation_of(home).ok_or(Failure::Refused(Refusal::NodeDown))
    }

    fn opened(
        &self,
        addr: GlobalAddr,
        incarnation: Incarnation,
        reply: &Reply,
    ) -> Result<(Opened, RegionName), Failure> {
        let (key, shape) = reply.region().ok_or(Failure::Broken)?;
        let name = RegionName { addr, incarnation, key };
        if addr.home() == self.id() {
            let region = self.memory().regions.find(addr);
            return region
                .map(|region| (Opened::Near(region), name))
                .ok_or(Failure::Refused(Refusal::Unallocated));
        }
        if let Some(sharing) = self.transport().sharing() {
            // If it is not to be had so (a former incarnation of this node still has it), the home's NIC does the same on the same words.
            let mapped = self
                .memory()
                .regions
                .map_shared(addr, incarnation, |home, name| sharing.obtain(home, name, MAPPING));
            if let Ok(region) = mapped {
                return Ok((Opened::Near(region), name));
            }
        }
        Ok((Opened::Far(Far { addr, incarnation, key, shape }), name))
    }

    /// Ends a region, before its memory is given back; if an incarnation of the home is given, only in that. Waits for those who
    /// write its objects.
    ///
    /// # Errors
    /// If there is none, or its home is down.
    pub fn end_region(
        &self,
        context: &mut ThreadContext,
        (addr, incarnation): (GlobalAddr, Option<Incarnation>),
    ) -> Result<(), Failure> {
        // What is sent on a connection is not served in another incarnation of the home than that which it connects.
        self.ask_in(context, (addr.home(), incarnation), Call::End { addr }, &[]).map(drop)
    }

    /// Writes bytes into an object, from byte `at` on, in one step; if a version is expected, only if it has that.
    ///
    /// # Errors
    /// If the region has ended, its home is down, or the bytes do not lie in the object.
    pub fn write_object(
        &self,
        context: &mut ThreadContext,
        region: &Far,
        number: usize,
        at: usize,
        bytes: &[u8],
        expected: Option<u64>,
    ) -> Result<Written, Failure> {
        let &Far { addr, key, .. } = region;
        let call =
            Call::Write { addr, key, object: number as u64, at: at as u64, expected, len: bytes.len() };
        match self.ask_in(context, (addr.home(), Some(region.incarnation)), call, &words_of(bytes)) {
            Ok(Reply::Done(version, ..)) => Ok(Written::Done(version)),
            Err(Failure::Refused(Refusal::Outdated)) => Ok(Written::Changed),
            Ok(Reply::Refused(why)) => Err(why.into()),
            Ok(Reply::Words(_)) => Err(Failure::Broken),
            Err(why) => Err(why),
        }
    }

    /// Reads an object whole, once.
    ///
    /// # Errors
    /// If the region has ended, or its home is down.
    ///
    /// # Panics
    /// If `into` has another length than the object.
    pub fn read_object(
        &self,
        context: &mut ThreadContext,
        region: &Far,
        number: usize,
        into: &mut [u8],
    ) -> Result<Read, Failure> {
        let what = What::ReadObject { remote: region.remote(number), len: into.len() as u32 };
        match self.do_one(context, region.home(), what, &[])? {
            Ended::Object(version, words) => {
                copy_out(&words, into);
                Ok(Read::Whole(version))
            }
            Ended::Torn => Ok(Read::Torn),
            other => panic!("a read of an object ended with {other:?}"),
        }
    }

    /// Reads bytes of a region as they are, whoever is writing them: from byte `at` of an element on.
    ///
    /// # Errors
    /// If the region ended long ago, or its home is down.
    pub fn read_bytes(
        &self,
        context: &mut ThreadContext,
        region: &Far,
        (number, at): (usize, usize),
        into: &mut [u8],
    ) -> Result<(), Failure> {
        let Remote { key, address } = region.remote(number);
        let remote = Remote { key, address: address + at as u64 };
        match self.do_one(context, region.home(), What::Read { remote, len: into.len() as u32 }, &[])? {
            Ended::Answer(words) => copy_out(&words, into),
            other => panic!("a READ ended with {other:?}"),
        }
        Ok(())
    }

    /// Writes bytes of words as they are, from byte `at` of a word on.
    ///
    /// # Errors
    /// If the region ended long ago, or its home is down.
    pub fn write_bytes(
        &self,
        context: &mut ThreadContext,
        region: &Far,
        (number, at): (usize, usize),
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let Remote { key, address } = region.remote(number);
        let remote = Remote { key, address: address + at as u64 };
        self.do_one(context, region.home(), What::Write { remote }, bytes).map(drop)
    }

    /// Sends a batch of operations on words of regions of one home; `entries` of them, of which `fetches` fetch.
    /// [`Ticket`] says how it ends, and [`NetworkedNode::await_batch`] waits for it.
    pub fn post_batch(
        &self,
        context: &mut ThreadContext,
        home: HomeIncarnation,
        batch: &[u8],
        (entries, fetches): (usize, usize),
    ) -> Arc<Ticket> {
        let answer = (refused_words(entries) + fetches) * 8;
        let ticket = Arc::<Ticket>::default();
        if self.is_fenced() {
            ticket.end(Ended::Failed(Failure::Fenced));
            return ticket;
        }
        let what = What::Atomics { answer: answer as u32 };
        let work = Work::new(home.node, what, Some(Arc::clone(&ticket)), words_of(batch), batch.len());
        self.with_nic(context, |nic, now, way| nic.post(now, work.in_incarnation(home.incarnation), way));
        self.flush(context);
        ticket
    }

    /// Bytes that a batch may have, and its answer: each is one packet.
    pub fn batch_bytes(&self) -> usize {
        self.verbs.packet_bytes
    }

    /// Waits until a batch has ended: [`Ticket::answer`] says how.
    pub fn await_batch(&self, context: &mut ThreadContext, ticket: &Ticket) {
        let mut spin_then_park = self.begin_wait();
        ticket.wake(context.waker_of_this_thread());
        // While the node leaves in order, what was sent is still answered.
        while !ticket.is_over() && !self.lease().is_fenced() {
            self.pause(self.id(), context, &mut spin_then_park);
        }
        self.end_wait(context);
    }

    /// Receives what has come, without waiting for anything.
    pub fn look(&self, context: &mut ThreadContext) {
        let now = self.now();
        Driver::run_due(self, self.id(), context, now);
        self.poll(context, now);
    }

    /// Asks a home for something, until it is not in anybody's way any more.
    pub(in crate::networked) fn ask(
        &self,
        context: &mut ThreadContext,
        home: NodeId,
        call: Call,
        bytes: &[u64],
    ) -> Result<Reply, Failure> {
        self.ask_in(context, (home, None), call, bytes)
    }

    /// The same; only in this incarnation of the home, if one is given.
    fn ask_in(
        &self,
        context: &mut ThreadContext,
        (home, incarnation): (NodeId, Option<Incarnation>),
        call: Call,
        bytes: &[u64],
    ) -> Result<Reply, Failure> {
        loop {
            let reply = if home == self.id() {
                let _serving = self.verbs.serving.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                self.serve(call, bytes)
            } else {
                self.ask_once(context, (home, incarnation), call, bytes)?
            };
            match reply {
                // Whoever is inside is about done, or waits for a core.
                Reply::Refused(Refusal::Locked) => {
                    let mut spin_then_park = self.begin_wait();
                    self.pause(self.id(), context, &mut spin_then_park);
                    self.end_wait(context);
                }
                Reply::Refused(why) => return Err(why.into()),
                done => return Ok(done),
            }
        }
    }

    pub(in crate::networked) fn ask_once(
        &self,
        context: &mut ThreadContext,
        (home, incarnation): (NodeId, Option<Incarnation>),
        call: Call,
        bytes: &[u64],
    ) -> Result<Reply, Failure> {
        if self.is_fenced() {
            return Err(Failure::Fenced);
        }
        let ticket = Arc::<Ticket>::default();
        let spin_then_park = self.begin_wait();
        self.with_nic(context, |nic, now, way| {
            if !nic.reaches(home, incarnation) {
                return ticket.end(Ended::Failed(Refusal::NodeDown.into()));
            }
            let mut words = call.words(nic.number_call(home, &ticket));
            words.extend_from_slice(bytes);
            let len = words.len() * 8;
            nic.post(now, Work::new(home, What::Send, None, words.into(), len), way);
        });
        self.flush(context);
        match self.await_ticket(context, &ticket, spin_then_park)? {
            Ended::Reply(reply) => Ok(reply),
            other => panic!("a call ended with {other:?}"),
        }
    }

    /// Posts something, and waits for it.
    fn do_one(
        &self,
        context: &mut ThreadContext,
        home: HomeIncarnation,
        what: What,
        bytes: &[u8],
    ) -> Result<Ended, Failure> {
        if self.is_fenced() {
            return Err(Failure::Fenced);
        }
        let ticket = Arc::<Ticket>::default();
        let work = Work::new(home.node, what, Some(Arc::clone(&ticket)), words_of(bytes), bytes.len());
        let spin_then_park = self.begin_wait();
        self.with_nic(context, |nic, now, way| nic.post(now, work.in_incarnation(home.incarnation), way));
        self.flush(context);
        self.await_ticket(context, &ticket, spin_then_park)
    }

    /// Waits for how work has ended. The wait began before the work was posted.
    pub(in crate::networked) fn await_ticket(
        &self,
        context: &mut ThreadContext,
        ticket: &Ticket,
        mut spin_then_park: crate::waiting::SpinThenPark,
    ) -> Result<Ended, Failure> {
        ticket.wake(context.waker_of_this_thread());
        let ended = loop {
            if let Some(ended) = ticket.take() {
                break ended;
            }
            if self.is_fenced() || self.stop.load(std::sync::atomic::Ordering::Acquire) {
                break Ended::Failed(Failure::Fenced);
            }
            self.pause(self.id(), context, &mut spin_then_park);
        };
        self.end_wait(context);
        match ended {
            Ended::Failed(why) => Err(why),
            ended => Ok(ended),
        }
    }
}

/// Bytes as words, the last one filled up with zeroes.
fn words_of(bytes: &[u8]) -> Box<[u64]> {
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    words.into()
}

fn copy_out(words: &[u64], into: &mut [u8]) {
    into.copy_from_slice(&words.as_bytes()[..into.len()]);
}
