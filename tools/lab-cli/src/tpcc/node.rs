//! A node of the rack, and what its threads do with the database; node 0 also has the plain memory.
//!
//! What takes long is begun by one order and asked about by others: so the command hears of every node all the time.
//!
//! What must always hold: one thing at a time is under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use apps::tpcc::{Broken, Scale, TABLES, Transaction, Worker, check, load};
use apps::tx::{Client, Database, Error};
use rackmem::{GlobalAddr, Memory, NodeHandle, block_on};
use serde::{Deserialize, Serialize};

use super::args::LOG;
use super::plain::PlainHandle;
use crate::bench::nodes::{Far, Node, Obeyed, Work, answer};
use crate::bench::samples::{Recorder, Samples};

/// What all nodes know from the start.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(super) threads: u16,
    pub(super) shrink: u64,
    pub(super) distribution: u64,
    pub(super) seed: u64,
    /// Of each thread in a run.
    pub(super) transactions: u64,
    pub(super) plain_bytes: u64,
}

/// Which memory is meant.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Side {
    /// The rack's.
    Rack,
    /// That of one process, at node 0.
    Plain,
}

impl Side {
    /// For messages.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Rack => "",
            Self::Plain => " (plain memory)",
        }
    }
}

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Create a database. Answers its root, or why not.
    Create(Side),
    /// Begin this. Answers nothing.
    Begin(Task),
    /// How far is it? Answers how [`Far`].
    Ask,
    /// What has come here so far? Answers what was [`Counted`](crate::bench::nodes::Counted).
    Count,
}

/// What takes long.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Load the warehouses of this node's threads into the database with this root.
    Load(Side, u64),
    /// Run transactions: this run, from 0 on.
    Run(Side, u64),
    /// Check all conditions: for node 0. It is after loading, or later.
    Check(Side, bool),
}

/// What a task has come to at a node.
#[derive(Serialize, Deserialize)]
pub(crate) enum Ended {
    Loaded,
    Ran(Ran),
    /// The condition that does not hold.
    Checked(Option<String>),
    /// Why not.
    Failed(String),
}

/// How a run went at a node, or at all.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ran {
    /// Of the slowest thread.
    pub(super) nanos: u64,
    /// Times of transactions that have committed, by kind.
    pub(super) times: Vec<Vec<Samples>>,
    /// New orders that were undone as specified.
    pub(super) undone: u64,
    /// Attempts in vain, by the lock that was taken.
    pub(super) conflicts: BTreeMap<String, u64>,
}

impl Ran {
    pub(super) fn add(&mut self, more: &Self) {
        self.nanos = self.nanos.max(more.nanos);
        self.undone += more.undone;
        self.times.resize(Transaction::ALL.len(), Vec::new());
        for (all, more) in self.times.iter_mut().zip(&more.times) {
            all.extend(more.iter().cloned());
        }
        for (lock, count) in &more.conflicts {
            *self.conflicts.entry(lock.clone()).or_default() += count;
        }
    }
}

/// What a thread hands back.
enum Back {
    Client(Box<Client>, Option<Ran>),
    Checked(Result<(), Broken>),
}

/// The threads of a node with their warehouses, and one memory.
struct Threads<M> {
    mem: M,
    setup: Setup,
    scale: Scale,
    /// The first one's number in the rack.
    first: u64,
    count: u64,
    database: Option<Database>,
    /// While nothing is under way.
    clients: Vec<Client>,
    at_work: Vec<JoinHandle<Result<Back, Error>>>,
    /// Rows that were loaded, or transactions that have ended.
    done: Arc<AtomicU64>,
}

