//! Two NICs and a network that loses what it is told to: connections break and begin anew.

use std::sync::Arc;

use nic::connections::{Again, Incarnations};
use nic::regions::KEPT;
use nic::verbs::{Memory as _, Mtu, Remote, Span};
use transport::inline::{Hub, InlineTransport};
use transport::{Body, Contents, Outgoing, PeerId, Transport as _};
use wire::chains::UNIT;
use wire::roce::Key;
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, Refusal, SwitchEpoch};

use super::memory::During;
use super::nic::{Nic, Way};
use super::ticket::{Ended, Ticket};
use super::works::{What, Work};
use crate::actor::Failure;
use crate::chains::{Home, LAST_PASS};
use crate::memory::regions::Shape;

const TICK: Nanos = Nanos::from_millis(1);
const TIMES: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_millis(2_500));

struct Two {
    nics: [Nic; 2],
    transports: [InlineTransport; 2],
    now: Nanos,
    /// Control messages that are still to be lost.
    lost: usize,
}

impl Two {
    fn new() -> Self {
        let hub = Hub::default();
        let node = |at: u16| NodeId(at);
        let mut two = Self {
            nics: [0, 1].map(|at| Nic::new(node(at), 2, Mtu::B1024, TIMES)),
            transports: [0, 1].map(|at| hub.connect(PeerId::node(node(at)))),
            now: Nanos(1),
            lost: 0,
        };
        let incarnations = [Some(Incarnation(1)); 2];
        for at in 0..2 {
            two.at(at, |nic, now, way| nic.begin_epoch(now, (SwitchEpoch(1), &incarnations), way));
        }
        two
    }

    fn at<R>(&mut self, at: usize, action: impl FnOnce(&mut Nic, Nanos, &mut Way<'_>) -> R) -> R {
        let mut outgoing = Outgoing::new();
        let mut way = Way { transport: &self.transports[at], outgoing: &mut outgoing, is_fenced: false };
        let result = action(&mut self.nics[at], self.now, &mut way);
        self.nics[at].mend_broken(self.now, &mut way);
        result
    }

    /// Lets time pass until this is over.
    fn until(&mut self, ticket: &Ticket) -> Ended {
        for _ in 0..10_000 {
            if let Some(ended) = ticket.take() {
                return ended;
            }
            self.now += TICK;
            for at in 0..2 {
                let mut came = Vec::new();
                self.transports[at].receive(&mut |from, body| {
                    let from = from.as_node().expect("nodes only");
                    match body {
                        Body::Verbs(packet, len, contents) => {
                            came.push((from, Some((*packet, len, contents.to_words())), Vec::new()));
                        }
                        Body::Control(bytes) => came.push((from, None, bytes.to_vec())),
                        _ => panic!("nobody sends that"),
                    }
                });
                for (from, packet, control) in came {
                    match packet {
                        Some((packet, len, words)) => self.at(at, |nic, now, way| {
                            nic.on_packet(now, from, &packet, len, transport::Contents::own(&words), way);
                        }),
                        None if self.lost > 0 => self.lost -= 1,
                        None => {
                            let said = Again::parse(&control).expect("what NICs say");
                            self.at(at, |nic, now, way| nic.on_again(now, from, &said, way));
                        }
                    }
                }
                self.at(at, |nic, now, way| nic.on_deadline(now, way));
            }
        }
        panic!("it never ended");
    }

    fn post(&mut self, at: usize, what: What, bytes: usize) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        let source = vec![7; bytes.div_ceil(8)].into();
        let work = Work::new(NodeId(1 - at as u16), what, Some(Arc::clone(&ticket)), source, bytes);
        self.at(at, |nic, now, way| nic.post(now, work, way));
        ticket
    }
}

/// Uses a key that never was.
const WRONG: What = What::Read { remote: Remote { key: Key(0x00ff_ff01), address: 0 }, len: 8 };

