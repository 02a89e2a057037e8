//! Reads of a few words where the block is: PEEK.
//!
//! Whoever reads a block that another node has modified usually gets a copy. The owner loses the right to write, the home
//! gets a copy, too, and the next write anywhere must invalidate all of that. If the copy is not read again before that
//! write, it was not worth it. A PEEK asks the owner for the words alone: the entry's lock is not taken, nothing in the
//! directory or in any cache changes, and nobody keeps a copy, so there is nothing to unlock. What the owner answers is
//! current at that moment, for whoever has a copy has the latest ([`CacheAgent`](crate::coherence::cache_agent)); and that moment lies
//! inside the read. So reads of a block that is being written wait for no writer, and no writer waits for them.
//!
//! A PEEK has a number like every request, for the answers to be told apart. It may be refused: nobody has the block
//! modified, or the owner has just given it away. Then the read goes on as a READ-MISS, in the second case after another
//! try or two.
//!
//! [`Reuse`] remembers by block whether copies are read again. What must always hold: it decides how a read is done, never
//! what it returns.

use alloc::boxed::Box;

use wire::{BlockTag, GlobalStatus, Packet, PacketKind, Refusal, Rule, Rules, SlotId, Status};

use super::{Fetch, Requesters, Work};
use crate::coherence::config::Peeks;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::message::{Message, Outcome};
use crate::store::Store;

/// Which words of a block: the form in which `arg` of a PEEK names them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Words(u32);

const LEN_BITS: u32 = 12;

/// Which bytes of its block the answer to a PEEK carries, as offset and length. None: it is something else.
pub fn peeked_bytes(packet: &Packet) -> Option<(usize, usize)> {
    (packet.kind == PacketKind::Ack && packet.event == PacketKind::Peek && packet.payload > 0).then(|| {
        #[allow(clippy::cast_possible_truncation, reason = "the upper half")]
        let words = Words((packet.arg >> 32) as u32);
        ((words.0 >> LEN_BITS) as usize, words.len() as usize)
    })
}

impl Words {
    /// `len` bytes from `offset` on, if a PEEK may ask for so many.
    pub(crate) fn new(offset: usize, len: usize, peeks: &Peeks) -> Option<Self> {
        let (offset, len) = (u32::try_from(offset).ok()?, u32::try_from(len).ok()?);
        let fits = len > 0 && len <= peeks.most && len >> LEN_BITS == 0 && offset >> (32 - LEN_BITS) == 0;
        fits.then_some(Self(offset << LEN_BITS | len))
    }

    /// As a request names them.
    pub(crate) const fn of(request: &Packet) -> Self {
        #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
        Self(request.arg as u32)
    }

    /// As an answer names them, beside what tells one version of the contents from another.
    pub(crate) fn beside(self, version: u32) -> u64 {
        u64::from(self.0) << 32 | u64::from(version)
    }

    /// How many bytes.
    pub(crate) const fn len(self) -> u32 {
        self.0 & ((1 << LEN_BITS) - 1)
    }

    pub(super) fn arg(self) -> u64 {
        u64::from(self.0)
    }
}

/// Whether copies are read again before another node writes the block, as far as is remembered: of the blocks that were
/// missed last, and for all others of their neighbourhood.
pub(crate) struct Reuse {
    blocks: Box<[Row]>,
    regions: Box<[Score]>,
}

/// A region is 1 MiB: what is allocated together is often used alike.
const REGION_SHIFT: u32 = 20;
/// So many times more rows for blocks than for regions.
const BLOCKS_PER_REGION: usize = 16;

/// A block.
#[derive(Clone, Copy, Default)]
struct Row {
    tag: u64,
    /// What its last PEEK's answer said of the contents.
    version: Option<u32>,
    score: Score,
}

/// How much speaks against copies.
#[derive(Clone, Copy, Default, Debug)]
struct Score(u8);

impl Score {
    /// From here on, reads are PEEKs.
    const ENOUGH: u8 = 4;
    const MOST: u8 = 7;
    /// A READ-MISS found an owner: somebody has written since there was a copy here. One in three is enough: a copy costs its
    /// reader more than a PEEK, and the next writer, too.
    const MISSED_WRITTEN: i8 = 2;
    const MISSED_READ: i8 = -1;
    /// The same measure for PEEKs, which see nothing of other readers: two in three find something new.
    const PEEKED_WRITTEN: i8 = 1;
    const PEEKED_SAME: i8 = -2;

    fn add(&mut self, weight: i8) {
        self.0 = self.0.saturating_add_signed(weight).min(Self::MOST);
    }
}

impl Reuse {
    pub(crate) fn new(peeks: &Peeks) -> Self {
        let regions = peeks.rows.div_ceil(BLOCKS_PER_REGION);
        Self {
            blocks: core::iter::repeat_n(Row::default(), peeks.rows).collect(),
            regions: core::iter::repeat_n(Score::default(), regions).collect(),
        }
    }

