//! The parser: which packets the program handles, what kind of pass they make, and what the stages see of them.

use wire::addr::OFFSET_BITS;
use wire::{Copyset, HeaderField, PacketKind, RequesterId, Rule, Rules, SlotId};

use super::counters::{Counted, Drop};
use super::layout::{Fields, lock_op, score};
use super::pass::Pass;
use super::switch::SwitchConfig;
use super::wait_queue;
use crate::pipeline::{Means, Op, alu};

/// What happens to a packet about a block on its way.
pub(super) trait OfBlocks: Means<Field = HeaderField, Counted = Counted> {}

impl<M: Means<Field = HeaderField, Counted = Counted>> OfBlocks for M {}

/// Kinds that a packet can name: below this.
const KINDS: u64 = 64;

/// What a switch does with packets before its stages, by what it is built for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parser<R> {
    rules: R,
    queue: bool,
    peeks: bool,
    nodes: usize,
    memories: usize,
    /// Of a node.
    slots: usize,
    /// The kinds that the program handles, those that an UNLOCK may end, and those that share the lock: sets.
    kinds: u64,
    events: u64,
    sharing: u64,
}

impl<R: Rules> Parser<R> {
    pub(super) fn new(rules: R, config: &SwitchConfig) -> Self {
        let SwitchConfig { nodes, queue, lock_slots, peeks, copies, .. } = *config;
        let memories = if copies { 2 * nodes } else { nodes };
        let slots = SlotId::PER_NODE + lock_slots;
        let mut parser =
            Self { rules, queue, peeks, nodes, memories, slots, kinds: 0, events: 0, sharing: 0 };
        parser.kinds = set_of_kinds(|kind| parser.knows(kind));
        parser.events = set_of_kinds(|kind| kind.is_request() && kind != PacketKind::Peek);
        parser.sharing = set_of_kinds(|kind| kind.is_request() && kind.takes_read_lock(rules));
        parser
    }

    /// The first pass of a packet: [`Pass::index`] of its kind, or 0 if the packet is dropped (and counted). Refuses what is
    /// not for the switch, of another time, or from nowhere.
    pub(super) fn first_pass<M: OfBlocks>(self, m: &mut M) -> M::Word {
        let nodes = self.nodes as u64;
        let kind = m.field(HeaderField::Kind);
        let ours = m.is_in(self.kinds, kind);
        let theirs = m.not(ours);
        m.unless(theirs, Counted::Drop(Drop::PacketKind), |m| {
            self.of_this_time(m, |m| {
                let node = m.field(HeaderField::RequesterNode);
                let slot = m.field(HeaderField::RequesterSlot);
                let (is_node, is_slot) =
                    (m.with(Op::Below, node, nodes), m.with(Op::Below, slot, self.slots as u64));
                let known = m.compute(Op::And, is_node, is_slot);
                let unknown = m.not(known);
                m.unless(unknown, Counted::Drop(Drop::Requester), |m| {
                    let tag = m.field(HeaderField::Tag);
                    let home = m.with(Op::Shr, tag, u64::from(OFFSET_BITS));
                    let is_home = m.with(Op::Below, home, self.memories as u64);
                    let nowhere = m.not(is_home);
                    m.unless(nowhere, Counted::Drop(Drop::Tag), |m| {
                        m.dispatch(kind, KINDS, |m, kind| match kind_of(kind).filter(|it| self.knows(*it)) {
                            None => m.number(0),
                            Some(PacketKind::Unlock) => self.unlock(m),
                            Some(kind @ (PacketKind::AddToSwitch | PacketKind::RemoveFromSwitch)) => {
                                let by_home = m.compute(Op::Equals, node, home);
                                let by_another = m.not(by_home);
                                m.unless(by_another, Counted::Drop(Drop::NotHome), |m| match kind {
                                    PacketKind::AddToSwitch => pass(m, Pass::Add),
                                    _ => pass(m, Pass::Request(kind)),
                                })
                            }
                            Some(PacketKind::Peek) => pass(m, Pass::Peek),
                            Some(kind) => pass(m, Pass::Request(kind)),
                        })
                    })
                })
            })
        })
    }

