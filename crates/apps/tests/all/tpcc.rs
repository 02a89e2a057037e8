//! TPC-C: its consistency conditions hold after loading and after running, on racks of all kinds, and a condition that does not
//! hold is found.

use std::sync::atomic::AtomicU64;
use std::thread;

use apps::tpcc::{Broken, Done, Scale, TABLES, Transaction, Worker, check, load};
use apps::tx::{Client, Database, Table};
use rackmem::{Config, Memory, NodeHandle, NodeId, Rack, block_on};
use simulated::{Ended, SimulatedConfig, SimulatedRack, Until};

use super::support::interleave::{self, Task};
use super::support::memory;
use super::support::{Replay, seeds};

const LOG: u64 = 1 << 16;

fn scale(warehouses: u64) -> Scale {
    Scale { warehouses, shrink: 100 }
}

async fn create<M: Memory>(mem: &mut M, scale: Scale) -> Database {
    let size = (scale.warehouses as usize, scale.warehouses as usize);
    Database::create(mem, TABLES, size, LOG).await.unwrap()
}

async fn loaded<M: Memory>(mem: &mut M, database: &Database, scale: Scale, id: u64) -> Client {
    let mut client = Client::new(mem, database, id as usize).await.unwrap();
    let rows = AtomicU64::new(0);
    load(&mut client, mem, (scale, id + 1), 1, &rows).await.unwrap();
    let mut there = 0;
    for table in 0..TABLES.len() {
        there += database.rows(mem, Table(table as u8), u128::from(id) << 112).await.unwrap().len();
    }
    assert_eq!(rows.into_inner(), there as u64, "rows are counted");
    client
}

fn worker(client: Client, scale: Scale, id: u64, distribution: u64, seed: u64) -> Worker {
    Worker::new(client, (id, 0), (scale, id + 1), distribution, seed)
}

/// A loaded database on an embedded rack, with a client for each warehouse.
fn embedded(nodes: usize, warehouses: u64) -> (Rack, Scale, Database, Vec<Client>) {
    let scale = scale(warehouses);
    let rack =
        Rack::embedded(Config { nodes, memory: 64 << 20, cache: 32 << 20, ..Config::default() }).unwrap();
    let mem = &mut rack.node(NodeId(0));
    let database = block_on(create(mem, scale));
    let clients = (0..warehouses).map(|id| block_on(loaded(mem, &database, scale, id))).collect();
    (rack, scale, database, clients)
}

fn holds(mem: &mut NodeHandle, database: &Database, scale: Scale, is_first: bool) -> Result<(), Broken> {
    block_on(check(mem, database, scale, is_first)).unwrap()
}

