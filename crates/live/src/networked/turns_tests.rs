//! Whoever has received a burst answers it before another thread receives: what the machines did in one order is told in that
//! order.
//!
//! Runs in tests. A thread of a node stands still where it has answered and nothing has left yet, for as long as the test wants; so
//! nothing here depends on time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use membership::{Session, Timing};
use node::Directory;
use transport::inline::{Hub, InlineTransport};
use transport::{Body, Counters, Outgoing, PeerId, Transport};
use wire::{Discipline, Nanos, NodeId, PacketKind, SwitchEpoch};

use super::{NetworkedNode, NetworkedSwitch, NodeSetup, SwitchSetup};
use crate::actor::{Driver as _, ThreadContext};
use crate::config::Config;
use crate::scheduling::Scheduling;

/// The longest that anything may take before the test gives up.
const TIMEOUT: Duration = Duration::from_secs(60);

const HOME: NodeId = NodeId(0);
const ASKING: NodeId = NodeId(1);

/// Where a thread is that shall stand still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Nobody shall.
    Free,
    /// The next one that answers shall.
    Armed,
    /// It has answered.
    Answered,
    /// It stands before what it answered leaves.
    Standing,
}

/// A transport in which a thread stands still between its answer and the flush that lets the answer go.
struct Gate {
    inner: InlineTransport,
    at: Mutex<At>,
    moved: Condvar,
    /// Calls of `receive`.
    receives: AtomicUsize,
}

impl Gate {
    fn set(&self, to: At) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = to;
        self.moved.notify_all();
    }

    fn step(&self, from: At, to: At) -> bool {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = *at == from;
        if steps {
            *at = to;
            self.moved.notify_all();
        }
        steps
    }

    /// True if that came in time.
    fn await_at(&self, wanted: At) -> bool {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved.wait_timeout_while(at, TIMEOUT, |at| *at != wanted);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Transport for Gate {
    fn me(&self) -> PeerId {
        self.inner.me()
    }

    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        if matches!(body, Body::Packet(packet, _) if packet.kind == PacketKind::HomeReply) {
            self.step(At::Armed, At::Answered);
        }
        self.inner.send(to, body, out);
    }

    fn flush(&self, out: &mut Outgoing) {
        if self.step(At::Answered, At::Standing) {
            self.await_at(At::Free);
        }
        self.inner.flush(out);
    }

    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        self.receives.fetch_add(1, SeqCst);
        self.inner.receive(each)
    }

    fn attend(&self) {
        self.inner.attend();
    }

    fn leave(&self) -> bool {
        self.inner.leave()
    }

    fn wait(&self, most: Nanos) {
        self.inner.wait(most);
    }

    fn block(&self, most: Nanos) {
        self.inner.block(most);
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

fn rack() -> Config {
    Config {
        nodes: 2,
        cache: 1 << 20,
        memory: 16 << 20,
        switch_entries: 256,
        directory: Directory::Home,
        lock_copies: 1 << 20,
        lock_entries: 64,
        ..Config::default()
    }
}

/// Nobody is declared dead within the test: the home's membership stands still in it, too.
fn timing() -> Timing {
    Timing::new(Nanos::from_millis(600_000))
}

fn join(id: NodeId, transport: Arc<dyn Transport>) -> Arc<NetworkedNode> {
    let setup = NodeSetup {
        map_base: crate::memory::pages::DEFAULT_BASE,
        faults_in_place: false,
        rack: rack(),
        id,
        timing: timing(),
        scheduling: Scheduling::Fair,
        session: Session(7 + u64::from(id.0)),
    };
    let began = Instant::now();
    let joined = NetworkedNode::join(&setup, transport, &mut |_| began.elapsed() < TIMEOUT);
    joined.expect("the switch is there")
}

/// Asks the home for something that only it can answer.
fn ask(asking: &NetworkedNode, context: &mut ThreadContext) {
    let allocated = asking.at(context).alloc(8, HOME, Discipline::Coherent);
    let addr = allocated.expect("the home has memory").addr;
    asking.at(context).free(addr, None).expect("it is allocated");
}

#[test]
fn a_burst_is_answered_before_another_thread_receives() {
    let (hub, over) = (Hub::default(), AtomicBool::new(false));
    let gate = Arc::new(Gate {
        inner: hub.connect(PeerId::node(HOME)),
        at: Mutex::new(At::Free),
        moved: Condvar::new(),
        receives: AtomicUsize::new(0),
    });
    let unknown_peer = Arc::new(hub.connect(PeerId::node(ASKING)));
    let setup = SwitchSetup {
        rack: rack(),
        timing: timing(),
        scheduling: Scheduling::Fair,
        origin: SwitchEpoch(0),
        session: 1,
    };
    let mut switch = NetworkedSwitch::new(&setup, Arc::new(hub.connect(PeerId::SWITCH)));
    let (stood, received, receives, is_empty) = std::thread::scope(|scope| {
        let _end = OnDrop(|| over.store(true, SeqCst));
        scope.spawn(|| switch.run(&over));
        let joining = scope.spawn(|| join(ASKING, Arc::clone(&unknown_peer) as Arc<dyn Transport>));
        let home = join(HOME, Arc::clone(&gate) as Arc<dyn Transport>);
        let asking = joining.join().expect("it joins");
        ask(&asking, &mut ThreadContext::new(1));
        // From here on nobody receives for the home but the two threads of this test.
        home.end_service();

        gate.set(At::Armed);
        let asked = scope.spawn(move || ask(&asking, &mut ThreadContext::new(2)));
        let answering = scope.spawn({
            let home = Arc::clone(&home);
            move || {
                let mut context = ThreadContext::new(3);
                while !asked.is_finished() {
                    home.run_due(HOME, &mut context, home.now());
                    home.poll(&mut context, home.now());
                }
            }
        });
        let stood = gate.await_at(At::Standing);

        // There is something to receive, and this thread has something to send.
        let mut out = Outgoing::new();
        unknown_peer.send(PeerId::node(HOME), Body::Control(&[0; 3]), &mut out);
        unknown_peer.flush(&mut out);
        let mut context = ThreadContext::new(4);
        home.transport().send(PeerId::SWITCH, Body::Control(&[0; 3]), &mut context.outgoing);
        let before = gate.receives.load(SeqCst);
        let received = home.poll(&mut context, home.now());
        let receives = gate.receives.load(SeqCst) - before;

        // The others need the switch to come to an end: nothing is asserted sooner.
        gate.set(At::Free);
        answering.join().expect("it answers");
        (stood, received, receives, context.outgoing.is_empty())
    });
    assert!(stood, "nobody has answered");
    assert_eq!(
        (received, receives),
        (0, 0),
        "another thread has received before the burst in front was answered"
    );
    assert!(is_empty, "what it had to send waits for somebody else");
}

/// Does something at the end of a scope, also if that is a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