    /// Goes on with a packet of the switch's incarnation.
    fn of_this_time<M: OfBlocks>(self, m: &mut M, goes_on: impl FnOnce(&mut M) -> M::Word) -> M::Word {
        if !self.rules.holds(Rule::EpochsAreFenced) {
            return goes_on(m);
        }
        let (theirs, ours) = (m.field(HeaderField::Epoch), m.epoch());
        let same = m.compute(Op::Equals, theirs, ours);
        let of_another = m.not(same);
        m.unless(of_another, Counted::Drop(Drop::Epoch), goes_on)
    }

    fn knows(self, kind: PacketKind) -> bool {
        kind == PacketKind::Unlock || kind.is_request() && (kind != PacketKind::Peek || self.peeks)
    }

    fn unlock<M: OfBlocks>(self, m: &mut M) -> M::Word {
        let event = m.field(HeaderField::Event);
        let ends = m.is_in(self.events, event);
        let ends_nothing = m.not(ends);
        m.unless(ends_nothing, Counted::Drop(Drop::Event), |m| {
            let first = |m: &mut M| {
                if self.queue {
                    let handed = m.field(HeaderField::Repeated);
                    m.either(handed, |m| pass(m, Pass::Handed), |m| pass(m, Pass::Unlock))
                } else {
                    pass(m, Pass::Unlock)
                }
            };
            if self.rules.holds(Rule::SwitchRecordsAllUnlocks) {
                first(m)
            } else {
                // The home's business alone, in that mutant.
                let here = m.field(HeaderField::InSwitch);
                m.either(here, first, |m| pass(m, Pass::Reset))
            }
        })
    }

    /// The second pass of a packet whose first has carried something over. The switch may have begun anew in between.
    pub(super) fn second_pass<M: OfBlocks>(self, m: &mut M) -> M::Word {
        self.of_this_time(m, |m| {
            let kind = m.field(HeaderField::Kind);
            let is_unlock = m.with(Op::Equals, kind, PacketKind::Unlock as u64);
            let claim = |m: &mut M| {
                let way = m.carried();
                m.with(Op::Add, way, Pass::Claim(0).index() as u64)
            };
            m.either(is_unlock, |m| self.unlock_again(m), claim)
        })
    }

    /// What there is to release, and whether the event was granted by the switch and so changes the entry.
    fn unlock_again<M: OfBlocks>(self, m: &mut M) -> M::Word {
        let score = m.carried();
        let count = m.with(Op::And, score, score::COUNT);
        let mut nothing = m.not(count);
        if self.queue {
            let handed = m.field(HeaderField::Repeated);
            nothing = m.compute(Op::Or, nothing, handed);
        }
        m.either(
            nothing,
            |m| pass(m, Pass::Reset),
            |m| {
                let event = m.field(HeaderField::Event);
                m.dispatch(event, KINDS, |m, event| {
                    let Some(event) = kind_of(event).filter(|it| it.is_request()) else { return m.number(0) };
                    if !self.queue {
                        return self.release(m, event, score);
                    }
                    let mut alone = m.with(Op::And, score, score::REFUSED);
                    if !event.takes_read_lock(self.rules) {
                        return leave(m, event);
                    }
                    if event == PacketKind::ReadMiss {
                        let joins = m.field(HeaderField::Provider);
                        alone = m.compute(Op::Or, alone, joins);
                    }
                    m.either(alone, |m| leave(m, event), |m| self.release(m, event, score))
                })
            },
        )
    }

