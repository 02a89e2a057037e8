//! Words and objects where they are: that it is so, and what becomes of it when somebody dies or stops.

use std::sync::mpsc;

use rackmem::{ByteObjects, Error, NodeHandle, NodeId, Rack, ReadError, Retry};

use crate::attached::rig::{Daemons, as_application, ready, until};

/// Operations that the daemon of node 0 has done.
fn operations(rack: &Daemons) -> u64 {
    rack.service(0).counts().operations
}

fn read(objects: &ByteObjects, node: &mut NodeHandle, index: usize) -> Result<(u64, Vec<u8>), ReadError> {
    let mut bytes = vec![0; objects.object_len()];
    objects.read(node, index, &mut bytes, Retry::Never).map(|version| (version, bytes))
}

#[test]
fn words_and_objects_of_this_machine_are_used_without_a_message_and_by_the_socket_with_one_each() {
    let rack = Daemons::start();
    for home in [0, 1].map(NodeId) {
        let mut app = rack.attach(0);
        let words = app.words::<u64>(8, home).unwrap();
        let objects = app.byte_objects(4, 100, home).unwrap();
        let before = operations(&rack);
        for round in 1..=100 {
            assert_eq!(words.fetch_add(&mut app, 3, 1), Ok(round - 1));
            words.add(&mut app, 4, 1).unwrap();
            assert_eq!(objects.write(&mut app, 1, 0, &[round as u8; 100]), Ok(2 * round));
            assert_eq!(read(&objects, &mut app, 1), Ok((2 * round, vec![round as u8; 100])));
        }
        app.flush().unwrap();
        assert_eq!(operations(&rack), before, "home {home}");
        let mut asking = Rack::attach_by_socket(&rack.file, NodeId(0)).unwrap().here();
        let same = asking.words_at::<u64>(words.addr()).unwrap();
        let before = operations(&rack);
        (100..110).for_each(|round| assert_eq!(same.fetch_add(&mut asking, 3, 1), Ok(round)));
        assert_eq!(operations(&rack), before + 10);
        assert_eq!(words.load(&mut app, 3), Ok(110));
    }
}

#[test]
fn what_is_freed_is_refused_to_whoever_has_it_mapped() {
    let rack = Daemons::start();
    let (mut app, mut there) = (rack.attach(0), rack.nodes[1].here());
    let words = app.words::<u64>(8, NodeId(1)).unwrap();
    let addr = words.addr();
    words.store(&mut app, 7, 9).unwrap();
    there.words_at::<u64>(addr).unwrap().free(&mut there).unwrap();
    assert_eq!(words.load(&mut app, 7), Err(Error::Unallocated { addr }));
    let next = there.words::<u64>(8, NodeId(1)).unwrap();
    assert_eq!(
        words.fetch_add(&mut app, 7, 1),
        Err(Error::Unallocated { addr }),
        "also when it is used anew"
    );
    assert_eq!(next.load(&mut there, 7), Ok(0));
    assert!(words.free(&mut app).is_err());
}

#[test]
fn an_object_in_which_an_application_is_killed_is_lost_until_somebody_writes_all_of_it() {
    if let Some((mut app, addr)) = as_application(Rack::attach) {
        let objects = app.byte_objects_at(addr).unwrap();
        let _ = objects.update(&mut app, 1, |object| {
            object.write(0, &[13; 20]);
            ready()
        });
    }
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    for home in [0, 1].map(NodeId) {
        let objects = there.byte_objects(2, 100, home).unwrap();
        objects.write(&mut there, 1, 0, &[12; 100]).unwrap();
        let mut app = rack.application(
            "mapped::an_object_in_which_an_application_is_killed_is_lost_until_somebody_writes_all_of_it",
            objects.addr(),
        );
        assert!(matches!(read(&objects, &mut there, 1), Err(ReadError::Torn { .. })), "it is in there");
        app.kill();
        let half_written = Error::HalfWritten { addr: objects.addr(), index: 1 };
        // Whoever waits is told.
        assert_eq!(objects.update(&mut there, 1, |_| unreachable!("it is lost")), Err(half_written));
        let mut others = rack.attach(0);
        let same = others.byte_objects_at(objects.addr()).unwrap();
        assert_eq!(read(&same, &mut others, 1), Err(ReadError::Failed(half_written)));
        assert_eq!(same.write(&mut others, 1, 0, &[14; 100]), Ok(4));
        assert_eq!(read(&objects, &mut there, 1), Ok((4, vec![14; 100])));
        assert_eq!(read(&objects, &mut there, 0), Ok((0, vec![0; 100])));
    }
}

