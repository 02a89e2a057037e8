//! What must hold of the memory of all nodes: regions lie in live memory of their discipline, and are what was written there last.

use std::collections::VecDeque;

use wire::{Copyset, GlobalAddr, NodeId, Rules};

use super::threads::Doing;
use super::truth::{DATA, read};
use super::world::Regions;
use crate::coherence::Blocks;
use crate::rack::Bench;

impl<R: Rules> Regions<R> {
    pub(crate) fn is_quiet<M: Copy>(&self, bench: &Bench<M>) -> bool {
        self.threads.iter().all(|thread| matches!(thread, Doing::Idle))
            && self.asked.iter().all(VecDeque::is_empty)
            && self.nics.iter().all(|nic| !bench.control.is_up(Some(nic.me)) || nic.is_quiet())
    }

    /// Regions lie in live memory of their discipline, and are what was written there last.
    pub(crate) fn check_after<M: Copy>(
        &mut self,
        bench: &Bench<M>,
        blocks: &Blocks<R>,
    ) -> Result<(), String> {
        if let Some(wrong) = self.truth.wrong.take() {
            return Err(wrong);
        }
        let touched = std::mem::replace(&mut self.touched, Copyset::EMPTY);
        for node in touched.iter().filter(|node| bench.control.is_up(Some(*node))) {
            self.check_node(node, blocks)?;
        }
        for node in bench.touched().nodes.iter() {
            if !touched.contains(node) && bench.control.is_up(Some(node)) {
                self.check_node(node, blocks)?;
            }
        }
        Ok(())
    }

    fn check_node(&self, node: NodeId, blocks: &Blocks<R>) -> Result<(), String> {
        let (machine, store) = &blocks.nodes[node.index()];
        for (addr, number) in &self.own[node.index()] {
            let region = self.truth.region(*number);
            if !region.incarnations {
                continue;
            }
            let (block, bytes) = (machine.config().block, region.shape.bytes().expect("a few"));
            for offset in (0..bytes).step_by(block.len()) {
                let inside = GlobalAddr::from_bits(addr.bits() + offset);
                let discipline = machine.discipline_of(block.tag(inside));
                if discipline != Some(region.shape.discipline()) {
                    return Err(format!(
                        "region {number} lives in memory that is {discipline:?}: {region:?}"
                    ));
                }
            }
            for (at, word) in region.words.iter().enumerate() {
                let found = read(store, region.addr_of(at, 0));
                if found != word.value {
                    return Err(format!("word {at} of region {number} is {found}, and was {}", word.value));
                }
            }
            for (at, object) in region.objects.iter().enumerate() {
                let found = read(store, region.addr_of(at, 0));
                let stamp = object.stamps.last().expect("it has one");
                let data = (1..=DATA).all(|word| read(store, region.addr_of(at, word)) == *stamp);
                if found != object.version || found.is_multiple_of(2) && !data {
                    return Err(format!("object {at} of region {number} has version {found}: {object:?}"));
                }
            }
        }
        Ok(())
    }

    /// Everything is as its regions' operations, and no others, have left it.
    pub(crate) fn check_at_rest<M: Copy>(
        &mut self,
        bench: &Bench<M>,
        blocks: &Blocks<R>,
    ) -> Result<(), String> {
        for nic in self.nics.iter().filter(|nic| bench.control.is_up(Some(nic.me))) {
            self.check_node(nic.me, blocks)?;
            nic.device.invariants();
        }
        self.truth.check_at_rest()
    }
}
