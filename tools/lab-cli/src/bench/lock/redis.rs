//! The mixes on Redis: a lock and a record for each state. Who writes takes the lock, reads the record, writes it and releases, as in
//! `peers --locks`. Who reads does just that: a GET gives the whole record of one moment, without a lock.

use std::io;
use std::time::Duration;

use super::hottest::{Span, Trace};
use super::node::{Done, Load, cycle, grown, plan, stay, whole};
use crate::bench::rounds::until;
use crate::peers::{Redis, RedisServer};
use cli::fault::Fault;
use cli::ycsb::random::Random;

/// A thread with a connection.
struct Client {
    redis: Redis,
    random: Random,
    trace: Trace,
    /// Of lock and record.
    names: Vec<[String; 2]>,
}

fn failed(error: io::Error) -> Fault {
    Fault::failed(format_args!("Redis: {error}"))
}

fn words(record: &[u8]) -> Vec<u64> {
    record.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Client {
    fn turn(&mut self, lock: u64, write: bool, critical: Duration) -> io::Result<u64> {
        let mut turn = self.trace.asks(lock);
        let [name, record] = &self.names[lock as usize];
        let token = if write { Some(self.redis.take(name.as_bytes(), &mut self.random)?) } else { None };
        turn.is_in();
        let mut state = words(&self.redis.get(record.as_bytes())?);
        stay(critical);
        let found = if let Some(token) = token {
            let found = grown(&mut state);
            turn.leaves();
            let written = (record.as_bytes(), &bytes(&state)[..]);
            self.redis.set_and_release(written, (name.as_bytes(), &token))?;
            found
        } else {
            turn.leaves();
            whole(&state)
        };
        self.trace.note(turn);
        Ok(found)
    }
}

/// A mix, of as many clients as there are threads on so many nodes. What each has done, and has done with the hottest lock, if that is
/// asked for.
pub(super) fn run(
    server: &RedisServer,
    (nodes, threads): (u16, u16),
    load: &Load,
    is_traced: bool,
) -> Result<(Vec<Done>, Vec<Vec<Span>>), Fault> {
    let nodes = u64::from(nodes);
    let locks = load.locks_per_node * nodes;
    let names: Vec<_> = (0..locks).map(|lock| [format!("lock {lock}"), format!("record {lock}")]).collect();
    let client = |number: u64| -> io::Result<_> {
        let trace = if is_traced { Trace::begun() } else { Trace::default() };
        let (redis, random) = (Redis::connect(server.address)?, Random::new(2, number));
        Ok((Client { redis, random, trace, names: names.clone() }, plan(load, nodes, number)))
    };
    let clients =
        (0..nodes * u64::from(threads)).map(client).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    let mut own = Redis::connect(server.address).map_err(failed)?;
    let zeroes = vec![0; load.state_bytes as usize];
    for [_, record] in &names {
        own.set(record.as_bytes(), &zeroes).map_err(failed)?;
    }
    let done = until(Duration::from_millis(load.millis), clients.into_iter(), |(mut client, plan), stop| {
        let done =
            cycle(load, &plan, stop, |lock, write, critical| client.turn(lock, write, critical).map(drop))?;
        Ok((done, client.trace.take()))
    })
    .map_err(failed)?;
    let (done, spans): (Vec<Done>, _) = done.into_iter().unzip();
    let mut found = 0;
    for [_, record] in &names {
        found += whole(&words(&own.get(record.as_bytes()).map_err(failed)?));
    }
    super::sound("Redis", found, done.iter().map(|thread| thread.writes).sum())?;
    Ok((done, spans))
}
