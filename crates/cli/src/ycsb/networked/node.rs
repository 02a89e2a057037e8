//! The children's side: a node with its clients, or the switch.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rackmem::{GlobalAddr, NodeHandle, NodeId, Rack, Watch, Words};
use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::interrupt::Interrupt;
use crate::processes::child::{Never, Reason};
use crate::processes::place::{Assignment, Joined, Travelled};
use crate::processes::{Orders, Teller};
use crate::ycsb::client::Client;
use crate::ycsb::distribution::Chooser;
use crate::ycsb::engine::{Engine, RackSession, Store};
use crate::ycsb::history::History;
use crate::ycsb::keys::InsertSequence;
use crate::ycsb::latency::{Latencies, Recorded};
use crate::ycsb::measure::part_start;
use crate::ycsb::phase::{Span, in_parallel};
use crate::ycsb::progress::Progress;
use crate::ycsb::rack::node_traffic;
use crate::ycsb::random::Random;
use crate::ycsb::store::{StoreError, Traffic};
use crate::ycsb::trips::Trips;
use crate::ycsb::workload::Workload;

/// A place, and what its clients do.
#[derive(Serialize, Deserialize)]
pub struct Task {
    pub(super) assignment: Assignment,
    pub(super) job: Job,
}

/// What all clients of the rack do together.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) workload: Workload,
    pub(super) threads: usize,
    pub(super) seed: u64,
    pub(super) ordinal: u64,
    pub(super) engine: Engine,
    /// When the history began, if one is written.
    pub(super) history: Option<Moment>,
}

/// Where the store is.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Place {
    root: u64,
    /// A word for each node: how many records its clients have inserted. None: nobody inserts any.
    inserted: Option<u64>,
}

/// What the command wants of a place.
#[derive(Serialize, Deserialize)]
pub enum Order {
    /// Create the store, and say where it is.
    Create,
    /// Open it.
    Open(Place),
    /// Load this node's part of the records.
    Load,
    /// Do this node's part of so many operations.
    Run { operations: u64 },
    /// Say what was counted so far.
    Count,
}

/// What happens at a place.
#[derive(Serialize, Deserialize)]
pub enum Event {
    /// It is part of the rack.
    Joined,
    /// The store is there.
    Created(Place),
    /// The store is open, the clients are ready.
    Opened,
    /// The phase in flight has done so many operations.
    Progress(u64),
    /// Lines of the history.
    History(String),
    /// A phase is over.
    Done { span: Span, latencies: Recorded, trips: Trips, absent: u64 },
    /// What was counted.
    Counted(Counted),
}

/// What a place has counted.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Counted {
    pub(super) traffic: Traffic,
    pub(super) travelled: Travelled,
}

impl crate::processes::Task for Task {
    const NAME: &'static str = "ycsb";
}

/// Is a place of the rack until the process ends.
pub fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let joined = task.assignment.take()?;
    teller.tell(Event::Joined);
    match joined {
        Joined::Switch { transport, watch } => {
            // Nobody looks but for what it did with chains: otherwise it need not report.
            let watch = matches!(task.job.engine, Engine::Chain(_)).then_some(watch);
            loop {
                if let Order::Count = orders.next() {
                    let counts = transport.counters().counts();
                    // All but a few are packets of its program; the rest is membership's.
                    let switch_packets = counts.received + counts.sent;
                    // As of a moment ago.
                    let chains = watch.as_ref().and_then(Watch::report).map(|report| report.chains);
                    let appends = chains.unwrap_or_default().into();
                    let traffic = Traffic { switch_packets, appends, ..Traffic::default() };
                    teller.tell(Event::Counted(Counted { traffic, travelled: Travelled::of(&counts) }));
                }
            }
        }
        Joined::Node(id, rack) => {
            let node = Node { id, rack: &rack, job: &task.job, teller };
            let store = node.await_store(orders)?;
            node.work(store, orders)
        }
    }
}

/// Between two looks at what others have inserted.
const LOOKS: Duration = Duration::from_millis(10);

/// Tells the other nodes how many records the clients of this one have inserted, and looks how many theirs have. If that fails, the
/// store does, too, and says why.
fn tell_each_other(mut handle: NodeHandle, counts: &Words<u64>, own: usize, sequence: &InsertSequence) {
    loop {
        let told = counts.max(&mut handle, own, sequence.done());
        let others = (0..counts.len()).filter(|node| *node != own);
        let least = others
            .map(|node| counts.load(&mut handle, node))
            .try_fold(u64::MAX, |least, count| count.map(|count| least.min(count)));
        match (told, least) {
            (Ok(()), Ok(least)) => sequence.others_have(least),
            _ => return,
        }
        thread::sleep(LOOKS);
    }
}

struct Node<'a> {
    id: NodeId,
    rack: &'a Rack,
    job: &'a Job,
    teller: &'a Teller<Event>,
}

