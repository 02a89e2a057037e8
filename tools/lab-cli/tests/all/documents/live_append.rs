//! What an append takes on a rack of processes: a client that posts both of its steps at once, and a switch that steers.
//!
//! The places are threads with transports of their own; what they send each other is written down.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rackmem::transport::inline::Hub;
use rackmem::transport::{Body, Counters, Outgoing, PeerId, Transport};
use rackmem::{ChainsConfig, Config, Nanos, NodeId, ProcessConfig, Rack, SwitchProcess};

/// Opcodes of what nodes have sent.
type Sent = Arc<Mutex<Vec<String>>>;

/// A node's transport.
struct Tap {
    inner: Arc<dyn Transport>,
    sent: Sent,
}

impl Transport for Tap {
    fn me(&self) -> PeerId {
        self.inner.me()
    }
    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        if let Body::Verbs(packet, ..) = body {
            self.sent.lock().expect("nobody panics").push(format!("{:?}", packet.opcode));
        }
        self.inner.send(to, body, out);
    }
    fn flush(&self, out: &mut Outgoing) {
        self.inner.flush(out);
    }
    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
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

/// What the nodes send during a put, most of the time: an answer may be late, and acknowledged for itself.
pub(super) fn opcodes() -> Vec<String> {
    let config =
        Config { nodes: 2, memory: 8 << 20, cache: 1 << 20, steering: Some(usize::MAX), ..Config::default() };
    let (hub, sent, process) = (Hub::default(), Sent::default(), ProcessConfig::default());
    let stop = AtomicBool::new(false);
    let transport = Arc::new(hub.connect(PeerId::SWITCH));
    let mut switch = SwitchProcess::new(&config, &process, transport).expect("a possible rack");
    thread::scope(|scope| {
        scope.spawn(|| switch.run(&stop));
        let join = |node| {
            let tap = Tap { inner: Arc::new(hub.connect(PeerId::node(node))), sent: Arc::clone(&sent) };
            let (config, process) = (config.clone(), &process);
            scope.spawn(move || Rack::join_over(config, node, process, Arc::new(tap)).expect("it joins"))
        };
        let racks = [join(NodeId(0)), join(NodeId(1))].map(|rack| rack.join().expect("a rack"));
        let mut here = racks[0].here();
        let mut store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20)).expect("there is room");
        let mut runs: BTreeMap<Vec<String>, u32> = BTreeMap::new();
        for round in 0..40 {
            sent.lock().expect("nobody panics").clear();
            store.put(&mut here, 1, b"value").expect("it is put");
            let run = std::mem::take(&mut *sent.lock().expect("nobody panics"));
            // The first ones connect, and ask for slots.
            *runs.entry(run).or_default() += u32::from(round >= 10);
        }
        drop((store, here, racks));
        stop.store(true, Ordering::Release);
        let most = runs.into_iter().max_by_key(|(_, times)| *times);
        most.expect("there were some").0
    })
}
