//! Memory that peers publish, obtain and withdraw, between two processes where one of them dies or is stopped.
//!
//! As in `shm_processes.rs`, a test that needs another process starts its own executable again.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "the scenarios are for the conformance tests")]
#[allow(unused_macros, unused_imports, reason = "as above")]
use crate::conformance;
use crate::shm_rack;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use conformance::Rack;
use conformance::messages::{node, until};
use rustix::process::{Pid, Signal, kill_process};
use shm_rack::ShmRack;
use transport::{Mapper, NotObtained, PeerId, SharedMemory, Sharing, Transport};
use wire::Nanos;

const RACK: &str = "RACKMEM_TEST_RACK";
const US: PeerId = node(1);
const THEM: PeerId = node(2);
const NAME: u64 = 0x0001_0000_0000_1000;
const LONG: Nanos = Nanos(60_000_000_000);
const SHORT: Nanos = Nanos(20_000_000);

struct Other(Child);

impl Other {
    fn start(test: &str, rack: &ShmRack) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", &format!("shm_sharing::{test}"), "--nocapture"])
            .env(RACK, rack.dir())
            .stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Returns when it has stopped, all threads of it.
    fn stop(&self) {
        self.signal(Signal::STOP);
        let threads = || std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        until("it to stop", || {
            threads().all(|thread| {
                let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
                stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
            })
        });
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other peer, if this is the other process.
fn as_other() -> Option<Box<dyn Transport>> {
    std::env::var_os(RACK).map(|dir| ShmRack::at(dir.into()).open(THEM))
}

fn sharing(of: &dyn Transport) -> Arc<dyn Sharing> {
    of.sharing().expect("rings lie in shared memory, too")
}

fn publish(of: &dyn Transport, words: usize) -> Arc<SharedMemory> {
    let memory = Arc::new(SharedMemory::create(words).unwrap());
    sharing(of).publish(NAME, Arc::clone(&memory));
    memory
}

/// Obtains from a process that is about to come up and publish.
fn obtain_from(them: PeerId, us: &dyn Transport) -> Arc<SharedMemory> {
    let mut got = None;
    until("the memory", || {
        got = sharing(us).obtain(them, NAME, LONG).ok();
        got.is_some()
    });
    got.unwrap()
}

/// Whoever lent the memory has its own descriptor a moment longer than it takes to map it.
fn until_free(memory: &SharedMemory, of: PeerId) {
    until("nobody to have it mapped", || memory.claim(of).unwrap().is_some());
}

/// As an application, which is no peer.
fn borrow(rack: &ShmRack, timeout: Nanos) -> Result<Arc<SharedMemory>, NotObtained> {
    transport::shm::borrow(rack.dir(), THEM, NAME, timeout)
}

#[test]
fn each_application_has_a_seat_of_its_own_at_a_memory_until_it_has_it_mapped_no_more() {
    let rack = ShmRack::new();
    let (us, them) = (rack.open(US), rack.open(THEM));
    let theirs = publish(&*them, 1);
    let ours = sharing(&*us).obtain(THEM, NAME, LONG).unwrap();
    assert_eq!((theirs.mapper(), ours.mapper()), (None, Some(Mapper::Peer(US))));
    let mut all: Vec<_> = Mapper::seats().map(|_| borrow(&rack, LONG).unwrap()).collect();
    assert!(all.iter().map(|memory| memory.mapper().unwrap()).eq(Mapper::seats()), "the first that is free");
    assert_eq!(borrow(&rack, SHORT).unwrap_err(), NotObtained::Claimed, "there is none");
    all[5].words()[0].store(7, SeqCst);
    assert_eq!(theirs.words()[0].load(SeqCst), 7);
    let seat = all.remove(9).mapper().unwrap();
    until("its seat to be free", || theirs.claim(seat).unwrap().is_some());
    assert!(theirs.claim(Mapper::Application(10)).unwrap().is_none(), "somebody else's");
    let claim = theirs.claim(seat).unwrap();
    assert_eq!(borrow(&rack, SHORT).unwrap_err(), NotObtained::Claimed, "its maker has it");
    drop(claim);
    assert_eq!(borrow(&rack, LONG).unwrap().mapper(), Some(seat));
    drop(all);
    assert!(borrow(&rack, LONG).is_ok());
    drop(them);
    assert_eq!(borrow(&rack, LONG).unwrap_err(), NotObtained::Unreachable);
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

#[test]
fn who_obtains_a_memory_sees_what_its_maker_stores_and_the_other_way_round() {
    let rack = ShmRack::new();
    let (us, them) = (rack.open(US), rack.open(THEM));
    for words in [1, 512, 513, (8 << 20) / 8] {
        let theirs = publish(&*them, words);
        let ours = sharing(&*us).obtain(THEM, NAME, LONG).unwrap();
        assert_eq!(ours.words().len(), words.next_multiple_of(512));
        assert!(theirs.is_own() && !ours.is_own());
        let last = words - 1;
        assert_eq!(ours.words()[last].load(SeqCst), 0);
        theirs.words()[last].store(7, SeqCst);
        assert_eq!(ours.words()[last].fetch_add(1, SeqCst), 7);
        assert_eq!(theirs.words()[last].load(SeqCst), 8);
    }
}

#[test]
fn what_is_not_published_or_withdrawn_is_not_obtained_and_whoever_has_it_keeps_it() {
    let rack = ShmRack::new();
    let (us, them) = (rack.open(US), rack.open(THEM));
    let ask = || sharing(&*us).obtain(THEM, NAME, LONG).map(|memory| memory.words().len());
    assert_eq!(ask().unwrap_err(), NotObtained::NotPublished);
    let theirs = publish(&*them, 1);
    let ours = sharing(&*us).obtain(THEM, NAME, LONG).unwrap();
    assert!(sharing(&*them).withdraw(NAME) && !sharing(&*them).withdraw(NAME));
    assert_eq!(ask().unwrap_err(), NotObtained::NotPublished);
    ours.words()[0].store(3, SeqCst);
    assert_eq!(theirs.words()[0].load(SeqCst), 3);
    assert_eq!(
        sharing(&*us).obtain(PeerId::node(wire::NodeId(5)), NAME, LONG).unwrap_err(),
        NotObtained::Unreachable
    );
    drop(them);
    assert_eq!(ask().unwrap_err(), NotObtained::Unreachable);
}

#[test]
fn a_node_has_a_memory_mapped_once_and_others_beside_it() {
    let rack = ShmRack::new();
    let (us, them, third) = (rack.open(US), rack.open(THEM), rack.open(node(3)));
    let theirs = publish(&*them, 1);
    let ours = sharing(&*us).obtain(THEM, NAME, LONG).unwrap();
    assert_eq!(sharing(&*us).obtain(THEM, NAME, SHORT).unwrap_err(), NotObtained::Claimed);
    let thirds = sharing(&*third).obtain(THEM, NAME, LONG).unwrap();
    thirds.words()[0].store(1, SeqCst);
    assert_eq!(ours.words()[0].load(SeqCst), 1);
    drop(ours);
    drop(sharing(&*us).obtain(THEM, NAME, LONG).unwrap());
    until_free(&theirs, US);
}

#[test]
fn a_claim_keeps_a_node_out_and_is_not_given_while_it_is_in() {
    let rack = ShmRack::new();
    let (us, them) = (rack.open(US), rack.open(THEM));
    let theirs = publish(&*them, 1);
    let claim = theirs.claim(US).unwrap().expect("nobody has it");
    assert_eq!(sharing(&*us).obtain(THEM, NAME, SHORT).unwrap_err(), NotObtained::Claimed);
    drop(claim);
    let ours = sharing(&*us).obtain(THEM, NAME, LONG).unwrap();
    assert!(theirs.claim(US).unwrap().is_none());
    assert!(theirs.claim(node(3)).unwrap().is_some(), "of another node");
    drop(ours);
    until_free(&theirs, US);
}

#[test]
fn a_stopped_process_keeps_its_claim_and_a_dead_one_does_not() {
    if let Some(them) = as_other() {
        let memory = obtain_from(US, &*them);
        memory.words()[0].store(1, SeqCst);
        sleep_for_ever();
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    let ours = publish(&*us, 1);
    for _ in 0..3 {
        let mut other = Other::start("a_stopped_process_keeps_its_claim_and_a_dead_one_does_not", &rack);
        until("the other to have it", || ours.words()[0].swap(0, SeqCst) == 1);
        other.stop();
        assert!(ours.claim(THEM).unwrap().is_none(), "it may go on");
        other.kill();
        until_free(&ours, THEM);
    }
    // What it has left in the directory.
    rack.open(THEM);
}

#[test]
fn memory_stays_when_its_maker_dies() {
    const WORDS: usize = (16 << 20) / 8;
    if let Some(them) = as_other() {
        publish(&*them, WORDS).words()[9].store(99, SeqCst);
        sleep_for_ever();
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    let mut other = Other::start("memory_stays_when_its_maker_dies", &rack);
    let memory = obtain_from(THEM, &*us);
    until("what it stored", || memory.words()[9].load(SeqCst) == 99);
    other.kill();
    // Also where nobody has ever been.
    assert_eq!(memory.words().iter().map(|word| word.load(SeqCst)).sum::<u64>(), 99);
    memory.words().iter().for_each(|word| _ = word.fetch_add(1, SeqCst));
    assert_eq!(memory.words()[WORDS - 1].load(SeqCst), 1);
    let why = sharing(&*us).obtain(THEM, NAME, LONG).unwrap_err();
    assert_eq!(why, NotObtained::Unreachable);
    rack.open(THEM);
}

#[test]
fn a_stopped_maker_is_waited_for_as_long_as_it_was_said() {
    if let Some(them) = as_other() {
        publish(&*them, 1);
        sleep_for_ever();
    }
    let rack = ShmRack::new();
    let us = rack.open(US);
    let mut other = Other::start("a_stopped_maker_is_waited_for_as_long_as_it_was_said", &rack);
    drop(obtain_from(THEM, &*us));
    other.stop();
    for _ in 0..3 {
        assert_eq!(sharing(&*us).obtain(THEM, NAME, SHORT).unwrap_err(), NotObtained::TimedOut);
    }
    other.signal(Signal::CONT);
    obtain_from(THEM, &*us);
    other.kill();
    rack.open(THEM);
}

#[test]
fn who_has_a_memory_mapped_needs_no_descriptor_of_it() {
    let rack = ShmRack::new();
    let (us, them) = (rack.open(US), rack.open(THEM));
    let held: Vec<_> = (0..100)
        .map(|name| {
            sharing(&*them).publish(name, Arc::new(SharedMemory::create(1).unwrap()));
            sharing(&*us).obtain(THEM, name, LONG).unwrap()
        })
        .collect();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    for name in 0..100 {
        sharing(&*them).withdraw(name);
    }
    until("the maker's descriptors to be closed", || descriptors() + 100 <= before);
    held[99].words()[0].store(1, SeqCst);
}
