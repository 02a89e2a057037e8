//! `rackmem lab peers --locks`: a record of 128 bytes, taken, changed and released by 1 to 8 clients: with Redis as a lock service
//! and store, and with a lock that carries the record between the nodes of a rack.
//!
//! Redis as its documentation has it for one server: `SET lock token NX PX`, tried again after a random delay up to
//! [`LONGEST_DELAY`] while somebody has it; GET; then the record's SET together with the script that deletes the lock if it is still
//! the client's own. Three round trips, if the lock is free. Clients are threads of this process, each with a connection.
//!
//! What must always hold: the record counts its updates, and in the end it is their number, in each system.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::args::Args;
use super::client::{Event, Order};
use super::protocol::{Answer, Protocol, command};
use super::server::{Server, program_of};
use crate::bench::lock::record_updates;
use crate::bench::rounds::table;
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;
use crate::processes::meeting::RuntimeDir;
use crate::processes::{Crew, OnInterrupt, TransportKind, child};
use crate::ycsb::random::Random;

/// Bytes of the record.
const RECORD: usize = 128;
const CLIENTS: [u16; 4] = [1, 2, 4, 8];
const LASTS: Duration = Duration::from_secs(2);
/// The longest that a client waits before it asks for a lock again.
const LONGEST_DELAY: Duration = Duration::from_micros(200);
/// The mark for shared memory.
const LEAST_RATIO: f64 = 20.0;

const RELEASE: &[u8] =
    b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

#[derive(Serialize)]
struct Report {
    command: &'static str,
    version: &'static str,
    record_bytes: usize,
    least_ratio: f64,
    rows: Vec<Row>,
}

/// Updates per second.
#[derive(Serialize)]
struct Row {
    clients: u16,
    /// None: it is not installed.
    redis_per_second: Option<f64>,
    shm_per_second: f64,
    udp_per_second: f64,
    shm_ratio: Option<f64>,
    udp_ratio: Option<f64>,
    /// The share of the client that got least, against an equal share.
    shm_least_share: f64,
    udp_least_share: f64,
}

/// A connection to Redis.
struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    read: Vec<u8>,
}

impl Connection {
    fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream, out: Vec::new(), read: Vec::new() })
    }

    /// Sends these commands at once, and gives the last answer, with the bytes of a record.
    fn ask(&mut self, commands: &[&[&[u8]]]) -> io::Result<(Answer, Vec<u8>)> {
        self.out.clear();
        commands.iter().for_each(|words| command(&mut self.out, words));
        self.stream.write_all(&self.out)?;
        let mut last = (Answer::Absent, Vec::new());
        for _ in commands {
            last = self.answer()?;
        }
        Ok(last)
    }

    fn answer(&mut self) -> io::Result<(Answer, Vec<u8>)> {
        loop {
            if let Some((answer, len)) = Protocol::Redis.answer(&self.read).map_err(io::Error::other)? {
                let rest = self.read.split_off(len);
                let taken = std::mem::replace(&mut self.read, rest);
                let record = match answer {
                    Answer::Record(bytes) => taken[len - 2 - bytes..len - 2].to_vec(),
                    _ => Vec::new(),
                };
                return Ok((answer, record));
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => self.read.extend_from_slice(&more[..bytes]),
            }
        }
    }
}

