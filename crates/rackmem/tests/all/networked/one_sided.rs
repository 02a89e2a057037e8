//! Words and objects between processes whose memory is out of each other's reach; also over a network that loses, doubles and
//! reorders.

use rackmem::{Error, NodeId, Rack, WordOperation};

use crate::networked::rig::{Processes, until};
use crate::regions_everywhere::{assert_linearizable, everywhere, history_of_words};

fn both(body: fn(&[Rack])) {
    body(&Processes::start(3).nodes);
    body(&Processes::start_on(3, true).nodes);
}

everywhere!(both);

#[test]
fn a_home_that_dies_fails_what_is_in_flight_and_its_next_incarnation_begins_anew() {
    let mut rack = Processes::start(3);
    let mut here = rack.nodes[0].here();
    let words = here.words::<u64>(8, NodeId(2)).unwrap();
    let kept = here.words::<u64>(8, NodeId(1)).unwrap();
    let addr = words.addr();
    words.add(&mut here, 0, 1).unwrap();
    here.flush().unwrap();
    rack.cut_off(2);
    let pending = words.post(&mut here, 0, WordOperation::Add(1)).unwrap();
    assert_eq!(pending.wait(&mut here), Err(Error::NodeDown { addr }));
    assert_eq!(words.load(&mut here, 0), Err(Error::NodeDown { addr }));
    kept.add(&mut here, 0, 1).unwrap();
    here.flush().unwrap();
    rack.reconnect(2);
    let mut third = rack.nodes[2].here();
    // Until it is told, it may find that the others have ended their connections.
    until(|| (third.words_at::<u64>(kept.addr()).err() == Some(Error::Fenced)).then_some(()));
    drop(third);
    rack.rejoin(2);
    let again = until(|| here.words::<u64>(8, NodeId(2)).ok());
    again.add(&mut here, 0, 5).unwrap();
    assert_eq!(again.load(&mut here, 0).unwrap(), 5);
    assert_eq!(kept.load(&mut here, 0).unwrap(), 1);
    // What died with its home is not there to be freed: its address is that of others now.
    assert_eq!(again.addr(), addr, "the first allocation of either incarnation");
    assert_eq!(words.free(&mut here), Err(Error::NodeDown { addr }));
    assert_eq!(again.load(&mut here, 0).unwrap(), 5);
    again.free(&mut here).unwrap();
}

#[test]
fn histories_of_words_are_linearizable_while_the_switch_is_killed_and_restarted() {
    let mut rack = Processes::start_on(3, true);
    for _ in 0..3 {
        let history = std::thread::scope(|scope| {
            let nodes = rack.nodes.clone();
            let clients = scope.spawn(move || history_of_words(&nodes, 150));
            rack.restart_switch();
            clients.join().unwrap()
        });
        assert_linearizable(&history);
    }
}
