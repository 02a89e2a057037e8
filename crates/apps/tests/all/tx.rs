//! Transactions: serializable on any interleaving and on threads, what breaks a rule is found, and what a dead client has
//! begun is undone.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

use apps::tx::{
    Blocks, Client, Database, Error, Footprint, Kind, Lock, Locking, Rule, Table, TableSpec, Words,
};
use rackmem::{Config, GlobalAddr, Memory, NodeId, Rack, block_on};
use random::Dice;

use super::support::interleave::{self, Task};
use super::support::memory::{self, Worker};
use super::support::serial::{Wrong, judge};
use super::support::{Replay, seeds};

const ROWS: Table = Table(0);
const JOURNAL: Table = Table(1);
const TABLES: &[TableSpec] = &[
    TableSpec { name: "rows", bytes: 24, more_indices: 1, kind: Kind::Rows },
    TableSpec { name: "journal", bytes: 8, more_indices: 0, kind: Kind::Journal },
];

/// A third of the keys each: changed only, inserted and then changed, changed and deleted.
fn is_inserted(key: u128) -> bool {
    key % 3 == 1
}

fn is_deleted(key: u128) -> bool {
    key % 3 == 2
}

/// Keys of the other index: in another order.
fn other(key: u128) -> u128 {
    1000 - key
}

fn bytes(number: u64) -> Vec<u8> {
    [number.to_le_bytes(); 3].concat()
}

async fn create<M: Memory>(mem: &mut M, keys: u128, clients: usize) -> Result<Database, Error> {
    let database = Database::create(mem, TABLES, (1, clients), 1 << 14).await?;
    let mut client = Client::new(mem, &database, 0).await?;
    for key in (0..keys).filter(|key| !is_inserted(*key)) {
        client.load(mem, (ROWS, key), &[other(key)], &bytes(0)).await?;
    }
    Ok(database)
}

/// Some operations of one transaction.
async fn operations<L, M: Locking<L>>(
    client: &mut Client<L>,
    mem: &mut M,
    random: &mut Dice,
    keys: u128,
    missing: &mut Vec<u128>,
) -> Result<(), Error> {
    for _ in 0..1 + random.pick(4) {
        let key = u128::from(random.next()) % keys;
        match random.pick(6) {
            0 => {
                client.get(mem, ROWS, key).await?;
            }
            1 if is_inserted(key) => {
                client.insert(mem, (ROWS, key), &[other(key)], &bytes(1)).await?;
            }
            1 if is_deleted(key) => {
                if let Some(row) = client.get_to_change(mem, ROWS, key).await? {
                    client.delete(mem, &row, &[other(key)]).await?;
                }
            }
            2 => {
                let until = (key + 4).min(keys - 1);
                let found = client.scan(mem, (ROWS, 0), (key, until), usize::MAX).await?;
                missing.extend((key..=until).filter(|key| found.iter().all(|row| row.key() != *key)));
            }
            3 => {
                let until = (key + 4).min(keys - 1);
                let range = (other(until), other(key));
                let found = client.scan(mem, (ROWS, 1), range, usize::MAX).await?;
                missing.extend((key..=until).filter(|key| found.iter().all(|row| row.key() != *key)));
            }
            _ => {
                if let Some(mut row) = client.get_to_change(mem, ROWS, key).await? {
                    row.set_word(1, row.word(1) + 1);
                    client.put(mem, &mut row).await?;
                    client.insert(mem, (JOURNAL, random.next().into()), &[], &[0; 8]).await?;
                }
            }
        }
    }
    Ok(())
}

/// Transactions of one client, some of them undone. What has committed goes to `done`.
async fn transactions<L, M: Locking<L>>(
    client: &mut Client<L>,
    mem: &mut M,
    random: &mut Dice,
    (keys, count): (u128, usize),
    mut done: impl FnMut(Footprint),
) {
    client.record();
    for _ in 0..count {
        let mut missing = Vec::new();
        match operations(client, mem, random, keys, &mut missing).await {
            Ok(()) if random.percent(90) => {
                let mut footprint = client.commit(mem).await.unwrap();
                footprint.writes.retain(|(table, ..)| *table == ROWS);
                // What a scan did not find was not there; unless the transaction itself has deleted it.
                missing.retain(|key| !footprint.writes.contains(&(ROWS, *key, None)));
                footprint.reads.extend(missing.into_iter().map(|key| (ROWS, key, None)));
                footprint.reads.retain(|(table, ..)| *table == ROWS);
                done(footprint);
            }
            Ok(()) => client.abort(mem).await.unwrap(),
            Err(Error::Conflict { .. } | Error::Duplicate { .. }) => client.abort(mem).await.unwrap(),
            Err(other) => panic!("{other}"),
        }
    }
}

