//! Transactions on memory with copies, whose nodes die one after the other under load. Another one ends what the dead one's client had
//! begun. On a bank: no money comes or goes; what a clerk who lives has committed is there, and of one who died, what was synced. On
//! TPC-C: its consistency conditions hold.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use apps::tpcc::{self, Scale, Worker};
use apps::tx::{Client, Database, Error, Kind, Table, TableSpec};
use check::AtEnd;
use rackmem::{Config, NodeHandle, Rack, block_on};
use random::Dice;

use crate::rig::{Processes, until};

const NODES: usize = 4;
const ACCOUNTS: u64 = 24;
const EACH: u64 = 1000;
const BALANCES: Table = Table(0);
/// How many transfers each clerk has committed.
const CLERKS: Table = Table(1);
const TABLES: &[TableSpec] = &[
    TableSpec { name: "balances", bytes: 8, more_indices: 0, kind: Kind::Rows },
    TableSpec { name: "clerks", bytes: 8, more_indices: 0, kind: Kind::Rows },
];
/// Who looks, and ends what dead clients have begun.
const AUDITOR: usize = NODES;

/// What clients do in a database.
trait Business: Sync {
    fn database(&self) -> &Database;

    /// Works as this client until told to stop. Fails when the rack has gone on without its node.
    fn work(&self, mem: &mut NodeHandle, client: usize, seed: u64, stop: &AtomicBool) -> Result<(), Error>;

    /// Looks at everything, after the death of this client.
    fn audit(&self, client: &mut Client, mem: &mut NodeHandle, died: usize);
}

fn handle(rack: &Rack) -> NodeHandle {
    let mut handle = rack.here();
    handle.keep_copies(true).unwrap();
    handle
}

/// What a clerk knows to be committed, and to be so wherever he dies.
#[derive(Default)]
struct Told {
    committed: AtomicU64,
    synced: AtomicU64,
}

struct Bank {
    database: Database,
    told: [Told; NODES],
    undone: AtomicU64,
}

async fn add(client: &mut Client, mem: &mut NodeHandle, of: (Table, u64), more: i64) -> Result<bool, Error> {
    let mut row = client.get_to_change(mem, of.0, of.1.into()).await?.expect("nobody deletes rows");
    let Some(now) = row.word(0).checked_add_signed(more) else { return Ok(false) };
    row.set_word(0, now);
    client.put(mem, &mut row).await.map(|()| true)
}

/// Takes from one, gives to the other, and counts that.
async fn transfer(
    client: &mut Client,
    mem: &mut NodeHandle,
    clerk: u64,
    (from, to, amount): (u64, u64, i64),
) -> Result<(), Error> {
    if add(client, mem, (BALANCES, from), -amount).await? {
        add(client, mem, (BALANCES, to), amount).await?;
    }
    add(client, mem, (CLERKS, clerk), 1).await?;
    client.commit(mem).await.map(drop)
}

/// All balances, and what each clerk has committed.
async fn audit(client: &mut Client, mem: &mut NodeHandle) -> Result<(u64, Vec<u64>), Error> {
    let (mut total, mut committed) = (0, Vec::new());
    for key in 0..ACCOUNTS {
        total += client.get(mem, BALANCES, key.into()).await?.expect("it is there").word(0);
    }
    for clerk in 0..NODES as u128 {
        committed.push(client.get(mem, CLERKS, clerk).await?.expect("it is there").word(0));
    }
    client.commit(mem).await?;
    Ok((total, committed))
}

impl Bank {
    fn open(mem: &mut NodeHandle) -> Self {
        let database = block_on(async {
            let database = Database::create(mem, TABLES, (1, NODES + 1), 1 << 14).await.unwrap();
            let mut client = Client::new(mem, &database, AUDITOR).await.unwrap();
            for key in 0..ACCOUNTS {
                client.load(mem, (BALANCES, key.into()), &[], &EACH.to_le_bytes()).await.unwrap();
            }
            for clerk in 0..NODES as u128 {
                client.load(mem, (CLERKS, clerk), &[], &[0; 8]).await.unwrap();
            }
            database
        });
        Self { database, told: Default::default(), undone: AtomicU64::new(0) }
    }
}

impl Business for Bank {
    fn database(&self) -> &Database {
        &self.database
    }

