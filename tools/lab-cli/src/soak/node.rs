//! A node's process and its clients, or the switch's.
//!
//! ```text
//!   main thread ── orders that take a while ──> "orders" thread: allocates, halts, reads all words
//!               └─ evidence: at once, whatever is stuck
//!   "watch" thread: tells when the rack has declared this node dead, or has not after all; and what does not get on
//!   clients
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rackmem::transport::Transport;
use rackmem::{Discipline, GlobalAddr, Nanos, NodeHandle, NodeId, ProcessConfig, Rack, Timing};
use serde::{Deserialize, Serialize};
use simulated::fault::{Rules, drop_per_mille, duplicate_per_mille, reorder};
use simulated::faulty::Faulty;

use super::client::Client;
use super::evidence;
use super::pointers::Pointers;
use super::shared::Shared;
use super::stores::Store;
use super::waiting::Waiting;
use cli::clock::Moment;
use cli::processes::child::{Never, Reason, in_background};
use cli::processes::place::{Assignment, Joined};
use cli::processes::{Orders, Teller};

/// Words lie on blocks of their own: what dies with a node is one word.
const APART: u64 = 4096;
/// How often a node looks whether it is still taken for alive.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A place of a rack that is soaked.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) assignment: Assignment,
    pub(super) threads: u16,
    /// Of its first client; the others follow.
    pub(super) first_client: u64,
    pub(super) loss_per_mille: u16,
    pub(super) timeout: Duration,
    pub(super) rate: u32,
    pub(super) mapped: bool,
    /// On how many nodes each word is.
    pub(super) copies: u8,
    pub(super) chains: bool,
    /// All first copies of the store are in one memory.
    pub(super) steered: bool,
    /// An operation that takes longer does not get on.
    pub(super) stuck: Duration,
    pub(super) histories: PathBuf,
    pub(super) seed: u64,
}

/// A word that clients work on.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Word {
    /// No other word, before or after, has this number.
    pub(super) key: u64,
    pub(super) addr: u64,
}

/// What the command wants of a place.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Allocate a word at this home, or say that it cannot be.
    Allocate { slot: usize, key: u64, home: u16 },
    /// Make a store in the memories of these nodes, or say that it cannot be.
    MakeStore { slot: usize, key: u64, homes: Vec<u16> },
    /// These are the words from now on.
    Words(Vec<Word>),
    /// Work.
    Go { round: u64 },
    /// Stop working, and say when all clients have.
    Halt,
    /// Read all words, and say what they hold.
    Audit,
    /// Say whether all memories with copies are on as many nodes as they are to be: the switch of all, a node of stores that it
    /// looks after.
    Copies,
    /// You were stopped: say what became of you meanwhile.
    Continued,
    /// Write into this file what you are in the middle of.
    Evidence(PathBuf),
}

/// What happens at a place.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// It is part of the rack, or still is.
    Joined,
    /// Here is the word, or there is none.
    Allocated { slot: usize, key: u64, addr: Option<u64> },
    /// The word's contents died with a node.
    Gone { key: u64, why: String },
    /// All clients have stopped.
    Idle,
    /// One more word was read for the audit, or could not be.
    Looked,
    /// What the words hold: key, value, when they were asked and when they had answered.
    Audited(Vec<(u64, u64, Moment, Moment)>),
    /// Whether all copies are there, and how many stores a node looks after.
    Copies { whole: bool, stores: u64 },
    /// The rack has declared this node dead.
    Fenced,
    /// An operation does not get on.
    Stuck { what: String },
    /// The evidence is written.
    Witnessed,
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "soak";
}

/// Is a place until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let timeout = Nanos(u64::try_from(task.timeout.as_nanos()).expect("not for centuries"));
    let process = ProcessConfig {
        timing: Timing::new(timeout),
        strict: !task.mapped,
        // Every other node.
        faults_in_place: task.mapped && task.assignment.place().index() % 2 == 1,
        ..ProcessConfig::default()
    };
    let (loss, seed) = (task.loss_per_mille, task.seed);
    let joined = task.assignment.take_with(&process, |transport| faulty(transport, loss, seed))?;
    teller.tell(Event::Joined);
    match joined {
        Joined::Switch { transport, watch } => loop {
            match orders.next() {
                Order::Evidence(file) => {
                    let text = format!("{:#?}\n{:?}\n", watch.report(), transport.counters().counts());
                    witness(&file, &text, teller);
                }
                Order::Copies => {
                    let whole = watch.report().is_some_and(|report| report.copies_missing() == 0);
                    teller.tell(Event::Copies { whole, stores: 0 });
                }
                _ => {}
            }
        },
        Joined::Node(_, rack) => work(task, rack, orders, teller),
    }
}

fn witness(file: &Path, text: &str, teller: &Teller<Event>) {
    evidence::write(file, text);
    teller.tell(Event::Witnessed);
}

/// A network that loses and doubles so many packets in a thousand, and lets neighbours overtake each other.
fn faulty(transport: Arc<dyn Transport>, per_mille: u16, seed: u64) -> Arc<dyn Transport> {
    if per_mille == 0 {
        return transport;
    }
    let rules = Rules::none()
        .with(drop_per_mille(per_mille))
        .with(duplicate_per_mille(per_mille, Nanos::from_micros(500)))
        .with(reorder(Nanos::from_micros(50)));
    Arc::new(Faulty::new(transport, rules, seed))
}

