//! Applications that send what is no message: their connection ends and is counted, and nobody else notices.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rackmem::attach::socket_of;
use rackmem::transport::{Reason, WIRE_VERSION};
use rackmem::{Discipline, NodeId, PeerEvent};
use random::Random;

use crate::attached::rig::{Daemons, until};

/// The greeting of an application.
fn hello(rack: &Daemons) -> Vec<u8> {
    [b"rackmem", &[WIRE_VERSION][..], rack.file.terms().as_bytes()].concat()
}

/// A connection that has been greeted, and has greeted.
fn unknown_peer(rack: &Daemons) -> UnixStream {
    let mut stream = mute(rack);
    stream.write_all(&frame(&hello(rack))).unwrap();
    stream
}

/// A connection that has been greeted.
fn mute(rack: &Daemons) -> UnixStream {
    let mut stream = UnixStream::connect(socket_of(&rack.file, NodeId(0))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut welcome = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut welcome).unwrap();
    stream
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

/// What is sent ends the connection: nothing but the end comes back.
fn is_refused(rack: &Daemons, bytes: &[u8]) {
    let before = rack.service(0).counts().malformed;
    let mut stream = unknown_peer(rack);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // Reset, if the daemon has not read all of it.
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{bytes:?} is answered");
    until("it is counted", || rack.service(0).counts().malformed == before + 1);
}

#[test]
fn what_is_no_message_ends_the_connection_and_is_counted() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let read_beyond = [&[1, 1, 0, 1], &addr.bits().to_le_bytes()[..], &u32::MAX.to_le_bytes()].concat();
    let cases: [&[u8]; 9] = [
        &u32::MAX.to_le_bytes(),
        &frame(&[]),
        &frame(&[0]),
        &frame(&[9; 40]),
        &frame(&[1, 0xff, 0xff]),
        &frame(&read_beyond),
        // An update's end without its beginning.
        &frame(&[3, 0, 0, 0, 0]),
        // A lock that is not held.
        &frame(&[1, 1, 0, 6, 1, 0, 0, 0]),
        // More behind the message.
        &frame(&[1, 0, 0, 0]),
    ];
    for bytes in cases {
        is_refused(&rack, bytes);
    }
    assert_eq!(app.write_word(addr, 3), Ok(()), "the others are served");
    assert_eq!(rack.nodes[1].here().read_word(addr), Ok(3));
}

#[test]
fn an_application_that_greets_with_another_version_or_with_nonsense_is_refused_and_said() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let mut said = rack.service(0).peers();
    let good = hello(&rack);
    let next = WIRE_VERSION + 1;
    let with = |at: usize, value: u8| {
        let mut changed = good.clone();
        changed[at] = value;
        changed
    };
    let version = Reason::Version { ours: WIRE_VERSION, theirs: next };
    let (before, cases) = (
        rack.service(0).counts(),
        [
            (with(7, next), version.clone()),
            ([b"rackmem", &[next][..], b"whatever comes later"].concat(), version.clone()),
            (good[..7].to_vec(), Reason::Malformed),
            (good[..good.len() - 1].to_vec(), Reason::Malformed),
            (with(0, b'R'), Reason::Malformed),
            (with(12, 0x1b), Reason::Malformed),
            // No greeting, but what may come behind one.
            (vec![1, 0, 0], Reason::Malformed),
        ],
    );
    let mut all = Vec::new();
    for (bytes, reason) in &cases {
        let mut stream = mute(&rack);
        stream.write_all(&frame(bytes)).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{bytes:?} is answered");
        for event in said.poll() {
            let PeerEvent::Application(refusal) = event else { panic!("{event}") };
            assert_eq!(refusal.reason, *reason);
            all.push(refusal.reason);
        }
    }
    // The same reason is said once in a while only.
    assert_eq!(all, [version, Reason::Malformed]);
    until("they are counted", || {
        let now = rack.service(0).counts();
        (now.refused - before.refused, now.malformed - before.malformed) == (2, 5)
    });
    assert_eq!(app.write_word(addr, 3), Ok(()), "the others are served");
}

#[test]
fn an_update_is_given_up_when_something_else_comes_than_its_end() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let begin = [&[2], &addr.bits().to_le_bytes()[..], &8u32.to_le_bytes()].concat();
    // Of another length; another beginning; a frame that is too long; and an end in the middle of a frame.
    let too_long = u32::MAX.to_le_bytes();
    let ends = [&frame(&[3, 4, 0, 0, 0, 1, 1, 1, 1])[..], &frame(&begin), &too_long, &[1, 2]];
    for (end, malformed) in ends.into_iter().zip([1, 1, 1, 0]) {
        let before = rack.service(0).counts().malformed;
        let mut stream = unknown_peer(&rack);
        stream.write_all(&frame(&begin)).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        stream.write_all(end).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        until("the connection is gone", || rack.service(0).counts().attached == 1);
        assert_eq!(rack.service(0).counts().malformed, before + malformed);
        assert_eq!(app.read_word(addr), Ok(0), "the block is free, and as it was");
    }
}

#[test]
fn random_bytes_do_nothing_but_end_their_connection() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let addr = app.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let mut random = Random::new(1);
    for round in 0..200 {
        let bytes: Vec<u8> = (0..64).map(|_| random.bits() as u8).collect();
        let mut stream = unknown_peer(&rack);
        // Half of them with a length that is right.
        let sent = if round % 2 == 0 { frame(&bytes) } else { bytes };
        let _ = stream.write_all(&sent);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    until("they are gone", || rack.service(0).counts().attached == 1);
    assert_eq!(app.read_word(addr), Ok(0));
    assert_eq!(rack.service(0).counts().accepted, 201);
}