/// What a run of interleaved clients comes to, whose rows are locked by `L`.
fn run<L: Default + 'static>(seed: u64, rule: Option<Rule>) -> Result<usize, Wrong>
where
    Worker: Locking<L>,
{
    let mut random = Dice::new(seed);
    let (keys, clients) = (3 + random.pick(12) as u128, 2 + random.pick(3));
    let rack = memory::Rack::new(2, 256, 1 << 20, seed);
    let database = block_on(create(&mut rack.worker(0), keys, clients)).unwrap();
    let done: Rc<RefCell<Vec<Footprint>>> = Rc::default();
    let tasks: Vec<Task> = (0..clients)
        .map(|id| {
            let (mut mem, database) = (rack.yielding_worker(id as u16 % 2), database.clone());
            let (mut random, done) = (Dice::new(random.next()), Rc::clone(&done));
            let task: Task = Box::pin(async move {
                let client = Client::with_locks(&mut mem, &database, id, L::default()).await;
                let mut client = client.unwrap();
                if let Some(rule) = rule {
                    client.without(rule);
                }
                let note = |footprint| done.borrow_mut().push(footprint);
                transactions(&mut client, &mut mem, &mut random, (keys, 6), note).await;
            });
            task
        })
        .collect();
    interleave::run(seed, tasks);
    let done = done.take();
    judge(&done, is_inserted)?;
    if rule.is_none() {
        everything_is_free::<L>(&database, &mut rack.worker(0), keys);
    }
    Ok(done.len())
}

/// Both indices have the same rows, and nobody holds any.
fn everything_is_free<L: Default>(database: &Database, mem: &mut Worker, keys: u128)
where
    Worker: Locking<L>,
{
    block_on(async {
        let mut client = Client::with_locks(mem, database, 0, L::default()).await.unwrap();
        let all = client.scan_to_change(mem, (ROWS, 0), (0, keys), usize::MAX).await.unwrap();
        let mut others = client.scan_to_change(mem, (ROWS, 1), (0, 1000), usize::MAX).await.unwrap();
        others.reverse();
        assert_eq!(all, others);
        client.abort(mem).await.unwrap();
    });
}

#[test]
fn committed_transactions_are_serializable_on_any_interleaving() {
    let mut committed = [0; 2];
    for seed in seeds(3000) {
        let _replay =
            Replay { file: "tx", test: "committed_transactions_are_serializable_on_any_interleaving", seed };
        committed[0] += run::<Words>(seed, None).unwrap();
        committed[1] += run::<Blocks<GlobalAddr>>(seed, None).unwrap();
    }
    let runs = seeds(3000).count();
    // Rows of one block are in each other's way.
    assert!(committed[0] > 2 * runs && committed[1] > runs, "{committed:?}: too few to mean anything");
}

#[test]
fn a_rule_that_is_left_out_is_missed() {
    for rule in [Rule::ReadLocks, Rule::NextKey, Rule::LookAgain] {
        let found = (0..3000).find_map(|seed| run::<Words>(seed, Some(rule)).err());
        assert!(found.is_some(), "nobody misses {rule:?}");
    }
}

#[test]
fn what_judges_transactions_finds_what_is_wrong() {
    let of = |reads: &[(u128, u64)], writes: &[(u128, u64)]| Footprint {
        reads: reads.iter().map(|(key, version)| (ROWS, *key, Some(*version))).collect(),
        writes: writes.iter().map(|(key, version)| (ROWS, *key, Some(*version))).collect(),
    };
    let never = |_| false;
    assert_eq!(judge(&[of(&[(0, 1)], &[(0, 2)]), of(&[(0, 2)], &[(0, 3)])], never), Ok(()));
    let lost = [of(&[(0, 1)], &[(0, 2)]), of(&[(0, 1)], &[(0, 2)])];
    assert_eq!(judge(&lost, never), Err(Wrong::LostUpdate(0)));
    assert_eq!(judge(&[of(&[(0, 2)], &[])], never), Err(Wrong::DirtyRead(0)));
    let skewed = [of(&[(0, 1)], &[(3, 2)]), of(&[(3, 1)], &[(0, 2)])];
    assert_eq!(judge(&skewed, never), Err(Wrong::Cycle(vec![0, 1])));
}

