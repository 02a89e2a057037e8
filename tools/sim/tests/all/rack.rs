//! The rack itself, with a system as small as can be: what takes how long, who goes first, what is lost.

use std::cell::RefCell;
use std::rc::Rc;

use node::Access;
use sim::rack::{Ended, Handle, Rack, Setup, Until};
use sim::system::{
    Call, Envelope, Fault, Operation, Outcome, Place, Processor, Progress, Service, System, ThreadId,
};
use wire::{GlobalAddr, Nanos, NodeId};

/// What a handler takes.
const COST: Nanos = Nanos(300);
/// What an operation takes of its thread.
const ACCESS: Nanos = Nanos(50);

/// A thread asks an agent, and is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ask {
    thread: ThreadId,
    of: NodeId,
    answer: bool,
}

/// Reading an address asks its home's agent. Writing takes effect at once.
struct Asking {
    threads_of_node: u16,
    answered: Vec<bool>,
    deadlines: Vec<Nanos>,
    /// When agents handled what from whom.
    handled: Vec<(Nanos, ThreadId)>,
    called: Vec<(Nanos, NodeId)>,
    faults: Vec<(Nanos, Fault)>,
}

impl Asking {
    fn node_of(&self, thread: ThreadId) -> NodeId {
        NodeId(thread.0 / self.threads_of_node)
    }
}

impl System for Asking {
    type Message = Ask;

    fn envelope(&self, ask: &Ask) -> Envelope {
        let thread = (Place::Node(self.node_of(ask.thread)), Processor::Thread(ask.thread));
        let agent = (Place::Node(ask.of), Processor::Agent(ask.of, 0));
        let ((from, sender), (to, receiver)) = if ask.answer { (agent, thread) } else { (thread, agent) };
        Envelope { from, to, sender, receiver, bytes: 64, service: Service::Datagram }
    }

    fn cost(&self, _: &Ask) -> Nanos {
        COST
    }

    fn on_message(&mut self, call: &mut Call<'_, Ask>, ask: &Ask) {
        if ask.answer {
            self.answered[usize::from(ask.thread.0)] = true;
            return call.wake(ask.thread);
        }
        self.handled.push((call.now, ask.thread));
        call.send(Ask { answer: true, ..*ask });
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, Ask>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        let (addr, access) = match operation {
            Operation::Touch { addr, access, .. } => (addr, access),
            // Asks, and does not wait for the answer.
            Operation::Free { addr } => {
                call.send(Ask { thread, of: addr.home(), answer: false });
                return Progress::Done(Outcome::Done, Nanos::ZERO);
            }
            _ => panic!("nobody asks for that"),
        };
        if *access == Access::Modified {
            return Progress::Done(Outcome::Done, ACCESS);
        }
        if std::mem::take(&mut self.answered[usize::from(thread.0)]) {
            return Progress::Done(Outcome::Done, Nanos::ZERO);
        }
        call.send(Ask { thread, of: addr.home(), answer: false });
        Progress::Waits
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        self.deadlines[node.index()]
    }

    fn on_deadline(&mut self, call: &mut Call<'_, Ask>, node: NodeId) {
        self.called.push((call.now, node));
        self.deadlines[node.index()] = Nanos::MAX;
    }

    fn on_fault(&mut self, call: &mut Call<'_, Ask>, fault: Fault) {
        self.faults.push((call.now, fault));
    }
}

fn rack(nodes: u16, threads: u16) -> Rack<Asking> {
    let setup = Setup { threads: threads.into(), ..Setup::new(nodes.into()).exact() };
    let system = Asking {
        threads_of_node: threads,
        answered: vec![false; usize::from(nodes * threads)],
        deadlines: vec![Nanos::MAX; nodes.into()],
        handled: Vec::new(),
        called: Vec::new(),
        faults: Vec::new(),
    };
    Rack::new(setup, system)
}

async fn ask(handle: &mut Handle<Asking>, of: u16) {
    handle.touch(GlobalAddr::new(NodeId(of), 64), 8, Access::Shared, &mut |_| {}).await.unwrap();
}

async fn write(handle: &mut Handle<Asking>) {
    handle.touch(GlobalAddr::new(NodeId(0), 64), 8, Access::Modified, &mut |_| {}).await.unwrap();
}

