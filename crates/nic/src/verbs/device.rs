//! The device: regions, completion queues and queue pairs of a node behind one door.
//!
//! In every node. This is the machine that drivers drive, under the call contract:
//!
//! 1. One input at a time: a packet, posted work, "the deadline passed". Each call gets the time; time never runs back.
//! 2. Each call appends its effects to a buffer that the caller owns, and drains before the next call.
//! 3. [`Device::next_deadline`] names the next moment at which the device wants to be called. Being called early is
//!    harmless.
//! 4. Whatever arrives is taken, or dropped and counted. A panic is a bug in rackmem.

use alloc::vec::Vec;

use sorted::Map;
use wire::roce::{Key, Malformed, Packet, QpNumber};
use wire::{AllRules, Nanos, NodeId, Rules};

use super::attributes::{Depth, QueuePairState, StateError, ToReceive, ToSend};
use super::completion::{CompletionQueue, CqNumber};
use super::counters::{Counters, Drop};
use super::effect::{Effect, Memory};
use super::queue_pair::{Context, QueuePair};
use super::region::{Region, RegionError, Regions};
use super::work::{Completion, PostError, Receive, WorkRequest};

/// Queue pairs 0 and 1 are the standard's own.
const FIRST_QUEUE_PAIR: u32 = 2;

/// A software NIC's verbs.
pub struct Device<R: Rules = AllRules> {
    rules: R,
    regions: Regions,
    queues: Vec<CompletionQueue>,
    queue_pairs: Vec<QueuePair>,
    /// Those whose numbers their driver has chosen, and which they are.
    chosen: Map<QpNumber, usize>,
    counters: Counters,
    /// No deadline of a queue pair is before this.
    due: Nanos,
}

/// Borrows the parts of a device for one call.
macro_rules! context {
    ($device:ident, $now:expr, $out:expr) => {
        Context {
            rules: $device.rules,
            now: $now,
            regions: &$device.regions,
            queues: &mut $device.queues,
            counters: &mut $device.counters,
            out: $out,
        }
    };
}

impl Device {
    /// A device with capacity for so many memory regions.
    pub fn new(regions: u32) -> Self {
        Self::with_rules(AllRules, regions)
    }
}

