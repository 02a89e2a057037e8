//! YCSB's mixes on a rack over wires, and on a Redis that is asked through the same ports.

use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::ycsb::measure::Setting;
use cli::ycsb::rack::memory_for;
use cli::ycsb::workload::{OperationKind, Workload};
use rackmem::BlockSize;

use super::report::{Mix, Takes};
use super::{ARMS, Args, both, in_turns, rate_and_taken};
use crate::bench::nodes::spec;
use crate::bench::rounds::median;
use crate::peers::{Peer, measure_whole};

/// Nodes, each with so many threads; and processes that share connections to a Redis.
const NODES: u16 = 4;
const THREADS: usize = 2;
const CONNECTIONS: u16 = 50;
/// Reads alone are hits, and over sooner.
const READS_TIMES: u64 = 10;

pub(super) fn measure(args: &Args, interrupt: &Interrupt) -> Result<Vec<Mix>, Fault> {
    let mut redis = Peer::redis_across(NODES, CONNECTIONS, interrupt)?;
    let mut mixes = Vec::new();
    for (ordinal, letter) in (0..).zip(['A', 'B', 'C']) {
        let workload = Workload::letter(letter).expect("there is such a workload");
        let times = if workload.mix.share(OperationKind::Read) < 1.0 { 1 } else { READS_TIMES };
        let workload = Workload { records: args.records, operations: args.operations * times, ..workload };
        if let Some(redis) = redis.as_mut().filter(|_| ordinal == 0) {
            redis.load(&workload)?;
        }
        let mut on_redis = Vec::new();
        let [rate, takes @ ..] = in_turns(args.rounds, interrupt, &mut both(ARMS, Ok)?, |arm, round| {
            if *arm == TransportKind::Wire
                && let Some(redis) = &mut redis
            {
                let operations = args.operations.div_ceil(2);
                on_redis.push(redis.rate(&Workload { operations, ..workload.clone() })?);
            }
            on_rack(*arm, &workload, (round, ordinal), interrupt)
        })?;
        let redis_per_s = (!on_redis.is_empty()).then(|| median(on_redis));
        mixes.push(Mix { workload: letter, rate, takes: Takes::of(takes), redis_per_s });
    }
    Ok(mixes)
}

/// Operations a second on a rack of its own, and what one takes. Where writes are many, small reads are answered where the block is,
/// as in `rackmem-lab peers`.
fn on_rack(
    arm: TransportKind,
    workload: &Workload,
    (seed, ordinal): (u64, u64),
    interrupt: &Interrupt,
) -> Result<[f64; 5], Fault> {
    let (nodes, block) = (usize::from(NODES), BlockSize::DEFAULT);
    let spec = RackSpec {
        nodes,
        cache: (workload.data_bytes().0 * 5 / 2).next_power_of_two(),
        memory: memory_for(nodes, block, workload).0,
        queue: true,
        peek: workload.mix.share(OperationKind::Read) < 2.0 / 3.0,
        ..spec(block)
    };
    let setting = Setting { seed, ordinal, history: None, warm_up: workload.operations / 2, interrupt };
    let measured = measure_whole(arm, &spec, THREADS, workload, &setting)?;
    let operations = workload.operations as f64;
    rate_and_taken(operations / measured.took.as_secs_f64(), operations, measured.taken)
}
