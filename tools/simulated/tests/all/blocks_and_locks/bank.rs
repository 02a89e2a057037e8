//! A bank, generic over the rack that it runs on: accounts are regions that locks carry, wherever an index of coherent words
//! says; every clerk keeps a log in coherent blocks, which the others read.
//!
//! A transfer takes two locks. An account may move: into a new region, and the old one is freed, while others wait for it.
//! Between that, clerks allocate blocks and free them, so that memory is used again.
//!
//! What must always hold: whoever enters an account finds what was released last, or what a clerk who has died since was just
//! releasing. What died with a node is told as an error, and begins anew. The books are outside of the rack.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use rackmem::{Discipline, Error, GlobalAddr, LockMemory, LockMode, Memory, NodeId};
use random::Dice;

/// Bytes of an account: its number, its balance, the number of its last change, and that again behind some more.
const ACCOUNT: usize = 600;
/// Bytes of a log: the number of its entries, and the entries.
const LOG: u64 = 3 * 4096;
/// What everybody has at first.
const BALANCE: i64 = 1_000;
/// Bytes that a clerk uses for himself.
const SCRATCH: usize = 2_000;

/// An account as it was left: balance, and the number of the change.
type Left = (i64, u64);

/// What the books say.
#[derive(Default)]
pub(crate) struct Books {
    last: Vec<Left>,
    /// What somebody is just releasing.
    perhaps: BTreeMap<usize, Left>,
    /// What every clerk has written to his log.
    logs: BTreeMap<usize, Vec<u64>>,
    changes: u64,
    /// What was on accounts that died.
    pub(crate) lost: Vec<i64>,
    pub(crate) moved: u64,
    pub(crate) stale: u64,
}

/// The bank, as all clerks know it.
#[derive(Clone)]
pub(crate) struct Bank {
    index: GlobalAddr,
    logs: Vec<GlobalAddr>,
    accounts: usize,
    books: Arc<Mutex<Books>>,
    /// Data may die with a node.
    nodes_die: bool,
}

