//! `rackmem node`: a node as this process. It contributes its memory, and is home of it. Applications of this user on this
//! machine may attach to it.
//!
//! What must always hold: a node that was declared dead comes back as a new incarnation, with nothing of the old one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rackmem::rack_file::Location;
use rackmem::transport::{PeerId, Transport};
use rackmem::{Attachments, Draining, NodeId, PeerWatch, ProcessConfig, Rack, RackFile};
use tracing::{error, info, warn};

use super::log::LogArgs;
use super::peers::News;
use super::{LocationArgs, metrics, owner, read, runtime};
use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// How long a node that leaves may take to send home what only it has cached.
const LEAVING: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  rackmem node --id 0                               node 0 of the rack in ./rack.toml
  rackmem node --config lab.toml --id 2";

/// Which node of which rack.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The rack file
    #[arg(long, value_name = "FILE", default_value = "rack.toml")]
    config: PathBuf,

    /// Which node this process is
    #[arg(long, value_name = "N")]
    id: u16,

    #[command(flatten)]
    location: LocationArgs,

    /// Answer HTTP here: /metrics for Prometheus. Whoever reaches the address may ask
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    #[command(flatten)]
    log: LogArgs,

    /// End when standard input closes
    #[arg(long, hide = true)]
    owned: bool,
}

/// What this process is now, for whoever asks for metrics; none while it is joining.
pub(super) type Joined = Arc<Mutex<Option<Membership>>>;

/// An incarnation of the node.
pub(super) struct Membership {
    /// The applications that are attached, unless they cannot be. (They go before the rack does.)
    pub(super) applications: Option<Attachments>,
    pub(super) rack: Rack,
}

/// How often the node looks whether it shall end, or was declared dead.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a node that has drained waits with its end, so that whoever watches hears of it.
const LAST_WORD: Duration = Duration::from_secs(2);
/// The longest that a thread of a node that has ended may take to let go of its transport.
const MOST_CLOSING: Duration = Duration::from_secs(2);

/// Runs the command: until Ctrl-C, or a polite kill.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let id = NodeId(args.id);
    args.log.begin(id)?;
    let file = read(&args.config)?;
    if id.index() >= file.config.nodes {
        let last = file.config.nodes - 1;
        return Err(Fault::usage(format_args!(
            "--id {}: the rack of {} has nodes 0 to {last}; choose one of them, or add a [[node]]",
            args.id,
            args.config.display()
        )));
    }
    let location = args.location.read()?;
    let stop = Interrupt::listen()?;
    if args.owned {
        owner::watch(&stop)?;
    }
    let joined = Joined::default();
    let address = args.metrics.or(file.node_metrics[id.index()]);
    address.map(|address| metrics::serve_node(address, id, Arc::clone(&joined))).transpose()?;
    let news = News::of(Some(id), args.owned);
    while !stop.requested() {
        let Some((rack, transport)) = join(&file, id, &location, &stop, &news)? else { break };
        let applications = serve_applications(&rack, &file, id);
        let mut watches: Vec<PeerWatch> =
            rack.peers().into_iter().chain(applications.as_ref().map(Attachments::peers)).collect();
        show(&joined, Some(Membership { applications, rack: rack.clone() }));
        let mut drains = false;
        while !stop.requested() && !rack.is_fenced() {
            watches.iter_mut().for_each(|watch| news.say(watch));
            thread::sleep(LOOK_EVERY);
            if look_at_drain(&rack, id, &mut drains) {
                let served = || joined.lock().unwrap_or_else(PoisonError::into_inner);
                leave(&rack, id);
                await_listeners(|| {
                    served()
                        .as_ref()
                        .and_then(|it| it.applications.as_ref())
                        .map_or(0, |it| it.counts().attached)
                });
                stop.request();
            }
        }
        let incarnation = show(&joined, None);
        // The end of their connections tells the applications. What they have in flight ends with the node.
        incarnation.iter().flat_map(|incarnation| &incarnation.applications).for_each(Attachments::end);
        if rack.is_fenced() && !stop.requested() {
            info!(target: "rackmem", node = id.0, "joining anew, with nothing of the incarnation that was declared dead");
        }
        if !rack.is_fenced() {
            leave(&rack, id);
        }
        drop((incarnation, rack));
        close(transport);
    }
    if args.owned {
        owner::clean_up(&file, &args.config);
    } else {
        runtime::remove_if_empty(&file.runtime);
    }
    Ok(())
}

