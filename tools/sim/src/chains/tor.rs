//! The software switch: a machine that polls, runs the program on each packet, and sends it on.
//!
//! What must always hold: packets leave in the order in which they came; one that is down passes nothing.

use switch::chains::{Action, Bound, Connection, Sent, Steering, SteeringConfig};
use switch::pipeline::BuildError;
use wire::chains::{EntryVersion, Location};
use wire::{Nanos, NodeId};

use super::bench::Bench;
use super::event::Roce;
use crate::hardware::Processor;

/// Packets that a requester has in flight at most: a queue pair has one operation in flight.
pub(super) const WINDOW: u32 = 16;

/// The machine in the place of the switch.
pub(super) struct Tor {
    steering: Option<Steering>,
    core: Processor,
    forward: Nanos,
    program: Nanos,
    is_up: bool,
    /// How often it has begun anew.
    incarnation: u32,
}

impl Tor {
    pub(super) fn new(
        bench: &Bench,
        config: Option<&SteeringConfig>,
        threads: u16,
    ) -> Result<Self, BuildError> {
        let build = |config: &SteeringConfig| {
            let connections = usize::from(threads);
            let lifetime = if config.reads > 0 { bench.lifetime } else { config.lifetime };
            let window = 2 * WINDOW;
            Steering::new(&SteeringConfig { connections, window, lifetime, ..*config })
        };
        Ok(Self {
            steering: config.map(build).transpose()?,
            core: Processor::new(),
            forward: bench.forward,
            program: bench.program,
            is_up: true,
            incarnation: 1,
        })
    }

    pub(super) const fn is_up(&self) -> bool {
        self.is_up
    }

    /// True if it stopped at least once.
    pub(super) const fn has_failed(&self) -> bool {
        !self.is_up || self.incarnation > 1
    }

    /// The incarnation for which a connection must be made; 0: there is no program that wants to know of any.
    pub(super) const fn incarnation(&self) -> u32 {
        if self.steering.is_some() { self.incarnation } else { 0 }
    }

    pub(super) fn connect(&mut self, connection: Connection) {
        if let Some(steering) = &mut self.steering {
            assert!(steering.connect(connection), "there is a number for each thread");
        }
    }

    /// True if its program binds words to queue pairs.
    pub(super) fn binds(&self) -> bool {
        self.steering.as_ref().is_some_and(|steering| steering.config().binding.queue_pairs > 0)
    }

    /// Bound queue pairs that are missing.
    pub(super) fn unbound(&self) -> Vec<usize> {
        self.steering.as_ref().map_or(Vec::new(), |steering| steering.unbound().collect())
    }

    pub(super) fn bind(&mut self, at: usize, bound: Bound) {
        if let Some(steering) = &mut self.steering {
            steering.bind(at, bound);
        }
    }

    /// A packet that the program itself sends.
    pub(super) fn next_sent(&mut self) -> Option<Sent> {
        self.steering.as_mut()?.next_sent()
    }

    /// Somebody has found this at the end of a key's chain.
    pub(super) fn preload(&mut self, key: u64, at: Location, version: EntryVersion) {
        if let Some(steering) = &mut self.steering {
            steering.preload(key, at, version);
        }
    }

    pub(super) const fn stop(&mut self) {
        self.is_up = false;
    }

    /// It is back, and knows nothing.
    pub(super) fn restart(&mut self) {
        self.is_up = true;
        self.incarnation += 1;
        if let Some(steering) = &mut self.steering {
            steering.restart();
        }
    }

    /// When a sim_message that it sees now is at its NIC's doorbell.
    pub(super) fn forward(&mut self, now: Nanos) -> Nanos {
        self.core.run(now, self.forward) + self.program.saturating_sub(self.forward)
    }

    /// What the program makes of a packet.
    pub(super) fn see(&mut self, now: Nanos, roce: &mut Roce) -> Action {
        let Some(steering) = &mut self.steering else { return Action::Forward };
        let mut head = [0; 32];
        for (bytes, word) in head.chunks_exact_mut(8).zip(roce.words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let head = &head[..32.min(roce.payload as usize)];
        steering.on_packet(now, NodeId(roce.to as u16), &mut roce.packet, head)
    }

    pub(super) const fn steering(&self) -> Option<&Steering> {
        self.steering.as_ref()
    }
}