impl Bank {
    /// Opens a bank with so many accounts and clerks. Its index and its logs are at home on nodes that do not die.
    pub(crate) async fn open<M: LockMemory>(
        mem: &mut M,
        (accounts, clerks): (usize, usize),
        nodes_die: bool,
    ) -> Self {
        let index = mem.alloc(8 * accounts as u64, NodeId(0), Discipline::Coherent).await.unwrap();
        let mut logs = Vec::new();
        for clerk in 0..clerks {
            logs.push(mem.alloc(LOG, NodeId(clerk as u16 % 2), Discipline::Coherent).await.unwrap());
        }
        let books = Books { last: vec![(BALANCE, 0); accounts], ..Books::default() };
        let bank = Self { index, logs, accounts, books: Arc::new(Mutex::new(books)), nodes_die };
        for number in 0..accounts {
            let home = NodeId((number % mem.nodes()) as u16);
            let at = bank.make(mem, (number, home), (BALANCE, 0)).await.unwrap();
            mem.write_word(bank.entry(number), at.bits()).await.unwrap();
        }
        bank
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    fn entry(&self, account: usize) -> GlobalAddr {
        self.index + 8 * account as u64
    }

    /// A clerk works: transfers, moves, looks, and uses memory for himself.
    pub(crate) async fn work<M: LockMemory>(self, mut mem: M, clerk: usize, seed: u64, steps: usize) {
        let mut dice = Dice::new(seed * 1_000 + clerk as u64);
        let mut seen = vec![0; self.logs.len()];
        for _ in 0..steps {
            match dice.pick(10) {
                // The index is written by whoever lives, so that it is not lost.
                0 if !self.nodes_die || mem.node() < NodeId(2) => self.relocate(&mut mem, &mut dice).await,
                1 | 2 => self.use_a_block(&mut mem, &mut dice).await,
                3 => self.look_at_a_log(&mut mem, &mut dice, &mut seen).await,
                4 => {
                    let account = dice.pick(self.accounts);
                    let (held, ..) = self.enter(&mut mem, account, LockMode::Read).await;
                    // Some are released, others just dropped.
                    if dice.pick(2) == 0 {
                        mem.unlock(held).await;
                    }
                }
                _ => self.transfer(&mut mem, clerk, &mut dice).await,
            }
        }
    }

    /// A new region with this account in it.
    async fn make<M: LockMemory>(
        &self,
        mem: &mut M,
        (account, home): (usize, NodeId),
        left: Left,
    ) -> Result<GlobalAddr, Error> {
        let at = mem.alloc(ACCOUNT as u64, home, Discipline::Locked).await?;
        let mut held = mem.lock_anew(at, ACCOUNT).await?;
        write(mem, &mut held, account, left).await;
        mem.unlock(held).await;
        Ok(at)
    }

    /// Enters an account, wherever it is, and looks whether it is as it was left.
    async fn enter<M: LockMemory>(
        &self,
        mem: &mut M,
        account: usize,
        mode: LockMode,
    ) -> (M::Held, GlobalAddr, Left) {
        loop {
            let at = self.place_of(mem, account).await;
            let held = match mem.lock(at, ACCOUNT, mode).await {
                Ok(held) => held,
                Err(Error::Lost { addr }) => {
                    assert_eq!((addr, self.nodes_die), (at, true), "nothing is lost while all nodes live");
                    self.begin_anew(mem, account, at).await;
                    continue;
                }
                Err(Error::Unallocated { .. } | Error::WrongDiscipline { .. }) => {
                    self.books().stale += 1;
                    self.perhaps_replace(mem, account, at).await;
                    continue;
                }
                Err(Error::NodeDown { .. }) if self.nodes_die => {
                    self.perhaps_replace(mem, account, at).await;
                    continue;
                }
                Err(why) => panic!("account {account} at {at}: {why}"),
            };
            if self.place_of(mem, account).await != at {
                // It has moved, and this region is whatever it is.
                mem.unlock(held).await;
                continue;
            }
            let found = read(mem, &held, account).await;
            self.books().found(account, found);
            return (held, at, found);
        }
    }

    async fn place_of<M: Memory>(&self, mem: &mut M, account: usize) -> GlobalAddr {
        GlobalAddr::from_bits(mem.read_word(self.entry(account)).await.unwrap())
    }

    /// An account is in another region from now on, unless somebody else has said so before.
    async fn moves<M: Memory>(
        &self,
        mem: &mut M,
        account: usize,
        (old, new): (GlobalAddr, GlobalAddr),
    ) -> bool {
        let swap = |entry: &rackmem::Window<'_>| {
            let is_old = entry.word(0) == old.bits();
            if is_old {
                entry.set_word(0, new.bits());
            }
            is_old
        };
        mem.update(self.entry(account), 8, swap).await.unwrap()
    }

    /// What an account had is lost.
    async fn begin_anew<M: LockMemory>(&self, mem: &mut M, account: usize, at: GlobalAddr) {
        // Its home may have died meanwhile: whoever looks again finds that out.
        let Ok(mut held) = mem.lock_anew(at, ACCOUNT).await else { return };
        if self.place_of(mem, account).await == at {
            let left = self.books().lost(account);
            write(mem, &mut held, account, left).await;
        }
        mem.unlock(held).await;
    }

    /// There is no such region: if the account has not moved, it has died with its home.
    async fn perhaps_replace<M: LockMemory>(&self, mem: &mut M, account: usize, at: GlobalAddr) {
        if self.place_of(mem, account).await != at {
            return;
        }
        assert!(self.nodes_die, "an account that has not moved is where it was: {at}");
        // Whoever comes first says what it begins with; nobody gets in before.
        let Ok(new) = mem.alloc(ACCOUNT as u64, NodeId(0), Discipline::Locked).await else { return };
        let mut held = mem.lock_anew(new, ACCOUNT).await.unwrap();
        if self.moves(mem, account, (at, new)).await {
            let left = self.books().lost(account);
            write(mem, &mut held, account, left).await;
            mem.unlock(held).await;
        } else {
            mem.unlock(held).await;
            mem.free_locked(new, ACCOUNT).await.unwrap();
        }
    }

