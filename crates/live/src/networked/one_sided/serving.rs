//! What a home does for others whose memory cannot do it alone: regions begin, are opened and end; objects are written.
//!
//! On whichever thread received the call, with no lock held but that of serving. What must always hold: a call is answered once,
//! and nothing here waits for anybody: what has to wait is refused as locked, and asked for again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use wire::roce::Key;
use wire::{Discipline, GlobalAddr, NodeId, Refusal};
use zerocopy::IntoBytes as _;

use super::calls::{Call, Message, Reply};
use super::works::{What, Work};
use crate::memory::one_sided::{Missing, Region, Shape, Taking};
use crate::networked::NetworkedNode;
use crate::place::Courier;

impl NetworkedNode {
    /// Does what others have asked for.
    pub(in crate::networked) fn serve_calls(&self, courier: &mut Courier) {
        while self.one_sided.is_asked.swap(false, Ordering::AcqRel) {
            loop {
                // One call at a time, in the order in which they came.
                let _serving = self.one_sided.serving.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((from, words)) = self.one_sided.enter().asked.pop_front() else { break };
                let Some(Message::Call(number, call, bytes)) = Message::parse(&words) else { continue };
                let reply = match call {
                    Call::Chain { addr, .. } => match self.serve_chains(from, addr, bytes) {
                        Some(reply) => reply,
                        None => continue,
                    },
                    call => self.serve(call, bytes),
                };
                let words: Box<[u64]> = reply.words(number).into();
                let len = words.len() * 8;
                self.with_nic(courier, |nic, now, way| {
                    nic.post(now, Work::new(from, What::Send, None, words, len), way);
                });
            }
            self.flush(courier);
        }
    }

    /// Does one thing that was asked for, by another node or by this one.
    pub(super) fn serve(&self, call: Call, bytes: &[u64]) -> Reply {
        let done = match call {
            Call::Begin { addr, shape, zeroed } => self.begin_region_here(addr, shape, zeroed),
            Call::Open { addr } => self.open_region_here(addr),
            Call::End { addr } => self.end_region_here(addr),
            Call::Write { addr, key, object, at, expected, len } => {
                let bytes = &bytes.as_bytes()[..len];
                self.write_here(addr, key, object, at, expected, bytes)
            }
            // Whoever asks that of its own node does not come this way.
            Call::Chain { .. } => Err(Refusal::NotAnAllocation),
        };
        done.unwrap_or_else(Reply::Refused)
    }

    fn begin_region_here(&self, addr: GlobalAddr, shape: Shape, zeroed: bool) -> Result<Reply, Refusal> {
        let bytes = shape.bytes().ok_or(Refusal::OutOfMemory)?;
        let end = addr.offset().checked_add(bytes).filter(|end| *end <= self.memory().home.bytes());
        let tag = self.memory().cache.block_size().tag(addr);
        if addr.home() != self.id() || end.is_none() || !addr.offset().is_multiple_of(8) {
            return Err(Refusal::NotAnAllocation);
        }
        match self.with_node(|node| node.discipline_of(tag)) {
            Some(discipline) if discipline == shape.discipline() => {}
            Some(_) => return Err(Refusal::WrongDiscipline),
            None => return Err(Refusal::Unallocated),
        }
        let regions = &self.memory().regions;
        let last = GlobalAddr::from_bits(addr.bits() + bytes - 1);
        if regions.reaches(addr) || regions.reaches(last) {
            return Err(Refusal::NotAnAllocation);
        }
        // Nobody maps the memory of chains: all that is done to it passes the switch.
        let sharing = self.transport().sharing().filter(|_| !matches!(shape, Shape::Chain { .. }));
        let shared = sharing.and_then(|sharing| {
            // Where the system has no more descriptors, the others ask over the queue pair.
            regions.begin_shared(&sharing, addr, shape, self.incarnation).ok()
        });
        let region = shared.unwrap_or_else(|| regions.begin(&self.memory().home, addr, shape, zeroed));
        let key = self.key_of(&region).ok_or(Refusal::OutOfMemory)?;
        Ok(Reply::of_region(key, shape))
    }

    fn key_of(&self, region: &Arc<Region>) -> Option<Key> {
        let nic = &mut *self.one_sided.enter();
        nic.bytes.exported.key_of(&mut nic.device, region)
    }

    fn open_region_here(&self, addr: GlobalAddr) -> Result<Reply, Refusal> {
        let regions = &self.memory().regions;
        if let Some(region) = regions.find(addr) {
            let key = self.key_of(&region).ok_or(Refusal::OutOfMemory)?;
            return Ok(Reply::of_region(key, region.shape()));
        }
        if regions.reaches(addr) {
            return Err(Refusal::NotAnAllocation);
        }
        let tag = self.memory().cache.block_size().tag(addr);
        match self.with_node(|node| node.discipline_of(tag)) {
            // Its block has others; this one was freed, or never was.
            Some(Discipline::Word | Discipline::Object | Discipline::Chain) | None => {
                Err(Refusal::Unallocated)
            }
            Some(_) => Err(Refusal::WrongDiscipline),
        }
    }

    fn end_region_here(&self, addr: GlobalAddr) -> Result<Reply, Refusal> {
        // A writer that is inside an object may be a thread that has no core.
        match self.memory().regions.try_end(addr) {
            None => Err(Refusal::NotAnAllocation),
            Some(false) => Err(Refusal::Locked),
            Some(true) => {
                let nic = &mut *self.one_sided.enter();
                nic.bytes.exported.end(&mut nic.device, addr);
                Ok(Reply::Done(0, 0, 0))
            }
        }
    }

    fn write_here(
        &self,
        addr: GlobalAddr,
        key: Key,
        object: u64,
        at: u64,
        expected: Option<u64>,
        bytes: &[u8],
    ) -> Result<Reply, Refusal> {
        let region = self.one_sided.enter().bytes.exported.get(key).cloned().ok_or(Refusal::Unallocated)?;
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
                Ok(Reply::Done(writing.version(), 0, 0))
            }
            Ok(Taking::Busy) => Err(Refusal::Locked),
            Ok(Taking::Changed) => Err(Refusal::Outdated),
            Err(Missing::Lost) => Err(Refusal::Lost),
            Err(_) => Err(Refusal::Unallocated),
        }
    }

    /// True if the other node can be asked.
    pub fn reaches(&self, node: NodeId) -> bool {
        node == self.id() || self.one_sided.enter().is_connected(node)
    }
}