fn work(task: Task, rack: Rack, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let shared = Arc::new(Shared::new(task.threads));
    let pointers = task.mapped.then(|| Arc::new(Pointers::new(rack.clone())));
    for number in 0..u64::from(task.threads) {
        let client = Client::new(number, rack.here(), (&shared, &pointers), teller, &task);
        in_background("client", move || client.run())?;
    }
    let (order, ordered) = mpsc::channel();
    let (shared_too, teller_too) = (Arc::clone(&shared), teller.clone());
    let obedient = Obedient {
        here: rack.here(),
        task: task.clone(),
        store: None,
        shared: shared_too,
        pointers,
        teller: teller_too,
    };
    in_background("orders taken", move || obedient.run(&ordered))?;
    let watched = (rack.clone(), Arc::clone(&shared), teller.clone());
    in_background("watch", move || watch(&watched.0, &watched.1, task.stuck, &watched.2))?;
    loop {
        match orders.next() {
            Order::Evidence(file) => {
                witness(&file, &format!("{}{}", shared.in_flight(), rack.in_flight()), teller)
            }
            Order::Continued => shared.continued.store(true, Ordering::SeqCst),
            Order::Copies => {
                let reports = rack.reports();
                let whole = reports.iter().all(|report| report.chains.missing == 0);
                let stores = reports.iter().map(|report| report.chains.stores).sum();
                teller.tell(Event::Copies { whole, stores });
            }
            other => drop(order.send(other)),
        }
    }
}

/// Tells what the rack thinks of this node, also while no client asks for anything; and what does not get on.
fn watch(rack: &Rack, shared: &Shared, stuck: Duration, teller: &Teller<Event>) {
    let mut waits = vec![(None, Waiting::default()); shared.doing.len()];
    while !rack.is_fenced() {
        // A lease that was given since: the node was not declared dead, as whoever should have done it was too slow.
        if shared.continued.load(Ordering::SeqCst) && rack.holds_lease() {
            shared.continued.store(false, Ordering::SeqCst);
            teller.tell(Event::Joined);
        }
        for (who, (doing, waiting)) in waits.iter_mut().enumerate() {
            let now = shared.does(who);
            if now.is_none() || now != *doing {
                (*doing, *waiting) = (now, Waiting::default());
            }
            waiting.look(Instant::now());
            if let Some((what, key, _)) = doing
                && waiting.waited() > stuck
            {
                let what = format!("a thread waited {} s {what} word {key}", stuck.as_secs());
                return teller.tell(Event::Stuck { what });
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    shared.on_fenced(teller);
}

/// Does what the command orders, one after the other.
struct Obedient {
    here: NodeHandle,
    task: Task,
    /// With `--chains`.
    store: Option<Store>,
    shared: Arc<Shared>,
    pointers: Option<Arc<Pointers>>,
    teller: Teller<Event>,
}

impl Obedient {
    fn run(mut self, orders: &Receiver<Order>) {
        let me = self.shared.doing.len() - 1;
        for order in orders {
            match order {
                Order::Allocate { slot, key, home } => {
                    self.shared.doing(me, Some(("to allocate", key)));
                    let addr = match self.task.copies {
                        1 => self.here.alloc(APART, NodeId(home), Discipline::Coherent).ok(),
                        _ => self.here.alloc_with_copies(APART, NodeId(home)).ok(),
                    };
                    self.shared.doing(me, None);
                    self.teller.tell(Event::Allocated { slot, key, addr: addr.map(GlobalAddr::bits) });
                }
                Order::MakeStore { slot, key, homes } => {
                    self.shared.doing(me, Some(("to make a store, for", key)));
                    let Task { steered, copies, .. } = self.task;
                    let most = if steered { copies.into() } else { homes.len() };
                    let homes = homes.into_iter().map(NodeId).take(most).collect();
                    let addr = Store::make(&mut self.here, homes, copies).ok();
                    self.shared.doing(me, None);
                    self.teller.tell(Event::Allocated { slot, key, addr });
                }
                Order::Words(words) => {
                    *self.shared.words() = Arc::new(words);
                    self.shared.version.fetch_add(1, Ordering::SeqCst);
                }
                Order::Go { round } => self.shared.round.store(round + 1, Ordering::SeqCst),
                Order::Halt => {
                    self.shared.round.store(0, Ordering::SeqCst);
                    while self.shared.working.load(Ordering::SeqCst) > 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    self.teller.tell(Event::Idle);
                }
                Order::Audit => {
                    let words = Arc::clone(&self.shared.words());
                    let mut values = Vec::new();
                    for word in words.iter() {
                        self.shared.doing(me, Some(("to read, for the audit,", word.key)));
                        let asked = Moment::now();
                        let read = if self.task.chains {
                            let store = Store::open(&mut self.store, &mut self.here, word.addr);
                            store.and_then(|store| store.get(&mut self.here, word.key))
                        } else {
                            self.here.read_word(GlobalAddr::from_bits(word.addr))
                        };
                        let read = read.and_then(|value| {
                            self.pointers.as_ref().map_or(Ok(()), |pointers| pointers.confirm())?;
                            Ok(value)
                        });
                        match read {
                            Ok(value) => values.push((word.key, value, asked, Moment::now())),
                            Err(error) => self.shared.on_error(error, word.key, &self.teller),
                        }
                        self.teller.tell(Event::Looked);
                    }
                    self.shared.doing(me, None);
                    // What a node that was declared dead has read is not all that there is.
                    if !self.shared.fenced.load(Ordering::SeqCst) {
                        self.teller.tell(Event::Audited(values));
                    }
                }
                Order::Continued | Order::Evidence(_) | Order::Copies => {
                    unreachable!("the main thread has done it")
                }
            }
        }
    }
}
