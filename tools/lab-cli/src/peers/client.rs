//! A child that is a client of a server: one thread with some connections, each a closed loop with so many requests
//! in flight.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::protocol::{Answer, Protocol};
use super::server::enter;
use cli::clock::Moment;
use cli::processes::child::{Never, Reason};
use cli::processes::{Orders, Teller};
use cli::ycsb::distribution::Chooser;
use cli::ycsb::latency::{Latencies, Recorded};
use cli::ycsb::phase::Span;
use cli::ycsb::random::Random;
use cli::ycsb::workload::{OperationKind, Workload};

/// A server that says nothing for so long is gone.
const SILENT_FOR: Duration = Duration::from_secs(20);
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What a client process is given.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) protocol: Protocol,
    pub(super) server: SocketAddr,
    pub(super) connections: usize,
    pub(super) seed: u64,
    /// Its number among the client processes.
    pub(super) number: u64,
    /// Another network than the command's.
    pub(super) network: Option<PathBuf>,
}

/// What the command wants.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Insert records from one to before another.
    Load { workload: Workload, from: u64, to: u64, depth: usize },
    /// Do so many operations, with so many in flight on each connection.
    Run { workload: Workload, operations: u64, depth: usize },
}

/// What has happened.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// All connections stand.
    Connected,
    /// A phase is over.
    Done { span: Span, latencies: Recorded, absent: u64 },
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "client of a peer";
}

/// Is a client until the process ends.
pub(crate) fn place(task: Task, orders: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    enter(task.network.as_deref())?;
    let connections = (0..task.connections).map(|_| Connection::open(task.server)).collect::<Result<_, _>>();
    let mut client = Client {
        protocol: task.protocol,
        connections: connections.map_err(|error| format!("cannot connect to {}: {error}", task.server))?,
        random: Random::new(task.seed, 1 << 48 | task.number),
        interrupted: Box::new(|| orders.interrupt.requested()),
    };
    teller.tell(Event::Connected);
    loop {
        let (requests, depth, mix) = match orders.next() {
            Order::Load { workload, from, to, depth } => {
                let mix = workload.mix;
                (Requests::new(workload, Some(from), to - from), depth, mix)
            }
            Order::Run { workload, operations, depth } => {
                let mix = workload.mix;
                (Requests::new(workload, None, operations), depth, mix)
            }
        };
        let mut latencies = Latencies::new(&mix);
        let (span, absent) = client.phase(requests, depth, &mut latencies)?;
        teller.tell(Event::Done { span, latencies: latencies.recorded(), absent });
    }
}

/// What is asked, one after the other.
struct Requests {
    workload: Workload,
    chooser: Chooser,
    /// The next record to insert, in a load.
    load: Option<u64>,
    left: u64,
    key: Vec<u8>,
    field: Vec<u8>,
    record: Vec<u8>,
}

impl Requests {
    fn new(workload: Workload, load: Option<u64>, left: u64) -> Self {
        Self {
            chooser: Chooser::new(&workload),
            load,
            left,
            key: Vec::new(),
            field: vec![0; workload.field_len],
            record: vec![b' '; workload.record_len()],
            workload,
        }
    }

    /// Writes the next request; none if that was all.
    fn next(&mut self, protocol: Protocol, random: &mut Random, out: &mut Vec<u8>) -> Option<OperationKind> {
        self.left = self.left.checked_sub(1)?;
        let workload = &self.workload;
        if let Some(record) = &mut self.load {
            workload.names.write(*record, &mut self.key);
            *record += 1;
            random.printable(&mut self.record);
            protocol.set(&self.key, &self.record, out);
            return Some(OperationKind::Insert);
        }
        let kind = workload.mix.choose(random.unit());
        let record = self.chooser.next(random, workload.records - 1);
        workload.names.write(record, &mut self.key);
        match kind {
            OperationKind::Read => protocol.get(&self.key, out),
            OperationKind::Scan => unreachable!("letters with scans insert, too, and are refused"),
            OperationKind::Update | OperationKind::Insert | OperationKind::ReadModifyWrite => {
                random.printable(&mut self.field);
                let field = random.below(workload.fields as u64);
                let at = usize::try_from(field).expect("a number of fields") * workload.field_len;
                protocol.update(&self.key, at, &self.field, &mut self.record, out);
            }
        }
        Some(kind)
    }
}