#[test]
fn an_application_that_stops_in_an_object_is_waited_for_no_longer_than_a_node_and_counts_when_it_goes_on() {
    let rack = Daemons::start();
    let mut there = rack.nodes[1].here();
    for home in [0, 1].map(NodeId) {
        let objects = there.byte_objects(2, 100, home).unwrap();
        let (begun, begins) = mpsc::channel();
        let (goes_on, go_on) = mpsc::channel();
        std::thread::scope(|scope| {
            // It goes if this panics, too: somebody waits for what it sends.
            let goes_on = goes_on;
            let mut app = rack.attach(0);
            let same = app.byte_objects_at(objects.addr()).unwrap();
            let stopped = scope.spawn(move || {
                same.update(&mut app, 1, |object| {
                    begun.send(()).unwrap();
                    go_on.recv().unwrap();
                    object.write(0, &[5; 100]);
                })
            });
            begins.recv().unwrap();
            let half_written = Error::HalfWritten { addr: objects.addr(), index: 1 };
            assert_eq!(objects.update(&mut there, 1, |_| unreachable!("it is taken")), Err(half_written));
            assert_eq!(
                objects.write(&mut there, 1, 0, &[6; 100]),
                Err(half_written),
                "it may go on: nobody takes the object from it"
            );
            goes_on.send(()).unwrap();
            assert_eq!(stopped.join().unwrap(), Ok(2));
        });
        assert_eq!(read(&objects, &mut there, 1), Ok((2, vec![5; 100])));
        assert_eq!(objects.write(&mut there, 1, 0, &[7; 100]), Ok(4));
    }
}

#[test]
fn when_the_daemon_ends_its_applications_do_nothing_any_more_to_what_they_have_mapped() {
    let mut rack = Daemons::start();
    let mut app = rack.attach(0);
    let words = app.words::<u64>(8, NodeId(1)).unwrap();
    let objects = app.byte_objects(2, 100, NodeId(0)).unwrap();
    words.store(&mut app, 0, 1).unwrap();
    rack.services[0] = None;
    until("its applications know", || words.store(&mut app, 0, 2) == Err(Error::Detached));
    assert_eq!(words.load(&mut app, 0), Err(Error::Detached));
    assert_eq!(objects.write(&mut app, 1, 0, &[1; 100]), Err(Error::Detached));
    assert_eq!(objects.update(&mut app, 1, |_| unreachable!("it is gone")), Err(Error::Detached));
    assert_eq!(read(&objects, &mut app, 1), Err(ReadError::Failed(Error::Detached)));
    assert_eq!(words.read_bytes(&mut app, 0, &mut [0; 8]), Err(Error::Detached));
    // Another daemon is another one: one attaches again.
    rack.services[0] = Some(rack.nodes[0].serve_applications(&rack.file, NodeId(0)).unwrap());
    assert_eq!(words.load(&mut app, 0), Err(Error::Detached));
    let mut again = rack.attach(0);
    let same = again.words_at::<u64>(words.addr()).unwrap();
    assert!(same.load(&mut again, 0).unwrap() >= 1);
}

#[test]
fn when_the_daemons_node_is_not_in_the_rack_any_more_its_applications_know() {
    let rack = Daemons::start();
    let mut app = rack.attach(0);
    let words = app.words::<u64>(8, NodeId(1)).unwrap();
    assert_eq!(words.fetch_add(&mut app, 0, 1), Ok(0));
    // The service is still there, and answers.
    assert!(rack.nodes[0].leave(std::time::Duration::from_secs(10)));
    until("it is told", || words.fetch_add(&mut app, 0, 1) == Err(Error::Detached));
}

#[test]
fn when_another_home_dies_its_words_are_down_also_where_only_an_application_has_them_mapped() {
    let mut rack = Daemons::start();
    let mut app = rack.attach(0);
    let attached = rack.attached(0);
    let (words, mine) = {
        let mut opens = attached.here();
        (opens.words::<u64>(8, NodeId(1)).unwrap(), opens.words::<u64>(8, NodeId(0)).unwrap())
    };
    let mut uses = attached.here();
    assert_eq!(words.fetch_add(&mut uses, 0, 1), Ok(0));
    // The daemon does not use it any more.
    until("only the application has it", || rack.service(0).counts().attached <= 2);
    rack.services[1] = None;
    drop(rack.nodes.pop());
    let addr = words.addr();
    until("it is told", || words.fetch_add(&mut uses, 0, 1) == Err(Error::NodeDown { addr }));
    assert_eq!(mine.fetch_add(&mut uses, 0, 1), Ok(0), "the others go on");
    assert!(app.words::<u64>(8, NodeId(0)).is_ok());
}
