//! Asking a hostile peer for memory, and hostile questions: processes of the same user that do not keep to the rules.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use wire::Nanos;

use super::asking::{Question, Verdict, answer};
use super::greeting::{Caller, Heard, connect_to, hear_caller};
use super::tests::{Dir, HOSTILE, ME, name, until};
use super::*;
use crate::{NotObtained, SharedMemory};

const NAME: u64 = 0x5007_0000;
const LONG: Nanos = Nanos(60_000_000_000);
const ALL_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

fn file(bytes: u64, seals: SealFlags) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

/// `ME` asks `HOSTILE` for memory, and what `HOSTILE` does is `act`, with the connection and the question. Returns what came of it,
/// and how often `ME` has counted something malformed.
fn ask_one_who(test: &str, act: impl FnOnce(&OwnedFd, Question) + Send) -> (NotObtained, u64) {
    let dir = Dir::new(test);
    let me = dir.open(ME);
    let peer = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    let why = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut caller = None;
            until("a caller", || {
                caller = accept_with(&peer.listener, SocketFlags::CLOEXEC).ok();
                caller.is_some()
            });
            let caller = caller.unwrap();
            until("a question", || match hear_caller(&caller) {
                Heard::This(Caller::Asks(question)) => {
                    assert_eq!(question, Question { from: ME, to: HOSTILE, name: NAME });
                    true
                }
                _ => false,
            });
            act(&caller, Question { from: ME, to: HOSTILE, name: NAME });
        });
        me.sharing().unwrap().obtain(HOSTILE, NAME, LONG).unwrap_err()
    });
    (why, me.counters().counts().dropped_for(Cause::Malformed))
}

#[test]
fn memory_that_is_not_sealed_for_good_is_not_mapped() {
    for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL] {
        let memory = file(8192, ALL_SEALS.difference(missing));
        let got = ask_one_who("sealed", |caller, question| {
            answer(caller, question, Verdict::Given, Some((&memory, ME.into()))).unwrap();
        });
        assert_eq!(got, (NotObtained::Malformed, 1), "without {missing:?}");
    }
}

#[test]
fn memory_of_an_impossible_size_is_not_mapped() {
    for bytes in [0, 8, 4095, 4096 + 8, 1 << 41] {
        let memory = file(bytes, ALL_SEALS);
        let got = ask_one_who("size", |caller, question| {
            answer(caller, question, Verdict::Given, Some((&memory, ME.into()))).unwrap();
        });
        assert_eq!(got, (NotObtained::Malformed, 1), "{bytes} bytes");
    }
}

#[test]
fn what_is_no_memory_is_not_mapped() {
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let read_only: OwnedFd = {
        let memory = file(4096, ALL_SEALS);
        std::fs::File::open(format!("/proc/self/fd/{}", memory.as_raw_fd())).unwrap().into()
    };
    for descriptor in [null, read_only] {
        let got = ask_one_who("null", |caller, question| {
            answer(caller, question, Verdict::Given, Some((&descriptor, ME.into()))).unwrap();
        });
        assert_eq!(got, (NotObtained::Malformed, 1));
    }
}

#[test]
fn an_answer_to_another_question_or_without_its_memory_is_refused() {
    let memory = file(4096, ALL_SEALS);
    let given = |caller: &OwnedFd, question, descriptor: Option<&OwnedFd>| {
        answer(caller, question, Verdict::Given, descriptor.map(|file| (file, ME.into()))).unwrap();
    };
    let got = ask_one_who("none", |caller, question| given(caller, question, None));
    assert_eq!(got, (NotObtained::Malformed, 1));
    let got = ask_one_who("name", |caller, question| {
        given(caller, Question { name: NAME + 1, ..question }, Some(&memory));
    });
    assert_eq!(got, (NotObtained::Malformed, 1));
    let got = ask_one_who("peer", |caller, question| {
        given(caller, Question { to: PeerId::SWITCH, ..question }, Some(&memory));
    });
    assert_eq!(got, (NotObtained::Malformed, 1));
    let got = ask_one_who("gift", |caller, question| {
        answer(caller, question, Verdict::NotPublished, Some((&memory, ME.into()))).unwrap();
    });
    assert_eq!(got, (NotObtained::Malformed, 1));
    for bytes in [&[7; 18][..], &[7; 19], &[7; 100]] {
        let got = ask_one_who("noise", |caller, _| {
            send(caller, bytes, SendFlags::NOSIGNAL).unwrap();
        });
        assert_eq!(got, (NotObtained::Malformed, 1));
    }
}

#[test]
fn a_peer_that_hangs_up_is_unreachable() {
    let got = ask_one_who("hangs", |_, _| {});
    assert_eq!(got, (NotObtained::Unreachable, 0));
}

#[test]
fn a_peer_that_says_nothing_is_waited_for_as_long_as_it_was_said() {
    let dir = Dir::new("says-nothing");
    let me = dir.open(ME);
    let sharing = me.sharing().unwrap();
    // It does not even accept. After as many callers as may wait, there is no connection; before, no answer.
    let _place = Rendezvous::open(&dir.0, name(HOSTILE)).unwrap();
    for _ in 0..80 {
        let why = sharing.obtain(HOSTILE, NAME, Nanos::from_millis(2)).unwrap_err();
        assert_eq!(why, NotObtained::TimedOut);
    }
}

#[test]
fn questions_for_others_and_by_nobody_are_not_answered() {
    let dir = Dir::new("questions");
    let me = dir.open(ME);
    let sharing = me.sharing().unwrap();
    sharing.publish(NAME, Arc::new(SharedMemory::create(1).unwrap()));
    let good = Question { from: HOSTILE, to: ME, name: NAME }.to_bytes();
    let ends = |bytes: &[u8]| {
        let connection = connect_to(&name(ME).socket(&dir.0)).unwrap();
        send(&connection, bytes, SendFlags::NOSIGNAL).unwrap();
        let mut got = 0;
        until("the end", || {
            let mut answer = [0; 64];
            match rustix::net::recv(&connection, &mut answer[..], rustix::net::RecvFlags::DONTWAIT) {
                Ok((_, 0)) => true,
                Ok((_, bytes)) => {
                    got += bytes;
                    false
                }
                Err(_) => false,
            }
        });
        got
    };
    assert!(ends(&good) > 0, "the good one is answered");
    for (at, byte) in
        [(0, b'x'), (8, HOSTILE.to_wire()), (9, ME.to_wire()), (9, PeerId::SWITCH.to_wire()), (9, 255)]
    {
        let mut bad = good;
        bad[at] = byte;
        assert_eq!(ends(&bad), 0, "byte {at} is {byte}");
    }
    assert_eq!(ends(&good[..17]), 0);
    assert!(ends(&good) > 0, "the good one is still answered");
}

#[test]
fn one_who_asks_and_dies_leaves_no_claim() {
    let dir = Dir::new("asks-and-dies");
    let me = dir.open(ME);
    let memory = Arc::new(SharedMemory::create(1).unwrap());
    me.sharing().unwrap().publish(NAME, Arc::clone(&memory));
    for _ in 0..20 {
        let connection = connect_to(&name(ME).socket(&dir.0)).unwrap();
        send(&connection, &Question { from: HOSTILE, to: ME, name: NAME }.to_bytes(), SendFlags::NOSIGNAL)
            .unwrap();
        let _ = rustix::net::shutdown(&connection, rustix::net::Shutdown::Read);
    }
    until("the claims to be gone", || memory.claim(HOSTILE).unwrap().is_some());
}