struct Connection {
    stream: TcpStream,
    /// Requests that are not sent yet.
    out: Vec<u8>,
    /// Answers that are not taken yet.
    heard: Vec<u8>,
    /// What is in flight, oldest first, and since when.
    waiting: VecDeque<(OperationKind, Moment)>,
}

impl Connection {
    fn open(server: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, out: Vec::new(), heard: Vec::new(), waiting: VecDeque::new() })
    }

    /// Sends what the socket takes.
    fn send(&mut self) -> std::io::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what has come.
    fn hear(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => {
                    self.heard.extend_from_slice(&buffer[..len]);
                    if len < buffer.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

struct Client<'a> {
    protocol: Protocol,
    connections: Vec<Connection>,
    random: Random,
    interrupted: Box<dyn Fn() -> bool + 'a>,
}

impl Client<'_> {
    /// Asks everything, and hears all answers. Gives from when to when, and how many records were not there.
    fn phase(
        &mut self,
        mut requests: Requests,
        depth: usize,
        latencies: &mut Latencies,
    ) -> Result<(Span, u64), Reason> {
        let broken = |error: std::io::Error| format!("a connection to the server broke: {error}");
        let load = requests.load.is_some();
        let mut buffer = vec![0; 64 << 10];
        let mut absent = 0;
        let began = Moment::now();
        for connection in &mut self.connections {
            fill(self.protocol, &mut self.random, connection, &mut requests, depth);
            connection.send().map_err(broken)?;
        }
        let mut heard_at = Instant::now();
        while self.connections.iter().any(|connection| !connection.waiting.is_empty()) {
            if (self.interrupted)() {
                requests.left = 0;
            }
            let ready = self.ready()?;
            if ready.is_empty() && heard_at.elapsed() > SILENT_FOR {
                return Err(format!("the server says nothing for {SILENT_FOR:?}"));
            }
            for at in ready {
                let connection = &mut self.connections[at];
                connection.hear(&mut buffer).map_err(broken)?;
                let mut taken = 0;
                while let Some((answer, bytes)) = self.protocol.answer(&connection.heard[taken..])? {
                    taken += bytes;
                    let (kind, asked) =
                        connection.waiting.pop_front().ok_or("an answer that nobody asked for")?;
                    absent += u64::from(answer == Answer::Absent);
                    if !load {
                        latencies.record(kind, Moment::now() - asked);
                    }
                }
                if taken > 0 {
                    connection.heard.drain(..taken);
                    heard_at = Instant::now();
                    fill(self.protocol, &mut self.random, connection, &mut requests, depth);
                }
                connection.send().map_err(broken)?;
            }
        }
        Ok((Span::new(began, Moment::now()), absent))
    }

    /// The connections that something can be done for.
    fn ready(&self) -> Result<Vec<usize>, Reason> {
        let mut sockets: Vec<PollFd<'_>> = self
            .connections
            .iter()
            .map(|connection| {
                let wanted =
                    if connection.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
                PollFd::new(&connection.stream, wanted)
            })
            .collect();
        match poll(&mut sockets, Some(&LOOK_EVERY)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("cannot wait for the server: {error}")),
        }
        let ready = sockets.iter().enumerate().filter(|(_, socket)| !socket.revents().is_empty());
        Ok(ready.map(|(at, _)| at).collect())
    }
}

/// Asks until so many requests are in flight.
fn fill(
    protocol: Protocol,
    random: &mut Random,
    connection: &mut Connection,
    requests: &mut Requests,
    depth: usize,
) {
    while connection.waiting.len() < depth {
        let asked = Moment::now();
        let Some(kind) = requests.next(protocol, random, &mut connection.out) else { break };
        connection.waiting.push_back((kind, asked));
    }
}
