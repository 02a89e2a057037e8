//! A process joins a rack as one of its nodes.
//!
//! What must always hold: as long as the switch may begin the rack with an incarnation that it has heard of, there is no other one. It
//! would take that for another process, which has nothing of what the node had.

use std::sync::Arc;
use std::time::Instant;

use live::networked::{NetworkedNode, NodeSetup};
use membership::Session;
use transport::{PeerId, Transport};
use wire::NodeId;

use crate::config::{Config, ConfigError, ProcessConfig};
use crate::error::JoinError;
use crate::peers::authenticates;
use crate::rack::{Places, Rack, random_session};

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
        let began = Instant::now();
        let go_on = &mut || began.elapsed() < process.join_timeout;
        Self::join_over_while(&config, node, process, &transport, go_on)
    }

    /// The same as long as `go_on`, which is asked several times a second, says so; however often the switch is started
    /// anew meanwhile. The `join_timeout` of `process` is only what an error says.
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
            let mut waits = |error: JoinError| {
                let waits = go_on();
                if waits {
                    error.tell_once(&mut told);
                }
                waits
            };
            match Self::join_once(config, node, process, transport, &mut waits) {
                // Or it was taken for dead before it knew of the rack, and another incarnation tries.
                Err(JoinError::NoAnswer { .. } | JoinError::Unlisted { .. }) if go_on() => {}
                ended => return ended,
            }
        }
    }

    /// One incarnation of a node joins.
    fn join_once(
        config: &Config,
        node: NodeId,
        process: &ProcessConfig,
        transport: &Arc<dyn Transport>,
        go_on: &mut dyn FnMut(JoinError) -> bool,
    ) -> Result<Self, JoinError> {
        process.scheduling.check().map_err(ConfigError::Scheduling)?;
        config.check()?;
        let setup = NodeSetup {
            rack: config.clone(),
            id: node,
            timing: process.timing,
            scheduling: process.scheduling,
            session: Session(random_session()),
            map_base: process.map_base,
            faults_in_place: process.faults_in_place,
        };
        if node.index() >= config.places() {
            return Err(JoinError::NoSuchNode { node, nodes: config.places() });
        }
        let handshakes = transport.handshakes();
        let said = |error: &live::networked::JoinError| match error {
            live::networked::JoinError::Refused(refusal) => JoinError::Refused(refusal.clone()),
            live::networked::JoinError::Unlisted => JoinError::Unlisted { node },
            live::networked::JoinError::NoAnswer => JoinError::NoAnswer {
                timeout: process.join_timeout,
                address: handshakes.as_ref().and_then(|all| all.address(PeerId::SWITCH)).map(str::to_owned),
                other_key: !authenticates(handshakes.as_deref(), PeerId::SWITCH),
            },
        };
        let joined = NetworkedNode::join(&setup, Arc::clone(transport), &mut |why| go_on(said(why)));
        let joined = joined.map_err(|error| said(&error))?;
        let config = Config { nodes: joined.founders(), ..config.clone() };
        Ok(Self::of(Places::Joined { node: joined, strict: process.strict }, config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use membership::Message;
    use transport::Body;
    use transport::inline::Hub;

    /// Or the switch, which may just have begun with the one before, takes it for another process: of one that has come back, which
    /// has lost whatever had a name.
    #[test]
    fn a_node_that_waits_for_the_rack_is_one_incarnation_all_the_time() {
        let hub = Hub::default();
        let switch = hub.connect(PeerId::SWITCH);
        let transport: Arc<dyn Transport> = Arc::new(hub.connect(PeerId::node(NodeId(0))));
        let config = Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
        let (mut asked, mut sessions) = (0, Vec::new());
        let joined =
            Rack::join_over_while(&config, NodeId(0), &ProcessConfig::default(), &transport, &mut || {
                asked += 1;
                switch.receive(&mut |_, body| {
                    let Body::Control(bytes) = body else { panic!("a node that joins calls") };
                    if let Ok(Message::Beat(beat)) = Message::parse(bytes) {
                        sessions.push(beat.session);
                    }
                });
                asked < 10
            });
        assert!(matches!(joined.err(), Some(JoinError::NoAnswer { .. })));
        assert!(sessions.len() > 1, "it calls again and again");
        sessions.dedup();
        assert_eq!(sessions.len(), 1);
    }
}