impl<R: Rules> Device<R> {
    /// A device of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, regions: u32) -> Self {
        Self {
            rules,
            regions: Regions::new(regions),
            queues: Vec::new(),
            queue_pairs: Vec::new(),
            chosen: Map::new(),
            counters: Counters::default(),
            due: Nanos::MAX,
        }
    }

    // Setting up.

    /// Registers memory.
    ///
    /// # Errors
    /// If the region cannot be, or there is no capacity.
    pub fn register(&mut self, region: Region) -> Result<Key, RegionError> {
        self.regions.register(region)
    }

    /// Takes memory back: no effect names it from now on.
    ///
    /// # Errors
    /// If no region has this key.
    pub fn deregister(&mut self, key: Key) -> Result<Region, RegionError> {
        self.regions.deregister(key)
    }

    /// Makes a completion queue for so much posted work.
    pub fn create_completion_queue(&mut self, capacity: usize) -> CqNumber {
        self.queues.push(CompletionQueue::new(capacity));
        CqNumber(u32::try_from(self.queues.len() - 1).expect("fewer than 2^32 completion queues"))
    }

    /// Makes a queue pair, in RESET.
    ///
    /// # Panics
    /// If a completion queue is not there, or 2^24 queue pairs are.
    pub fn create_queue_pair(&mut self, sends: CqNumber, receives: CqNumber, depth: Depth) -> QpNumber {
        let number = u32::try_from(self.queue_pairs.len()).expect("few") + FIRST_QUEUE_PAIR;
        assert!(number < 1 << 24, "2^24 queue pairs");
        let number = QpNumber::new(number);
        assert!(!self.chosen.contains_key(&number), "{number} is taken");
        self.add(QueuePair::new(number, sends, receives, depth));
        number
    }

    /// Makes a queue pair with a number of the driver's choice, in RESET.
    ///
    /// # Panics
    /// If a completion queue is not there, or there is a queue pair with this number.
    pub fn create_numbered(&mut self, number: QpNumber, sends: CqNumber, receives: CqNumber, depth: Depth) {
        assert!(self.index(number).is_none(), "{number} is taken");
        self.chosen.insert(number, self.queue_pairs.len());
        self.add(QueuePair::new(number, sends, receives, depth));
    }

    fn add(&mut self, pair: QueuePair) {
        for queue in pair.queues() {
            assert!((queue.0 as usize) < self.queues.len(), "there is no {queue:?}");
        }
        self.queue_pairs.push(pair);
    }

    fn index(&self, number: QpNumber) -> Option<usize> {
        let in_turn = number.get().checked_sub(FIRST_QUEUE_PAIR).map(|index| index as usize);
        let is_it = |at: &usize| self.queue_pairs.get(*at).is_some_and(|pair| pair.number() == number);
        in_turn.filter(is_it).or_else(|| self.chosen.get(&number).copied())
    }

    fn pair(&mut self, number: QpNumber) -> Result<&mut QueuePair, StateError> {
        let at = self.index(number).ok_or(StateError::NoSuchQueuePair)?;
        Ok(&mut self.queue_pairs[at])
    }

    /// From any state to RESET: what is posted is forgotten, without completions.
    ///
    /// # Errors
    /// If there is no such queue pair.
    pub fn reset(&mut self, queue_pair: QpNumber) -> Result<(), StateError> {
        let pair = self.index(queue_pair).map(|at| &mut self.queue_pairs[at]);
        pair.ok_or(StateError::NoSuchQueuePair)?.reset(&mut self.queues);
        Ok(())
    }

    /// RESET to INIT.
    ///
    /// # Errors
    /// If the queue pair is not in RESET.
    pub fn init(&mut self, queue_pair: QpNumber) -> Result<(), StateError> {
        self.pair(queue_pair)?.init()
    }

    /// INIT to RTR: requests of the peer are executed from now on.
    ///
    /// # Errors
    /// If the queue pair is not in INIT.
    pub fn ready_to_receive(
        &mut self,
        queue_pair: QpNumber,
        attributes: ToReceive,
    ) -> Result<(), StateError> {
        self.pair(queue_pair)?.ready_to_receive(attributes)
    }

    /// RTR to RTS: work may be posted from now on.
    ///
    /// # Errors
    /// If the queue pair is not in RTR.
    pub fn ready_to_send(&mut self, queue_pair: QpNumber, attributes: ToSend) -> Result<(), StateError> {
        self.pair(queue_pair)?.ready_to_send(attributes)
    }

    /// From any state to ERR: what is posted is flushed.
    ///
    /// # Errors
    /// If there is no such queue pair.
    pub fn fail(
        &mut self,
        now: Nanos,
        queue_pair: QpNumber,
        out: &mut Vec<Effect>,
    ) -> Result<(), StateError> {
        let pair = self.index(queue_pair).map(|at| &mut self.queue_pairs[at]);
        pair.ok_or(StateError::NoSuchQueuePair)?.fail(&mut context!(self, now, out));
        Ok(())
    }

    // Inputs.

    /// A packet with so many bytes of payload has arrived from a node.
    pub fn on_packet<M: Memory>(
        &mut self,
        now: Nanos,
        from: NodeId,
        packet: &Packet,
        payload: u32,
        memory: &mut M,
        out: &mut Vec<Effect>,
    ) {
        self.counters.received += 1;
        let pair = self.index(packet.to).map(|at| &mut self.queue_pairs[at]);
        let outcome = match pair {
            Some(pair) => {
                let outcome = pair.on_packet(&mut context!(self, now, out), from, packet, payload, memory);
                self.due = self.due.min(pair.next_deadline());
                outcome
            }
            None => Err(Drop::NoSuchQueuePair),
        };
        match outcome {
            Ok(()) => self.counters.taken += 1,
            Err(why) => self.counters.drop(why),
        }
    }

    /// Bytes have arrived that are no packet.
    pub fn on_malformed(&mut self, why: Malformed) {
        self.counters.received += 1;
        self.counters.malformed[why as usize] += 1;
    }

    /// Posts work to a send queue.
    ///
    /// # Errors
    /// If the queue pair is not there or not ready, or something is full.
    pub fn post_send(
        &mut self,
        now: Nanos,
        queue_pair: QpNumber,
        request: WorkRequest,
        out: &mut Vec<Effect>,
    ) -> Result<(), PostError> {
        let pair = self.index(queue_pair).map(|at| &mut self.queue_pairs[at]);
        let pair = pair.ok_or(PostError::NoSuchQueuePair)?;
        let posted = pair.post_send(&mut context!(self, now, out), request);
        self.due = self.due.min(pair.next_deadline());
        posted
    }

    /// Posts a buffer for a message.
    ///
    /// # Errors
    /// If the queue pair is not there or in RESET, or something is full.
    pub fn post_receive(
        &mut self,
        now: Nanos,
        queue_pair: QpNumber,
        receive: Receive,
        out: &mut Vec<Effect>,
    ) -> Result<(), PostError> {
        let pair = self.index(queue_pair).map(|at| &mut self.queue_pairs[at]);
        pair.ok_or(PostError::NoSuchQueuePair)?.post_receive(&mut context!(self, now, out), receive)
    }

    /// Does whatever is due.
    pub fn on_deadline(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        if now < self.due {
            return;
        }
        self.due = Nanos::MAX;
        for pair in &mut self.queue_pairs {
            pair.on_deadline(&mut context!(self, now, out));
            self.due = self.due.min(pair.next_deadline());
        }
    }

    /// Takes the oldest completion out of a queue. After the effects of the call before have been done.
    pub fn poll(&mut self, queue: CqNumber) -> Option<Completion> {
        self.queues.get_mut(queue.0 as usize)?.poll()
    }

    /// Asks for one [`Effect::Notify`] when something comes into the queue; true if something is there already, and
    /// none will be sent.
    pub fn arm(&mut self, queue: CqNumber) -> bool {
        self.queues.get_mut(queue.0 as usize).is_some_and(CompletionQueue::arm)
    }

    // Getters.

    /// When the device wants to be called. It may turn out then that nothing is due any more; if nothing was since the
    /// last such call, [`Nanos::MAX`].
    pub fn next_deadline(&self) -> Nanos {
        self.due
    }

    /// A queue pair's state.
    pub fn state(&self, queue_pair: QpNumber) -> Option<QueuePairState> {
        self.index(queue_pair).map(|at| self.queue_pairs[at].state)
    }

    /// The registered regions.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// A completion queue.
    pub fn completion_queue(&self, queue: CqNumber) -> Option<&CompletionQueue> {
        self.queues.get(queue.0 as usize)
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What must hold between calls.
    ///
    /// # Panics
    /// If it does not.
    pub fn invariants(&self) {
        assert!(self.counters.add_up(), "a packet was counted twice or not at all: {:?}", self.counters);
        for pair in &self.queue_pairs {
            assert!(self.due <= pair.next_deadline(), "a deadline would be missed");
            pair.invariants(self.rules);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_pair_is_found_by_its_number_whoever_chose_it_and_by_no_other() {
        let mut device = Device::new(1);
        let queue = device.create_completion_queue(8);
        let depth = Depth { sends: 1, receives: 0 };
        let first = device.create_queue_pair(queue, queue, depth);
        let chosen = QpNumber::new(1 << 23 | 77);
        device.create_numbered(chosen, queue, queue, depth);
        let second = device.create_queue_pair(queue, queue, depth);
        assert_eq!((first.get(), second.get()), (2, 4), "it has a place in the line, but not its number");
        for number in [first, chosen, second] {
            assert_eq!(device.state(number), Some(QueuePairState::Reset));
            device.init(number).unwrap();
            assert_eq!(device.state(number), Some(QueuePairState::Init));
        }
        for number in [3, 5, 1 << 23, 1 << 23 | 78].map(QpNumber::new) {
            assert_eq!(device.state(number), None, "{number}");
            assert_eq!(device.init(number), Err(StateError::NoSuchQueuePair));
        }
    }
}
