//! A node's process and its clients, or the switch's.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rackmem::faulty::Faulty;
use rackmem::simulated::fault::{Rules, drop_per_mille, duplicate_per_mille, reorder};
use rackmem::transport::Transport;
use rackmem::{Discipline, Error, GlobalAddr, Nanos, NodeHandle, NodeId, ProcessConfig, Rack, Timing};
use serde::{Deserialize, Serialize};

use super::log::{self, Did, Entry, Log};
use crate::clock::Moment;
use crate::processes::child::{Never, Reason, in_background};
use crate::processes::place::{Seat, Seated};
use crate::processes::{Orders, Teller};

/// Words lie on blocks of their own: what dies with a node is one word.
const APART: u64 = 4096;

/// A place of a rack that is soaked.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) seat: Seat,
    pub(super) threads: u16,
    /// Of its first client; the others follow.
    pub(super) first_client: u64,
    pub(super) loss_per_mille: u16,
    pub(super) timeout: Duration,
    pub(super) rate: u32,
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
    /// These are the words from now on.
    Words(Vec<Word>),
    /// Work.
    Go { round: u64 },
    /// Stop working, and say when all clients have.
    Halt,
    /// Read all words, and say what they hold.
    Audit,
}

/// What happens at a place.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// It is part of the rack.
    Seated,
    /// Here is the word, or there is none.
    Allocated { slot: usize, key: u64, addr: Option<u64> },
    /// The word's contents died with a node.
    Gone { key: u64 },
    /// All clients have stopped.
    Idle,
    /// What the words hold: key, value, when they were asked and when they had answered.
    Audited(Vec<(u64, u64, Moment, Moment)>),
    /// The rack has declared this node dead.
    Fenced,
}

/// Is a place until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let timeout = Nanos(u64::try_from(task.timeout.as_nanos()).expect("not for centuries"));
    let process = ProcessConfig { timing: Timing::new(timeout), strict: true, ..ProcessConfig::default() };
    let (loss, seed) = (task.loss_per_mille, task.seed);
    let seated = task.seat.take_with(&process, |transport| faulty(transport, loss, seed))?;
    teller.tell(Event::Seated);
    match seated {
        Seated::Switch(_) => loop {
            orders.next();
        },
        Seated::Node(_, rack) => work(&task, &rack, orders, teller),
    }
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

/// What the clients of a node share.
struct Shared {
    words: Mutex<Arc<Vec<Word>>>,
    version: AtomicU64,
    /// The round that is being worked in; 0: none. Rounds count from 1 here.
    round: AtomicU64,
    working: AtomicU64,
    gone: Mutex<BTreeSet<u64>>,
    fenced: AtomicBool,
}

fn work(task: &Task, rack: &Rack, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let shared = Arc::new(Shared {
        words: Mutex::default(),
        version: AtomicU64::new(0),
        round: AtomicU64::new(0),
        working: AtomicU64::new(0),
        gone: Mutex::default(),
        fenced: AtomicBool::new(false),
    });
    for number in 0..u64::from(task.threads) {
        let client = Client {
            number: task.first_client + number,
            node: rack.here(),
            shared: Arc::clone(&shared),
            teller: teller.clone(),
            task: task.clone(),
            random: ((task.seed << 20) | (task.first_client + number)).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            changes: 0,
        };
        in_background("client", move || client.run())?;
    }
    let mut here = rack.here();
    loop {
        match orders.next() {
            Order::Allocate { slot, key, home } => {
                let addr = here.alloc(APART, NodeId(home), Discipline::Coherent).ok();
                teller.tell(Event::Allocated { slot, key, addr: addr.map(GlobalAddr::bits) });
            }
            Order::Words(words) => {
                *shared.words() = Arc::new(words);
                shared.version.fetch_add(1, Ordering::SeqCst);
            }
            Order::Go { round } => shared.round.store(round + 1, Ordering::SeqCst),
            Order::Halt => {
                shared.round.store(0, Ordering::SeqCst);
                while shared.working.load(Ordering::SeqCst) > 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                teller.tell(Event::Idle);
            }
            Order::Audit => {
                let words = Arc::clone(&shared.words());
                let mut values = Vec::new();
                for word in words.iter() {
                    let asked = Moment::now();
                    match here.read_word(GlobalAddr::from_bits(word.addr)) {
                        Ok(value) => values.push((word.key, value, asked, Moment::now())),
                        Err(error) => shared.on_error(error, word.key, teller),
                    }
                }
                teller.tell(Event::Audited(values));
            }
        }
    }
}

