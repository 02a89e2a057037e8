//! `rackmem up`: a rack as processes of this machine, all of them children of this one.
//!
//! What must always hold: when this process has ended, nothing of the rack is left, no process, no socket, no file.
//! Killed, it cannot see to that itself: its children notice, and the last one does (see `owner.rs`).

mod child;
mod used_file;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rackmem::attach::socket_of;
use rackmem::rack_file::{Given, TransportKind, timeout_of};
use rackmem::{Nanos, NodeId, RackFile};
use status::ask;
use status::document::Status;
use tracing::{info, warn};

use self::child::{Child, Options, Part};
use self::used_file::UsedRackFile;
use super::log::LogArgs;
use super::{owner, read};
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;
use crate::size::Bytes;

/// What carries the messages of a rack that is made, as flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Transport {
    /// Rings in shared memory
    Shm,
    /// UDP on loopback
    Udp,
    /// UDP between networks of their own, and the switch's programs in the kernel at its ports (as root)
    Wire,
}

impl Transport {
    fn kind(self) -> TransportKind {
        match self {
            Self::Shm => TransportKind::SharedMemory,
            Self::Udp | Self::Wire => TransportKind::Udp,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  rackmem up                              4 nodes over shared memory, one of them left to an application
  rackmem up --nodes 8 --seats 2 --transport udp
  rackmem up --transport wire             the switch in the kernel, each node in a network of its own (docs/kernel.md)
  rackmem up --memory 4GiB --cache 1GiB   for large arrays
  rackmem up --copies 2                   with memory and names that outlive a node (docs/copies.md)
  rackmem up --config rack.toml           all places of that rack, which must be on this machine";

/// Which rack, and what to do about children that die.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Nodes of the rack
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "config")]
    nodes: u16,

    /// The rack's name: racks of several names can run at a time
    #[arg(long, value_name = "NAME", default_value = "up", value_parser = rack_name, conflicts_with = "config")]
    name: String,

    /// How many of the nodes, the last ones, get no process: applications join as them
    /// [default: 1, and 0 with --config]
    #[arg(long, value_name = "N")]
    seats: Option<u16>,

    /// What carries the messages
    #[arg(long, value_enum, default_value_t = Transport::Shm, conflicts_with = "config")]
    transport: Transport,

    /// Bytes that every node caches [default: 64MiB]
    #[arg(long, value_name = "BYTES", conflicts_with = "config")]
    cache: Option<Bytes>,

    /// Bytes that every node contributes [default: 256MiB]
    #[arg(long, value_name = "BYTES", conflicts_with = "config")]
    memory: Option<Bytes>,

    /// Nodes that keep what is allocated with copies, and names [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=3), conflicts_with = "config")]
    copies: Option<u16>,

    /// A node that is not heard for this long is declared dead: longer on a machine with much else to do, such as 5s
    /// [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = timeout_of, conflicts_with = "config")]
    timeout: Option<Nanos>,

    /// Run the rack of this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Start children again that die; not nodes that have ended with success, as those do that have drained
    #[arg(long)]
    restart: bool,

    /// With `--transport wire`: keep the switch's programs in this directory of a file system of bpf, so that packets go on
    /// while its process is started again
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    keep: Option<PathBuf>,

    /// Answer HTTP here for the whole rack: /metrics for Prometheus, /status for `rackmem status`
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    #[command(flatten)]
    log: LogArgs,

    /// End when standard input closes
    #[arg(long, hide = true)]
    owned: bool,
}

impl Args {
    /// What is said of the rack's memory.
    fn shape(&self) -> Given<'static> {
        let [cache, memory] = [&self.cache, &self.memory].map(|given| given.as_ref().map(|bytes| bytes.0));
        Given { cache, memory, copies: self.copies, timeout: self.timeout, ..Given::default() }
    }
}

