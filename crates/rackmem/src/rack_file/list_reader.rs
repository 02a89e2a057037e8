//! The switch's rack file, read again when a node calls that it does not list: it may have been appended.
//!
//! On a thread of its own, since a file may take its time. What must always hold: nothing of the file counts but how many
//! nodes it lists, and nothing at all if another setting that all places share has changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use live::networked::Listing;
use tracing::{info, warn};
use wire::NodeId;

use super::RackFile;

/// Between two lines of the same words.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// Between two looks at the file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Reads the list of nodes.
pub(crate) struct ListReader {
    file: RackFile,
    said: Option<(String, Instant)>,
}

impl ListReader {
    pub(crate) fn new(file: &RackFile) -> Self {
        Self { file: file.clone(), said: None }
    }

    /// Reads it whenever a node wants to be listed, until `ended`, at which this thread is woken.
    pub(crate) fn run(&mut self, listing: &Listing, ended: &AtomicBool) {
        listing.attend();
        while !ended.load(Ordering::Acquire) {
            match listing.take() {
                None => thread::park(),
                Some(node) => {
                    self.look_for(node, listing);
                    thread::park_timeout(LOOK_EVERY);
                }
            }
        }
    }

    fn look_for(&mut self, node: NodeId, listing: &Listing) {
        match self.listed() {
            Ok(nodes) if node.index() < nodes => {
                if listing.list(nodes) {
                    info!(target: "rackmem", node = node.0, nodes, "the rack file lists more nodes");
                }
            }
            Ok(_) => {
                let path = self.file.path.display();
                self.say(format!(
                    "{node} wants to join, and {path} does not list it: append its [[node]] to let it in"
                ));
            }
            Err(why) => self.say(format!("{node} wants to join, and is not let in: {why}")),
        }
    }

    /// How many nodes the file lists now.
    fn listed(&self) -> Result<usize, String> {
        let now = RackFile::read(&self.file.path).map_err(|error| error.to_string())?;
        let differences = self.file.terms().compare(&now.terms());
        let path = self.file.path.display();
        match &differences[..] {
            [] => Ok(now.config.nodes),
            [first, ..] => {
                Err(format!("{path} has changed, and that would take a new rack: {first}; change it back"))
            }
        }
    }

    fn say(&mut self, what: String) {
        let again = self.said.as_ref().is_some_and(|(said, at)| *said == what && at.elapsed() < SAY_EVERY);
        if !again {
            warn!(target: "rackmem", "{what}");
            self.said = Some((what, Instant::now()));
        }
    }
}
