//! Every key of the rack file, changed in turn in the file of one process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rackmem::rack_file::{Agreement, Setting, TransportKind};
use rackmem::transport::{PeerId, Reason};
use rackmem::{
    AttachError, Discipline, JoinError, NodeId, PeerEvent, Rack, RackFile, Scheduling, StartError,
};

use crate::agreement::rig::{Folder, MOST_SILENCE, Running, names, says};

/// What becomes of node 1 with another value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It is a node like any other.
    Runs,
    /// Both sides refuse each other, and name the key with both values.
    Refused,
    /// It does not reach the switch, and says whom it waits for and where.
    Unheard,
    /// It does not reach another node, and says so.
    NodeUnheard,
    /// Both sides say that the key differs.
    OtherKey,
    /// A file of this transport cannot have the key.
    Absent,
}

fn expected(kind: TransportKind, table: &str, setting: &Setting) -> Outcome {
    let shm = kind == TransportKind::SharedMemory;
    match (table, setting.name, setting.agreement) {
        (_, "key" | "mtu" | "data_plane" | "ports" | "hook" | "keep", _)
        | ("[switch]" | "[[node]]", "listen" | "advertise", _)
            if shm =>
        {
            Outcome::Absent
        }
        // Nobody hears a process where it is not looked for.
        (_, "transport", Agreement::Same(_)) => Outcome::Unheard,
        ("[switch]", "listen" | "advertise", Agreement::Own) => Outcome::Unheard,
        (_, "runtime", Agreement::Own) if shm => Outcome::Unheard,
        ("[[node]]", "listen" | "advertise", Agreement::Own) => Outcome::NodeUnheard,
        (_, _, Agreement::Secret) => Outcome::OtherKey,
        (_, _, Agreement::Same(_)) => Outcome::Refused,
        (_, _, Agreement::Own) => Outcome::Runs,
    }
}

/// Joins as node 1 and does something with the memory of both nodes.
fn runs(rack: &Running, file: &RackFile, what: &str) {
    let other = Rack::join(file, NodeId(1)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (mut here, mut there) = (other.here(), rack.node.here());
    for home in [NodeId(0), NodeId(1)] {
        let word = there.alloc(8, home, Discipline::Coherent).unwrap();
        there.write_word(word, 1).unwrap();
        assert_eq!(here.read_word(word), Ok(1), "{what}");
        here.write_word(word, 2).unwrap();
        assert_eq!(there.read_word(word), Ok(2), "{what}");
        there.free(word).unwrap();
    }
    assert_eq!(other.peers().unwrap().poll(), [], "{what}");
    assert!(other.leave(Duration::from_secs(10)));
}

/// Tries to join as node 1 for a while; what it says meanwhile must be this.
fn waits(file: &RackFile, what: &str, said: impl Fn(&PeerEvent) -> bool) -> JoinError {
    let (began, mut first) = (Instant::now(), None);
    let joined = Rack::join_watched(file, NodeId(1), MOST_SILENCE, |event| {
        if said(&event) {
            first.get_or_insert(began.elapsed());
        }
    });
    assert!(first.is_some_and(|first| first <= MOST_SILENCE), "{what}: said after {first:?}");
    match joined {
        Err(StartError::Join(error @ JoinError::NoAnswer { .. })) => error,
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: joined"),
    }
}

fn walk(kind: TransportKind, secret: bool) {
    let folder = Folder::new();
    let base = folder.file(kind, secret, &[]);
    let mut rack = Running::start(&base);
    let (first, mut joined) = (rack.report().epoch, 0);
    for (table, setting) in RackFile::keys() {
        let what = format!("`{}` in {table} over {}", setting.name, kind.name());
        let outcome = expected(kind, table, setting);
        if outcome == Outcome::Absent {
            continue;
        }
        let file = folder.file_with_other(kind, secret, table, setting.name);
        if let Err(refused) = file.scheduling.check() {
            assert_eq!(file.scheduling, Scheduling::Realtime);
            eprintln!("skipped: {what}: {refused}");
            continue;
        }
        println!("{what}: {outcome:?}");
        match outcome {
            Outcome::Absent => unreachable!("see above"),
            Outcome::Runs => {
                runs(&rack, &file, &what);
                joined += 1;
            }
            Outcome::Refused => {
                let Err(StartError::Join(JoinError::Refused(refusal))) = Rack::join(&file, NodeId(1)) else {
                    panic!("{what}: not refused");
                };
                assert_eq!(refusal.peer, PeerId::SWITCH);
                assert!(
                    names(&refusal.reason, setting.name, &file.terms(), &base.terms()),
                    "{what}: {refusal}"
                );
                assert!(refusal.to_string().contains("give both the same rack file"), "{refusal}");
                rack.switch_says(|reason| names(reason, setting.name, &base.terms(), &file.terms()));
            }
            Outcome::Unheard => {
                let at = waits(&file, &what, |event| match event {
                    PeerEvent::Waiting { peers, .. } => {
                        matches!(&peers[..], [(PeerId::SWITCH, Some(address))] if !address.is_empty())
                    }
                    _ => false,
                });
                assert!(matches!(at, JoinError::NoAnswer { other_key: false, .. }), "{what}: {at}");
            }
            Outcome::OtherKey => {
                let key = |reason: &Reason| *reason == Reason::Key;
                let at = waits(&file, &what, |event| match event {
                    PeerEvent::Refused(refusal) => refusal.peer == PeerId::SWITCH && key(&refusal.reason),
                    _ => false,
                });
                assert!(matches!(at, JoinError::NoAnswer { other_key: true, .. }), "{what}: {at}");
                rack.switch_says(key);
            }
            Outcome::NodeUnheard => {
                let other = Rack::join(&file, NodeId(1)).unwrap();
                let wrong = format!("127.0.0.1:{}", folder.ports[3]);
                says(&mut other.peers().unwrap(), "node 1", |event| match event {
                    PeerEvent::Waiting { peers, .. } => {
                        peers[..] == [(PeerId::node(NodeId(0)), Some(wrong.clone()))]
                    }
                    _ => false,
                });
                // Node 0 does not answer it, and so it does not end in order.
                other.leave(Duration::from_secs(1));
                joined += 1;
            }
        }
        rack.assert_works();
    }
    let report = rack.report();
    let ended = report.membership;
    assert_eq!((ended.silent, ended.lost, ended.replaced), (0, 0, 0), "nobody was declared dead");
    assert_eq!(ended.left, joined);
    assert_eq!(
        u64::from(report.epoch.0 - first.0),
        2 * joined,
        "of the others the rack has not noticed anything"
    );
}

#[test]
fn a_rack_in_shared_memory_refuses_what_must_agree_and_runs_with_what_need_not() {
    walk(TransportKind::SharedMemory, false);
}

#[test]
fn a_rack_over_udp_refuses_what_must_agree_and_runs_with_what_need_not() {
    walk(TransportKind::Udp, true);
}

#[test]
fn a_node_that_was_refused_joins_over_the_same_transport_when_the_switch_has_its_file() {
    let folder = Folder::new();
    let kind = TransportKind::SharedMemory;
    let base = folder.file(kind, false, &[]);
    let transport = base.open(PeerId::node(NodeId(1))).unwrap();
    let join = || Rack::join_over(base.config.clone(), NodeId(1), &base.process(), Arc::clone(&transport));
    let rack = Running::start(&folder.file_with_other(kind, false, "[rack]", "block"));
    for _ in 0..2 {
        assert!(matches!(join(), Err(JoinError::Refused(_))), "each attempt is refused");
    }
    drop(rack);
    folder.until_left();
    let rack = Running::start(&base);
    let node = join().unwrap_or_else(|error| panic!("{error}"));
    assert!(node.leave(Duration::from_secs(10)));
    rack.assert_works();
}

#[test]
fn the_page_says_of_every_key_whether_it_must_be_the_same() {
    let page = include_str!("../../../../../docs/running.md");
    let row = |name: &str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        row.unwrap_or_else(|| panic!("no row `{name}`"))
    };
    let rows = ["the same in all files", "each place's own", "the same, and never shown"].map(row);
    for (_, setting) in RackFile::keys() {
        let expected = match setting.agreement {
            Agreement::Same(_) => 0,
            Agreement::Own => 1,
            Agreement::Secret => 2,
        };
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(
                row.contains(&format!("`{}`", setting.name)),
                at == expected,
                "`{}`: {row}",
                setting.name
            );
        }
    }
}