fn rack_name(text: &str) -> Result<String, String> {
    let is_name = RackFile::is_name(text);
    is_name.then(|| text.to_owned()).ok_or_else(|| "use 1 to 32 letters, digits and -".to_owned())
}

/// Between two looks at the children.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Between two lines that say whom a rack still waits for.
const SAY_EVERY: Duration = Duration::from_secs(5);
/// How long a node that is in the rack may take until applications can attach. It says why if they never can.
const MOST_SERVING: Duration = Duration::from_secs(5);
/// How long children may take to end before they are killed.
const MOST_ENDING: Duration = Duration::from_secs(5);

/// Runs the command: until Ctrl-C, or a polite kill.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    args.log.begin("up")?;
    let stop = Interrupt::listen()?;
    if args.owned {
        owner::watch(&stop)?;
    }
    if let Some(address) = args.metrics.filter(|_| args.transport == Transport::Wire) {
        return Err(Fault::usage(format_args!(
            "--metrics {address} would be in the switch's own network, where nobody asks: leave it out with --transport wire"
        )));
    }
    if let Some(keep) = args.keep.as_ref().filter(|_| args.transport != Transport::Wire) {
        return Err(Fault::usage(format_args!(
            "--keep {} is for programs in the kernel, and this rack has none there: add --transport wire",
            keep.display()
        )));
    }
    let place = match &args.config {
        Some(path) => UsedRackFile::given(path),
        None => {
            // Nodes of applications come and go: names would go with them.
            let seats = args.seats.unwrap_or(u16::from(args.nodes > 1));
            let keepers = with_process(args.nodes, seats)?;
            let keep = args.keep.as_deref();
            UsedRackFile::made(&args.name, args.nodes, keepers, (args.transport, keep), args.shape())?
        }
    };
    let file = read(&place.file).inspect_err(|_| place.forget())?;
    let nodes = u16::try_from(file.config.nodes).expect("at most 64 nodes");
    let seats = args.seats.unwrap_or(u16::from(args.config.is_none() && nodes > 1));
    let with_process = with_process(nodes, seats)?;
    let network = place.network.as_ref();
    let with = Options { file: place.file.clone(), metrics: args.metrics, log: args.log.log, network };
    info!(
        target: "rackmem", rack = file.name,
        "starting the switch and {} over {}, and waiting until they are a rack",
        counted(with_process), carrier(&file, &with)
    );
    let mut children = Vec::new();
    let parts = [Part::Switch].into_iter().chain((0..with_process).map(Part::Node));
    let ended = parts
        .map(|part| Child::start(part, &with))
        .try_for_each(|child| child.map(|child| children.push(child)))
        .and_then(|()| watch(args.restart, &file, &with, with_process, &mut children, &stop));
    end(&mut children);
    // A rack file of the user's own may be that of several machines.
    place.clear(&file, &children, if args.config.is_none() { with_process..nodes } else { 0..0 });
    if args.config.is_none() {
        owner::remove_kept(&file);
    }
    ended
}

/// The nodes that get a process, beside those that are left to applications.
fn with_process(nodes: u16, seats: u16) -> Result<u16, Fault> {
    nodes.checked_sub(seats).ok_or_else(|| {
        Fault::usage(format_args!(
            "--seats {seats}: the rack has {nodes} nodes; take no more seats than that, or more --nodes"
        ))
    })
}

