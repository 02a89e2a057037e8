//! Packets are lost, and words stay linearizable: links that fail for moments shorter than the timeout, and a network
//! that loses, doubles and reorders what comes to the switch.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use check::AtEnd;
use rackmem::transport::{PeerId, Transport};
use rackmem::{Discipline, Nanos, NodeId, Rack, SwitchProcess};
use simulated::fault::{Rules, drop_per_mille, duplicate_per_mille, reorder};
use simulated::faulty::Faulty;

use super::history::{History, Work};
use super::rig::{Rig, SWITCH, Shape, eventually, finishes, host};

/// Nobody is declared dead for what happens here.
const SHAPE: Shape = Shape { timeout: "10 s", ..Shape::usual() };

/// Two clients on each node work on words of all homes while something happens, and then a little more. Their history must
/// be linearizable.
fn work_while(racks: &[Rack; 3], happens: impl FnOnce(&History)) {
    let mut first = racks[0].here();
    let words: Vec<_> =
        (0..12).map(|word| first.alloc(8, NodeId(word % 3), Discipline::Coherent).unwrap()).collect();
    let history = Arc::new(History::new());
    let clients: Vec<_> = (0..)
        .zip(racks.iter().chain(racks))
        .map(|(client, rack)| {
            let (history, words, mut node) = (Arc::clone(&history), words.clone(), rack.here());
            thread::spawn(move || history.work(client, &mut node, &words, Work::All))
        })
        .collect();
    happens(&history);
    let then = history.count();
    eventually("they go on", || history.count() > then + 600);
    history.stop();
    for client in clients {
        assert_eq!(finishes("a client stops", || client.join().unwrap()), Ok(()));
    }
    history.assert_linearizable();
}

#[test]
fn words_are_linearizable_while_links_fail_for_moments() {
    let Some(mut rig) = Rig::new("moments", &SHAPE) else { return };
    rig.start_switch();
    let racks = rig.join_all([0, 1, 2]);
    let lost_before = rig.network.lost_datagrams();
    work_while(&racks, |history| {
        for failing in [host(0), SWITCH, host(1), host(2), SWITCH, host(0)] {
            let then = history.count();
            eventually("all links work", || history.count() > then + 100);
            rig.network.unplug(failing);
            thread::sleep(Duration::from_millis(100));
            rig.network.plug(failing);
        }
    });
    let lost = rig.network.lost_datagrams().saturating_sub(lost_before);
    assert!(lost > 10, "only {lost} datagrams were lost");
    let status = rig.until_up(host(0));
    assert_eq!(status["membership"]["epochs"], 1, "nobody was declared dead: {status}");
}

#[test]
fn words_are_linearizable_while_the_switch_loses_doubles_and_reorders() {
    let Some(rig) = Rig::new("switch", &SHAPE) else { return };
    let file = rig.file(SWITCH);
    let rules = Rules::none()
        .with(drop_per_mille(20))
        .with(duplicate_per_mille(20, Nanos::from_micros(500)))
        .with(reorder(Nanos::from_micros(50)));
    let inner = rig.network.on(SWITCH, || file.open(PeerId::SWITCH).unwrap());
    let lossy = Arc::new(Faulty::new(inner, rules, 1));
    let transport: Arc<dyn Transport> = lossy.clone();
    let mut switch = SwitchProcess::new(&file.config, &file.process(), transport).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = AtEnd(&stop);
        scope.spawn(|| switch.run(&stop));
        work_while(&rig.join_all([0, 1, 2]), |history| {
            eventually("the network has done its worst", || {
                let counts = lossy.counts();
                history.count() > 2000 && counts.dropped > 20 && counts.duplicated > 20
            });
        });
    });
}
