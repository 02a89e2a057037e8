//! A real atomic register under real threads, with a real clock.

use std::hint;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history_from};
use wire::Nanos;

use crate::randomized::for_seeds;
use random::Dice;

const CLIENTS: u64 = 4;
const OPERATIONS: u64 = 3_000;

fn wait(rng: &mut Dice) {
    // Mostly short, sometimes long enough that another client is scheduled in the middle.
    let spins = if rng.percent(2) { rng.below(20_000) } else { rng.below(100) };
    (0..spins).for_each(|_| hint::spin_loop());
}

/// One operation on the register. Each value that is written is written once.
fn operate(register: &AtomicU64, rng: &mut Dice, fresh: u64) -> Op {
    match rng.below(10) {
        0..4 => Op::Read { value: Some(register.load(Ordering::SeqCst)) },
        4..6 => {
            register.store(fresh, Ordering::SeqCst);
            Op::Insert { value: fresh }
        }
        6..8 => Op::Rmw { value: Some(register.swap(fresh, Ordering::SeqCst)), new: fresh },
        _ => {
            let expected = register.load(Ordering::SeqCst);
            wait(rng);
            match register.compare_exchange(expected, fresh, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(value) => Op::Rmw { value: Some(value), new: fresh },
                Err(value) => Op::Read { value: Some(value) },
            }
        }
    }
}

fn run_clients(seed: u64) -> Vec<Operation<u64>> {
    let (register, start, clock) = (AtomicU64::new(0), Barrier::new(CLIENTS as usize), Instant::now());
    let now = || Nanos(u64::try_from(clock.elapsed().as_nanos()).expect("the test ends within centuries"));
    let run = |client: u64| {
        let mut rng = Dice::new(seed * CLIENTS + client);
        let mut history = Vec::new();
        start.wait();
        for number in 0..OPERATIONS {
            let invoke = now();
            wait(&mut rng);
            let op = operate(&register, &mut rng, 1 + number * CLIENTS + client);
            wait(&mut rng);
            history.push(Operation { client, key: 0, op, invoke, ret: Some(now()) });
        }
        history
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || run(client))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client does not panic")).collect()
    })
}

#[test]
fn a_real_atomic_register_is_linearizable() {
    for_seeds("a_real_atomic_register_is_linearizable", 5, |rng| {
        let history = run_clients(rng.next() >> 8);
        let verdict = check_history_from(Some(0), &history, Limits::default());
        assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict}");
    });
}

#[test]
fn a_real_atomic_register_that_forgets_one_write_is_caught() {
    for_seeds("a_real_atomic_register_that_forgets_one_write_is_caught", 5, |rng| {
        let mut history = run_clients(rng.next() >> 8);
        history.sort_by_key(|operation| operation.invoke);
        // A read-modify-write in the second half claims to have found the value from before the one it found.
        let half = history.len() / 2;
        let found = |op: &Op| match *op {
            Op::Rmw { value: Some(value), new } => Some((value, new)),
            _ => None,
        };
        let (place, older) = (half..history.len())
            .find_map(|place| {
                let (value, _) = found(&history[place].op)?;
                let older =
                    history.iter().filter_map(|other| found(&other.op)).find(|(_, new)| *new == value)?.0;
                Some((place, older))
            })
            .expect("some read-modify-write follows another");
        if let Op::Rmw { value, .. } = &mut history[place].op {
            *value = Some(older);
        }
        // Two of them now replaced the same value, which was written once.
        let verdict = check_history_from(Some(0), &history, Limits::default());
        assert!(matches!(verdict, Verdict::Violation(_)), "{verdict}");
    });
}
