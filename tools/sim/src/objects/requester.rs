//! The readers' chip: RGP and RCP, whose front ends are beside the cores and whose back ends are at the edge.
//!
//! What must always hold: an RGP sends one packet in a cycle; a transfer ends when all its replies have come and its data are in
//! the last-level cache.

use std::collections::VecDeque;

use nic::objects::Object;

use super::chip::{EDGES, Position};
use super::event::{Event, Job, Packet, Reply};
use super::load::Method;
use super::r2p2::SLOTS;
use super::reader::Phase;
use super::testbed::Testbed;
use crate::hardware::Picos;

/// Something that does one thing after the other, in the order of asking.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line(Picos);

impl Line {
    /// When something is done that is ready now and takes so long.
    pub(super) fn take(&mut self, now: Picos, span: Picos) -> Picos {
        self.0 = self.0.max(now).plus(span);
        self.0
    }
}

/// The back end of an RGP.
#[derive(Debug, Default)]
pub(super) struct Rgp {
    jobs: VecDeque<Posted>,
    has_turn: bool,
    next: Picos,
    /// SABRes that it has sent.
    sabres: u64,
    /// Of those, the ones at each R2P2 that are in flight.
    in_flight: [u32; EDGES as usize],
}

#[derive(Clone, Copy, Debug)]
struct Posted {
    slot: u16,
    what: Job,
    /// Packets that were sent for it.
    sent: u32,
    /// Which attempt of this RGP's it is, if it is a SABRe.
    number: u64,
}

/// The edge that is nearest to a core: the end of its row.
const fn edge_of(core: u8) -> u8 {
    core / (super::chip::CORES / EDGES)
}

impl Testbed {
    pub(super) fn core_of(&self, slot: u16) -> u8 {
        (slot / u16::from(self.load.outstanding)) as u8
    }

    /// A core posts now: until the RGP's back end has it.
    pub(super) fn post(&mut self, since: Picos, slot: u16, what: Job) {
        let chip = self.chip;
        let core = self.core_of(slot);
        let posted = self.posting[usize::from(core)].take(since, chip.cycles(chip.post));
        let way = chip.way(Position::tile(core), Position::edge(edge_of(core)));
        self.push(posted.plus(way).plus(chip.rmc(chip.pipeline)), Event::Posted { slot, what });
    }

    pub(super) fn on_posted(&mut self, slot: u16, what: Job) {
        let edge = edge_of(self.core_of(slot));
        let rgp = &mut self.rgps[usize::from(edge)];
        rgp.jobs.push_back(Posted { slot, what, sent: 0, number: 0 });
        self.wake_rgp(edge);
    }

    fn wake_rgp(&mut self, edge: u8) {
        let rgp = &mut self.rgps[usize::from(edge)];
        if !rgp.has_turn && !rgp.jobs.is_empty() {
            rgp.has_turn = true;
            let at = rgp.next.max(self.now);
            self.push(at, Event::Unroll { edge });
        }
    }

    /// One packet of the first job.
    pub(super) fn on_unroll(&mut self, edge: u8) {
        let (chip, method) = (self.chip, self.load.method);
        let blocks = method.blocks(self.load.bytes);
        let rgp = &mut self.rgps[usize::from(edge)];
        rgp.has_turn = false;
        rgp.next = self.now.plus(chip.rmc(1));
        let job = rgp.jobs.front_mut().expect("it has a turn for something");
        let slot = job.slot;
        let reader = &mut self.readers[usize::from(slot)];
        let first = reader.first;
        let requester = u32::from(edge);
        let (r2p2, packet, all) = match job.what {
            Job::Lock => ((first % u64::from(EDGES)) as u8, Packet::Lock { slot, block: first }, 1),
            Job::Unlock { block } => ((block % u64::from(EDGES)) as u8, Packet::Unlock { block }, 1),
            Job::Transfer if method.is_sabre() => {
                if job.sent == 0 {
                    rgp.sabres += 1;
                    job.number = rgp.sabres * SLOTS + u64::from(slot);
                    // Each on one R2P2 (section 5.1). Estimated: on that where this RGP has the fewest.
                    let turn = |step: u8| ((rgp.sabres + u64::from(edge + step)) % u64::from(EDGES)) as u8;
                    let all = (0..EDGES).map(turn);
                    reader.r2p2 =
                        all.min_by_key(|r2p2| rgp.in_flight[usize::from(*r2p2)]).expect("there are some");
                    rgp.in_flight[usize::from(reader.r2p2)] += 1;
                }
                let number = job.number;
                let r2p2 = reader.r2p2;
                let packet = match job.sent {
                    0 => Packet::Register { requester, number, object: Object { first, blocks, header: 0 } },
                    _ => Packet::Request { requester, number },
                };
                (r2p2, packet, 1 + blocks)
            }
            Job::Transfer => {
                let index = job.sent;
                let block = first + u64::from(index);
                // Balanced by block (section 7.1).
                ((block % u64::from(EDGES)) as u8, Packet::Read { slot, index, block }, blocks)
            }
        };
        job.sent += 1;
        if job.sent == all {
            rgp.jobs.pop_front();
        }
        let sent = self.requests.take(self.now, chip.link.picos(chip.header));
        let there = sent.plus(chip.between.into()).plus(chip.rmc(chip.pipeline));
        self.push(there, Event::Arrived { r2p2, packet });
        self.wake_rgp(edge);
    }

    /// A reply passes the RCP, and its block goes to the reader's buffer in the last-level cache.
    pub(super) fn on_replied(&mut self, slot: u16, reply: Reply) {
        let chip = self.chip;
        let core = self.core_of(slot);
        let edge = edge_of(core);
        let cycle = chip.rmc(1);
        let ready = self.now.plus(chip.rmc(chip.pipeline));
        let rcp = &mut self.rcps[usize::from(edge)];
        let reader = &mut self.readers[usize::from(slot)];
        let written = match reply {
            Reply::Block { index, holds } => {
                reader.blocks[index as usize] = holds;
                let left = rcp.take(ready, chip.flits().max(cycle));
                let bank = Position::bank(u64::from(slot) * 1024 + u64::from(index));
                left.plus(chip.way(Position::edge(edge), bank)).plus(chip.cycles(chip.bank))
            }
            Reply::Empty => rcp.take(ready, cycle),
            Reply::Verdict { whole } => {
                reader.verdict = whole;
                rcp.take(ready, cycle)
            }
            Reply::Lock { held } => {
                reader.verdict = held;
                rcp.take(ready, cycle)
            }
        };
        reader.written = reader.written.max(written);
        reader.left -= 1;
        if reader.left == 0 {
            if self.load.method.is_sabre() {
                self.rgps[usize::from(edge)].in_flight[usize::from(reader.r2p2)] -= 1;
            }
            let at = reader.written.plus(chip.way(Position::edge(edge), Position::tile(core)));
            self.push(at.plus(chip.cycles(chip.poll)), Event::Completed { slot });
        }
    }

    /// Replies that an attempt waits for.
    pub(super) fn replies_of(&self, phase: Phase) -> u32 {
        let blocks = self.load.method.blocks(self.load.bytes);
        match (phase, self.load.method) {
            (Phase::Locking, _) => 1,
            (_, Method::Sabre | Method::WithoutSpeculation) => blocks + 1,
            _ => blocks,
        }
    }
}