impl Shared {
    fn words(&self) -> std::sync::MutexGuard<'_, Arc<Vec<Word>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what an operation that failed says about the rack, once.
    fn on_error(&self, error: Error, key: u64, teller: &Teller<Event>) {
        match error {
            Error::Fenced => {
                if !self.fenced.swap(true, Ordering::SeqCst) {
                    teller.tell(Event::Fenced);
                }
            }
            // The home came back empty, in a new life: its addresses belong to nothing.
            Error::Lost { .. } | Error::NodeDown { .. } | Error::Unallocated { .. } => {
                if self.gone.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
                    teller.tell(Event::Gone { key });
                }
            }
            // Not from the rack, but a mistake of ours.
            other => panic!("a client met {other}"),
        }
    }

    fn is_gone(&self, key: u64) -> bool {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}

/// One thread that works on the words.
struct Client {
    number: u64,
    node: NodeHandle,
    shared: Arc<Shared>,
    teller: Teller<Event>,
    task: Task,
    random: u64,
    /// Every value that it writes is new.
    changes: u64,
}

impl Client {
    fn run(mut self) {
        loop {
            let round = self.shared.round.load(Ordering::SeqCst);
            if round == 0 || self.shared.fenced.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            self.shared.working.fetch_add(1, Ordering::SeqCst);
            // Halted in between: whoever waits for the count to be 0 may have looked already.
            if self.shared.round.load(Ordering::SeqCst) == round {
                self.work(round);
            }
            self.shared.working.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn work(&mut self, round: u64) {
        let path = log::path(&self.task.histories, round - 1, self.number);
        let mut log = Log::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut seen = u64::MAX;
        let mut words = Arc::new(Vec::new());
        let began = Moment::now();
        let mut done = 0_u32;
        while self.shared.round.load(Ordering::SeqCst) == round && !self.shared.fenced.load(Ordering::SeqCst)
        {
            let version = self.shared.version.load(Ordering::SeqCst);
            if version != seen {
                seen = version;
                words = Arc::clone(&self.shared.words());
            }
            let word = words[self.zipf(words.len())];
            if self.shared.is_gone(word.key) {
                // Until there is another one in its place.
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            if let Err(error) = self.operate(word, &mut log) {
                self.shared.on_error(error, word.key, &self.teller);
            }
            done += 1;
            // Ahead of its time?
            let due = Duration::from_secs(1) * done / self.task.rate.max(1);
            let ahead = due.saturating_sub(Moment::now() - began);
            if ahead > Duration::from_millis(2) {
                std::thread::sleep(ahead);
            }
        }
    }

    fn operate(&mut self, word: Word, log: &mut Log) -> Result<(), Error> {
        let addr = GlobalAddr::from_bits(word.addr);
        let dice = self.dice() % 4;
        let invoke = Moment::now();
        let entry = |did, ret| Entry { key: word.key, did, invoke, ret };
        let kept = "the history can be written";
        if dice < 2 {
            let value = self.node.read_word(addr)?;
            log.done(entry(Did::Read(value), Some(Moment::now()))).expect(kept);
            return Ok(());
        }
        self.changes += 1;
        let new = (self.number + 1) << 32 | self.changes;
        log.intend(entry(Did::Wrote(new), None)).expect(kept);
        let done = if dice == 2 {
            self.node.write_word(addr, new).map(|()| Did::Wrote(new))
        } else {
            let swap = |window: &rackmem::Window<'_>| {
                let old = window.word(0);
                window.set_word(0, new);
                old
            };
            self.node.update(addr, 8, swap).map(|old| Did::Changed(old, new))
        };
        match done {
            Ok(did) => log.done(entry(did, Some(Moment::now()))).expect(kept),
            Err(error) => {
                log.unknown();
                return Err(error);
            }
        }
        Ok(())
    }

    /// SplitMix64.
    const fn dice(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, nearly as zipf with exponent 0.99 has it: its continuous form, which is a power.
    fn zipf(&mut self, bound: usize) -> usize {
        let unit = (self.dice() >> 11) as f64 / (1_u64 << 53) as f64;
        let at = (bound as f64 + 1.0).powf(unit) - 1.0;
        (at as usize).min(bound - 1)
    }
}