/// Of an answer from another node, when nothing is in the way.
fn round_trip() -> Nanos {
    let mut rack = rack(2, 1);
    rack.run_one(ThreadId(0), |mut handle| async move {
        ask(&mut handle, 1).await;
        handle.now()
    })
}

#[test]
fn a_question_and_its_answer_take_what_their_parts_take() {
    let t = Setup::new(2).testbed;
    let nics = t.doorbell + t.nic_sending + t.nic_receiving + t.pcie_write;
    let one_way = t.post_datagram + nics + t.cable + t.pipeline + t.cable + t.poll;
    // And the bits: 130 B on two links at 100 Gb/s, 64 B over PCIe; times are rounded up to nanoseconds.
    let bits = round_trip().0 - 2 * (one_way.0 + COST.0);
    assert!((2 * 25..=2 * 29).contains(&bits), "{bits}");
}

#[test]
fn a_question_to_the_own_node_does_not_touch_the_network() {
    let mut rack = rack(2, 1);
    let setup = rack.setup();
    let took = rack.run_one(ThreadId(0), |mut handle| async move {
        ask(&mut handle, 0).await;
        handle.now()
    });
    assert_eq!(took, Nanos(2 * (setup.hand_over.0 + setup.testbed.poll.0 + COST.0)));
    let report = rack.run(Until::WorkersDone);
    assert_eq!((report.counts.local, report.counts.from_nodes), (2, 0));
}

#[test]
fn an_agent_handles_one_message_after_the_other_in_order_of_arrival() {
    let mut rack = rack(4, 1);
    for thread in [3, 1, 2].map(ThreadId) {
        rack.spawn(thread, |mut handle| async move { ask(&mut handle, 0).await });
    }
    rack.run(Until::WorkersDone);
    let handled = rack.with_system(|system| system.handled.clone());
    assert_eq!(handled.iter().map(|(_, thread)| thread.0).collect::<Vec<_>>(), [3, 1, 2]);
    let testbed = rack.setup().testbed;
    // Each answer is posted before the next question is begun.
    let each = testbed.post_datagram.0 + testbed.poll.0 + COST.0;
    for pair in handled.windows(2) {
        assert_eq!(pair[1].0.0 - pair[0].0.0, each, "{handled:?}");
    }
}

#[test]
fn a_message_to_a_thread_that_computes_waits_until_it_polls_and_takes_its_time() {
    let mut rack = rack(2, 1);
    let poll = rack.setup().testbed.poll;
    let delays = rack.run_one(ThreadId(0), |mut handle| async move {
        let mut delays = Vec::new();
        for compute in [20_000, 1].map(Nanos) {
            handle.free(GlobalAddr::new(NodeId(1), 64)).await.unwrap();
            handle.compute(compute);
            let since = handle.now();
            write(&mut handle).await;
            delays.push(handle.now().saturating_sub(since));
        }
        delays
    });
    assert_eq!(delays, [poll + COST + ACCESS, ACCESS], "the second answer comes after the write");
}

#[test]
fn hits_take_no_events_while_nothing_else_happens() {
    let mut rack = rack(1, 1);
    rack.run_one(ThreadId(0), |mut handle| async move {
        for _ in 0..1000 {
            write(&mut handle).await;
        }
        assert_eq!(handle.now(), Nanos(1000 * ACCESS.0));
    });
    assert!(rack.run(Until::WorkersDone).counts.events < 5);
}

#[test]
fn threads_in_exact_order_take_turns_by_their_clocks() {
    let mut rack = rack(1, 2);
    let order = Rc::new(RefCell::new(Vec::new()));
    for thread in [0, 1].map(ThreadId) {
        let order = Rc::clone(&order);
        rack.spawn(thread, move |mut handle| async move {
            for _ in 0..20 {
                let at = handle.now();
                write(&mut handle).await;
                order.borrow_mut().push(at);
            }
        });
    }
    rack.run(Until::WorkersDone);
    assert!(order.borrow().is_sorted(), "{order:?}");
}