fn leave(rack: &Rack, id: NodeId) {
    if !rack.leave(LEAVING) {
        error!(target: "rackmem", node = id.0, what = "blocks", "lost: not all that only this node had cached has gone home");
    }
}

/// Says what has changed about a node that is to leave, or is not any more. True: others have what it kept.
fn look_at_drain(rack: &Rack, id: NodeId, drains: &mut bool) -> bool {
    let state = rack.draining().unwrap_or(Draining::No);
    let does = matches!(state, Draining::Moving { .. } | Draining::Done { .. });
    match (std::mem::replace(drains, does), state) {
        (false, Draining::Moving { .. } | Draining::Done { .. }) => {
            info!(target: "rackmem", node = id.0, "draining: others get what this node keeps of memory with copies, then it leaves");
        }
        (true, Draining::Refused { bytes }) => {
            warn!(target: "rackmem", node = id.0, bytes, "not draining any more: allocations without copies are in its memory");
        }
        (true, Draining::No) => info!(target: "rackmem", node = id.0, "not draining any more"),
        _ => {}
    }
    matches!(state, Draining::Done { .. })
}

/// Waits until nobody is attached, for a while.
fn await_listeners(attached: impl Fn() -> u64) {
    let until = Instant::now() + LAST_WORD;
    while attached() > 0 && Instant::now() < until {
        thread::sleep(LOOK_EVERY);
    }
}

/// Lets applications attach. A node for which that cannot be is a node all the same.
fn serve_applications(rack: &Rack, file: &RackFile, id: NodeId) -> Option<Attachments> {
    let served = runtime::prepared(&file.runtime)
        .and_then(|()| rack.serve_applications(file, id).map_err(|error| error.to_string()));
    served.map_err(|why| warn!(target: "rackmem", node = id.0, why, "applications cannot attach")).ok()
}

/// Returns what was shown before.
fn show(joined: &Joined, incarnation: Option<Membership>) -> Option<Membership> {
    std::mem::replace(&mut *joined.lock().unwrap_or_else(PoisonError::into_inner), incarnation)
}

/// Lets go of the transport as the last one who has it, so that its files are gone when this returns: the thread that
/// serves a node lets go of it a moment after the node.
fn close(transport: Arc<dyn Transport>) {
    let until = Instant::now() + MOST_CLOSING;
    while Arc::strong_count(&transport) > 1 && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A node that has joined, and what carries its messages.
type Connected = (Rack, Arc<dyn Transport>);

/// Joins the rack, however long its switch takes to come; nothing if the process shall end first.
fn join(
    file: &RackFile,
    id: NodeId,
    location: &Location,
    stop: &Interrupt,
    news: &News,
) -> Result<Option<Connected>, Fault> {
    let failed =
        |error: &dyn std::fmt::Display| Fault::failed(format_args!("{id} of rack `{}`: {error}", file.name));
    let transport = file.open_at(PeerId::node(id), location).map_err(|error| failed(&error))?;
    let mut watch = PeerWatch::of_joining(&*transport);
    let process = ProcessConfig { join_timeout: Duration::MAX, ..file.process() };
    let joined = Rack::join_over_while(&file.config, id, &process, &transport, &mut || {
        news.say(&mut watch);
        !stop.requested()
    });
    match joined {
        Ok(rack) => Ok(Some((rack, transport))),
        Err(_) if stop.requested() => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}
