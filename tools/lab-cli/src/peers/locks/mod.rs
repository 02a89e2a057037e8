//! `rackmem-lab peers --locks`: a record of 128 bytes, taken, changed and released by 1 to 8 clients: with Redis and with etcd as a
//! lock service and store, and with a lock that carries the record between the nodes of a rack.
//!
//! | file | what |
//! | --- | --- |
//! | `redis.rs` | SET NX PX, and the script that releases |
//! | `etcd.rs` | its lock service, through its gateway |
//! | `report.rs` | what is printed |
//!
//! Clients of the services are threads of this process, each with a connection.
//!
//! What must always hold: the record counts its updates, and in the end it is their number, in each system.

mod etcd;
mod redis;
mod report;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::args::Args;
use super::client::{Event, Order};
use super::protocol::Protocol;
use super::server::Server;
use crate::bench::lock::record_updates;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::rendezvous::RuntimeDir;
use cli::processes::{OnInterrupt, TransportKind, Workers};
use cli::ycsb::random::Random;

/// Bytes of the record.
const RECORD: usize = 128;
const CLIENTS: [u16; 4] = [1, 2, 4, 8];
const LASTS: Duration = Duration::from_secs(2);

pub(crate) use redis::Redis;

/// A lock service that keeps the record, too.
trait Service {
    /// What it is called.
    const NAME: &'static str;

    /// A connection.
    fn open(server: SocketAddr) -> io::Result<Self>
    where
        Self: Sized;

    /// Sets the record to no updates.
    fn clear(&mut self) -> io::Result<()>;

    /// Takes the lock, counts the record up, and releases.
    fn update(&mut self, random: &mut Random) -> io::Result<()>;

    /// How many updates the record has counted.
    fn count(&mut self) -> io::Result<u64>;
}

/// A Redis, for as long as this is there.
pub(crate) struct RedisServer {
    _workers: Workers<Order, Event>,
    pub(crate) address: SocketAddr,
}

impl RedisServer {
    /// None: it is not installed.
    pub(crate) fn start(interrupt: &Interrupt) -> Result<Option<Self>, Fault> {
        let Some(server) = Server::find(Protocol::Redis) else { return Ok(None) };
        let address = server.address;
        let workers = start_all(vec![("redis-server".to_owned(), server)], interrupt)?;
        Ok(Some(Self { _workers: workers, address }))
    }
}

/// Starts servers, and waits until they listen.
fn start_all(servers: Vec<(String, Server)>, interrupt: &Interrupt) -> Result<Workers<Order, Event>, Fault> {
    let count = servers.len();
    let mut workers = Workers::start(servers, RuntimeDir::new()?, interrupt)?;
    workers.answers(0..count, OnInterrupt::End, |_, event| {
        Ok(matches!(event, Event::Connected).then_some(()))
    })?;
    Ok(workers)
}

/// Updates per second of so many clients.
fn updates_of<S: Service>(server: SocketAddr, clients: u16) -> Result<f64, Fault> {
    let failed = |error: io::Error| Fault::failed(format_args!("{}: {error}", S::NAME));
    let mut own = S::open(server).map_err(failed)?;
    own.clear().map_err(failed)?;
    let stop = AtomicBool::new(false);
    let client = |number: u16| -> io::Result<(u64, Duration)> {
        let (mut service, mut random) = (S::open(server)?, Random::new(1, u64::from(number)));
        let (mut updates, began) = (0_u64, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            service.update(&mut random)?;
            updates += 1;
        }
        Ok((updates, began.elapsed()))
    };
    let done = thread::scope(|scope| {
        let client = &client;
        let running: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        thread::sleep(LASTS);
        stop.store(true, Ordering::Relaxed);
        running
            .into_iter()
            .map(|thread| thread.join().expect("a client panicked"))
            .collect::<io::Result<Vec<_>>>()
    })
    .map_err(failed)?;
    let updates: u64 = done.iter().map(|(updates, _)| updates).sum();
    let found = own.count().map_err(failed)?;
    if found != updates {
        return Err(Fault::failed(format_args!(
            "{}: {updates} updates were done, and {found} are there",
            S::NAME
        )));
    }
    Ok(done.iter().map(|(updates, took)| *updates as f64 / took.as_secs_f64()).sum())
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    // etcd waits for its disk before each answer; nothing here has to outlive the command.
    let data = RuntimeDir::in_memory()?;
    let (redis, etcd) = (Server::find(Protocol::Redis), Server::etcd(data.path()));
    let [redis_at, etcd_at] = [&redis, &etcd].map(|server| server.as_ref().map(|server| server.address));
    let tasks: Vec<_> = [("redis-server", redis), ("etcd", etcd)]
        .into_iter()
        .filter_map(|(name, server)| Some((name.to_owned(), server?)))
        .collect();
    let workers = if tasks.is_empty() { None } else { Some(start_all(tasks, &interrupt)?) };
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let redis = redis_at.map(|at| updates_of::<redis::Redis>(at, clients)).transpose()?;
        let etcd = etcd_at.map(|at| updates_of::<etcd::Etcd>(at, clients)).transpose()?;
        let on_rack = |kind| record_updates(kind, clients, RECORD as u64, LASTS, &interrupt);
        let (shm, udp) = (on_rack(TransportKind::Shm)?, on_rack(TransportKind::Udp)?);
        rows.push(report::Row::new(clients, (redis, etcd), (shm, udp)));
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
    }
    drop(workers);
    let report = report::LockPeersReport::new(rows);
    output::show(args.json, "peers --locks", &report, || report.text())
}