impl<M: Memory + Clone + Send + 'static> Threads<M> {
    fn new(mem: M, setup: &Setup, nodes: u16, (first, count): (u64, u64)) -> Self {
        let warehouses = u64::from(nodes) * u64::from(setup.threads);
        Self {
            mem,
            setup: *setup,
            scale: Scale { warehouses, shrink: setup.shrink },
            first,
            count,
            database: None,
            clients: Vec::new(),
            at_work: Vec::new(),
            done: Arc::default(),
        }
    }

    fn create(&mut self) -> Result<u64, Error> {
        let all = self.scale.warehouses as usize;
        let created = block_on(Database::create(&mut self.mem.clone(), TABLES, (all, all), LOG))?;
        Ok(created.root().bits())
    }

    fn begin(&mut self, task: Task) -> Result<(), Error> {
        let (scale, Setup { distribution, seed, transactions, .. }) = (self.scale, self.setup);
        self.done.store(0, Relaxed);
        match task {
            Task::Load(_, root) => {
                let root = GlobalAddr::from_bits(root);
                let database = block_on(Database::open(&mut self.mem.clone(), root, TABLES))?;
                for id in self.first..self.first + self.count {
                    let (mut mem, database) = (self.mem.clone(), database.clone());
                    let rows = Arc::clone(&self.done);
                    self.spawn(move || {
                        block_on(async {
                            let mut client = Client::new(&mut mem, &database, id as usize).await?;
                            load(&mut client, &mut mem, (scale, id + 1), seed, &rows).await?;
                            Ok(Back::Client(Box::new(client), None))
                        })
                    });
                }
                self.database = Some(database);
            }
            Task::Run(_, run) => {
                for (id, client) in (self.first..).zip(std::mem::take(&mut self.clients)) {
                    let worker = Worker::new(client, (id, run), (scale, id + 1), distribution, seed);
                    let (mem, done) = (self.mem.clone(), Arc::clone(&self.done));
                    self.spawn(move || work(worker, mem, transactions, &done));
                }
            }
            Task::Check(_, is_first) => {
                let database = self.database.clone().expect("it was loaded before");
                let mut mem = self.mem.clone();
                self.spawn(move || Ok(Back::Checked(block_on(check(&mut mem, &database, scale, is_first))?)));
            }
        }
        Ok(())
    }

    fn spawn(&mut self, work: impl FnOnce() -> Result<Back, Error> + Send + 'static) {
        self.at_work.push(thread::spawn(|| {
            rackmem::ask_for_short_slice();
            work()
        }));
    }

    fn far(&mut self) -> Far<Ended> {
        let at_work = self.at_work.iter().any(|thread| !thread.is_finished());
        let done = self.done.load(Relaxed);
        if at_work {
            return Far { done, ended: None };
        }
        let mut ended = Ended::Loaded;
        for thread in std::mem::take(&mut self.at_work) {
            match thread.join().expect("a thread with a warehouse panicked") {
                Ok(Back::Client(client, ran)) => {
                    self.clients.push(*client);
                    if let Some(ran) = ran {
                        let mut sum = if let Ended::Ran(sum) = ended { sum } else { Ran::default() };
                        sum.add(&ran);
                        ended = Ended::Ran(sum);
                    }
                }
                Ok(Back::Checked(found)) => {
                    ended = Ended::Checked(found.err().map(|broken| broken.to_string()));
                }
                Err(error) => return Far { done, ended: Some(Ended::Failed(error.to_string())) },
            }
        }
        Far { done, ended: Some(ended) }
    }
}

/// Runs transactions of one thread.
fn work<M: Memory>(
    mut worker: Worker,
    mut mem: M,
    transactions: u64,
    done: &AtomicU64,
) -> Result<Back, Error> {
    let mut recorders: Vec<Recorder> = Transaction::ALL.iter().map(|_| Recorder::new()).collect();
    let (began, mut ran) = (Instant::now(), Ran::default());
    for _ in 0..transactions {
        let one = block_on(worker.step(&mut mem, thread::yield_now))?;
        if one.committed {
            recorders[one.transaction as usize].record(Duration::from_nanos(one.took.0));
        } else {
            ran.undone += 1;
        }
        for (table, lock) in one.conflicts {
            let name = format!("{} {}", TABLES[usize::from(table.0)].name, lock.name());
            *ran.conflicts.entry(name).or_default() += 1;
        }
        done.fetch_add(1, Relaxed);
    }
    let took = began.elapsed();
    ran.nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    ran.times = recorders.iter().map(|recorder| vec![recorder.samples(took)]).collect();
    Ok(Back::Client(Box::new(worker.into_client()), Some(ran)))
}

/// A node with its part of the database.
pub(crate) struct Part {
    node: Node,
    rack: Threads<NodeHandle>,
    /// At node 0: with the threads of all nodes.
    plain: Option<Threads<PlainHandle>>,
    /// Where something is under way.
    side: Side,
}

impl Work for Part {
    const NAME: &'static str = "tpcc";
    type Setup = Setup;
    type Order = Order;

    fn new(node: Node, setup: Setup) -> Self {
        let (nodes, threads) = (node.nodes(), u64::from(setup.threads));
        let first = node.id.index() as u64 * threads;
        let mut handle = node.handle();
        handle.keep_copies(node.rack().config().copies > 1).expect("there are some");
        let rack = Threads::new(handle, &setup, nodes, (first, threads));
        let plain = (first == 0).then(|| {
            let memory = PlainHandle::new(setup.plain_bytes, node.handle().block_size());
            Threads::new(memory, &setup, nodes, (0, threads * u64::from(nodes)))
        });
        Self { node, rack, plain, side: Side::Rack }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        if let Order::Create(side)
        | Order::Begin(Task::Load(side, _) | Task::Run(side, _) | Task::Check(side, _)) = &order
        {
            self.side = *side;
        }
        let plain = self.plain.as_mut().filter(|_| self.side == Side::Plain);
        match order {
            Order::Count => answer(self.node.counted()),
            Order::Create(_) => {
                let created = plain.map_or_else(|| self.rack.create(), Threads::create);
                answer(created.map_err(|error| error.to_string()))
            }
            Order::Begin(task) => {
                match plain {
                    Some(plain) => plain.begin(task)?,
                    None => self.rack.begin(task)?,
                }
                answer(())
            }
            Order::Ask => answer(plain.map_or_else(|| self.rack.far(), Threads::far)),
        }
    }
}