fn run_on_threads(nodes: usize, distribution: u64, count: usize) -> Vec<Done> {
    let (rack, scale, database, clients) = embedded(nodes, 4);
    let run = |(id, client): (u64, Client)| {
        let mut mem = rack.node(NodeId((id as usize * nodes / 4) as u16));
        move || {
            let mut worker = worker(client, scale, id, distribution, 7);
            (0..count).map(|_| block_on(worker.step(&mut mem, || {})).unwrap()).collect::<Vec<_>>()
        }
    };
    let done = thread::scope(|scope| {
        let threads: Vec<_> = (0..).zip(clients).map(|client| scope.spawn(run(client))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    holds(&mut rack.node(NodeId(0)), &database, scale, false).unwrap();
    done
}

#[test]
fn all_conditions_hold_after_loading() {
    let (rack, scale, database, _) = embedded(2, 2);
    holds(&mut rack.node(NodeId(1)), &database, scale, true).unwrap();
}

#[test]
fn without_distribution_nobody_conflicts_and_the_mix_is_the_specifications() {
    let done = run_on_threads(2, 0, 600);
    assert!(done.iter().all(|done| done.conflicts.is_empty()));
    let share = |transaction| done.iter().filter(|done| done.transaction == transaction).count() * 100 / 2400;
    let expected = [(42, 48), (40, 46), (2, 6), (2, 6), (2, 6)];
    for (transaction, (least, most)) in Transaction::ALL.into_iter().zip(expected) {
        assert!((least..=most).contains(&share(transaction)), "{transaction:?}: {} %", share(transaction));
    }
    // One new order in a hundred has an item that nobody has.
    let undone = done.iter().filter(|done| !done.committed).count();
    assert!((1..40).contains(&undone), "{undone}");
    assert!(done.iter().all(|done| done.committed || done.transaction == Transaction::NewOrder));
}

#[test]
fn all_conditions_hold_with_any_distribution_on_one_to_four_nodes() {
    for (nodes, distribution) in [(1, 20), (2, 10), (4, 100)] {
        let done = run_on_threads(nodes, distribution, 250);
        assert_eq!(done.len(), 1000);
    }
}

#[test]
fn all_conditions_hold_when_transactions_are_interleaved_at_every_access() {
    let mut conflicts = 0;
    for seed in seeds(4) {
        let test = "all_conditions_hold_when_transactions_are_interleaved_at_every_access";
        let _replay = Replay { file: "tpcc", test, seed };
        let (rack, scale) = (memory::Rack::new(2, 4096, 48 << 20, seed), scale(3));
        let mem = &mut rack.worker(0);
        let database = block_on(create(mem, scale));
        let all = std::rc::Rc::new(std::cell::Cell::new(0));
        let task = |id| {
            let client = block_on(loaded(mem, &database, scale, id));
            let (mut mem, all) = (rack.yielding_worker(id as u16 % 2), all.clone());
            let mut worker = worker(client, scale, id, 100, seed);
            let task: Task = Box::pin(async move {
                for _ in 0..12 {
                    let done = worker.step(&mut mem, || {}).await.unwrap();
                    all.set(all.get() + done.conflicts.len());
                }
            });
            task
        };
        let tasks = (0..3).map(task).collect();
        interleave::run(seed, tasks);
        conflicts += all.get();
        block_on(check(mem, &database, scale, false)).unwrap().unwrap();
    }
    assert!(conflicts > 0, "nobody got in anybody's way");
}

#[test]
fn a_worker_that_dies_leaves_nothing_behind_when_another_one_recovers_it() {
    let (rack, scale) = (memory::Rack::new(2, 4096, 48 << 20, 5), scale(2));
    let mem = &mut rack.worker(0);
    let database = block_on(create(mem, scale));
    let clients: Vec<Client> = (0..2).map(|id| block_on(loaded(mem, &database, scale, id))).collect();
    let [mut heir, dead] = clients.try_into().unwrap();
    let mut mem_of_dead = rack.yielding_worker(1);
    let mut next = Some(dead);
    for stop in 0..60 {
        let mut dying = Worker::new(next.take().unwrap(), (1, stop), (scale, 2), 100, stop);
        let mut mem_of_task = mem_of_dead.clone();
        let mut task: Task = Box::pin(async move {
            loop {
                dying.step(&mut mem_of_task, || {}).await.unwrap();
            }
        });
        assert!(!interleave::run_alone(&mut task, 700 + 37 * stop));
        drop(task);
        block_on(heir.recover(mem, 1)).unwrap();
        if stop % 12 == 0 {
            block_on(check(mem, &database, scale, false)).unwrap().unwrap();
        }
        next = Some(block_on(Client::new(&mut mem_of_dead, &database, 1)).unwrap_or_else(|e| panic!("{e}")));
        mem_of_dead = rack.yielding_worker(1);
    }
    block_on(check(mem, &database, scale, false)).unwrap().unwrap();
}

#[test]
fn each_condition_that_does_not_hold_is_found() {
    let (rack, scale, database, clients) = embedded(1, 1);
    let mem = &mut rack.node(NodeId(0));
    let mut client = clients.into_iter().next().unwrap();
    // Table, which row of it, which word, and the condition that is then broken first.
    let damages: [(u8, usize, usize, u8); 8] = [
        (0, 0, 1, 1),
        (1, 3, 2, 2),
        (5, 5, 3, 4),
        (5, 5, 2, 5),
        (6, 0, 2, 7),
        (2, 4, 2, 10),
        (2, 4, 3, 12),
        (1, 3, 1, 1),
    ];
    for (table, number, word, condition) in damages {
        let rows = block_on(database.rows(mem, Table(table), 0)).unwrap();
        let before = block_on(async {
            let mut row = client.get_to_change(mem, Table(table), rows[number].key()).await?.unwrap();
            let before = row.word(word);
            row.set_word(word, if before == 0 { 1 } else { 0 });
            client.put(mem, &mut row).await?;
            client.commit(mem).await?;
            Ok::<_, apps::tx::Error>(before)
        })
        .unwrap();
        let broken = holds(mem, &database, scale, true).unwrap_err();
        assert_eq!((broken.condition, broken.warehouse), (condition, 1), "{broken}");
        block_on(async {
            let mut row = client.get_to_change(mem, Table(table), rows[number].key()).await?.unwrap();
            row.set_word(word, before);
            client.put(mem, &mut row).await?;
            client.commit(mem).await
        })
        .unwrap();
        holds(mem, &database, scale, true).unwrap();
    }
    // A new order less: no carrier has it, and nobody is to deliver it.
    block_on(async {
        let first = database.rows(mem, Table(4), 0).await?.swap_remove(1);
        let row = client.get_to_change(mem, Table(4), first.key()).await?.unwrap();
        client.delete(mem, &row, &[]).await?;
        client.commit(mem).await
    })
    .unwrap();
    assert_eq!(holds(mem, &database, scale, true).unwrap_err().condition, 3);
}

/// What the workers of a simulated rack have done, and when they were done.
fn simulated(seed: u64) -> (usize, rackmem::Nanos) {
    const NODES: usize = 2;
    let scale = scale(4);
    let config = SimulatedConfig {
        nodes: NODES,
        threads: 2,
        cache: 16 << 20,
        memory: 64 << 20,
        ..SimulatedConfig::default()
    };
    let mut rack = SimulatedRack::new(config).unwrap();
    let database = rack.run_one(NodeId(0), 0, move |mut mem| async move { create(&mut mem, scale).await });
    let conflicts = std::rc::Rc::new(std::cell::Cell::new(0));
    for id in 0..4 {
        let (database, conflicts) = (database.clone(), conflicts.clone());
        rack.spawn(NodeId((id / 2) as u16), id as usize % 2, move |mut mem| async move {
            let client = loaded(&mut mem, &database, scale, id).await;
            let mut worker = worker(client, scale, id, 50, seed);
            for _ in 0..60 {
                let done = worker.step(&mut mem, || {}).await.unwrap();
                conflicts.set(conflicts.get() + done.conflicts.len());
            }
        });
    }
    let report = rack.run(Until::WorkersDone);
    assert_eq!(report.ended, Ended::WorkersDone);
    let held = rack.run_one(NodeId(1), 0, move |mut mem| async move {
        check(&mut mem, &database, scale, false).await.unwrap()
    });
    held.unwrap();
    (conflicts.get(), report.time)
}

#[test]
fn all_conditions_hold_on_a_simulated_rack_and_a_run_follows_from_its_seed() {
    let first = simulated(3);
    assert_eq!(simulated(3), first);
    assert_ne!(simulated(4).1, first.1);
}