#[test]
fn committed_transactions_of_threads_are_serializable() {
    const KEYS: u128 = 60;
    let rack = Rack::embedded(Config { nodes: 2, ..Config::default() }).unwrap();
    let database = block_on(create(&mut rack.node(NodeId(0)), KEYS, 4)).unwrap();
    let run = |id: usize| {
        let (mut mem, database) = (rack.node(NodeId(id as u16 % 2)), database.clone());
        move || {
            let mut done = Vec::new();
            block_on(async {
                let mut client = Client::new(&mut mem, &database, id).await.unwrap();
                let mut random = Dice::new(id as u64);
                transactions(&mut client, &mut mem, &mut random, (KEYS, 2000), |f| done.push(f)).await;
            });
            done
        }
    };
    let done: Vec<Footprint> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|id| scope.spawn(run(id))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(done.len() > 2000, "{}", done.len());
    judge(&done, is_inserted).unwrap();
}

#[test]
fn whoever_finds_a_lock_gives_up_at_once() {
    let rack = memory::Rack::new(1, 256, 1 << 20, 0);
    let mem = &mut rack.worker(0);
    block_on(async {
        let database = create(mem, 9, 2).await.unwrap();
        let mut one = Client::new(mem, &database, 0).await.unwrap();
        let mut two = Client::new(mem, &database, 1).await.unwrap();
        let conflict = |lock| Err(Error::Conflict { table: ROWS, lock });
        // Two readers are let in, a writer is not, and may read.
        assert!(one.get(mem, ROWS, 3).await.unwrap().is_some());
        assert!(two.get(mem, ROWS, 3).await.unwrap().is_some());
        assert_eq!(two.get_to_change(mem, ROWS, 3).await, conflict(Lock::Write));
        two.abort(mem).await.unwrap();
        // One reader may write; then the other one is not let in.
        assert!(one.get_to_change(mem, ROWS, 3).await.unwrap().is_some());
        assert_eq!(two.get(mem, ROWS, 3).await, conflict(Lock::Read));
        two.abort(mem).await.unwrap();
        // Where one has looked and found nothing, the other does not insert; and where another has inserted, one does not look.
        assert!(one.get(mem, ROWS, 4).await.unwrap().is_none());
        let inserted = two.insert(mem, (ROWS, 4), &[other(4)], &bytes(0)).await;
        assert_eq!(inserted.map(|()| None), conflict(Lock::NextKey));
        two.abort(mem).await.unwrap();
        one.commit(mem).await.unwrap();
        two.insert(mem, (ROWS, 4), &[other(4)], &bytes(0)).await.unwrap();
        let found = one.scan(mem, (ROWS, 0), (2, 5), 9).await;
        assert_eq!(found.map(|_| None), conflict(Lock::Read));
    });
}

/// One transaction that does all there is: rows 0 and 3 are changed, 4 is inserted, 5 is deleted, and the journal is added to.
async fn everything(client: &mut Client, mem: &mut Worker) -> Result<(), Error> {
    for (key, change) in [(0, 1), (3, u64::MAX)] {
        let mut row = client.get_to_change(mem, ROWS, key).await?.expect("it is there");
        row.set_word(1, row.word(1).wrapping_add(change));
        client.put(mem, &mut row).await?;
    }
    client.insert(mem, (ROWS, 4), &[other(4)], &bytes(7)).await?;
    let row = client.get_to_change(mem, ROWS, 5).await?.expect("it is there");
    client.delete(mem, &row, &[other(5)]).await?;
    client.insert(mem, (JOURNAL, 5), &[], &[0; 8]).await
}

/// What is there, as seen by somebody who is let in everywhere.
async fn seen(client: &mut Client, mem: &mut Worker) -> (u64, u64, Vec<u128>, Vec<u128>) {
    let rows = client.scan_to_change(mem, (ROWS, 0), (0, 900), usize::MAX).await.unwrap();
    let others = client.scan_to_change(mem, (ROWS, 1), (0, 1000), usize::MAX).await.unwrap();
    let journal = client.scan(mem, (JOURNAL, 0), (0, 900), usize::MAX).await.unwrap();
    client.abort(mem).await.unwrap();
    let keys: Vec<u128> = rows.iter().map(|row| row.key()).collect();
    assert_eq!(others.iter().rev().map(|row| row.key()).collect::<Vec<_>>(), keys);
    let journal = journal.iter().map(|row| row.key()).collect();
    (rows[0].word(1), rows[1].word(1).max(rows[2].word(1)), keys, journal)
}