    fn block(&mut self, tag: BlockTag) -> Option<&mut Row> {
        let index = place(tag.bits() >> 6, self.blocks.len());
        self.blocks.get_mut(index)
    }

    fn region(&mut self, tag: BlockTag) -> Option<&mut Score> {
        let index = place(tag.bits() >> REGION_SHIFT, self.regions.len());
        self.regions.get_mut(index)
    }

    /// True if a read that misses should be a PEEK. Without rows every one is.
    fn advises_peek(&mut self, tag: BlockTag) -> bool {
        let of_region = self.region(tag).copied();
        match (self.block(tag), of_region) {
            (Some(row), _) if row.tag == tag.bits() => row.score.0 >= Score::ENOUGH,
            (_, Some(score)) => score.0 >= Score::ENOUGH,
            (_, None) => true,
        }
    }

    /// Something was learned about a block, and what its contents are if that is known.
    fn note(&mut self, tag: BlockTag, weight: i8, version: Option<u32>) {
        let Some(region) = self.region(tag) else { return };
        let before = *region;
        region.add(weight);
        let Some(row) = self.block(tag) else { return };
        if row.tag != tag.bits() {
            *row = Row { tag: tag.bits(), version: None, score: before };
        }
        row.score.add(weight);
        row.version = version.or(row.version);
    }

    /// A READ-MISS was granted.
    pub(super) fn missed(&mut self, tag: BlockTag, found: GlobalStatus) {
        let written = found == GlobalStatus::Modified;
        self.note(tag, if written { Score::MISSED_WRITTEN } else { Score::MISSED_READ }, None);
    }

    /// A PEEK was answered. If nobody has written since the last one, a copy would have been read again.
    fn peeked(&mut self, tag: BlockTag, version: u32) {
        let known = self.block(tag).filter(|row| row.tag == tag.bits()).and_then(|row| row.version);
        let weight = match known {
            None => 0,
            Some(known) if known == version => Score::PEEKED_SAME,
            Some(_) => Score::PEEKED_WRITTEN,
        };
        self.note(tag, weight, Some(version));
    }

    /// Nobody has it modified.
    fn refused(&mut self, tag: BlockTag) {
        self.note(tag, Score::MISSED_READ, None);
    }
}

/// The upper half of a product, as a fraction of the rows: neighbours spread evenly.
fn place(number: u64, rows: usize) -> usize {
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    #[allow(clippy::cast_possible_truncation, reason = "less than the number of rows")]
    let index = ((u128::from(hash) * rows as u128) >> 64) as usize;
    index
}

impl Requesters {
    /// The words that a read asks for, if it should be a PEEK.
    pub(super) fn as_peek<S, R: Rules>(
        &mut self,
        cx: &Context<'_, S, R>,
        tag: BlockTag,
        (offset, len): (usize, usize),
    ) -> Option<Words> {
        let words = Words::new(offset, len, &cx.config.peeks)?;
        self.reuse.advises_peek(tag).then_some(words)
    }

    /// A PEEK is answered. It has no lock, so that is its end.
    pub(super) fn on_peek_ack<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        message: &Message,
    ) {
        let packet = &message.packet;
        let Work::Fetch(mut fetch) = self.slots[slot.index()].work else { unreachable!("only fetches peek") };
        match (packet.status, message.data) {
            (Status::Granted, Some(data)) => {
                self.slots[slot.index()].event = None;
                #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
                self.reuse.peeked(packet.tag, packet.arg as u32);
                self.complete_fetch(cx, slot, fetch, Outcome::Peeked(data));
            }
            (Status::Granted, None) => cx.counters.drop(Drop::Nonsense),
            (Status::Refused(why), _) => {
                self.slots[slot.index()].event = None;
                cx.counters.refuse(PacketKind::Peek, why);
                fetch.refusals += 1;
                if !why.is_transient() {
                    return self.complete_fetch(cx, slot, fetch, Outcome::Failed(why));
                }
                if why == Refusal::Locked && fetch.refusals <= cx.config.peeks.tries {
                    self.slots[slot.index()].work = Work::Fetch(fetch);
                    return self.back_off(cx, slot, fetch.refusals);
                }
                self.reuse.refused(packet.tag);
                self.fetch_instead(cx, slot, fetch);
            }
        }
    }

    /// The read goes on as a READ-MISS, unless another slot has begun one.
    fn fetch_instead<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId, fetch: Fetch) {
        if self.fetching(fetch.tag).is_some() {
            return self.complete_fetch(cx, slot, fetch, Outcome::Retry);
        }
        self.advance_fetch(cx, slot, Fetch { peek: None, refusals: 0, ..fetch });
    }
}

/// An answer that is not to the request that is open: true for a PEEK's, in the mutant that does not mind.
pub(super) fn mistakes<R: Rules>(rules: R, open: &Packet, answer: &Packet) -> bool {
    !rules.holds(Rule::PeekKnowsItsAnswer)
        && open.kind == PacketKind::Peek
        && answer.event == PacketKind::Peek
        && answer.tag == open.tag
}