    async fn transfer<M: LockMemory>(&self, mem: &mut M, clerk: usize, dice: &mut Dice) {
        let (first, distance) = (dice.pick(self.accounts), 1 + dice.pick(self.accounts - 1));
        let second = (first + distance) % self.accounts;
        let (low, high) = (first.min(second), first.max(second));
        let amount = dice.pick(20) as i64 - 10;
        let (mut of_low, _, found_low) = self.enter(mem, low, LockMode::Write).await;
        let (mut of_high, _, found_high) = self.enter(mem, high, LockMode::Write).await;
        let change = self.books().change();
        let [new_low, new_high] = [(found_low.0 - amount, change), (found_high.0 + amount, change)];
        write(mem, &mut of_low, low, new_low).await;
        write(mem, &mut of_high, high, new_high).await;
        // In the log before anybody sees it.
        let entry = change << 32 | (low as u64) << 24 | (high as u64) << 16 | amount as u16 as u64;
        self.log(mem, clerk, entry).await;
        let [of_high, of_low] = [(of_high, found_high, new_high), (of_low, found_low, new_low)];
        for (account, (held, found, new)) in [(high, of_high), (low, of_low)] {
            self.books().releases(account, found, new);
            mem.unlock(held).await;
            self.books().released(account, new);
        }
    }

    async fn log<M: Memory>(&self, mem: &mut M, clerk: usize, entry: u64) {
        let log = self.logs[clerk];
        let number = mem.read_word(log).await.unwrap() + 1;
        assert!((number + 1) * 8 <= LOG, "the log is full");
        self.books().logs.entry(clerk).or_default().push(entry);
        mem.write_word(log + number * 8, entry).await.unwrap();
        mem.write_word(log, number).await.unwrap();
    }

    /// A log only grows, and its entries are there when its number says so.
    async fn look_at_a_log<M: Memory>(&self, mem: &mut M, dice: &mut Dice, seen: &mut [u64]) {
        let clerk = dice.pick(self.logs.len());
        let count = match mem.read_word(self.logs[clerk]).await {
            Ok(count) => count,
            Err(Error::Lost { .. }) if self.nodes_die => return,
            Err(why) => panic!("log {clerk}: {why}"),
        };
        assert!(count >= seen[clerk], "log {clerk} had {}, and has {count}", seen[clerk]);
        seen[clerk] = count;
        if count > 0 {
            let number = 1 + dice.pick(count as usize) as u64;
            match mem.read_word(self.logs[clerk] + number * 8).await {
                Ok(entry) => assert_eq!(entry, self.books().logs[&clerk][number as usize - 1]),
                Err(Error::Lost { .. }) if self.nodes_die => {}
                Err(why) => panic!("entry {number} of log {clerk}: {why}"),
            }
        }
    }

    /// An account moves to another node's memory.
    async fn relocate<M: LockMemory>(&self, mem: &mut M, dice: &mut Dice) {
        // An address of a home that dies may be given out anew before the index says it.
        let homes = if self.nodes_die { 2 } else { mem.nodes() };
        let (account, home) = (dice.pick(self.accounts), NodeId(dice.pick(homes) as u16));
        let (held, old, found) = self.enter(mem, account, LockMode::Write).await;
        match self.make(mem, (account, home), found).await {
            Ok(new) if self.moves(mem, account, (old, new)).await => {}
            // Its home has died, and somebody has begun it anew.
            Ok(new) => {
                assert!(self.nodes_die);
                return mem.free_locked(new, ACCOUNT).await.unwrap();
            }
            Err(Error::OutOfMemory { .. } | Error::NodeDown { .. } | Error::Unallocated { .. }) => return,
            Err(why) => panic!("no place for account {account}: {why}"),
        }
        mem.unlock(held).await;
        match mem.free_locked(old, ACCOUNT).await {
            Ok(()) => self.books().moved += 1,
            // With its home, or with whoever had allocated it.
            Err(why) => assert!(self.nodes_die, "nobody else frees {old}: {why}"),
        }
    }