#[test]
fn a_node_is_called_when_it_wants_to_be_and_once() {
    let mut rack = rack(2, 1);
    rack.with_system_mut(|system| system.deadlines = vec![Nanos(700), Nanos(400)]);
    rack.with_system_mut(|system| system.deadlines[0] = Nanos(300));
    rack.spawn(ThreadId(0), |mut handle| async move { handle.sleep_until(Nanos(5000)).await });
    rack.run(Until::WorkersDone);
    let called = rack.with_system(|system| system.called.clone());
    assert_eq!(called, [(Nanos(300), NodeId(0)), (Nanos(400), NodeId(1))]);
}

#[test]
fn a_stopped_node_loses_its_messages_and_its_workers() {
    let mut rack = rack(2, 1);
    let dropped = Rc::new(());
    let theirs = Rc::clone(&dropped);
    rack.spawn(ThreadId(1), move |mut handle| async move {
        let _alive = theirs;
        loop {
            ask(&mut handle, 0).await;
        }
    });
    rack.spawn(ThreadId(0), |mut handle| async move { ask(&mut handle, 1).await });
    rack.schedule(Nanos(200), Fault::NodeStops(NodeId(1)));
    let report = rack.run(Until::WorkersDone);
    assert_eq!(report.ended, Ended::Stuck, "nobody answers");
    assert_eq!(Rc::strong_count(&dropped), 1, "the worker of the stopped node is gone");
    assert!(report.counts.lost > 0);
    assert_eq!(rack.with_system(|system| system.faults.clone()), [(Nanos(200), Fault::NodeStops(NodeId(1)))]);
    assert_eq!(rack.in_flight(), 0);
}

#[test]
fn nothing_gets_through_a_stopped_switch_until_it_is_back() {
    let mut rack = rack(2, 1);
    rack.schedule(Nanos(0), Fault::SwitchStops);
    rack.schedule(Nanos::from_micros(20), Fault::SwitchRestarts);
    rack.spawn(ThreadId(0), |mut handle| async move { ask(&mut handle, 1).await });
    rack.spawn(ThreadId(1), |mut handle| async move {
        handle.sleep_until(Nanos::from_micros(30)).await;
        ask(&mut handle, 0).await;
    });
    let report = rack.run(Until::WorkersDone);
    assert_eq!((report.ended, report.counts.lost), (Ended::Stuck, 1));
    assert_eq!(report.accesses, [0, 1]);
}

#[test]
fn a_run_in_pieces_is_the_run_in_one() {
    let in_pieces = |pieces: &[u64]| {
        let mut rack = rack(4, 2);
        let log = Rc::new(RefCell::new(Vec::new()));
        for thread in (0..8).map(ThreadId) {
            let log = Rc::clone(&log);
            rack.spawn(thread, move |mut handle| async move {
                for round in 0..40 {
                    ask(&mut handle, (thread.0 + round) % 4).await;
                    write(&mut handle).await;
                    log.borrow_mut().push((handle.now(), thread));
                }
            });
        }
        for piece in pieces {
            let report = rack.run(Until::Time(Nanos(*piece)));
            assert_eq!(report.ended, Ended::Time);
            assert_eq!(report.time, Nanos(*piece));
        }
        assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
        log.take()
    };
    assert_eq!(in_pieces(&[]), in_pieces(&[1, 5_000, 5_001, 33_333]));
}

#[test]
fn operations_are_counted_until_there_are_enough() {
    let mut rack = rack(1, 1);
    rack.spawn(ThreadId(0), |mut handle| async move {
        loop {
            let since = handle.now();
            write(&mut handle).await;
            handle.finished(since);
        }
    });
    assert_eq!(rack.run(Until::Operations(10)).counts.operations, 10);
    rack.measure_from_here();
    let report = rack.run(Until::Operations(25));
    assert_eq!(
        (report.ended, report.counts.operations, report.counts.latency.total()),
        (Ended::Operations, 25, 25)
    );
    assert_eq!(report.counts.latency.per_mille(500), ACCESS);
}

#[test]
#[should_panic(expected = "awaits something that is not its handle's")]
fn a_worker_that_awaits_something_else_is_a_mistake() {
    let mut rack = rack(1, 1);
    rack.spawn(ThreadId(0), |_handle| std::future::pending());
    rack.run(Until::WorkersDone);
}
