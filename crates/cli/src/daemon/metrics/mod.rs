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

use rackmem::{Attachments, NodeId};
use status::document::{Node, NodeCounts};

use super::node::Joined;
use super::status::Answers;
use crate::fault::Fault;
use http::Answer;

/// Answers for the whole rack, on a thread of its own.
pub(super) fn serve_rack(address: SocketAddr, answers: Answers) -> Result<(), Fault> {
    serve(address, move |path| match path {
        "/metrics" => answers.status().map_or(Answer::NotYet, |status| Answer::metrics(text::rack(&status))),
        "/status" => answers.status_elsewhere().as_ref().map_or(Answer::NotYet, Answer::json),
        _ => Answer::NotFound,
    })
}

/// Answers for one node, on a thread of its own.
pub(super) fn serve_node(address: SocketAddr, id: NodeId, joined: Joined) -> Result<(), Fault> {
    serve(address, move |path| match path {
        "/metrics" => {
            // Counted under the lock: a clone of the rack would keep its socket open.
            let incarnation = joined.lock().unwrap_or_else(PoisonError::into_inner);
            let reports = incarnation.as_ref().map(|it| it.rack.reports()).unwrap_or_default();
            let node = Node {
                id: id.0,
                up: incarnation.is_some(),
                incarnation: 0,
                silence_ns: None,
                epoch: 0,
                draining: None,
                counts: reports.first().map(NodeCounts::from),
            };
            let applications = incarnation.as_ref().and_then(|incarnation| incarnation.applications.as_ref());
            let watched = incarnation.as_ref().map(|incarnation| incarnation.rack.watched_locks());
            let applications = applications.map(Attachments::counts);
            Answer::metrics(text::node(&node, applications, watched.unwrap_or_default()))
        }
        _ => Answer::NotFound,
    })
}

fn serve(address: SocketAddr, answer: impl Fn(&str) -> Answer + Send + 'static) -> Result<(), Fault> {
    let failed = |error| Fault::failed(format_args!("cannot answer for metrics at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let server = thread::Builder::new().name("metrics".to_owned());
    server.spawn(move || http::serve(&listener, answer)).map(drop).map_err(failed)
}