    fn release<M: OfBlocks>(self, m: &mut M, event: PacketKind, score: M::Word) -> M::Word {
        match event {
            // A duplicate got in after the first copy had been refused.
            PacketKind::AddToSwitch => {
                let granted = was_granted(m);
                return m.either(granted, |m| pass(m, Pass::Release), |m| pass(m, Pass::Clear));
            }
            PacketKind::LockRead | PacketKind::LockWrite => return pass(m, Pass::Release),
            _ => {}
        }
        // A mark says that this event was not granted by the switch, whatever the unlock claims.
        let marks = m.with(Op::And, score, score::MARKS);
        let (unmarked, granted) = (m.not(marks), was_granted_here(m));
        let granted = m.compute(Op::And, granted, unmarked);
        let changes = match event {
            // The COMMIT of a removal.
            PacketKind::RemoveFromSwitch => Pass::Clear,
            PacketKind::ReadMiss if self.rules.holds(Rule::ReadUnlockMerges) => Pass::ReleaseAndMerge,
            _ => Pass::ReleaseAndSet,
        };
        m.either(granted, |m| pass(m, changes), |m| pass(m, Pass::Release))
    }

    /// Fills the PHV for a pass, but for the [constants](Pass::constants) of its kind, which its plan knows.
    pub(super) fn parse<M: OfBlocks>(self, m: &mut M, f: &Fields, kind: Pass) {
        let index = index_of_event(m, self.slots);
        m.set_phv(f.slot, index);
        let seq = m.field(HeaderField::Seq);
        m.set_phv(f.seq, seq);
        let tag = m.field(HeaderField::Tag);
        let key = m.with(Op::Xor, tag, u64::MAX);
        m.set_phv(f.key, key);
        match kind {
            Pass::Request(kind) => {
                node_bit(m, f);
                // If no way has the tag.
                m.set_phv_to(f.verdict, score::HOME);
                if self.queue {
                    self.joins(m, f, kind);
                    position_in_queue(m, f);
                }
            }
            Pass::Peek => node_bit(m, f),
            // Verdict 0: the score is only read, or reset. A clear sets the lock to release 0.
            Pass::Handed => m.set_phv_to(f.followed, score::FOLLOWED),
            Pass::Clear if self.queue => m.set_phv_to(f.release, alu::WRITER),
            Pass::Unlock | Pass::Reset | Pass::Clear | Pass::Add => {}
            Pass::Leave => position_in_queue(m, f),
            Pass::LeaveAndSet => {
                position_in_queue(m, f);
                self.metadata(m, f);
            }
            Pass::Release => self.released(m, f),
            Pass::ReleaseAndMerge | Pass::ReleaseAndSet => {
                self.released(m, f);
                self.metadata(m, f);
            }
            Pass::Claim(_) => {
                // If the way is not empty any more.
                m.set_phv_to(f.verdict, score::REFUSED);
                if self.queue {
                    m.set_phv_to(f.release, alu::WRITER);
                }
                self.metadata(m, f);
            }
        }
    }

    /// A READ-MISS that has met writers too often takes the lock as they do. Its requester says so in its request and in
    /// its unlock.
    fn joins<M: OfBlocks>(self, m: &mut M, f: &Fields, kind: PacketKind) {
        let (shares, alone) = (lock_op::TRY_READ, lock_op::TRY_WRITE);
        let op = match kind {
            PacketKind::ReadMiss if kind.takes_read_lock(self.rules) => {
                let joins = m.field(HeaderField::Provider);
                m.either(joins, |m| m.number(alone), |m| m.number(shares))
            }
            _ if kind.takes_read_lock(self.rules) => m.number(shares),
            _ => m.number(alone),
        };
        m.set_phv(f.lock_op, op);
    }

    fn released<M: OfBlocks>(self, m: &mut M, f: &Fields) {
        let event = m.field(HeaderField::Event);
        let shares = m.is_in(self.sharing, event);
        let count = |m: &mut M| {
            let score = m.carried();
            m.with(Op::And, score, score::COUNT)
        };
        let release = m.either(shares, count, |m| m.number(alu::WRITER));
        m.set_phv(f.release, release);
    }

    /// The packet's metadata, as the entry shall have them: without nodes that the rack does not have, or a request
    /// would be sent to them.
    fn metadata<M: OfBlocks>(self, m: &mut M, f: &Fields) {
        let everyone = u64::MAX >> (64 - self.nodes);
        let status = m.field(HeaderField::GlobalStatus);
        m.set_phv(f.new_status, status);
        let copyset = m.field(HeaderField::Copyset);
        let copyset = m.with(Op::And, copyset, everyone);
        m.set_phv(f.new_copyset, copyset);
    }
}