/// Looks after the children until told to stop.
fn watch(
    restart: bool,
    file: &RackFile,
    with: &Options<'_>,
    with_process: u16,
    children: &mut [Child],
    stop: &Interrupt,
) -> Result<(), Fault> {
    let mut ready = false;
    let mut up_since = None;
    let mut say_at = Instant::now() + SAY_EVERY;
    while !stop.requested() {
        for child in &mut *children {
            let Some(death) = child.death() else { continue };
            let part = child.part();
            if !ready && !restart {
                return Err(Fault::failed(format_args!("{part} {death} before the rack was up")));
            }
            if restart && !child.has_left() {
                warn!(target: "rackmem", "{part} {death}; starting it again");
            } else {
                warn!(target: "rackmem", "{part} {death}; start it again with: {}", part.command(with));
            }
        }
        if restart {
            children.iter_mut().try_for_each(|child| child.restart_if_due(with))?;
        } else if children.iter().all(Child::is_dead) {
            return Err(Fault::failed("all of them have died"));
        }
        if !ready {
            let status = ask::ask(file);
            if status.as_ref().is_ok_and(|status| is_up(status, with_process)) {
                let since: Instant = *up_since.get_or_insert_with(Instant::now);
                // Whoever reads that the rack is up may attach at once.
                ready = serves_applications(file, with_process) || since.elapsed() >= MOST_SERVING;
            }
            if ready {
                output::print(&banner(file, with, with_process))?;
            } else if Instant::now() >= say_at {
                say_at += SAY_EVERY;
                info!(target: "rackmem", "still waiting for {}", missing(status.ok().as_ref(), with_process));
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Whom the rack waits for.
fn missing(status: Option<&Status>, with_process: u16) -> String {
    let Some(status) = status else { return "the switch".to_owned() };
    let down = status.nodes.iter().filter(|node| !node.up && node.id < with_process);
    let down: Vec<String> = down.map(|node| format!("node {}", node.id)).collect();
    match down.as_slice() {
        [] if is_up(status, with_process) => "the nodes' sockets for applications".to_owned(),
        [] => "the first epoch".to_owned(),
        down => down.join(", "),
    }
}

fn counted(nodes: u16) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

/// Every node that has a process is in the rack.
fn is_up(status: &Status, with_process: u16) -> bool {
    let up = status.nodes.iter().filter(|node| node.up && node.id < with_process).count();
    status.phase == "running" && up == usize::from(with_process)
}

/// Applications can attach to every node that has a process.
fn serves_applications(file: &RackFile, with_process: u16) -> bool {
    (0..with_process).all(|node| socket_of(file, NodeId(node)).exists())
}

/// What carries the messages, as one would ask for it.
fn carrier(file: &RackFile, with: &Options<'_>) -> &'static str {
    if with.network.is_some() { "wire" } else { file.transport().name() }
}

/// What there is now, and what can be done with it.
fn banner(file: &RackFile, with: &Options<'_>, with_process: u16) -> String {
    let (path, transport) = (with.file.display(), carrier(file, with));
    let processes = counted(with_process);
    let seats: Vec<String> = file.nodes().skip(with_process.into()).map(|node| node.0.to_string()).collect();
    let join = match seats.first() {
        Some(seat) => {
            let inside = match with.inside(Part::Node(with_process)).as_str() {
                "" => String::new(),
                inside => format!("\n            in its network: {inside}PROGRAM"),
            };
            let seats = seats.join(" or ");
            format!(
                "join      as node {seats} from Rust: Rack::join(&RackFile::read(\"{path}\")?, NodeId({seat}))?{inside}"
            )
        }
        None => "join      every node has a process: leave some to applications with --seats".to_owned(),
    };
    format!(
        "rack `{}` is up over {transport}: the switch and {processes}, each a process\n  \
         {join}\n  status    rackmem status --config {path}\n  end       Ctrl-C\n",
        file.name
    )
}

/// Ends all children: nodes leave first, while there is a switch to tell.
fn end(children: &mut [Child]) {
    let (switch, nodes): (Vec<_>, Vec<_>) =
        children.iter_mut().partition(|child| child.part() == Part::Switch);
    for mut group in [nodes, switch] {
        group.iter_mut().for_each(|child| child.ask_to_end());
        let until = Instant::now() + MOST_ENDING;
        while !group.iter_mut().all(|child| child.has_ended()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        for child in group {
            if !child.has_ended() {
                warn!(target: "rackmem", "{} does not end: killed", child.part());
                child.kill();
            }
        }
    }
}
