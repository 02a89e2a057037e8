//! A packet in the hands of software: what a program says is done at once.

use wire::{Copyset, Endpoint, HeaderField, NodeId, Packet};

use super::counters::{Counted, Counters};
use crate::pipeline::{Field, Headers, Means, Op, Phv};

/// A packet, the one that goes out, and what it comes through.
pub(super) struct InSoftware<'a, S, C> {
    packet: &'a Packet,
    goes_out: Packet,
    send: S,
    chip: C,
}

/// The switch, as far as a packet sees it.
pub(super) struct Chip<'a> {
    pub(super) phv: &'a mut Phv,
    pub(super) counters: &'a mut Counters,
    pub(super) epoch: u64,
    pub(super) shadow: u64,
    /// From the first pass.
    pub(super) carried: u64,
    /// For the second.
    pub(super) carries: Option<u64>,
}

impl<'a, S: FnMut(Packet), C> InSoftware<'a, S, C> {
    #[inline(always)]
    pub(super) const fn new(packet: &'a Packet, send: S, chip: C) -> Self {
        Self { packet, goes_out: *packet, send, chip }
    }

    /// The switch again.
    #[inline(always)]
    pub(super) const fn chip(&mut self) -> &mut C {
        &mut self.chip
    }
}

impl<S: FnMut(Packet), C> Headers for InSoftware<'_, S, C> {
    type Word = u64;

    #[inline(always)]
    fn number(&mut self, value: u64) -> u64 {
        value
    }

    #[inline(always)]
    fn compute(&mut self, op: Op, a: u64, b: u64) -> u64 {
        op.of(a, b)
    }

    #[inline(always)]
    fn either(
        &mut self,
        condition: u64,
        yes: impl FnOnce(&mut Self) -> u64,
        no: impl FnOnce(&mut Self) -> u64,
    ) -> u64 {
        if condition != 0 { yes(self) } else { no(self) }
    }

    #[inline(always)]
    fn field(&mut self, field: HeaderField) -> u64 {
        self.packet.field(field)
    }

    #[inline(always)]
    fn rewrite(&mut self, field: HeaderField, value: u64) {
        self.goes_out.set_field(field, value);
    }

    #[inline(always)]
    fn from(&mut self, from: Endpoint) {
        self.goes_out.from = from;
    }

    #[inline(always)]
    fn to(&mut self, agent: fn(NodeId) -> Endpoint, node: u64) {
        self.goes_out.to = agent(NodeId(node as u16));
    }

    #[inline(always)]
    fn send(&mut self) {
        (self.send)(self.goes_out);
    }

    #[inline(always)]
    fn each(&mut self, set: u64, mut body: impl FnMut(&mut Self, u64)) {
        for node in Copyset::from_bits(set).iter() {
            body(self, u64::from(node.0));
        }
    }

    #[inline(always)]
    fn pick(&mut self, set: u64, random: u64) -> u64 {
        let picked = Copyset::from_bits(set).pick(random as u32);
        picked.map_or(u64::MAX, |node| u64::from(node.0))
    }
}

impl<S: FnMut(Packet)> Means for InSoftware<'_, S, Chip<'_>> {
    type Counted = Counted;

    #[inline(always)]
    fn phv(&mut self, field: Field) -> u64 {
        self.chip.phv.get(field)
    }

    #[inline(always)]
    fn set_phv(&mut self, field: Field, value: u64) {
        self.chip.phv.set(field, value);
    }

    #[inline(always)]
    fn dispatch(&mut self, value: u64, values: u64, mut body: impl FnMut(&mut Self, u64) -> u64) -> u64 {
        if value < values { body(self, value) } else { 0 }
    }

    #[inline(always)]
    fn epoch(&mut self) -> u64 {
        self.chip.epoch
    }

    #[inline(always)]
    fn shadow(&mut self) -> u64 {
        self.chip.shadow
    }

    #[inline(always)]
    fn carried(&mut self) -> u64 {
        self.chip.carried
    }

    #[inline(always)]
    fn carry(&mut self, what: u64) {
        self.chip.carries = Some(what);
    }

    #[inline(always)]
    fn count(&mut self, what: Counted) {
        self.chip.counters.count(what);
    }
}
