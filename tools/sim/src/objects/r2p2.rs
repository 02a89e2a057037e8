//! An R2P2: the remote request pipeline beside the memory, with an engine of SABRes in it.
//!
//! What must always hold: it asks for one block in a cycle, and for no more at once than it has capacity for. The engine is that of
//! `crates/nic`, unchanged.

use std::collections::VecDeque;

use nic::objects::{Attempt, Effect, Engine, Load as Ask, Mode, Object, SabreConfig};
use wire::Nanos;

use super::event::{Event, Packet, Reply, Want};
use super::load::Method;
use super::memory::Sample;
use super::testbed::Testbed;
use crate::hardware::Picos;

/// An R2P2.
pub(super) struct R2p2 {
    pub(super) engine: Engine,
    /// SABRes that are here, and find no row of the table free, with the requests that have come for each. They wait in the order of
    /// their coming, estimated: the paper says nothing of a full table.
    waiting: VecDeque<(Attempt, Object, u32)>,
    /// Requests that the engine was not given yet, of each transfer that is registered, in the order of registering.
    requests: VecDeque<(Attempt, u32)>,
    /// What needs no table.
    plain: VecDeque<(u64, Want)>,
    /// Blocks that the memory has not answered.
    outstanding: u32,
    /// Its next turn is in the queue.
    has_turn: bool,
    /// Not before.
    next: Picos,
    /// Whether what needs no table goes first.
    plain_first: bool,
}

impl R2p2 {
    pub(super) fn new(method: Method) -> Self {
        let mode =
            if method == Method::WithoutSpeculation { Mode::VersionFirst } else { SabreConfig::PAPER.mode };
        Self {
            engine: Engine::new(SabreConfig { mode, ..SabreConfig::PAPER }),
            waiting: VecDeque::new(),
            requests: VecDeque::new(),
            plain: VecDeque::new(),
            outstanding: 0,
            has_turn: false,
            next: Picos::ZERO,
            plain_first: false,
        }
    }

    /// Transfers that wait go where there is capacity.
    fn admit(&mut self, now: Nanos) {
        while self.engine.active() < SabreConfig::PAPER.transfers.into()
            && let Some((attempt, object, requests)) = self.waiting.pop_front()
        {
            self.engine.on_register(now, attempt, object).expect("there is a row");
            self.requests.push_back((attempt, requests));
        }
    }

    /// What the engine asks for next. It stays with a transfer until that cannot go on (section 4.2, the select and unroll stages), so
    /// requests for others are held back until then.
    fn select(&mut self, now: Nanos, out: &mut Vec<Effect>) -> Option<Ask> {
        let mut ask = self.engine.select(out);
        for (attempt, requests) in &mut self.requests {
            if ask.is_some() || !out.is_empty() {
                break;
            }
            if *requests > 0 {
                *requests -= 1;
                self.engine.on_request(now, *attempt, 1).expect("it was registered");
                ask = self.engine.select(out);
            }
        }
        ask
    }
}

const fn nanos(time: Picos) -> Nanos {
    Nanos(time.0 / 1_000)
}

impl Testbed {
    pub(super) fn on_arrived(&mut self, r2p2: u8, packet: Packet) {
        let now = nanos(self.now);
        let it = &mut self.r2p2s[usize::from(r2p2)];
        match packet {
            Packet::Register { requester, number, object } => {
                it.waiting.push_back((Attempt { requester, number }, object, 0));
                it.admit(now);
            }
            Packet::Request { requester, number } => {
                let attempt = Attempt { requester, number };
                let waits = it.waiting.iter_mut().map(|(of, _, requests)| (of, requests));
                let here = it.requests.iter_mut().map(|(of, requests)| (of, requests));
                let (_, requests) =
                    here.chain(waits).find(|(of, _)| **of == attempt).expect("it was registered");
                *requests += 1;
            }
            Packet::Read { slot, index, block } => {
                it.plain.push_back((block, Want::Plain { r2p2, slot, index }));
            }
            Packet::Lock { slot, block } => {
                it.plain.push_back((block, Want::Swap { r2p2, slot: Some(slot) }));
            }
            Packet::Unlock { block } => it.plain.push_back((block, Want::Swap { r2p2, slot: None })),
        }
        self.wake(r2p2);
    }

