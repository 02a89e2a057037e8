//! Connections: the switch is told of them before they are used, and one that broke begins anew.
//!
//! What must always hold: a thread appends only on a connection of which this incarnation of the switch knows, or is told that the append is indeterminate.

use chain::Outcome;
use switch::chains::{Connection, End};
use wire::NodeId;
use wire::roce::Psn;

use super::entries::BASE;
use super::event::{Event, Machine};
use super::testbed::Testbed;
use crate::system::Random;

impl Testbed {
    /// Words are bound to queue pairs of the switch's own, if its program is built for that: they begin, anew.
    pub(super) fn bind(&mut self, random: &mut Random) {
        let atomics = self.load.steering.map_or(0, |config| config.binding.atomics);
        for at in self.tor.unbound() {
            let bound = self.server.bind(at, Psn::new(random.bits() as u32), atomics);
            self.tor.bind(at, bound);
        }
    }

    pub(super) fn on_begin(&mut self, thread: u16) {
        if self.threads[usize::from(thread)].incarnation == self.tor.incarnation() {
            self.begin(thread);
        } else {
            self.push(self.now + self.bench.control, Event::Connected { thread });
        }
    }

    /// The switch's control plane is told of a thread's connection, which is idle.
    pub(super) fn connect(&mut self, number: u16) {
        let thread = &mut self.threads[usize::from(number)];
        thread.incarnation = self.tor.incarnation();
        self.tor.connect(Connection {
            client: End { node: NodeId(thread.machine as u16), queue_pair: thread.queue_pair },
            memory: End { node: NodeId(Machine::Server as u16), queue_pair: thread.server_queue_pair },
            first_psn: thread.next,
            region: self.server.region,
            base: BASE,
        });
    }

    /// A thread's connection that broke has begun anew, and is known: what became of its verb, nobody knows.
    pub(super) fn on_reconnected(&mut self, number: u16) {
        let first = Psn::new(Random::new(self.now.0 ^ u64::from(number)).bits() as u32);
        let thread = &mut self.threads[usize::from(number)];
        let host = &mut self.hosts[thread.machine as usize];
        thread.begin_connection(&self.bench, host, &mut self.server, first);
        thread.verb = None;
        self.tally.reconnected += 1;
        if self.tor.incarnation() > 0 {
            self.connect(number);
        }
        self.push(self.now, Event::Step { thread: number, outcome: Outcome::Unknown });
    }
}
