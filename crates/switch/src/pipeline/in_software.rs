//! A packet in the hands of software: what a program says is done at once.

use wire::{Copyset, Headed, LockPacket, Packet};

use super::{Field, Headers, Means, Op, Phv};

/// A packet, the one that goes out, and what it comes through.
pub(crate) struct InSoftware<'a, P, S, C> {
    packet: &'a P,
    goes_out: P,
    send: S,
    chip: C,
}

/// What is counted of packets.
pub(crate) trait Counts {
    /// What there is to count.
    type Counted;

    fn count(&mut self, what: Self::Counted);
}

/// A packet that may have a list of nodes behind its header.
pub(crate) trait Listed {
    fn listed(&self) -> Copyset;
}

impl Listed for Packet {
    fn listed(&self) -> Copyset {
        Copyset::EMPTY
    }
}

impl Listed for LockPacket {
    #[inline(always)]
    fn listed(&self) -> Copyset {
        self.queue.nodes()
    }
}

/// The switch, as far as a packet sees it.
pub(crate) struct Chip<'a, C> {
    pub(crate) phv: &'a mut Phv,
    pub(crate) counters: &'a mut C,
    pub(crate) epoch: u64,
    pub(crate) shadow: u64,
    /// From the first pass.
    pub(crate) carried: u64,
    /// For the second.
    pub(crate) carries: Option<u64>,
}

impl<'a, P: Headed, S: FnMut(&P), C> InSoftware<'a, P, S, C> {
    #[inline(always)]
    pub(crate) const fn new(packet: &'a P, send: S, chip: C) -> Self {
        Self { packet, goes_out: *packet, send, chip }
    }

    /// The switch again.
    #[inline(always)]
    pub(crate) const fn chip(&mut self) -> &mut C {
        &mut self.chip
    }
}

impl<P: Headed + Listed, S: FnMut(&P), C> Headers for InSoftware<'_, P, S, C> {
    type Word = u64;
    type Field = P::Field;

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
    fn field(&mut self, field: P::Field) -> u64 {
        self.packet.field(field)
    }

    #[inline(always)]
    fn rewrite(&mut self, field: P::Field, value: u64) {
        self.goes_out.set_field(field, value);
    }

    #[inline(always)]
    fn from(&mut self, agent: u8, node: u16) {
        self.goes_out.send_from(agent, u64::from(node));
    }

    #[inline(always)]
    fn to(&mut self, agent: u8, node: u64) {
        self.goes_out.send_to(agent, node);
    }

    #[inline(always)]
    fn listed(&mut self) -> u64 {
        self.packet.listed().bits()
    }

    #[inline(always)]
    fn send(&mut self) {
        (self.send)(&self.goes_out);
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

impl<P: Headed + Listed, S: FnMut(&P), C: Counts> Means for InSoftware<'_, P, S, Chip<'_, C>> {
    type Counted = C::Counted;

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
    fn count(&mut self, what: C::Counted) {
        self.chip.counters.count(what);
    }
}
