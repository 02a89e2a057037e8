//! A thread that works on the words, and writes down what it did.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rackmem::{Error, GlobalAddr, NodeHandle};
use random::{GOLDEN, Random};

use super::log::{self, Did, Entry, Log};
use super::node::{Event, Task, Word};
use super::pointers::Pointers;
use super::shared::Shared;
use super::stores::Store;
use cli::clock::Moment;
use cli::processes::Teller;

/// With copies, one of so many operations is followed by a `sync`.
const SYNCS: u64 = 16;

/// One thread that works on the words.
pub(super) struct Client {
    number: u64,
    /// Which one of its node.
    at: usize,
    node: NodeHandle,
    shared: Arc<Shared>,
    /// With `--mapped`.
    pointers: Option<Arc<Pointers>>,
    /// With `--chains`.
    store: Option<Store>,
    teller: Teller<Event>,
    task: Task,
    random: Random,
    /// Every value that it writes is new.
    changes: u64,
}

impl Client {
    /// The client with this number among those of its node.
    pub(super) fn new(
        at: u64,
        node: NodeHandle,
        (shared, pointers): (&Arc<Shared>, &Option<Arc<Pointers>>),
        teller: &Teller<Event>,
        task: &Task,
    ) -> Self {
        let number = task.first_client + at;
        Self {
            number,
            at: usize::try_from(at).expect("a few clients"),
            node,
            shared: Arc::clone(shared),
            pointers: pointers.clone(),
            store: None,
            teller: teller.clone(),
            task: task.clone(),
            random: Random::new(((task.seed << 20) | number).wrapping_mul(GOLDEN)),
            changes: 0,
        }
    }

    /// Works whenever there is a round.
    pub(super) fn run(mut self) {
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
            let outcome = self.operate(word, &mut log).and_then(|()| self.sync(&mut log));
            self.shared.doing(self.at, None);
            if let Err(error) = outcome {
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
        let dice = self.random.bits() % 4;
        let entry = |did, invoke, ret| Entry { key: word.key, did, invoke, ret };
        let kept = "the history can be written";
        if dice < 2 {
            self.shared.doing(self.at, Some(("to read", word.key)));
            let invoke = Moment::now();
            let value = self.read(word)?;
            self.confirm()?;
            log.done(entry(Did::Read(value), invoke, Some(Moment::now()))).expect(kept);
            return Ok(());
        }
        self.changes += 1;
        let new = (self.number + 1) << 32 | self.changes;
        // A change that does not return has begun here at the earliest. If it returns, it began when the file was
        // written, which may take a while: how long the rack took is what is told.
        log.intend(entry(Did::Wrote(new), Moment::now(), None)).expect(kept);
        self.shared.doing(self.at, Some(("to change", word.key)));
        let invoke = Moment::now();
        let done = self.change(word, dice == 2, new);
        match done.and_then(|did| self.confirm().map(|()| did)) {
            Ok(did) => log.done(entry(did, invoke, Some(Moment::now()))).expect(kept),
            Err(error) => {
                log.unknown();
                return Err(error);
            }
        }
        Ok(())
    }

    fn read(&mut self, word: Word) -> Result<u64, Error> {
        let addr = GlobalAddr::from_bits(word.addr);
        if self.task.chains {
            Store::open(&mut self.store, &mut self.node, word.addr)?.get(&mut self.node, word.key)
        } else if let Some(pointers) = self.by_pointer() {
            pointers.with(addr, false, |word| word.load(Ordering::SeqCst))
        } else {
            self.node.read_word(addr)
        }
    }

    /// Writes this, or has it in the place of what was there.
    fn change(&mut self, word: Word, writes: bool, new: u64) -> Result<Did, Error> {
        let addr = GlobalAddr::from_bits(word.addr);
        if self.task.chains {
            let store = Store::open(&mut self.store, &mut self.node, word.addr)?;
            store.put(&mut self.node, word.key, new).map(|()| Did::Wrote(new))
        } else if let Some(pointers) = self.by_pointer() {
            pointers.with(addr, true, |word| {
                if writes {
                    word.store(new, Ordering::SeqCst);
                    Did::Wrote(new)
                } else {
                    Did::Changed(word.swap(new, Ordering::SeqCst), new)
                }
            })
        } else if writes {
            self.node.write_word(addr, new).map(|()| Did::Wrote(new))
        } else {
            let swap = |window: &rackmem::Window<'_>| {
                let old = window.word(0);
                window.set_word(0, new);
                old
            };
            self.node.update(addr, 8, swap).map(|old| Did::Changed(old, new))
        }
    }

    /// Now and then, with `--copies`.
    fn sync(&mut self, log: &mut Log) -> Result<(), Error> {
        if self.task.copies == 1 || self.task.chains || !self.random.bits().is_multiple_of(SYNCS) {
            return Ok(());
        }
        self.shared.doing(self.at, Some(("to sync, after", 0)));
        let invoke = Moment::now();
        self.node.sync()?;
        let synced = Entry { key: 0, did: Did::Synced, invoke, ret: Some(Moment::now()) };
        log.done(synced).expect("the history can be written");
        Ok(())
    }

    /// Every other operation, with `--mapped`.
    fn by_pointer(&mut self) -> Option<Arc<Pointers>> {
        let pointers = self.pointers.as_ref()?;
        (self.random.bits() & 1 == 1).then(|| Arc::clone(pointers))
    }

    fn confirm(&self) -> Result<(), Error> {
        self.pointers.as_ref().map_or(Ok(()), |pointers| pointers.confirm())
    }

    /// A number below `bound`, nearly as zipf with exponent 0.99 has it: its continuous form, which is a power.
    fn zipf(&mut self, bound: usize) -> usize {
        let unit = (self.random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let at = (bound as f64 + 1.0).powf(unit) - 1.0;
        (at as usize).min(bound - 1)
    }
}
