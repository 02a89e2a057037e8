//! A link of a node is cut for longer than the timeout: the others go on without it, it does no harm, and it comes back
//! when its link does.

use std::sync::Arc;
use std::time::Duration;

use rackmem::{Discipline, Error, NodeId};

use crate::history::{History, Work};
use crate::rig::{Rig, Shape, eventually, finishes, host};

#[test]
fn an_application_behind_a_cut_link_is_fenced_and_reads_nothing_stale() {
    let Some(mut rig) = Rig::new("fenced", &Shape::usual()) else { return };
    rig.start_switch();
    rig.start_node(0);
    let [stays, goes] = rig.join_all([1, 2]);
    let life = |status: &serde_json::Value| status["nodes"][2]["incarnation"].as_u64();
    let first = life(&rig.until_up(host(1)));
    let (mut one, mut other) = (stays.here(), goes.here());
    let words = [0, 1].map(|_| one.alloc(8, NodeId(0), Discipline::Coherent).unwrap());
    // On a block of its own.
    let only_there = one.alloc(4096, NodeId(0), Discipline::Coherent).unwrap();
    other.write_word(only_there, 7).unwrap();
    let history = Arc::new(History::new());
    let (staying, going) = (Arc::clone(&history), Arc::clone(&history));
    let stays = std::thread::spawn(move || {
        let ended = staying.work(1, &mut one, &words, Work::All);
        (ended, one)
    });
    let goes_on = std::thread::spawn(move || {
        let ended = going.work(2, &mut other, &words, Work::Reads);
        (ended, other)
    });
    eventually("both work", || history.count() > 200);

    rig.network.unplug(host(2));
    let status = rig.until_status(host(1), "it is declared dead", |status| status["nodes"][2]["up"] == false);
    assert_eq!(status["membership"]["ended"]["silent"], 1);
    let then = history.count();
    eventually("the other one goes on", || history.count() > then + 200);

    rig.network.plug(host(2));
    let (ended, mut other) = finishes("the cut one hears of its death", || goes_on.join().unwrap());
    assert_eq!(ended, Err(Error::Fenced));
    assert_eq!(other.read_word(words[0]), Err(Error::Fenced), "and nothing is had from this life any more");
    history.stop();
    let (ended, mut one) = finishes("the other one stops", || stays.join().unwrap());
    assert_eq!(ended, Ok(()));
    history.assert_linearizable();
    assert_eq!(one.read_word(only_there), Err(Error::Lost { addr: only_there }));

    drop((goes, other));
    let again = rig.join(2);
    assert!(life(&rig.until_up(host(2))) > first, "another life");
    let mut again = again.here();
    let latest = one.read_word(words[0]).unwrap();
    assert_eq!(again.read_word(words[0]), Ok(latest));
}

#[test]
fn a_node_whose_interface_was_off_comes_back_by_itself_and_empty() {
    let Some(mut rig) = Rig::new("empty", &Shape::usual()) else { return };
    rig.start_switch();
    rig.start_node(0);
    rig.start_node(2);
    let rack = rig.join(1);
    let life = |status: &serde_json::Value| status["nodes"][2]["incarnation"].as_u64();
    let first = life(&rig.until_up(host(1)));
    let mut here = rack.here();
    let there = here.alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    here.write_word(there, 1).unwrap();

    rig.network.set_interface(host(2), false);
    rig.until_status(host(1), "it is declared dead", |status| status["nodes"][2]["up"] == false);
    let (read, mut here) = finishes("an access to its memory", move || (here.read_word(there), here));
    assert_eq!(read, Err(Error::NodeDown { addr: there }));
    let near = here.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    here.write_word(near, 2).unwrap();

    rig.network.set_interface(host(2), true);
    assert!(life(&rig.until_up(host(1))) > first, "another life");
    assert!(rig.said(host(2)).contains("declared dead"), "{}", rig.said(host(2)));
    assert!(here.read_word(there).is_err(), "what it had is gone");
    let anew = here.alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    here.write_word(anew, 3).unwrap();
    assert_eq!((here.read_word(anew), here.read_word(near)), (Ok(3), Ok(2)));
    assert!(rack.leave(Duration::from_secs(10)), "what it had cached has gone home");
}