#[test]
fn a_connection_that_broke_begins_anew_at_both_ends() {
    for (lost, breaker) in (0..8).flat_map(|lost| [(lost, 0), (lost, 1)]) {
        let mut two = Two::new();
        two.lost = lost;
        let other = two.post(1 - breaker, What::Send, 5_000);
        assert!(matches!(two.until(&other), Ended::Answer(_)));
        let wrong = two.post(breaker, WRONG, 0);
        // What is in flight fails with it, and says that nobody knows.
        let behind = two.post(breaker, What::Send, 8);
        assert_eq!(two.until(&wrong), Ended::Failed(Failure::Broken));
        assert_eq!(two.until(&behind), Ended::Failed(Failure::Broken));
        for at in [breaker, 1 - breaker, breaker] {
            let next = two.post(at, What::Send, 3_000);
            // From the end that has not heard of it, it may fail once more.
            let ended = two.until(&next);
            if ended == Ended::Failed(Failure::Broken) {
                let again = two.post(at, What::Send, 3_000);
                assert!(matches!(two.until(&again), Ended::Answer(_)), "{lost} lost");
            }
        }
        assert_eq!(two.nics[0].connections.incarnations(NodeId(1)).unwrap().attempt, 1);
        assert_eq!(two.nics[1].connections.incarnations(NodeId(0)).unwrap().attempt, 1);
    }
}

#[test]
fn both_ends_may_break_at_a_time() {
    let mut two = Two::new();
    for turn in 1..5 {
        let wrong = [0, 1].map(|at| two.post(at, WRONG, 0));
        for ticket in &wrong {
            assert_eq!(two.until(ticket), Ended::Failed(Failure::Broken));
        }
        let next = two.post(turn % 2, What::Send, 100);
        let ended = two.until(&next);
        assert!(matches!(ended, Ended::Answer(_) | Ended::Failed(Failure::Broken)), "{ended:?}");
        let next = two.post(turn % 2, What::Send, 100);
        assert!(matches!(two.until(&next), Ended::Answer(_)));
        let attempts = [0, 1]
            .map(|at: usize| two.nics[at].connections.incarnations(NodeId(1 - at as u16)).unwrap().attempt);
        assert_eq!(attempts[0], attempts[1]);
    }
}

#[test]
fn a_node_that_is_down_fails_what_is_asked_of_it() {
    let mut two = Two::new();
    let pending = two.post(0, What::Send, 100);
    two.at(0, |nic, now, way| nic.begin_epoch(now, (SwitchEpoch(2), &[Some(Incarnation(1)), None]), way));
    let down = Ended::Failed(Failure::Refused(Refusal::NodeDown));
    assert_eq!(pending.take(), Some(down.clone()));
    assert_eq!(two.post(0, What::Send, 100).take(), Some(down));
}

#[test]
fn a_key_of_a_former_incarnation_is_used_no_more() {
    let mut two = Two::new();
    let view = |incarnation| [Some(Incarnation(1)), Some(Incarnation(incarnation))];
    let ask = |two: &mut Two, incarnation| {
        let ticket = Arc::<Ticket>::default();
        let work = Work::new(NodeId(1), What::Send, Some(Arc::clone(&ticket)), Box::new([7]), 8);
        two.at(0, |nic, now, way| nic.post(now, work.in_incarnation(Incarnation(incarnation)), way));
        ticket
    };
    let pending = ask(&mut two, 1);
    two.at(0, |nic, now, way| nic.begin_epoch(now, (SwitchEpoch(2), &view(2)), way));
    let down = Ended::Failed(Failure::Refused(Refusal::NodeDown));
    assert_eq!(pending.take(), Some(down.clone()));
    assert_eq!(ask(&mut two, 1).take(), Some(down), "another region may have that key by now");
    assert_eq!(ask(&mut two, 2).take(), None, "that is in flight");
}

#[test]
fn a_life_is_over_when_its_node_has_another_one_or_none_and_not_before_it_was_heard_of() {
    let mut two = Two::new();
    let is_over = |two: &Two, life| two.nics[0].is_over(NodeId(1), Incarnation(life));
    let begin = |two: &mut Two, epoch, life: Option<u32>| {
        let lives = [Some(Incarnation(1)), life.map(Incarnation)];
        two.at(0, |nic, now, way| nic.begin_epoch(now, (SwitchEpoch(epoch), &lives), way));
    };
    assert_eq!([0, 1, 3].map(|life| is_over(&two, life)), [true, false, false]);
    begin(&mut two, 2, None);
    assert_eq!(
        [1, 2, 3].map(|life| is_over(&two, life)),
        [true, true, false],
        "it may come with the next epoch"
    );
    begin(&mut two, 3, Some(3));
    assert_eq!([2, 3, 4].map(|life| is_over(&two, life)), [true, false, false]);
    begin(&mut two, 2, None);
    assert!(!is_over(&two, 3), "that came late");
    begin(&mut two, 4, Some(3));
    assert_eq!([3, 4, 5].map(|life| is_over(&two, life)), [false, true, false]);
}

