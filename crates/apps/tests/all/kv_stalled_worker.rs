//! A worker that stops in the middle of an operation, at any access to memory, holds up nobody; and whenever
//! it goes on, what it does is still right.

use crate::support;

use apps::kv::{KvConfig, KvStore};
use rackmem::block_on;
use support::clients::Run;
use support::history::{Ask, assert_linearizable};
use support::interleave::{Task, run_alone, step};
use support::memory::Rack;
use support::values::value;

/// No operation on a key with one bucket and a value of a few blocks takes more accesses alone.
const ENOUGH: u64 = 200;

fn operations(number: u16) -> Vec<Ask> {
    vec![
        Ask::Get,
        Ask::Put(value(number, 40)),
        Ask::Put(value(number, 700)),
        Ask::Insert(value(number, 90)),
        Ask::Delete,
        Ask::Update(3, value(number, 5)),
        Ask::Append(value(number, 4), 300),
        Ask::Append(value(number, 400), 900),
    ]
}

/// Runs `stalled` for `steps` steps, then each of `others` to its end, then the rest of `stalled`. False if
/// `stalled` has ended before it could be stopped.
fn overtake(initial: usize, stalled: &Ask, steps: u64, others: &[&Ask]) -> bool {
    let run = Run::on(Rack::new(2, 256, 1 << 16, steps));
    let mut mem = run.rack.worker(0);
    let store =
        block_on(KvStore::create(&mut mem, &KvConfig { expected_keys: 1, ..KvConfig::default() })).unwrap();
    let empty = run.rack.allocations();
    block_on(run.call(&store, &mut mem, 0, 0, Ask::Put(value(7, initial))));

    let task = |worker: u16, ask: Ask| -> Task {
        let (run, store) = (run.clone(), store.clone());
        Box::pin(async move {
            let mut mem = run.rack.yielding_worker(worker % 2);
            run.call(&store, &mut mem, worker.into(), 0, ask).await;
        })
    };
    let mut first = task(1, stalled.clone());
    let stopped = !(0..steps).any(|_| step(&mut first));
    if stopped {
        for other in others {
            let ended = run_alone(&mut task(2, (*other).clone()), ENOUGH);
            assert!(ended, "{other:?} waits for {stalled:?}, which stopped after {steps} steps");
        }
        assert!(run_alone(&mut first, ENOUGH), "{stalled:?} does not end after {others:?}");
    }
    for ask in [Ask::Get, Ask::Delete, Ask::Get] {
        block_on(run.call(&store, &mut mem, 0, 0, ask));
    }
    assert_linearizable(&run.calls());
    assert_eq!(run.rack.allocations(), empty, "{stalled:?}, {steps} steps, {others:?}");
    stopped
}

#[test]
fn nobody_waits_for_a_worker_that_stopped() {
    let mut stops = 0;
    for initial in [40, 600] {
        for stalled in operations(1) {
            for second in operations(2) {
                for third in operations(3) {
                    let stopped = |steps: &u64| overtake(initial, &stalled, *steps, &[&second, &third]);
                    stops += (0..ENOUGH).take_while(stopped).count();
                }
            }
        }
    }
    assert!(stops > 2 * 8 * 64 * 3, "operations were stopped at {stops} places only");
}
