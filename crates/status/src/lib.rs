//! How a rack is, as one document: what `rackmem status --json` prints, and programs in C get.
//!
//! A crate of its own: the library needs no JSON, and C no command.
//!
//! | file | |
//! | --- | --- |
//! | `document` | the document |
//! | `ask` | asking the switch's process for it: over its socket on this machine, or over HTTP |
//! | `locks` | locks that have names, which the nodes know of, and not the switch |

pub mod ask;
#[allow(missing_docs, reason = "its keys say what they are, or have a comment")]
pub mod document;
#[allow(missing_docs, reason = "as of the document, of which it is a part")]
pub mod locks;

use rackmem::{NodeHandle, NodeId, Rack, RackFile};

use ask::AskError;
use document::Status;

/// How the rack of this file is, to which `rack` is joined or attached: the switch's process is asked, and then the nodes. It waits as any
/// operation does for a node that does not answer, until that is declared dead.
///
/// # Errors
/// If the switch's process does not answer.
pub fn of(rack: &Rack, file: &RackFile) -> Result<Status, AskError> {
    Ok(with_locks(ask::ask(file)?, rack.here()))
}

/// The same of an embedded rack, which has no processes: its name is `embedded`, its transport `none`.
pub fn of_embedded(rack: &Rack) -> Option<Status> {
    Some(with_locks(Status::new("embedded", "none", &rack.embedded_report()?), rack.node(NodeId(0))))
}

fn with_locks(status: Status, mut handle: NodeHandle) -> Status {
    match locks::all(&mut handle) {
        Ok(locks) => Status { locks, ..status },
        Err(why) => Status { locks_unknown: Some(why.to_string()), ..status },
    }
}

#[cfg(test)]
mod tests {
    use rackmem::{Config, Discipline, Locked};

    use super::*;

    #[test]
    fn the_status_of_an_embedded_rack_is_what_was_done_with_it() {
        let config = Config { nodes: 2, cache: 1 << 20, memory: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let mut there = rack.node(NodeId(1));
        let addr = there.alloc(4096, NodeId(0), Discipline::Coherent).unwrap();
        there.write_word(addr, 7).unwrap();
        let _lock = there.named::<Locked<u64>>("it").create(0).unwrap();
        let status = of_embedded(&rack).unwrap();
        let counts: Vec<_> = status.nodes.iter().map(|node| node.counts.as_ref().unwrap()).collect();
        assert!(counts[0].memory_live_bytes >= 4096 && counts[1].misses > 0, "{counts:?}");
        assert_eq!((status.locks.len(), &*status.locks[0].name, &*status.phase), (1, "it", "running"));
        assert!(status.nodes.iter().all(|node| node.up) && status.switch.packets_received > 0);
        // What is written is what is read.
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