#[test]
fn what_has_changed_in_memory_is_told_piece_by_piece_to_whoever_copies_it() {
    let mut two = Two::new();
    let home = crate::memory::NodeMemory::new(wire::BlockSize::DEFAULT, 1 << 20, 1 << 20);
    let nic = &mut two.nics[0];
    let addr = GlobalAddr::new(NodeId(0), 4096);
    let region = home.regions.begin(&home.home, addr, Shape::Chain { first: 101, units: 1000 }, true);
    let key = nic.export(&region).unwrap();
    let its = Home { addr, key, incarnation: Incarnation(1) };
    let ask = |nic: &mut Nic, home: &Home, copy, pass, first| {
        let units = nic.changed(home, ((NodeId(1), copy), pass), (first, 2));
        units.map(|units| units.into_iter().map(|units| (units.start, units.end)).collect::<Vec<_>>())
    };
    let write = |nic: &mut Nic, unit: u64, len: u32| {
        let at = Span { key, address: unit * UNIT, len };
        nic.bytes.place(&mut nic.works, at, Contents::Zeroes(len as usize));
    };
    write(nic, 200, 8);
    assert_eq!(ask(nic, &its, 5, 1, 0), Err(Refusal::Outdated), "nobody copies it");
    assert_eq!(ask(nic, &its, 5, 0, 0), Ok(vec![]));
    for (unit, len) in [(101, 8), (104, 128), (500, 8), (1100, 64)] {
        write(nic, unit, len);
    }
    let mut memory = During { bytes: &mut nic.bytes, payload: &[] };
    assert_eq!(memory.compare_swap(key, 300 * UNIT, 1, 2), 0, "it is another word");
    assert_eq!(memory.compare_swap(key, 400 * UNIT, 0, 2), 0);
    assert_eq!(ask(nic, &its, 5, 1, 0), Ok(vec![(101, 109), (397, 401)]));
    assert_eq!(ask(nic, &its, 5, 1, 401), Ok(vec![(497, 501), (1097, 1101)]));
    assert_eq!(ask(nic, &its, 5, 1, 1101), Ok(vec![]));
    let other = Home { addr: addr + 64, ..its };
    assert_eq!(ask(nic, &other, 5, 1, 0), Err(Refusal::Unallocated));
    assert_eq!(ask(nic, &its, 6, LAST_PASS, 0), Ok(vec![]), "another copy takes nothing away");
    assert_eq!(ask(nic, &its, 5, 2, 0), Ok(vec![]));
    assert_eq!(ask(nic, &its, 5, LAST_PASS, 0), Ok(vec![]));
    assert_eq!(ask(nic, &its, 5, 3, 0), Err(Refusal::Outdated), "it is over");
    home.regions.end(addr);
    nic.bytes.exported.end(&mut nic.device, addr);
    assert_eq!(ask(nic, &its, 7, 0, 0), Err(Refusal::Unallocated));
}

#[test]
fn what_is_said_of_other_incarnations_means_nothing() {
    let mut two = Two::new();
    let other = Incarnations { mine: Incarnation(2), theirs: Incarnation(1), attempt: 5 };
    let said = Again { incarnations: other, is_answer: false };
    two.at(0, |nic, now, way| nic.on_again(now, NodeId(1), &said, way));
    assert_eq!(two.nics[0].connections.incarnations(NodeId(1)).unwrap().attempt, 0);
    let works = two.post(0, What::Send, 100);
    assert!(matches!(two.until(&works), Ended::Answer(_)));
}

#[test]
fn the_key_of_an_ended_region_is_known_for_a_while_and_then_means_nothing() {
    let mut two = Two::new();
    let home = crate::memory::NodeMemory::new(wire::BlockSize::DEFAULT, 1 << 20, 1 << 20);
    let nic = &mut two.nics[0];
    let mut keys = Vec::new();
    for number in 0..KEPT + 2 {
        let addr = GlobalAddr::new(NodeId(0), 4096 + number as u64 * 8);
        let region = home.regions.begin(&home.home, addr, Shape::Words { count: 1 }, true);
        let key = nic.export(&region).unwrap();
        assert_eq!(nic.export(&region), Some(key), "it has one");
        home.regions.end(addr);
        nic.bytes.exported.end(&mut nic.device, addr);
        keys.push(key);
    }
    let is_known = |key: &Key| nic.bytes.exported.get(*key).is_some_and(|region| !region.is_alive());
    assert_eq!(keys.iter().position(is_known), Some(2), "as many as are kept, and none before");
    assert!(keys[2..].iter().all(is_known));
}
