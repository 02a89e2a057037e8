//! `--metrics`: counts of the rack, or of one node, for Prometheus.
//!
//! What must always hold: a metric has the same name and labels at the switch, which knows all nodes, and at a node.
//! Without an address given nothing listens.

mod http;
mod locks;
mod page;
mod text;

use std::net::{SocketAddr, TcpListener};
use std::sync::PoisonError;
use std::thread;

use rackmem::{Attachments, NodeId, Rack};

use super::node::Joined;
use super::status::Answers;
use super::status::document::{Chains, Nic, Node, NodeCounts, Status, Transport, machine_drops};
use crate::fault::Fault;
use http::Answer;

/// Answers for the whole rack, on a thread of its own.
pub(super) fn serve_rack(address: SocketAddr, answers: Answers) -> Result<(), Fault> {
    serve(address, move |path| match (path, answers.status()) {
        ("/metrics" | "/status", None) => Answer::NotYet,
        ("/metrics", Some(status)) => Answer::metrics(text::rack(&status)),
        // Where its file is concerns nobody elsewhere.
        ("/status", Some(status)) => Answer::json(&Status { file: None, ..status }),
        _ => Answer::NotFound,
    })
}

/// Answers for one node, on a thread of its own.
pub(super) fn serve_node(address: SocketAddr, id: NodeId, joined: Joined) -> Result<(), Fault> {
    serve(address, move |path| match path {
        "/metrics" => {
            // Counted under the lock: a clone of the rack would keep its socket open.
            let incarnation = joined.lock().unwrap_or_else(PoisonError::into_inner);
            let node = Node {
                id: id.0,
                up: incarnation.is_some(),
                incarnation: 0,
                silence_ns: None,
                epoch: 0,
                counts: incarnation.as_ref().map(|incarnation| counts(&incarnation.rack)),
            };
            let applications = incarnation.as_ref().and_then(|incarnation| incarnation.applications.as_ref());
            let watched = incarnation.as_ref().map(|incarnation| incarnation.rack.watched_locks());
            let applications = applications.map(Attachments::counts);
            Answer::metrics(text::node(&node, applications, watched.unwrap_or_default()))
        }
        _ => Answer::NotFound,
    })
}

/// What the only node in this process has counted.
fn counts(rack: &Rack) -> NodeCounts {
    let counters = rack.counters();
    let protocol = counters.protocol();
    NodeCounts {
        hits: counters.hits(),
        misses: counters.misses(),
        refused: protocol.refused.iter().sum(),
        retransmissions: protocol.retransmissions,
        invalidations: protocol.invalidations,
        provided: protocol.provided,
        peeked: protocol.peeked,
        home_packets: protocol.home_received + protocol.home_sent,
        lost_blocks: protocol.lost,
        memory_live_bytes: counters.nodes.iter().map(|node| node.memory_live).sum(),
        recovering: None,
        dropped: machine_drops(&protocol.dropped),
        nic: Nic::from(&rack.nic_counts().unwrap_or_default()),
        chains: Chains::from(&rack.chain_counts()),
        transport: Transport::from(&rack.transport_counts().unwrap_or_default()),
    }
}

fn serve(address: SocketAddr, answer: impl Fn(&str) -> Answer + Send + 'static) -> Result<(), Fault> {
    let failed = |error| Fault::failed(format_args!("cannot answer for metrics at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let server = thread::Builder::new().name("metrics".to_owned());
    server.spawn(move || http::serve(&listener, answer)).map(drop).map_err(failed)
}
