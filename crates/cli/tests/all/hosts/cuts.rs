//! A link is cut for longer than the timeout. A node's: the others go on without it, it does no harm, and it comes back when
//! its link does. The switch's: everybody waits, and goes on when it is back.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rackmem::{Discipline, Error, NodeHandle, NodeId};

use super::history::{History, Work};
use super::rig::{Rig, SWITCH, Shape, eventually, finishes, host};

#[test]
fn an_application_behind_a_cut_link_is_fenced_and_reads_nothing_stale() {
    is_fenced("fenced", &Shape::usual());
}

#[test]
fn so_it_is_if_the_switch_is_in_the_kernel() {
    if let Some(shape) = Shape::in_kernel() {
        is_fenced("fenced-kernel", &shape);
    }
}

fn is_fenced(name: &str, shape: &Shape) {
    let Some(mut rig) = Rig::new(name, shape) else { return };
    rig.start_switch();
    rig.start_node(0);
    let [stays, goes] = rig.join_all([1, 2]);
    let incarnation = |status: &serde_json::Value| status["nodes"][2]["incarnation"].as_u64();
    let first = incarnation(&rig.until_up(host(1)));
    let (mut one, mut other) = (stays.here(), goes.here());
    // Each on a block of its own. Nobody writes the first one before the cut, so that the node has it in its cache then.
    let [cached, busy, only_there] =
        [0, 1, 2].map(|_| one.alloc(4096, NodeId(0), Discipline::Coherent).unwrap());
    other.write_word(only_there, 7).unwrap();
    let history = Arc::new(History::new());
    let client = |number, mut node: NodeHandle, word, work| {
        let history = Arc::clone(&history);
        thread::spawn(move || (history.work(number, &mut node, &[word], work), node))
    };
    let goes_on = client(1, other, cached, Work::Reads);
    let stays_busy = client(2, stays.here(), busy, Work::All);
    eventually("both work", || history.count() > 200);

    rig.network.unplug(host(2));
    // Its first write waits until nobody can have the word in a cache any more.
    let writes = client(3, one, cached, Work::All);
    let status = rig.until_status(host(1), "it is declared dead", |status| status["nodes"][2]["up"] == false);
    assert_eq!(status["membership"]["ended"]["silent"], 1);
    let then = history.count();
    eventually("the others go on", || history.count() > then + 400);

    rig.network.plug(host(2));
    let (ended, mut other) = finishes("the cut one hears of its death", || goes_on.join().unwrap());
    assert_eq!(ended, Err(Error::Fenced));
    assert_eq!(
        other.read_word(cached),
        Err(Error::Fenced),
        "and nothing is had from this incarnation any more"
    );
    history.stop();
    let (ended, mut one) = finishes("the one that writes stops", || writes.join().unwrap());
    assert_eq!(ended, Ok(()));
    assert_eq!(finishes("the busy one stops", || stays_busy.join().unwrap()).0, Ok(()));
    history.assert_linearizable();
    assert_eq!(one.read_word(only_there), Err(Error::Lost { addr: only_there }));

    drop((goes, other));
    let again = rig.join(2);
    assert!(incarnation(&rig.until_up(host(2))) > first, "another incarnation");
    let mut again = again.here();
    let latest = one.read_word(cached).unwrap();
    assert_eq!(again.read_word(cached), Ok(latest));
}

#[test]
fn a_node_whose_interface_was_off_comes_back_by_itself_and_empty() {
    let Some(mut rig) = Rig::new("empty", &Shape::usual()) else { return };
    rig.start_switch();
    rig.start_node(0);
    rig.start_node(2);
    let rack = rig.join(1);
    let incarnation = |status: &serde_json::Value| status["nodes"][2]["incarnation"].as_u64();
    let first = incarnation(&rig.until_up(host(1)));
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
    assert!(incarnation(&rig.until_up(host(1))) > first, "another incarnation");
    assert!(rig.said(host(2)).contains("declared dead"), "{}", rig.said(host(2)));
    assert!(here.read_word(there).is_err(), "what it had is gone");
    let anew = here.alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    here.write_word(anew, 3).unwrap();
    assert_eq!((here.read_word(anew), here.read_word(near)), (Ok(3), Ok(2)));
    assert!(rack.leave(Duration::from_secs(10)), "what it had cached has gone home");
}

#[test]
fn a_switch_that_is_cut_off_from_all_nodes_declares_nobody_dead_and_nothing_is_lost() {
    let Some(mut rig) = Rig::new("switch-cut", &Shape::usual()) else { return };
    rig.start_switch();
    rig.start_node(0);
    let racks = rig.join_all([1, 2]);
    let incarnations = |status: &serde_json::Value| {
        status["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| node["incarnation"].as_u64())
            .collect::<Vec<_>>()
    };
    let before = incarnations(&rig.until_up(host(1)));
    let mut one = racks[0].here();
    let words = [0, 1, 2].map(|home| one.alloc(4096, NodeId(home), Discipline::Coherent).unwrap());
    let only_there = one.alloc(4096, NodeId(0), Discipline::Coherent).unwrap();
    one.write_word(only_there, 7).unwrap();
    let history = Arc::new(History::new());
    let clients = [0, 1].map(|at| {
        let (history, mut node) = (Arc::clone(&history), racks[at].here());
        thread::spawn(move || history.work(at as u64, &mut node, &words, Work::All))
    });
    eventually("both work", || history.count() > 200);

    rig.network.unplug(SWITCH);
    // The switch's own host sees it all the time: three timeouts long.
    let silence = |status: &serde_json::Value| status["nodes"][0]["silence_ns"].as_u64();
    let status = rig.until_status(SWITCH, "it hears nobody", |status| silence(status) > Some(6_000_000_000));
    assert!(status["nodes"].as_array().unwrap().iter().all(|node| node["up"] == true), "{status}");

    rig.network.plug(SWITCH);
    let then = history.count();
    eventually("the rack goes on", || history.count() > then + 400);
    history.stop();
    for client in clients {
        assert_eq!(finishes("a client stops", || client.join().unwrap()), Ok(()));
    }
    history.assert_linearizable();
    let status = rig.until_up(host(1));
    assert_eq!(incarnations(&status), before, "the same lives");
    assert_eq!(status["membership"]["ended"]["silent"], 0);
    assert_eq!(status["membership"]["cut_off"], 1);
    assert_eq!(racks[1].here().read_word(only_there), Ok(7));
}
