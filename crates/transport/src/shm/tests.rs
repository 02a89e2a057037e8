//! A place among hostile peers: processes of the same user that do not keep to the rules.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use wire::NodeId;

use super::bell::{ATTENDED, Bell};
use super::greeting::{Heard, dial, hear_caller, hear_descriptors, welcome};
use super::mapping::Mapping;
use super::*;

pub(super) const ME: PlaceId = PlaceId::node(NodeId(1));
pub(super) const HOSTILE: PlaceId = PlaceId::node(NodeId(2));
const FRIEND: PlaceId = PlaceId::node(NodeId(3));

/// A directory of a test, which goes with it.
pub(super) struct Dir(pub(super) PathBuf);

impl Dir {
    pub(super) fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("rackmem-shm-{test}-{}", std::process::id())))
    }

    pub(super) fn open(&self, me: PlaceId) -> ShmTransport {
        ShmTransport::open(&Config { dir: self.0.clone(), me, block: 4096, ring_bytes: None }).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn name(place: PlaceId) -> Name {
    Name { place, observer: (0, 0) }
}

pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connects as `HOSTILE` would, and returns the connection with the descriptors of ring and bell.
fn call(dir: &Path) -> (OwnedFd, [OwnedFd; 2]) {
    let connection = dial(&name(ME).socket(dir), name(HOSTILE)).unwrap();
    let mut got = None;
    until("a welcome", || match hear_descriptors(&connection, ME) {
        Heard::This(descriptors) => {
            got = Some(descriptors);
            true
        }
        Heard::Nothing => false,
        Heard::End => panic!("refused"),
    });
    (connection, got.unwrap())
}

/// `from` can send to `to`, and does.
fn assert_reaches(from: &ShmTransport, to: &ShmTransport) {
    until("a message of a friend", || {
        let mut out = Outgoing::new();
        from.send(to.me(), Body::Control(b"still here"), &mut out);
        from.flush(&mut out);
        let mut heard = false;
        to.receive(&mut |who, body| {
            heard |= who == from.me() && matches!(body, Body::Control(b"still here"))
        });
        heard
    });
}

#[test]
fn a_producer_that_breaks_its_ring_is_cut_off_and_counted_once() {
    let dir = Dir::new("breaks");
    let (me, friend) = (dir.open(ME), dir.open(FRIEND));
    let (connection, [ring, _bell]) = call(&dir.0);
    let ring = Mapping::<std::sync::atomic::AtomicU64>::open(&ring, 1 << 30).unwrap();
    ring.words()[0].store(u64::MAX, Relaxed);
    until("the violation to be found", || {
        me.receive(&mut |who, _| panic!("a message of {who}"));
        me.counters().counts().dropped_for(Cause::BrokenRing) == 1
    });
    until("the end of the connection", || matches!(hear_caller(&connection), Heard::End));
    assert_reaches(&friend, &me);
    me.attend();
    assert!(!me.leave(), "a broken ring has nothing to say");
    assert_eq!(me.counters().counts().dropped_for(Cause::BrokenRing), 1);
    // It may call again, and gets a new ring.
    call(&dir.0);
}

#[test]
fn nobody_can_take_the_shared_memory_away_under_us() {
    let dir = Dir::new("shrinks");
    let _me = dir.open(ME);
    let (_connection, [ring, bell]) = call(&dir.0);
    for file in [&ring, &bell] {
        ftruncate(file, 0).unwrap_err();
        ftruncate(file, 1 << 30).unwrap_err();
        fallocate(file, rustix::fs::FallocateFlags::COLLAPSE_RANGE, 0, 4096).unwrap_err();
        fcntl_add_seals(file, SealFlags::WRITE).unwrap_err();
    }
}

#[test]
fn a_bell_with_nonsense_in_it_costs_time_only() {
    let dir = Dir::new("bell");
    let (me, friend) = (dir.open(ME), dir.open(FRIEND));
    assert_reaches(&friend, &me);
    let (_connection, [_ring, bell]) = call(&dir.0);
    let bell = Bell::open(&bell).unwrap();
    for nonsense in [ATTENDED, 77, u32::MAX] {
        bell.word().store(nonsense, Relaxed);
        me.wait(Nanos::from_millis(1));
        bell.word().store(nonsense, Relaxed);
        assert_reaches(&friend, &me);
    }
}

#[test]
fn callers_who_say_nothing_do_not_keep_others_out() {
    let dir = Dir::new("silent");
    let (me, friend) = (dir.open(ME), dir.open(FRIEND));
    let socket = name(ME).socket(&dir.0);
    let mute = || {
        let kind = rustix::net::SocketType::SEQPACKET;
        let flags = SocketFlags::CLOEXEC;
        let one = rustix::net::socket_with(rustix::net::AddressFamily::UNIX, kind, flags, None).unwrap();
        rustix::net::connect(&one, &rustix::net::SocketAddrUnix::new(&socket).unwrap()).unwrap();
        one
    };
    let silent: Vec<_> = (0..200).map(|_| mute()).collect();
    assert_reaches(&friend, &me);
    assert_eq!(silent.len(), 200);
}

#[test]
fn who_does_not_say_hello_properly_gets_no_ring() {
    let dir = Dir::new("hello");
    let _me = dir.open(ME);
    // Somebody who says that it is this place itself, and one who goes on talking.
    let impostor = dial(&name(ME).socket(&dir.0), name(ME)).unwrap();
    until("the impostor's end", || matches!(hear_descriptors(&impostor, ME), Heard::End));
    let (talker, _) = call(&dir.0);
    send(&talker, b"and another thing", SendFlags::NOSIGNAL).unwrap();
    until("the talker's end", || matches!(hear_caller(&talker), Heard::End));
}

/// Makes `HOSTILE` a place whose descriptors are these, and returns what becomes of a message to it.
fn send_to_place_with(dir: &Dir, ring: &OwnedFd, bell: &OwnedFd) -> Cause {
    let me = dir.open(ME);
    let place = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    let before = me.counters().counts();
    let mut calls = 0;
    until("the outcome", || {
        me.send(HOSTILE, Body::Control(b"to whom it may concern"), &mut Outgoing::new());
        if let Ok(caller) = accept_with(&place.listener, SocketFlags::CLOEXEC) {
            welcome(&caller, HOSTILE, ring, bell).unwrap();
            calls += 1;
        }
        let counts = me.counters().counts();
        counts.sent > before.sent || calls > 2
    });
    let counts = me.counters().counts();
    assert_eq!(counts.sent, before.sent, "it was sent");
    Cause::ALL.into_iter().find(|cause| counts.dropped_for(*cause) > 0).unwrap()
}

fn memory(bytes: u64, seals: SealFlags) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

#[test]
fn a_ring_that_its_maker_could_shrink_is_not_used() {
    let dir = Dir::new("unsealed");
    let (ring, bell) = (memory(4096 + 8192, SealFlags::GROW), memory(4096, SealFlags::SHRINK));
    assert_eq!(send_to_place_with(&dir, &ring, &bell), Cause::Unreachable);
}

#[test]
fn a_ring_of_a_size_that_is_none_is_not_used() {
    let dir = Dir::new("sizes");
    let bell = memory(4096, SealFlags::SHRINK);
    for bytes in [0, 8, 4096, 4096 + 64, 4096 + 12_288, 1 << 40] {
        assert_eq!(
            send_to_place_with(&dir, &memory(bytes, SealFlags::SHRINK), &bell),
            Cause::Unreachable,
            "{bytes}"
        );
    }
}

#[test]
fn a_descriptor_that_is_no_memory_is_not_used() {
    let dir = Dir::new("pipe");
    let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let bell = memory(4096, SealFlags::SHRINK);
    assert_eq!(
        send_to_place_with(&dir, &file.as_fd().try_clone_to_owned().unwrap(), &bell),
        Cause::Unreachable
    );
    assert_eq!(send_to_place_with(&dir, &memory(4096 + 8192, SealFlags::SHRINK), &file), Cause::Unreachable);
}

#[test]
fn a_consumer_that_breaks_its_ring_is_not_sent_to_any_more() {
    let dir = Dir::new("consumer");
    let me = dir.open(ME);
    let place = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    let (ring, bell) = (memory(4096 + 4096, SealFlags::SHRINK), memory(4096, SealFlags::SHRINK));
    let view = Mapping::<std::sync::atomic::AtomicU64>::open(&ring, 1 << 30).unwrap();
    view.words()[16].store(u64::MAX - 63, Relaxed);
    let mut connections = Vec::new();
    until("the violation to be found", || {
        me.send(HOSTILE, Body::Control(&[0; 1000]), &mut Outgoing::new());
        if let Ok(caller) = accept_with(&place.listener, SocketFlags::CLOEXEC) {
            welcome(&caller, HOSTILE, &ring, &bell).unwrap();
            connections.push(caller);
        }
        me.counters().counts().dropped_for(Cause::BrokenRing) > 0
    });
    let caller = &connections[0];
    until("the end of the connection", || {
        let mut bytes = [0; 64];
        matches!(rustix::net::recv(caller, &mut bytes[..], rustix::net::RecvFlags::DONTWAIT), Ok((_, 0)))
    });
}
