//! A peer among hostile peers: processes of the same user that do not keep to the rules.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use wire::NodeId;

use super::greeting::{Heard, dial, hear_caller, hear_descriptors, welcome};
use super::mapping::Mapping;
use super::waker::{ATTENDED, Waker};
use super::*;
use crate::{Reason, WIRE_VERSION};

pub(super) const ME: PeerId = PeerId::node(NodeId(1));
pub(super) const HOSTILE: PeerId = PeerId::node(NodeId(2));
const FRIEND: PeerId = PeerId::node(NodeId(3));

/// A directory of a test, which goes with it.
pub(super) struct Dir(pub(super) PathBuf);

impl Dir {
    pub(super) fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("rackmem-shm-{test}-{}", std::process::id())))
    }

    pub(super) fn open(&self, me: PeerId) -> ShmTransport {
        self.open_with(me, Terms::default())
    }

    fn open_with(&self, me: PeerId, terms: Terms) -> ShmTransport {
        ShmTransport::open(&ShmConfig { dir: self.0.clone(), me, block: 4096, ring_bytes: None, terms })
            .unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn name(peer: PeerId) -> Name {
    Name { peer, observer: (0, 0) }
}

pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connects as `HOSTILE` would, and returns the connection with the descriptors of ring and waker.
fn call(dir: &Path) -> (OwnedFd, [OwnedFd; 2]) {
    let connection = dial(&name(ME).socket(dir), name(HOSTILE), &Terms::default()).unwrap();
    let mut got = None;
    until("a welcome", || match hear_descriptors(&connection, ME) {
        Heard::This(descriptors) => {
            got = Some(descriptors);
            true
        }
        Heard::Nothing => false,
        _ => panic!("refused"),
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
    let (connection, [ring, _waker]) = call(&dir.0);
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
    let (_connection, [ring, waker]) = call(&dir.0);
    for file in [&ring, &waker] {
        ftruncate(file, 0).unwrap_err();
        ftruncate(file, 1 << 30).unwrap_err();
        fallocate(file, rustix::fs::FallocateFlags::COLLAPSE_RANGE, 0, 4096).unwrap_err();
        fcntl_add_seals(file, SealFlags::WRITE).unwrap_err();
    }
}

#[test]
fn a_waker_with_nonsense_in_it_costs_time_only() {
    let dir = Dir::new("waker");
    let (me, friend) = (dir.open(ME), dir.open(FRIEND));
    assert_reaches(&friend, &me);
    let (_connection, [_ring, waker]) = call(&dir.0);
    let waker = Waker::open(&waker).unwrap();
    for nonsense in [ATTENDED, 77, u32::MAX] {
        waker.word().store(nonsense, Relaxed);
        me.wait(Nanos::from_millis(1));
        waker.word().store(nonsense, Relaxed);
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
    // Somebody who says that it is this peer itself, and one who goes on talking.
    let impostor = dial(&name(ME).socket(&dir.0), name(ME), &Terms::default()).unwrap();
    until("the impostor's end", || matches!(hear_descriptors(&impostor, ME), Heard::End));
    let (talker, _) = call(&dir.0);
    send(&talker, b"and another thing", SendFlags::NOSIGNAL).unwrap();
    until("the talker's end", || matches!(hear_caller(&talker), Heard::End));
}

/// Makes `HOSTILE` a peer whose descriptors are these, and returns what becomes of a message to it.
fn send_to_peer_with(dir: &Dir, ring: &OwnedFd, waker: &OwnedFd) -> Cause {
    let me = dir.open(ME);
    let peer = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    let before = me.counters().counts();
    let mut calls = 0;
    until("the outcome", || {
        me.send(HOSTILE, Body::Control(b"to whom it may concern"), &mut Outgoing::new());
        if let Ok(caller) = accept_with(&peer.listener, SocketFlags::CLOEXEC) {
            welcome(&caller, HOSTILE, ring, waker).unwrap();
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
    let (ring, waker) = (memory(4096 + 8192, SealFlags::GROW), memory(4096, SealFlags::SHRINK));
    assert_eq!(send_to_peer_with(&dir, &ring, &waker), Cause::Unreachable);
}

#[test]
fn a_ring_of_a_size_that_is_none_is_not_used() {
    let dir = Dir::new("sizes");
    let waker = memory(4096, SealFlags::SHRINK);
    for bytes in [0, 8, 4096, 4096 + 64, 4096 + 12_288, 1 << 40] {
        assert_eq!(
            send_to_peer_with(&dir, &memory(bytes, SealFlags::SHRINK), &waker),
            Cause::Unreachable,
            "{bytes}"
        );
    }
}

#[test]
fn a_descriptor_that_is_no_memory_is_not_used() {
    let dir = Dir::new("pipe");
    let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let waker = memory(4096, SealFlags::SHRINK);
    assert_eq!(
        send_to_peer_with(&dir, &file.as_fd().try_clone_to_owned().unwrap(), &waker),
        Cause::Unreachable
    );
    assert_eq!(send_to_peer_with(&dir, &memory(4096 + 8192, SealFlags::SHRINK), &file), Cause::Unreachable);
}

#[test]
fn a_consumer_that_breaks_its_ring_is_not_sent_to_any_more() {
    let dir = Dir::new("consumer");
    let me = dir.open(ME);
    let peer = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    let (ring, waker) = (memory(4096 + 4096, SealFlags::SHRINK), memory(4096, SealFlags::SHRINK));
    let view = Mapping::<std::sync::atomic::AtomicU64>::open(&ring, 1 << 30).unwrap();
    view.words()[16].store(u64::MAX - 63, Relaxed);
    let mut connections = Vec::new();
    until("the violation to be found", || {
        me.send(HOSTILE, Body::Control(&[0; 1000]), &mut Outgoing::new());
        if let Ok(caller) = accept_with(&peer.listener, SocketFlags::CLOEXEC) {
            welcome(&caller, HOSTILE, &ring, &waker).unwrap();
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

/// Sends to a peer until its handshake with `from` is refused, and returns why.
fn until_refused(from: &ShmTransport, to: PeerId) -> Reason {
    let handshakes = from.handshakes().unwrap();
    let mut reason = None;
    until("a refusal", || {
        from.send(to, Body::Control(b"hello?"), &mut Outgoing::new());
        reason = handshakes.refusal(to).map(|refusal| refusal.reason);
        reason.is_some()
    });
    reason.unwrap()
}

#[test]
fn peers_with_different_settings_refuse_each_other_and_both_name_the_setting_with_both_values() {
    let dir = Dir::new("settings");
    let terms = |block: &str| Terms::new([("name", "lab"), ("block", block)]);
    let me = dir.open_with(ME, terms("4 KiB"));
    let other = dir.open_with(HOSTILE, terms("8 KiB"));
    let friend = dir.open_with(FRIEND, terms("4 KiB"));
    let differs = |ours: &str, theirs: &str| {
        let one = crate::Difference { field: "block".into(), ours: ours.into(), theirs: theirs.into() };
        Reason::Settings(vec![one])
    };
    assert_eq!(until_refused(&other, ME), differs("8 KiB", "4 KiB"));
    assert_eq!(until_refused(&me, HOSTILE), differs("4 KiB", "8 KiB"));
    assert!(me.counters().counts().dropped_for(Cause::Refused) > 0);
    assert_reaches(&friend, &me);
    assert_reaches(&me, &friend);
    // Restarted with the same settings it is let in, and nothing is said about it any more.
    drop(other);
    let other = dir.open_with(HOSTILE, terms("4 KiB"));
    assert_reaches(&other, &me);
    assert_eq!(me.handshakes().unwrap().refusals(), []);
}

/// What `ME` answers to these bytes of a caller: nothing but what it hangs up with.
fn answer_to(dir: &Dir, bytes: &[u8]) -> Vec<u8> {
    let connection = super::greeting::connect_to(&name(ME).socket(&dir.0)).unwrap();
    send(&connection, bytes, SendFlags::NOSIGNAL).unwrap();
    let (mut answer, mut end) = (Vec::new(), false);
    until("the end of the connection", || {
        let mut bytes = [0; 2048];
        match rustix::net::recv(&connection, &mut bytes[..], rustix::net::RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => end = true,
            Ok((_, length)) => answer.extend(&bytes[..length]),
            Err(_) => {}
        }
        end
    });
    answer
}

#[test]
fn a_greeting_of_another_version_is_refused_with_ours_and_said() {
    let dir = Dir::new("version");
    let (me, friend) = (dir.open(ME), dir.open(FRIEND));
    assert_reaches(&friend, &me);
    for theirs in [1, WIRE_VERSION + 1, 200] {
        // Of another version the front alone is known: the peer stands there.
        let mut hello = super::greeting::hello(name(HOSTILE), &Terms::default());
        hello[7] = b'0'.wrapping_add(theirs);
        hello.extend(b"whatever comes later");
        let answer = answer_to(&dir, &hello);
        let (peer, offer) = super::greeting::parse_refusal(&answer).unwrap();
        assert_eq!((peer, offer), (ME, super::greeting::Offer::Terms(Terms::default())));
        let said = me.handshakes().unwrap().refusal(HOSTILE).unwrap().reason;
        assert_eq!(said, Reason::Version { ours: WIRE_VERSION, theirs });
    }
    assert_eq!(me.counters().counts().dropped_for(Cause::Refused), 3);
    assert_reaches(&friend, &me);
}

#[test]
fn who_is_refused_by_a_peer_of_another_version_says_so() {
    let dir = Dir::new("newer");
    let me = dir.open(ME);
    let peer = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    let handshakes = me.handshakes().unwrap();
    until("the refusal", || {
        me.send(HOSTILE, Body::Control(b"hello?"), &mut Outgoing::new());
        if let Ok(caller) = accept_with(&peer.listener, SocketFlags::CLOEXEC) {
            // Who hangs up on a greeting that was not heard takes back the answer, too.
            until("its greeting", || matches!(hear_caller(&caller), Heard::This(_)));
            let mut answer = super::greeting::refusal(HOSTILE, &Terms::default());
            answer[7] += 1;
            send(&caller, &answer, SendFlags::NOSIGNAL).unwrap();
        }
        handshakes.refusal(HOSTILE).is_some()
    });
    let theirs = WIRE_VERSION + 1;
    assert_eq!(handshakes.refusal(HOSTILE).unwrap().reason, Reason::Version { ours: WIRE_VERSION, theirs });
}

#[test]
fn a_greeting_that_is_cut_short_or_damaged_is_refused_and_counted() {
    let dir = Dir::new("damaged");
    let (me, friend) = (dir.open(ME), dir.open(FRIEND));
    assert_reaches(&friend, &me);
    let hello = super::greeting::hello(name(HOSTILE), &Terms::new([("block", "4 KiB")]));
    let cut = (1..17).map(|length| hello[..length].to_vec());
    let damaged = (0..7).chain([8, hello.len() - 1]).map(|at| {
        let mut damaged = hello.clone();
        damaged[at] = 0xff;
        damaged
    });
    let all: Vec<_> = cut.chain(damaged).chain([[&hello[..], &[b'x'; 2000]].concat()]).collect();
    for bytes in &all {
        assert_eq!(answer_to(&dir, bytes), [], "{bytes:?}");
    }
    until("they are counted", || me.counters().counts().dropped_for(Cause::Malformed) == all.len() as u64);
    // Where it says who it is, people are told.
    assert_eq!(me.handshakes().unwrap().refusal(HOSTILE).unwrap().reason, Reason::Malformed);
    assert_reaches(&friend, &me);
}