    fn work(&self, mem: &mut NodeHandle, clerk: usize, seed: u64, stop: &AtomicBool) -> Result<(), Error> {
        let (mut dice, told) = (Dice::new(seed), &self.told[clerk]);
        let mut client = block_on(Client::new(mem, &self.database, clerk))?;
        while !stop.load(Ordering::SeqCst) {
            let from = dice.next() % ACCOUNTS;
            let to = (from + 1 + dice.next() % (ACCOUNTS - 1)) % ACCOUNTS;
            let what = (from, to, (dice.next() % 100) as i64);
            match block_on(transfer(&mut client, mem, clerk as u64, what)) {
                Ok(()) => {
                    let committed = told.committed.fetch_add(1, Ordering::SeqCst) + 1;
                    if dice.pick(20) == 0 {
                        mem.sync()?;
                        told.synced.store(committed, Ordering::SeqCst);
                    }
                }
                Err(Error::Conflict { .. }) => {
                    thread::sleep(Duration::from_micros(dice.next() % 200));
                    block_on(client.abort(mem))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn audit(&self, client: &mut Client, mem: &mut NodeHandle, died: usize) {
        let (total, committed) = block_on(audit(client, mem)).unwrap();
        assert_eq!(total, ACCOUNTS * EACH, "money came or went");
        for (clerk, (told, is)) in self.told.iter().zip(committed).enumerate() {
            let (knows, synced) = (told.committed.load(Ordering::SeqCst), told.synced.load(Ordering::SeqCst));
            if clerk != died {
                assert_eq!(is, knows, "clerk {clerk}, who lives");
                continue;
            }
            // It may have died between its commit and knowing of it.
            assert!((synced..=knows + 1).contains(&is), "{is} of {knows}, {synced} synced");
            self.undone.fetch_add(knows.saturating_sub(is), Ordering::SeqCst);
            told.committed.store(is, Ordering::SeqCst);
            told.synced.store(is, Ordering::SeqCst);
        }
    }
}

/// TPC-C, a warehouse for each node.
struct Warehouses {
    database: Database,
    scale: Scale,
    done: AtomicU64,
}

impl Warehouses {
    fn open(mem: &mut NodeHandle) -> Self {
        let scale = Scale { warehouses: NODES as u64, shrink: 200 };
        let rows = AtomicU64::new(0);
        let database = block_on(async {
            let size = (NODES, NODES + 1);
            let database = Database::create(mem, tpcc::TABLES, size, 1 << 16).await.unwrap();
            for id in 0..NODES {
                let mut client = Client::new(mem, &database, id).await.unwrap();
                tpcc::load(&mut client, mem, (scale, id as u64 + 1), 1, &rows).await.unwrap();
            }
            database
        });
        Self { database, scale, done: AtomicU64::new(0) }
    }
}

impl Business for Warehouses {
    fn database(&self) -> &Database {
        &self.database
    }

    fn work(&self, mem: &mut NodeHandle, id: usize, seed: u64, stop: &AtomicBool) -> Result<(), Error> {
        let client = block_on(Client::new(mem, &self.database, id))?;
        let mut worker = Worker::new(client, (id as u64, seed), (self.scale, id as u64 + 1), 30, seed);
        while !stop.load(Ordering::SeqCst) {
            block_on(worker.step(mem, thread::yield_now))?;
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn audit(&self, _: &mut Client, mem: &mut NodeHandle, _: usize) {
        block_on(tpcc::check(mem, &self.database, self.scale, false)).unwrap().unwrap();
    }
}

/// Deaths, one after the other, each while all work. Each node comes back, and has its memory again, before the next one dies.
fn goes_on(rack: &mut Processes, business: &impl Business, deaths: usize) {
    for round in 0..deaths {
        let (dies, stop) = (round % NODES, AtomicBool::new(false));
        let heir = rack.nodes[(dies + 1) % NODES].clone();
        println!("death {round}, of node {dies}");
        thread::scope(|scope| {
            let stop_at_end = AtEnd(&stop);
            let clients: Vec<_> = (0..NODES)
                .map(|client| {
                    let (its, stop) = (rack.nodes[client].clone(), &stop);
                    let work = move || {
                        business.work(&mut handle(&its), client, (round * NODES + client) as u64, stop)
                    };
                    scope.spawn(work)
                })
                .collect();
            thread::sleep(Duration::from_millis(200 + round as u64 * 13 % 60));
            rack.cut_off(dies);
            // Looks at what the dead one had locked: that waits until the rack goes on without it.
            let mem = &mut handle(&heir);
            let mut client = block_on(Client::new(mem, business.database(), AUDITOR)).unwrap();
            block_on(client.recover(mem, dies)).unwrap();
            thread::sleep(Duration::from_millis(100));
            drop(stop_at_end);
            rack.reconnect(dies);
            for (id, client) in clients.into_iter().enumerate() {
                match client.join().unwrap() {
                    Err(Error::Memory(rackmem::Error::Fenced)) if id == dies => {}
                    done => done.unwrap(),
                }
            }
            business.audit(&mut client, mem, dies);
        });
        rack.rejoin(dies);
        until(|| rack.has_all_copies().then_some(()));
    }
}

fn rack(copies: usize, memory: u64, faulty: bool) -> Processes {
    let shape = Config { nodes: NODES, copies, memory, cache: memory / 8, ..Config::default() };
    Processes::start_with(faulty, shape)
}

fn money_stays(copies: usize, faulty: bool, deaths: usize) {
    let mut rack = rack(copies, 8 << 20, faulty);
    let bank = Bank::open(&mut handle(&rack.nodes[0]));
    goes_on(&mut rack, &bank, deaths);
    let committed: u64 = bank.told.iter().map(|told| told.committed.load(Ordering::SeqCst)).sum();
    println!(
        "{committed} transfers are left, {} died with their clerks, in {deaths} deaths",
        bank.undone.into_inner()
    );
    assert!(committed > deaths as u64 * 10);
}

#[test]
fn no_money_comes_or_goes_when_one_node_after_the_other_dies() {
    money_stays(2, false, 2 * NODES);
}

#[test]
fn no_money_comes_or_goes_with_three_copies_on_a_bad_network() {
    money_stays(3, true, NODES);
}

#[test]
fn the_conditions_of_tpcc_hold_when_one_node_after_the_other_dies() {
    let mut rack = rack(2, 64 << 20, false);
    let warehouses = Warehouses::open(&mut handle(&rack.nodes[0]));
    goes_on(&mut rack, &warehouses, NODES);
    let done = warehouses.done.into_inner();
    println!("{done} transactions, in {NODES} deaths");
    assert!(done > 100);
}