#[test]
fn a_daemon_refuses_an_application_whose_file_must_agree_and_does_not() {
    let folder = Folder::new();
    let kind = TransportKind::SharedMemory;
    let base = folder.file(kind, false, &[]);
    let rack = Running::start(&base);
    let service = rack.node.serve_applications(&base, NodeId(0)).unwrap();
    let mut said = service.peers();
    for (table, setting) in RackFile::keys() {
        let what = format!("`{}` in {table}", setting.name);
        let absent = expected(kind, table, setting) == Outcome::Absent;
        let (file, elsewhere) = match (absent, setting.name) {
            (true, "mtu") | (false, "transport") => (folder.file(TransportKind::Udp, false, &[]), false),
            (true, _) => continue,
            (false, name) => (folder.file_with_other(kind, false, table, name), name == "runtime"),
        };
        let attached = Rack::attach(&file, NodeId(0));
        match (setting.agreement, attached) {
            (Agreement::Same(_), Err(AttachError::Disagrees { node: NodeId(0), reason })) => {
                assert!(names(&reason, setting.name, &file.terms(), &base.terms()), "{what}: {reason}");
                says(&mut said, "the daemon", |event| match event {
                    PeerEvent::Application(refusal) => {
                        refusal.address == format!("process {}", std::process::id())
                            && names(&refusal.reason, setting.name, &base.terms(), &file.terms())
                    }
                    _ => false,
                });
            }
            (Agreement::Own, Err(AttachError::NoDaemon { .. })) if elsewhere => {}
            (Agreement::Own, Ok(attached)) => {
                let mut here = attached.here();
                let word = here.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
                assert_eq!(here.clone().read_word(word), Ok(0), "{what}");
            }
            (_, Ok(_)) => panic!("{what}: attached"),
            (_, Err(error)) => panic!("{what}: {error}"),
        }
        rack.assert_works();
    }
    assert!(service.counts().refused > 0 && service.counts().malformed == 0);
}
