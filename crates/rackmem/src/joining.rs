//! A process joins a rack as one of its nodes.
//!
//! What must always hold: an attempt that the switch may have heard is not given up for another one. The switch may have begun the
//! rack with it, and would take the next one for another process, which has nothing of what the node had.

use std::sync::Arc;
use std::time::Duration;

use live::networked::{NetworkedNode, NodeSetup};
use membership::Session;
use transport::{PeerId, Transport};
use wire::NodeId;

use crate::config::{Config, ConfigError, ProcessConfig};
use crate::error::JoinError;
use crate::peers::authenticates;
use crate::rack::{Places, Rack, random_session};

/// How long one attempt to join takes while nobody is heard.
const UNANSWERED: Duration = Duration::from_millis(300);

impl Rack {
    /// Joins a rack of processes as one of its nodes, over this transport. Returns when the rack has begun with this
    /// node in it.
    ///
    /// # Errors
    /// If the configuration is impossible, the process may not have threads that are scheduled so, or the rack's switch
    /// does not answer, or refuses this process.
    pub fn join_over(
        config: Config,
        node: NodeId,
        process: &ProcessConfig,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, JoinError> {
        Self::join_once(config, node, process, process.join_timeout, transport)
    }

    /// The same; if nobody is heard, for so long only.
    fn join_once(
        config: Config,
        node: NodeId,
        process: &ProcessConfig,
        unheard: Duration,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, JoinError> {
        process.scheduling.check().map_err(ConfigError::Scheduling)?;
        config.check()?;
        let setup = NodeSetup {
            rack: config.clone(),
            id: node,
            timing: process.timing,
            scheduling: process.scheduling,
            session: Session(random_session()),
            timeout: process.join_timeout,
            unheard,
            map_base: process.map_base,
            faults_in_place: process.faults_in_place,
        };
        if node.index() >= config.places() {
            return Err(JoinError::NoSuchNode { node, nodes: config.places() });
        }
        let handshakes = transport.handshakes();
        let joined = NetworkedNode::join(&setup, transport).map_err(|error| match error {
            live::networked::JoinError::Refused(refusal) => JoinError::Refused(refusal),
            live::networked::JoinError::Unlisted => JoinError::Unlisted { node },
            live::networked::JoinError::NoAnswer => JoinError::NoAnswer {
                timeout: process.join_timeout,
                address: handshakes.as_ref().and_then(|all| all.address(PeerId::SWITCH)).map(str::to_owned),
                other_key: !authenticates(handshakes.as_deref(), PeerId::SWITCH),
            },
        })?;
        let config = Config { nodes: joined.founders(), ..config };
        Ok(Self::of(Places::Joined { node: joined, strict: process.strict }, config))
    }

    /// The same as long as `go_on`, which is asked several times a second, says so; however often the switch is started
    /// anew meanwhile. No single attempt takes longer than the `join_timeout` of `process`, where that is shorter.
    ///
    /// # Errors
    /// As [`join_over`](Self::join_over); without an answer, only when `go_on` has said that it is enough.
    pub fn join_over_while(
        config: &Config,
        node: NodeId,
        process: &ProcessConfig,
        transport: &Arc<dyn Transport>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, JoinError> {
        let mut told = false;
        loop {
            // Once the switch is heard, the rack may still wait for other nodes before it begins.
            let longest = 3 * Duration::from_nanos(process.timing.timeout.0) + UNANSWERED;
            let attempt = ProcessConfig { join_timeout: longest.min(process.join_timeout), ..*process };
            match Self::join_once(config.clone(), node, &attempt, UNANSWERED, Arc::clone(transport)) {
                Err(error @ (JoinError::NoAnswer { .. } | JoinError::Unlisted { .. })) if go_on() => {
                    error.tell_once(&mut told);
                }
                ended => return ended,
            }
        }
    }
}
