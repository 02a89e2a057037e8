//! One application that uses blocks and locks, on an embedded rack with real threads, and on the simulated one: in exact order
//! with every property checked, without faults and with them.

mod bank;
mod errors;

use bank::Bank;
use rackmem::{BlockSize, Config, Nanos, NodeId, Rack, block_on};
use simulated::fault::{Rules, delay, drop_per_mille, duplicate_per_mille};
use simulated::{Ended, Fault, Joint, SimulatedConfig, SimulatedRack, Until};

const NODES: usize = 3;
const THREADS: usize = 2;
const CLERKS: usize = NODES * THREADS;
const ACCOUNTS: usize = 8;
const STEPS: usize = 60;
/// An account is longer, so it has blocks of its own: what is freed is no region any more.
const BLOCK: BlockSize = match BlockSize::new(512) {
    Some(block) => block,
    None => panic!("512 bytes is a block size"),
};
/// All that the accounts have.
const SUM: i64 = ACCOUNTS as i64 * 1_000;

fn simulated(seed: u64) -> SimulatedRack {
    SimulatedRack::new(config(seed)).unwrap()
}

fn config(seed: u64) -> SimulatedConfig {
    SimulatedConfig {
        nodes: NODES,
        threads: THREADS,
        cache: 16 * 4096,
        memory: 64 * 4096,
        block_size: BLOCK,
        // Four of the accounts fit.
        lock_copies: 2400,
        lock_entries: 4,
        switch_entries: 70,
        epoch: Nanos::from_micros(200),
        seed,
        check: true,
        ..SimulatedConfig::default()
    }
}

fn open(rack: &mut SimulatedRack, clerks: usize, nodes_die: bool) -> Bank {
    rack.run_one(NodeId(0), 0, move |mut mem| async move {
        Bank::open(&mut mem, (ACCOUNTS, clerks), nodes_die).await
    })
}

/// The clerks of a node, from this number on.
fn spawn(rack: &mut SimulatedRack, bank: &Bank, node: usize, first: usize, seed: u64) {
    for thread in 0..THREADS {
        let bank = bank.clone();
        rack.spawn(NodeId(node as u16), thread, move |mem| bank.work(mem, first + thread, seed, STEPS));
    }
}

/// What the accounts have together in the end. Every entry of these clerks' logs is there.
fn audit(rack: &mut SimulatedRack, bank: &Bank, clerks: impl Iterator<Item = usize> + 'static) -> i64 {
    let bank = bank.clone();
    rack.run_one(NodeId(1), 0, move |mut mem| async move { bank.audit(&mut mem, clerks).await })
}

/// Nothing is lost: every transfer is in the accounts and in a log.
fn assert_right(bank: &Bank, sum: i64, what: &str) {
    assert_eq!(sum, SUM, "{what}: the sum stays");
    assert_eq!(bank.balances(), bank.balances_by_logs(), "{what}: the logs say what the accounts have");
    assert!(bank.books().moved > 0, "{what}: accounts move");
}

#[test]
fn the_bank_is_right_on_an_embedded_rack() {
    for seed in 1..=3 {
        let config = Config {
            nodes: NODES,
            cache: 16 * 4096,
            memory: 64 * 4096,
            block_size: BLOCK,
            lock_copies: 2400,
            lock_entries: 4,
            ..Config::default()
        };
        let rack = Rack::embedded(config).unwrap();
        let bank = block_on(Bank::open(&mut rack.node(NodeId(0)), (ACCOUNTS, CLERKS), false));
        std::thread::scope(|scope| {
            for clerk in 0..CLERKS {
                let (mem, bank) = (rack.node(NodeId((clerk / THREADS) as u16)), bank.clone());
                scope.spawn(move || block_on(bank.work(mem, clerk, seed, STEPS)));
            }
        });
        let sum = block_on(bank.audit(&mut rack.node(NodeId(1)), 0..CLERKS));
        assert_right(&bank, sum, &format!("seed {seed}"));
    }
}

