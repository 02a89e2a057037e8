//! `rackmem drain`: a node's daemon is to leave the rack when others have what it keeps of memory with copies.
//!
//! The daemon does it, and goes on when this command ends. What must always hold: 0 says that the node has left in order.

use std::thread;
use std::time::Duration;

use rackmem::attach::socket_of;
use rackmem::{Draining, Error, NodeId, Rack, RackFile, Rest};
use serde::Serialize;

use super::status::find::Which;
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;
use crate::size::Bytes;

const EXAMPLES: &str = "\
Examples:
  rackmem drain --node 2                  node 2 leaves when others have what it keeps; on its machine
  rackmem drain --node 2 --stop           it stays, after all
  rackmem drain --node 2 --config lab.toml --lose-the-rest";

/// Which node of which rack.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which node. Its daemon (rackmem node) runs on this machine, as this user
    #[arg(long, value_name = "N")]
    node: u16,

    #[command(flatten)]
    which: Which,

    /// Leave also if allocations without copies are in its memory: they are lost
    #[arg(long)]
    lose_the_rest: bool,

    /// Have it stay
    #[arg(long, conflicts_with = "lose_the_rest")]
    stop: bool,

    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

/// Between two looks at how far it has come. (The daemon waits for longer with its end.)
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How it ended.
#[derive(Serialize, Debug)]
struct Outcome {
    rack: String,
    node: u16,
    /// `left` or `stays`.
    state: &'static str,
    /// On how many nodes each memory with copies is; and is to be.
    on_nodes: Option<usize>,
    copies: usize,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let node = NodeId(args.node);
    let meant = args.which.meant()?;
    let status = meant.ask().ok();
    let file = meant.file(status.as_ref()).map_err(Fault::failed)?;
    let rack = find(&file, node)?;
    let stop = Interrupt::listen()?;
    let rest = if args.lose_the_rest { Rest::Lose } else { Rest::Keep };
    let mut state = if args.stop { rack.stop_drain() } else { rack.begin_drain(rest) };
    let mut said = String::new();
    let on_nodes = loop {
        match state.map_err(|error| gone(node, error))? {
            Draining::No if args.stop => break None,
            Draining::Left { staying, in_order: true } => break Some(file.config.copies.min(staying.into())),
            ended @ (Draining::No | Draining::Refused { .. } | Draining::Left { .. }) => {
                return Err(Fault::failed(why(&file, node, ended)));
            }
            going => tell(&mut said, progress(&file, node, going)),
        }
        if stop.requested() {
            say!(
                "{node} goes on draining, and leaves when others have all it keeps; to have it stay: rackmem drain --node {} --stop",
                node.0
            );
            return Err(Fault::Interrupted);
        }
        thread::sleep(LOOK_EVERY);
        state = rack.draining();
    };
    let copies = file.config.copies;
    let state = if on_nodes.is_some() { "left" } else { "stays" };
    let outcome = Outcome { rack: file.name.clone(), node: node.0, state, on_nodes, copies };
    output::show(args.json, "drain", &outcome, || text(&outcome))
}

/// Attaches to the node's daemon.
fn find(file: &RackFile, node: NodeId) -> Result<Rack, Fault> {
    let nodes = file.config.nodes;
    if node.index() >= nodes {
        let what = format_args!("--node {}: rack `{}` has nodes 0 to {}", node.0, file.name, nodes - 1);
        return Err(Fault::usage(what));
    }
    let socket = socket_of(file, node);
    if !socket.exists() {
        return Err(Fault::failed(format_args!(
            "{node} of rack `{}` has no daemon on this machine ({} is not there): ask where `rackmem node --id {}` runs, as its user; an \
             application that is a node drains itself, with Rack::drain",
            file.name,
            socket.display(),
            node.0
        )));
    }
    Rack::attach_by_socket(file, node)
        .map_err(|why| Fault::failed(format_args!("{node} of rack `{}` cannot be asked: {why}", file.name)))
}

/// The daemon does not answer any more.
fn gone(node: NodeId, error: Error) -> Fault {
    let what = match error {
        Error::Detached => "its daemon has ended, or left the rack and come back",
        Error::TooManyAttached { .. } => "its daemon serves as many applications as it can",
        _ => "it was declared dead",
    };
    Fault::failed(format_args!(
        "it is not known that {node} has left in order: {what}; rackmem status says what is missing"
    ))
}

/// Why it has not left in order.
fn why(file: &RackFile, node: NodeId, state: Draining) -> String {
    match state {
        Draining::Refused { bytes } => {
            let bytes = Bytes(bytes);
            let instead = match file.config.copies {
                1 => "; rack `{}` keeps no copies (`copies` in its file)".replace("{}", &file.name),
                _ => ", or allocate with copies what is to outlive a node".to_owned(),
            };
            format!(
                "{node} stays: {bytes} of allocations without copies are in its memory, and nobody else can have them: free them{instead}; \
                 or lose them, with --lose-the-rest"
            )
        }
        Draining::Left { .. } => format!(
            "{node} has left, and not all that only it had cached has gone home in time: blocks that are lost are named in the others' logs"
        ),
        _ => format!("{node} stays: somebody else has said so (rackmem drain --stop)"),
    }
}

/// Says a line, if it is another one.
fn tell(said: &mut String, line: String) {
    if *said != line {
        say!("{line}");
        *said = line;
    }
}

fn progress(file: &RackFile, node: NodeId, state: Draining) -> String {
    match state {
        Draining::Moving { staying: None, .. } => format!("{node} drains"),
        Draining::Moving { staying: Some(0), .. } => {
            format!("{node} waits: no node stays that could take what it keeps")
        }
        Draining::Moving { memories, bytes, staying } => {
            let copies = file.config.copies.min(staying.unwrap_or_default().into());
            let bytes = Bytes(bytes);
            match memories {
                1 => format!("{node} waits until a memory ({bytes}) is on {copies} of the other nodes"),
                _ => format!(
                    "{node} waits until {memories} memories ({bytes}) are on {copies} of the other nodes"
                ),
            }
        }
        _ => format!("{node} leaves: others have all it kept"),
    }
}

fn text(outcome: &Outcome) -> String {
    let Outcome { node, on_nodes, copies, .. } = outcome;
    match on_nodes {
        None => format!("node {node} stays\n"),
        Some(_) if *copies == 1 => format!("node {node} has left\n"),
        Some(on) if on < copies => {
            format!(
                "node {node} has left; each memory with copies is on {on} of {copies} nodes, for want of more\n"
            )
        }
        Some(on) => format!("node {node} has left; each memory with copies is on {on} nodes\n"),
    }
}