fn kind_of(value: u64) -> Option<PacketKind> {
    u8::try_from(value).ok().and_then(PacketKind::from_wire)
}

fn set_of_kinds(is_in: impl Fn(PacketKind) -> bool) -> u64 {
    let kinds = PacketKind::ALL.into_iter().filter(|kind| is_in(*kind));
    kinds.fold(0, |set, kind| set | 1 << kind as u64)
}

fn pass<M: OfBlocks>(m: &mut M, pass: Pass) -> M::Word {
    m.number(pass.index() as u64)
}

/// 1 if the event was granted.
fn was_granted<M: OfBlocks>(m: &mut M) -> M::Word {
    let status = m.field(HeaderField::Status);
    m.not(status)
}

/// 1 if the switch granted it.
fn was_granted_here<M: OfBlocks>(m: &mut M) -> M::Word {
    let (granted, here) = (was_granted(m), m.field(HeaderField::InSwitch));
    m.compute(Op::And, granted, here)
}

/// The event has the lock for writing, or had it handed over: even a READ-MISS has it alone then, and knows all
/// of the metadata.
fn leave<M: OfBlocks>(m: &mut M, event: PacketKind) -> M::Word {
    let granted = was_granted_here(m);
    let (if_granted, if_not) = match event {
        PacketKind::AddToSwitch => (Pass::Leave, Pass::Clear),
        PacketKind::RemoveFromSwitch => (Pass::Clear, Pass::Leave),
        _ => (Pass::LeaveAndSet, Pass::Leave),
    };
    m.either(granted, |m| pass(m, if_granted), |m| pass(m, if_not))
}

/// The index of LAST-UNLOCK and SCOREBOARD: twice [`RequesterId::index`], and the parity.
fn index_of_event<M: OfBlocks>(m: &mut M, slots_of_node: usize) -> M::Word {
    let node = m.field(HeaderField::RequesterNode);
    let slot = m.field(HeaderField::RequesterSlot);
    let seq = m.field(HeaderField::Seq);
    let parity = m.with(Op::And, seq, 1);
    let nodes = m.with(Op::Shl, node, u64::from((2 * SlotId::PER_NODE).trailing_zeros()));
    let slots = if slots_of_node == SlotId::PER_NODE {
        m.with(Op::Shl, slot, 1)
    } else {
        let part = m.with(Op::Shr, slot, u64::from(SlotId::PER_NODE.trailing_zeros()));
        let slot = m.with(Op::And, slot, SlotId::PER_NODE as u64 - 1);
        let part = m.with(Op::Shl, part, u64::from(RequesterId::rows(Copyset::NODES, 0).trailing_zeros()));
        let row = m.compute(Op::Add, part, slot);
        m.with(Op::Shl, row, 1)
    };
    let events = m.compute(Op::Add, nodes, slots);
    m.compute(Op::Add, events, parity)
}

fn node_bit<M: OfBlocks>(m: &mut M, f: &Fields) {
    let (one, node) = (m.number(1), m.field(HeaderField::RequesterNode));
    let bit = m.compute(Op::Shl, one, node);
    m.set_phv(f.node_bit, bit);
}

/// The lock word of an entry in whose queue this event is the last: the writer bit, and who it is. 0 behind the bit is
/// nobody: a migration, which nobody waits for. (Its own code would be a slot's that no thread has.)
fn position_in_queue<M: OfBlocks>(m: &mut M, f: &Fields) {
    let slot = m.field(HeaderField::RequesterSlot);
    let migrates = m.with(Op::Equals, slot, u64::from(SlotId::MIGRATION.0));
    let code = |m: &mut M| {
        let index = index_of_event(m, SlotId::PER_NODE);
        m.with(Op::Xor, index, u64::from(wait_queue::FLIP))
    };
    let code = m.either(migrates, |m| m.number(0), code);
    let word = m.with(Op::Or, code, alu::WRITER);
    m.set_phv(f.release, word);
}