/// The number that a record holds.
fn count_in(record: &[u8]) -> u64 {
    record.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// Updates the record until told to stop. How often, and for how long.
fn client(server: SocketAddr, number: u16, stop: &AtomicBool) -> io::Result<(u64, Duration)> {
    let mut connection = Connection::open(server)?;
    let mut random = Random::new(1, u64::from(number));
    let (mut updates, began) = (0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let token = random.word().to_le_bytes();
        let lock: [&[u8]; 6] = [b"SET", b"lock", &token, b"NX", b"PX", b"30000"];
        while connection.ask(&[&lock])?.0 == Answer::Absent {
            let most = LONGEST_DELAY.as_nanos() as u64;
            thread::sleep(Duration::from_nanos(random.below(most)));
        }
        let mut record = connection.ask(&[&[b"GET", b"record"]])?.1;
        record.resize(RECORD, 0);
        let next = count_in(&record) + 1;
        record[..8].copy_from_slice(&next.to_le_bytes());
        connection.ask(&[&[b"SET", b"record", &record], &[b"EVAL", RELEASE, b"1", b"lock", &token]])?;
        updates += 1;
    }
    Ok((updates, began.elapsed()))
}

/// Updates per second of so many clients.
fn on_redis(server: SocketAddr, clients: u16) -> Result<f64, Fault> {
    let failed = |error: io::Error| Fault::failed(format_args!("Redis: {error}"));
    let mut own = Connection::open(server).map_err(failed)?;
    own.ask(&[&[b"SET", b"record", &[0; RECORD]]]).map_err(failed)?;
    let stop = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let stop = &stop;
        let running: Vec<_> =
            (0..clients).map(|number| scope.spawn(move || client(server, number, stop))).collect();
        thread::sleep(LASTS);
        stop.store(true, Ordering::Relaxed);
        running
            .into_iter()
            .map(|thread| thread.join().expect("a client panicked"))
            .collect::<io::Result<Vec<_>>>()
    })
    .map_err(failed)?;
    let updates: u64 = done.iter().map(|(updates, _)| updates).sum();
    let found = count_in(&own.ask(&[&[b"GET", b"record"]]).map_err(failed)?.1);
    if found != updates {
        return Err(Fault::failed(format_args!("Redis: {updates} updates were done, and {found} are there")));
    }
    Ok(done.iter().map(|(updates, took)| *updates as f64 / took.as_secs_f64()).sum())
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()
        .map_err(|error| Fault::failed(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let server = Server::find(Protocol::Redis);
    let address = server.as_ref().map(|server| server.address);
    let name = program_of(Protocol::Redis);
    let mut crew: Option<Crew<Order, Event>> = None;
    if let Some(server) = server {
        let tasks = vec![(name.to_owned(), child::Task::Server(server))];
        let crew = crew.insert(Crew::start(tasks, RuntimeDir::new()?, &interrupt)?);
        crew.answers([0], OnInterrupt::End, |_, event| Ok(matches!(event, Event::Connected).then_some(())))?;
    }
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let redis = address.map(|address| on_redis(address, clients)).transpose()?;
        let on_rack = |kind| record_updates(kind, clients, RECORD as u64, LASTS, &interrupt);
        let (shm, shm_least_share) = on_rack(TransportKind::Shm)?;
        let (udp, udp_least_share) = on_rack(TransportKind::Udp)?;
        rows.push(Row {
            clients,
            redis_per_second: redis,
            shm_per_second: shm,
            udp_per_second: udp,
            shm_ratio: redis.map(|redis| shm / redis),
            udp_ratio: redis.map(|redis| udp / redis),
            shm_least_share,
            udp_least_share,
        });
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
    }
    drop(crew);
    let report = Report {
        command: "lab peers --locks",
        version: env!("CARGO_PKG_VERSION"),
        record_bytes: RECORD,
        least_ratio: LEAST_RATIO,
        rows,
    };
    if args.json { output::print_json(&report) } else { output::print(&report.text(name)) }
}

impl Report {
    fn text(&self, redis: &str) -> String {
        let rate = |rate: f64| format!("{rate:.0}");
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}x"));
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                vec![
                    row.clients.to_string(),
                    row.redis_per_second.map_or_else(|| "-".to_owned(), rate),
                    rate(row.shm_per_second),
                    ratio(row.shm_ratio),
                    percent(row.shm_least_share),
                    rate(row.udp_per_second),
                    ratio(row.udp_ratio),
                    percent(row.udp_least_share),
                ]
            })
            .collect();
        let header = [
            "clients",
            "Redis",
            "shm",
            "against Redis",
            "least share",
            "udp",
            "against Redis",
            "least share",
        ];
        let judged = if self.rows.iter().any(|row| row.shm_ratio.is_none()) {
            format!("{redis} is not installed: its Debian package is {redis}")
        } else {
            let met = self.rows.iter().all(|row| row.shm_ratio >= Some(self.least_ratio));
            let met = if met { "met" } else { "not met" };
            format!("mark over shared memory: at least {:.0}x: {met}", self.least_ratio)
        };
        format!(
            "Updates per second of one record of {} bytes under one lock\n\n{}\n{judged}\n",
            self.record_bytes,
            table(&header, &rows)
        )
    }
}
