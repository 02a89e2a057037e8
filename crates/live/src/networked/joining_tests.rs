//! How long a node waits for the rack to begin with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use membership::{Session, Timing};
use transport::inline::{Hub, InlineTransport};
use transport::{Body, Outgoing, PeerId, Transport as _};
use wire::{Nanos, NodeId, SwitchEpoch};

use super::{JoinError, NetworkedNode, NetworkedSwitch, NodeSetup, SwitchSetup};
use crate::config::Config;
use crate::scheduling::Scheduling;

const FIRST: NodeId = NodeId(0);
const SECOND: NodeId = NodeId(1);

fn rack() -> Config {
    Config { nodes: 2, cache: 1 << 20, memory: 1 << 20, switch_entries: 256, ..Config::default() }
}

/// Longer than anything here takes.
fn timing() -> Timing {
    Timing::new(Nanos::from_millis(60_000))
}

/// A node that joins, if it is heard by anybody.
fn join(id: NodeId, transport: &Arc<InlineTransport>) -> Result<Arc<NetworkedNode>, JoinError> {
    let setup = NodeSetup {
        rack: rack(),
        id,
        timing: timing(),
        scheduling: Scheduling::Fair,
        session: Session(7 + u64::from(id.0)),
        timeout: Duration::from_secs(60),
        unheard: Duration::ZERO,
        map_base: crate::memory::pages::DEFAULT_BASE,
        faults_in_place: false,
    };
    NetworkedNode::join(&setup, Arc::clone(transport) as _)
}

/// Somebody sends it something, and it takes that.
fn is_heard(hub: &Hub, by: &InlineTransport) {
    let mut out = Outgoing::new();
    let sender = hub.connect(PeerId::OBSERVER);
    sender.send(by.me(), Body::Control(&[0; 3]), &mut out);
    sender.flush(&mut out);
    assert_eq!(by.receive(&mut |_, _| {}), 1);
}

#[test]
fn where_nobody_is_heard_an_attempt_ends_and_where_somebody_is_it_waits_for_the_rack() {
    let (hub, over) = (Hub::default(), AtomicBool::new(false));
    let [first, second] = [FIRST, SECOND].map(|id| Arc::new(hub.connect(PeerId::node(id))));
    assert_eq!(join(FIRST, &first).err(), Some(JoinError::NoAnswer), "there is nobody");
    let setup = SwitchSetup {
        rack: rack(),
        timing: timing(),
        scheduling: Scheduling::Fair,
        origin: SwitchEpoch(0),
        session: 1,
    };
    let mut switch = NetworkedSwitch::new(&setup, Arc::new(hub.connect(PeerId::SWITCH)));
    std::thread::scope(|scope| {
        is_heard(&hub, &first);
        is_heard(&hub, &second);
        let joining = scope.spawn(|| join(FIRST, &first));
        scope.spawn(|| switch.run(&over));
        // The rack begins with both of them. (Of a first one that had given up there would be another incarnation.)
        let both = [join(SECOND, &second), joining.join().expect("it does not panic")];
        over.store(true, SeqCst);
        let both = both.map(|joined| joined.expect("it waits for the other one"));
        assert_eq!(both.map(|node| node.has_returned()), [false; 2]);
    });
}