impl Node<'_> {
    /// Waits until the store is there; creates it, if that falls to this node.
    fn await_store(&self, orders: &Orders<Order>) -> Result<Place, Reason> {
        loop {
            match orders.next() {
                Order::Create => {
                    let Job { engine, workload, .. } = self.job;
                    let store = Store::create(self.rack, &mut self.rack.here(), *engine, workload)
                        .map_err(|error| format!("cannot create the key-value store: {}", error.0))?;
                    let counts = (workload.mix.insert_share() > 0.0)
                        .then(|| self.rack.here().words::<u64>(self.rack.config().nodes, self.id))
                        .transpose()
                        .map_err(|error| format!("cannot count records: {error}"))?;
                    let inserted = counts.map(|counts| counts.addr().bits());
                    self.teller.tell(Event::Created(Place { root: store.root().bits(), inserted }));
                }
                Order::Open(store) => return Ok(store),
                Order::Count => self.count(),
                Order::Load | Order::Run { .. } => return Err("there is no store to work on".to_owned()),
            }
        }
    }

    fn work(&self, Place { root, inserted }: Place, orders: &Orders<Order>) -> Result<Never, Reason> {
        let Job { workload, threads, seed, ordinal, engine, history } = self.job;
        let store = Store::open(self.rack, &mut self.rack.here(), *engine, GlobalAddr::from_bits(root))
            .map_err(|error| format!("cannot open the key-value store: {}", error.0))?;
        let session = || RackSession::new(self.rack, self.rack.here(), store.clone());
        let history = history.map(|start| {
            let teller = self.teller.clone();
            History::told(start, move |lines| teller.tell(Event::History(lines.to_owned())))
        });
        let chooser = Chooser::new(workload);
        let first = self.id.index() * threads;
        let clients = (first..first + threads).map(|number| {
            let number = number as u64;
            let recorder = history.as_ref().map(|history| history.recorder(number));
            let random = Random::new(*seed, ordinal << 32 | number);
            Client::new(session(), workload, chooser.clone(), random, recorder)
        });
        let mut clients: Clients<'_> = clients.collect();
        let parts = (self.id.index() as u64, self.rack.config().nodes as u64);
        let sequence = Arc::new(InsertSequence::of_part(workload.records, parts));
        if let Some(counts) = inserted {
            let counts =
                self.rack.here().words_at(GlobalAddr::from_bits(counts)).map_err(|why| why.to_string())?;
            let (handle, own, sequence) = (self.rack.here(), self.id.index(), Arc::clone(&sequence));
            thread::spawn(move || tell_each_other(handle, &counts, own, &sequence));
        }
        self.teller.tell(Event::Opened);
        loop {
            let done = match orders.next() {
                Order::Load => self.phase(&mut clients, &orders.interrupt, |client, number, parts, gauge| {
                    let part = |number| part_start(workload.records, parts, number);
                    client.load(part(number)..part(number + 1), gauge)
                }),
                Order::Run { operations } => {
                    self.phase(&mut clients, &orders.interrupt, |client, number, parts, gauge| {
                        let part = |number| part_start(operations, parts, number);
                        client.run(part(number + 1) - part(number), &sequence, gauge)
                    })
                }
                Order::Count => {
                    self.count();
                    continue;
                }
                Order::Create | Order::Open(_) => return Err("there is a store already".to_owned()),
            };
            let span = done.map_err(|error| error.0)?;
            let (mut latencies, mut trips) = (Latencies::new(&workload.mix), Trips::default());
            let absent = clients.iter().map(Client::absent).sum();
            for client in &mut clients {
                latencies.add(client.latencies());
                trips.add(client.trips());
                client.forget();
                // The old handle says what it has hit when it goes.
                client.switch_to(session());
            }
            self.teller.tell(Event::Done { span, latencies: latencies.recorded(), trips, absent });
        }
    }

    /// Lets the clients do a part each.
    fn phase(
        &self,
        clients: &mut Clients<'_>,
        interrupt: &Interrupt,
        part: impl Fn(&mut OneClient<'_>, u64, u64, &crate::ycsb::phase::Gauge<'_>) -> Result<(), StoreError>
        + Sync,
    ) -> Result<Span, StoreError> {
        let teller = self.teller.clone();
        let mut progress = Progress::told(move |done| teller.tell(Event::Progress(done)));
        let first = self.id.index() * clients.len();
        let parts = (self.rack.config().nodes * clients.len()) as u64;
        in_parallel(clients, interrupt, &mut progress, |number, client, gauge| {
            rackmem::ask_for_short_slice();
            part(client, (first + number) as u64, parts, gauge)
        })
    }

    fn count(&self) {
        let travelled =
            self.rack.transport_counts().map_or_else(Travelled::default, |counts| Travelled::of(&counts));
        self.teller.tell(Event::Counted(Counted { traffic: node_traffic(&self.rack.counters()), travelled }));
    }
}

type OneClient<'a> = Client<'a, RackSession>;
type Clients<'a> = Vec<OneClient<'a>>;