/// A run in which nothing is lost, under these rules and faults. Returns how long it took.
fn run(seed: u64, rules: Rules<<Joint as sim::system::System>::Message>, faults: &[(Nanos, Fault)]) -> Nanos {
    let mut rack = simulated(seed);
    let bank = open(&mut rack, CLERKS, false);
    rack.rack().set_rules(rules);
    for (at, fault) in faults {
        let at = rack.rack().now() + *at;
        rack.rack().schedule(at, *fault);
    }
    (0..NODES).for_each(|node| spawn(&mut rack, &bank, node, node * THREADS, seed));
    let report = rack.run(Until::Time(Nanos::from_millis(900)));
    assert_eq!(report.ended, Ended::WorkersDone, "seed {seed}");
    rack.rack().set_rules(Rules::none());
    let sum = audit(&mut rack, &bank, 0..CLERKS);
    assert_right(&bank, sum, &format!("seed {seed}"));
    report.time
}

#[test]
fn the_bank_is_right_on_a_simulated_rack_and_one_seed_is_one_run() {
    let times: Vec<Nanos> = (1..=4).map(|seed| run(seed, Rules::none(), &[])).collect();
    assert_eq!(run(1, Rules::none(), &[]), times[0]);
    assert_ne!(times[0], times[1], "another seed is another run");
}

#[test]
fn the_bank_is_right_when_threads_run_ahead_of_each_other() {
    for seed in 1..=4 {
        let config = SimulatedConfig { run_ahead: Nanos::MAX, check: false, ..config(seed) };
        let mut rack = SimulatedRack::new(config).unwrap();
        let bank = open(&mut rack, CLERKS, false);
        (0..NODES).for_each(|node| spawn(&mut rack, &bank, node, node * THREADS, seed));
        assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
        let sum = audit(&mut rack, &bank, 0..CLERKS);
        assert_right(&bank, sum, &format!("seed {seed}"));
    }
}

#[test]
fn the_bank_is_right_whatever_is_lost_or_late_on_the_network() {
    for seed in 1..=4 {
        let rules = Rules::none()
            .with(drop_per_mille(20))
            .with(duplicate_per_mille(50, Nanos::from_micros(100)))
            .with(delay(Nanos::from_micros(5)));
        run(seed, rules, &[]);
    }
}

#[test]
fn the_bank_is_right_after_the_switch_has_restarted() {
    for seed in 1..=6 {
        let at = Nanos::from_micros(50 * seed);
        let faults = [(at, Fault::SwitchStops), (at + Nanos::from_micros(80), Fault::SwitchRestarts)];
        run(seed, Rules::none(), &faults);
    }
}

#[test]
fn what_dies_with_a_node_is_told_and_nothing_else_is_lost() {
    let (mut lost, mut stale) = (0, 0);
    for seed in 1..=12 {
        let mut rack = simulated(seed);
        // Whoever comes back has a new log.
        let bank = open(&mut rack, CLERKS + THREADS, true);
        (0..NODES).for_each(|node| spawn(&mut rack, &bank, node, node * THREADS, seed));
        let stops = rack.rack().now() + Nanos::from_micros(40 * seed);
        rack.rack().schedule(stops, Fault::NodeStops(NodeId(2)));
        rack.rack().schedule(stops + Nanos::from_micros(60), Fault::NodeRestarts(NodeId(2)));
        rack.run(Until::Time(stops + Nanos::from_micros(61)));
        spawn(&mut rack, &bank, 2, CLERKS, seed);
        let report = rack.run(Until::Time(stops + Nanos::from_millis(900)));
        assert_eq!(report.ended, Ended::WorkersDone, "seed {seed}");
        let survivors = (0..2 * THREADS).chain(CLERKS..CLERKS + THREADS);
        let sum = audit(&mut rack, &bank, survivors);
        assert_eq!(sum, bank.balances().iter().sum::<i64>(), "seed {seed}");
        let books = bank.books();
        (lost, stale) = (lost + books.lost.len(), stale + books.stale);
    }
    assert!(
        lost > 0 && stale > 0,
        "accounts die with node 2 ({lost}), and are freed while others wait ({stale})"
    );
}
