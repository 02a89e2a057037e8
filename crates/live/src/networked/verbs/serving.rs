//! What a home does for others whose memory cannot do it alone: regions begin, are opened and end; objects are written.
//!
//! On whichever thread received the call, with no lock held but that of serving. What must always hold: a call is answered once,
//! and nothing here waits for anybody: what has to wait is refused as locked, and asked for again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use nic::regions::{self, Call, Home, Message, Reply, Shape};
use node::allocator::BlockRange;
use wire::roce::Key;
use wire::{AllRules, Discipline, GlobalAddr, Incarnation, NodeId, Refusal};
use zerocopy::IntoBytes as _;

use super::memory::Served;
use super::works::{What, Work};
use crate::actor::ThreadContext;
use crate::memory::NodeMemory;
use crate::memory::regions::{Missing, Region, Taking};
use crate::networked::NetworkedNode;

impl NetworkedNode {
    /// Does what others have asked for.
    pub(in crate::networked) fn serve_calls(&self, context: &mut ThreadContext) {
        while self.verbs.is_asked.swap(false, Ordering::AcqRel) {
            loop {
                // One call at a time, in the order in which they came.
                let _serving = self.verbs.serving.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((from, words)) = self.verbs.enter().asked.pop_front() else { break };
                let Some(Message::Call(number, call, bytes)) = Message::parse(&words) else { continue };
                let reply = match call {
                    Call::Chain { addr, .. } => match self.serve_chains(from, addr, bytes) {
                        Some(reply) => reply,
                        None => continue,
                    },
                    Call::Named { .. } => self.serve_named(from, bytes),
                    call => self.serve(call, bytes),
                };
                let words: Box<[u64]> = reply.words(number).into();
                let len = words.len() * 8;
                self.with_nic(context, |nic, now, way| {
                    nic.post(now, Work::new(from, What::Send, None, words, len), way);
                });
            }
            self.flush(context);
        }
    }

    /// Does one thing that was asked for, by another node or by this one.
    pub(super) fn serve(&self, call: Call, bytes: &[u64]) -> Reply {
        regions::serve(AllRules, &mut Here(self), &call, bytes)
    }

    /// Blocks of this node's memory have ended.
    pub(in crate::networked) fn end_regions_in(&self, ended: &[BlockRange]) {
        for range in ended {
            let bytes = range.bytes(self.memory().cache.block_size());
            regions::on_blocks_ended(AllRules, &mut Here(self), range.first.addr(), bytes);
        }
    }

    /// True if the other node can be asked.
    pub fn reaches(&self, node: NodeId) -> bool {
        node == self.id() || self.verbs.enter().is_connected(node)
    }
}

/// This node's memory, with its allocator and its device.
struct Here<'a>(&'a NetworkedNode);

impl Home for Here<'_> {
    type Region = Arc<Region>;

    fn memory(&self) -> (NodeId, u64) {
        (self.0.id(), self.0.memory().home.bytes())
    }

    fn incarnation(&self) -> Incarnation {
        self.0.incarnation
    }

    fn discipline_of(&self, addr: GlobalAddr) -> Option<Discipline> {
        let tag = self.0.memory().cache.block_size().tag(addr);
        self.0.with_node(|node| node.discipline_of(tag))
    }

    fn region_at(&self, addr: GlobalAddr) -> Option<(GlobalAddr, bool)> {
        self.0.memory().regions.at(addr).map(|region| (region.addr(), region.is_alive()))
    }

    fn first_in(&self, addr: GlobalAddr, bytes: u64) -> Option<GlobalAddr> {
        self.0.memory().regions.first_in(addr, bytes)
    }

    fn find(&self, addr: GlobalAddr) -> Option<(Arc<Region>, Shape)> {
        let region = self.0.memory().regions.find(addr).filter(|region| region.is_alive())?;
        let shape = region.shape();
        Some((region, shape))
    }

    fn begin(&mut self, addr: GlobalAddr, shape: Shape, zeroed: bool) -> Arc<Region> {
        let NodeMemory { regions, home, .. } = &**self.0.memory();
        // Nobody maps the memory of chains: all that is done to it passes the switch.
        let sharing = self.0.transport().sharing().filter(|_| !matches!(shape, Shape::Chain { .. }));
        let shared = sharing.and_then(|sharing| {
            // Where the system has no more descriptors, the others ask over the queue pair.
            regions.begin_shared(&sharing, addr, shape, self.0.incarnation).ok()
        });
        shared.unwrap_or_else(|| regions.begin(home, addr, shape, zeroed))
    }

    fn key_of(&mut self, region: &Arc<Region>) -> Option<Key> {
        self.0.verbs.enter().export(region)
    }

    fn end(&mut self, addr: GlobalAddr) -> Option<bool> {
        let has_ended = self.0.memory().regions.try_end(addr)?;
        if has_ended {
            let nic = &mut *self.0.verbs.enter();
            if let Some(served) = nic.bytes.exported.end(&mut nic.device, addr) {
                // Its key says for long that it has ended. Its memory, and the descriptor of that, go when nobody uses them.
                *served = Served::new(Arc::new(served.remains()));
            }
        }
        Some(has_ended)
    }

    fn write(&mut self, call: &Call, bytes: &[u64]) -> Result<u64, Refusal> {
        let Call::Write { addr, key, object, at, expected, len } = *call else {
            return Err(Refusal::NotAnAllocation);
        };
        let bytes = &bytes.as_bytes()[..len];
        let nic = self.0.verbs.enter();
        let region = nic.bytes.exported.get(key).map(|served| Arc::clone(&served.region));
        drop(nic);
        let region = region.ok_or(Refusal::Unallocated)?;
        let index = usize::try_from(object).map_err(|_| Refusal::NotAnAllocation)?;
        let object = match region.object(index) {
            Ok(object) if region.addr() == addr => object,
            Err(Missing::Beyond) => return Err(Refusal::WrongLength),
            _ => return Err(Refusal::Unallocated),
        };
        let at = usize::try_from(at)
            .ok()
            .filter(|at| at.checked_add(bytes.len()).is_some_and(|end| end <= object.len()));
        let at = at.ok_or(Refusal::WrongLength)?;
        // All of it: then what was in it before does not matter.
        let is_whole = bytes.len() == object.len();
        match object.try_take(is_whole, expected) {
            Ok(Taking::Taken(writing)) => {
                writing.write(at, bytes);
                Ok(writing.version())
            }
            Ok(Taking::Busy) => Err(Refusal::Locked),
            Ok(Taking::Changed) => Err(Refusal::Outdated),
            Err(Missing::Lost) => Err(Refusal::Lost),
            Err(_) => Err(Refusal::Unallocated),
        }
    }
}