#[test]
fn whoever_inherits_the_locks_of_a_dead_client_undoes_what_it_had_begun() {
    let (mut undone, mut committed) = (0, 0);
    for stop in 0.. {
        let rack = memory::Rack::new(2, 256, 1 << 20, stop);
        let mem = &mut rack.worker(1);
        let database = block_on(create(mem, 8, 3)).unwrap();
        let mut dead = block_on(Client::new(mem, &database, 1)).unwrap();
        let mut mem_of_dead = rack.yielding_worker(0);
        let mut task: Task = Box::pin(async move {
            everything(&mut dead, &mut mem_of_dead).await.unwrap();
            dead.commit(&mut mem_of_dead).await.unwrap();
        });
        let ended = interleave::run_alone(&mut task, stop);
        drop(task);
        block_on(async {
            // The first one who recovers it dies, too, at another step each time.
            let mut mem_of_second = rack.yielding_worker(1);
            let mut second = Client::new(mem, &database, 2).await.unwrap();
            let mut task: Task = Box::pin(async move {
                second.recover(&mut mem_of_second, 1).await.unwrap();
            });
            interleave::run_alone(&mut task, stop % 23);
            drop(task);
            let mut third = Client::new(mem, &database, 0).await.unwrap();
            if third.recover(mem, 1).await == Err(Error::BeingRecovered { by: 2 }) {
                third.recover(mem, 2).await.unwrap();
            }
            assert_eq!(third.recover(mem, 1).await, Ok(()));
            match seen(&mut third, mem).await {
                (0, 0, keys, journal) => {
                    assert_eq!((keys, journal), (vec![0, 2, 3, 5, 6], vec![]));
                    undone += 1;
                }
                (1, u64::MAX, keys, journal) => {
                    assert_eq!((keys, journal), (vec![0, 2, 3, 4, 6], vec![5]));
                    committed += 1;
                }
                other => panic!("stopped after {stop} steps: {other:?}"),
            }
            // Who comes next with the same number finds nothing of it.
            let mut next = Client::new(mem, &database, 1).await.unwrap();
            if undone > 0 && committed == 0 {
                everything(&mut next, mem).await.unwrap();
                next.abort(mem).await.unwrap();
                assert_eq!(seen(&mut third, mem).await.2, [0, 2, 3, 5, 6]);
            }
        });
        if ended {
            break;
        }
    }
    assert!(undone > 40 && committed > 10, "{undone} undone, {committed} committed");
}

#[test]
fn rows_larger_than_a_block_and_full_logs() {
    const WIDE: &[TableSpec] = &[TableSpec { name: "wide", bytes: 700, more_indices: 0, kind: Kind::Rows }];
    let rack = memory::Rack::new(2, 256, 1 << 20, 0);
    let mem = &mut rack.worker(0);
    block_on(async {
        let database = Database::create(mem, WIDE, (2, 2), 2048).await.unwrap();
        let mut client = Client::new(mem, &database, 1).await.unwrap();
        let key = 1 << 112 | 5;
        client.insert(mem, (ROWS, key), &[], &[1; 700]).await.unwrap();
        client.commit(mem).await.unwrap();
        let mut row = client.get_to_change(mem, ROWS, key).await.unwrap().unwrap();
        row.bytes[100..650].fill(2);
        client.put(mem, &mut row).await.unwrap();
        client.abort(mem).await.unwrap();
        let mut row = client.get_to_change(mem, ROWS, key).await.unwrap().unwrap();
        assert_eq!(row.bytes, [1; 700]);
        let full = loop {
            row.bytes.iter_mut().for_each(|byte| *byte ^= 1);
            if let Err(error) = client.put(mem, &mut row).await {
                break error;
            }
        };
        assert_eq!(full, Error::LogFull { bytes: 2048 });
        client.abort(mem).await.unwrap();
        assert_eq!(client.get(mem, ROWS, key).await.unwrap().unwrap().bytes, [1; 700]);
        let open = Database::open(mem, database.root(), TABLES).await;
        assert_eq!(open, Err(Error::NotADatabase { root: database.root() }));
        let none = Client::new(mem, &database, 2).await.unwrap_err();
        assert_eq!(none, Error::NoSuchClient { client: 2, clients: 2 });
    });
}
