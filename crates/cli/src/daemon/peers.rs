//! What daemons say about other processes: who is refused and why, and who does not answer. All of it goes through
//! [`News::say`].
//!
//! What must always hold: it is said within three seconds, and then seldom, which [`PeerWatch`] sees to.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use rackmem::{NodeId, PeerEvent, PeerWatch};
use tracing::{info, warn};

use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who says it.
#[derive(Clone, Debug)]
pub(super) struct News {
    /// None: the switch.
    node: Option<NodeId>,
    /// A daemon of `rackmem up` does not say that others are missing: `up` sees to them, and may have left some out.
    owned: bool,
}

impl News {
    pub(super) const fn of(node: Option<NodeId>, owned: bool) -> Self {
        Self { node, owned }
    }

    /// Says what there is to say now.
    pub(super) fn say(&self, watch: &mut PeerWatch) {
        let node = self.node.map(|node| node.0);
        for event in watch.poll() {
            match &event {
                PeerEvent::Waiting { .. } if self.owned => {}
                PeerEvent::Refused(refusal) => {
                    warn!(target: "rackmem", node, peer = %refusal.peer, address = refusal.address, "{event}");
                }
                PeerEvent::Application(refusal) => {
                    warn!(target: "rackmem", node, address = refusal.address, "{event}");
                }
                _ => info!(target: "rackmem", node, "{event}"),
            }
        }
    }

    /// Goes on saying it, on a thread of its own, until the process shall end; and then what is left to say.
    pub(super) fn go_on(self, mut watch: PeerWatch, stop: Interrupt) -> Result<JoinHandle<()>, Fault> {
        let looking = move || {
            loop {
                let ends = stop.requested();
                self.say(&mut watch);
                if ends {
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        };
        let thread = thread::Builder::new().name("peers".to_owned()).spawn(looking);
        thread.map_err(|error| Fault::failed(format_args!("the system gives no thread: {error}")))
    }
}