    /// There may be something to ask the memory for.
    fn wake(&mut self, r2p2: u8) {
        let it = &mut self.r2p2s[usize::from(r2p2)];
        if !it.has_turn && it.outstanding < self.chip.outstanding {
            it.has_turn = true;
            let at = it.next.max(self.now);
            self.push(at, Event::Issue { r2p2 });
        }
    }

    pub(super) fn on_issue(&mut self, r2p2: u8) {
        let it = &mut self.r2p2s[usize::from(r2p2)];
        it.has_turn = false;
        it.plain_first = !it.plain_first;
        let plain = if it.plain_first { it.plain.pop_front() } else { None };
        let mut out = core::mem::take(&mut self.effects);
        let asked = plain.or_else(|| {
            it.select(nanos(self.now), &mut out).map(|ask| (block_of(ask), Want::Sabre { r2p2, ask }))
        });
        let asked = asked.or_else(|| it.plain.pop_front());
        let said = !out.is_empty();
        self.answer(r2p2, out, Sample::default());
        if let Some((block, want)) = asked {
            let cycle = self.chip.rmc(1);
            let it = &mut self.r2p2s[usize::from(r2p2)];
            it.outstanding += 1;
            it.next = self.now.plus(cycle);
            let at = self.now.plus(self.memory.way(want.agent(), block));
            self.push(at, Event::AtBank { block, want });
        }
        if asked.is_some() || said {
            self.wake(r2p2);
        }
    }

    /// The memory has answered an R2P2.
    pub(super) fn on_answer(&mut self, r2p2: u8, want: Want, holds: Sample) {
        let mut out = core::mem::take(&mut self.effects);
        let it = &mut self.r2p2s[usize::from(r2p2)];
        it.outstanding -= 1;
        match want {
            Want::Sabre { ask: Ask::Block { row, index, .. }, .. } => {
                it.engine.on_block(row, index, holds.version, &mut out);
            }
            Want::Sabre { ask: Ask::Version { row, .. }, .. } => {
                it.engine.on_version(row, holds.version, &mut out);
            }
            Want::Plain { slot, index, .. } => self.reply(slot, Reply::Block { index, holds }),
            Want::Swap { slot: Some(slot), .. } => {
                self.reply(slot, Reply::Lock { held: holds.version.is_multiple_of(2) });
            }
            Want::Swap { slot: None, .. } => {}
            other => unreachable!("{other:?} is not an R2P2's"),
        }
        self.answer(r2p2, out, holds);
        self.wake(r2p2);
    }

    /// What the engine wants done; a block that goes out holds this.
    fn answer(&mut self, r2p2: u8, mut effects: Vec<Effect>, holds: Sample) {
        for effect in effects.drain(..) {
            let (attempt, reply) = match effect {
                Effect::Reply { attempt, index } => (attempt, Reply::Block { index, holds }),
                Effect::Empty { attempt, .. } => (attempt, Reply::Empty),
                Effect::Verdict { attempt, whole } => {
                    self.r2p2s[usize::from(r2p2)].requests.retain(|(of, _)| *of != attempt);
                    (attempt, Reply::Verdict { whole })
                }
                Effect::Unlock { .. } => unreachable!("no engine here locks"),
            };
            self.reply(slot_of(attempt), reply);
        }
        self.effects = effects;
        self.r2p2s[usize::from(r2p2)].admit(nanos(self.now));
    }

    fn reply(&mut self, slot: u16, reply: Reply) {
        let bytes = match reply {
            Reply::Block { .. } => self.chip.header + super::chip::BLOCK,
            _ => self.chip.header,
        };
        let sent = self.replies.take(self.now, self.chip.link.picos(bytes));
        self.push(sent.plus(self.chip.between.into()), Event::Replied { slot, reply });
    }

    pub(super) fn on_told(&mut self, r2p2: u8, block: u64) {
        self.r2p2s[usize::from(r2p2)].engine.on_invalidation(block);
        // What is torn now is answered without the memory.
        self.wake(r2p2);
    }
}

const fn block_of(ask: Ask) -> u64 {
    match ask {
        Ask::Block { block, .. } | Ask::Version { block, .. } | Ask::Lock { block, .. } => block,
    }
}

/// Slots of readers, in a number of an attempt.
pub(super) const SLOTS: u64 = 1 << 16;

const fn slot_of(attempt: Attempt) -> u16 {
    (attempt.number % SLOTS) as u16
}