    /// A block of one's own is zeroes at first, and has what was written.
    async fn use_a_block<M: Memory>(&self, mem: &mut M, dice: &mut Dice) {
        let home = NodeId(dice.pick(mem.nodes()) as u16);
        let Ok(at) = mem.alloc(SCRATCH as u64, home, Discipline::Coherent).await else { return };
        let mut bytes = vec![1; SCRATCH];
        let pattern = vec![dice.pick(255) as u8 + 1; SCRATCH];
        let used = async {
            mem.read(at, &mut bytes).await?;
            assert!(bytes.iter().all(|byte| *byte == 0), "new memory is zeroes");
            mem.write(at, &pattern).await?;
            mem.read(at, &mut bytes).await?;
            assert!(bytes == pattern);
            mem.free(at).await
        };
        if let Err(why) = used.await {
            assert!(self.nodes_die, "a block of one's own at {at}: {why}");
        }
    }

    /// Nobody works any more: the books are right, and every entry of these clerks' logs is there.
    pub(crate) async fn audit<M: LockMemory>(&self, mem: &mut M, clerks: impl Iterator<Item = usize>) -> i64 {
        let mut sum = 0;
        for account in 0..self.accounts {
            let (held, _, (balance, _)) = self.enter(mem, account, LockMode::Read).await;
            mem.unlock(held).await;
            sum += balance;
        }
        for clerk in clerks {
            let entries = self.books().logs.get(&clerk).cloned().unwrap_or_default();
            let mut words = vec![0; 8 * (1 + entries.len())];
            mem.read(self.logs[clerk], &mut words).await.unwrap();
            let words: Vec<u64> =
                words.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
            assert_eq!(words[0], entries.len() as u64, "log {clerk}");
            assert_eq!(words[1..], entries, "log {clerk}");
        }
        sum
    }

    /// What all entries of all logs make of an account's balance, if nothing was lost.
    pub(crate) fn balances_by_logs(&self) -> Vec<i64> {
        let mut balances = vec![BALANCE; self.accounts];
        for entry in self.books().logs.values().flatten() {
            let amount = i64::from(*entry as u16 as i16);
            balances[(entry >> 24) as usize & 255] -= amount;
            balances[(entry >> 16) as usize & 255] += amount;
        }
        balances
    }

    pub(crate) fn balances(&self) -> Vec<i64> {
        self.books().last.iter().map(|(balance, _)| *balance).collect()
    }
}

impl Books {
    fn change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    /// Of an account that has begun anew meanwhile, it is on paper.
    fn releases(&mut self, account: usize, found: Left, left: Left) {
        if self.last[account] == found {
            self.perhaps.insert(account, left);
        }
    }

    fn released(&mut self, account: usize, left: Left) {
        if self.perhaps.get(&account) == Some(&left) {
            self.found(account, left);
        }
    }

    fn found(&mut self, account: usize, found: Left) {
        let perhaps = self.perhaps.remove(&account);
        assert!(
            found == self.last[account] || Some(found) == perhaps,
            "account {account} has {found:?}, and not {:?} or {perhaps:?}",
            self.last[account]
        );
        self.last[account] = found;
    }

    /// What is left of an account that is lost.
    fn lost(&mut self, account: usize) -> Left {
        self.perhaps.remove(&account);
        self.lost.push(self.last[account].0);
        self.last[account] = (0, self.change());
        self.last[account]
    }
}

/// An account's number in its region; new memory has none.
const fn number(account: usize) -> u64 {
    account as u64 + 1
}

async fn read<M: LockMemory>(mem: &mut M, held: &M::Held, account: usize) -> Left {
    let mut words = [0; 24];
    mem.read_locked(held, 0, &mut words).await;
    let word = |at: usize| u64::from_ne_bytes(words[at * 8..][..8].try_into().unwrap());
    let mut tail = [0; 8];
    mem.read_locked(held, ACCOUNT - 8, &mut tail).await;
    assert_eq!((word(0), word(2)), (number(account), u64::from_ne_bytes(tail)), "the region is a whole");
    (word(1).cast_signed(), word(2))
}

async fn write<M: LockMemory>(mem: &mut M, held: &mut M::Held, account: usize, (balance, change): Left) {
    let words = [number(account), balance.cast_unsigned(), change];
    for (at, word) in words.into_iter().enumerate() {
        mem.write_locked(held, at * 8, &word.to_ne_bytes()).await;
    }
    mem.write_locked(held, ACCOUNT - 8, &change.to_ne_bytes()).await;
}
