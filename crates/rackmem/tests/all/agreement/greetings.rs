//! Greetings over UDP without a key, where anybody may write them: of another version, cut short, damaged. They are refused
//! with what to do about it, and the rack goes on.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rackmem::rack_file::TransportKind;
use rackmem::transport::{Cause, PeerId, Reason, WIRE_VERSION};
use rackmem::{JoinError, NodeId, Rack, StartError};

use crate::agreement::rig::{Folder, Running, until};

const VERSION: usize = 2;
const NEXT: u8 = WIRE_VERSION + 1;

fn loopback() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

/// Forwards what comes to one socket to where the other end listens, as another version's.
fn forward(from: &UdpSocket, to: u16, stop: &AtomicBool) {
    let mut bytes = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok(length) = from.recv(&mut bytes) else { continue };
        bytes[VERSION] = NEXT;
        // The end that it is for may not be there.
        let _ = from.send_to(&bytes[..length], ("127.0.0.1", to));
    }
}

#[test]
fn a_node_and_a_switch_of_different_versions_refuse_each_other_and_both_name_both_versions() {
    let folder = Folder::new();
    let (to_switch, to_node) = (loopback(), loopback());
    let address = |socket: &UdpSocket| format!("\"{}\"", socket.local_addr().unwrap());
    // The switch takes what leads to node 1 for node 1, and the other way round.
    let mut base = folder.file(TransportKind::Udp, false, &[]);
    let rackmem::rack_file::Placement::Udp { nodes, .. } = &mut base.placement else { panic!("UDP") };
    nodes[1].advertise = to_node.local_addr().unwrap().into();
    let file = folder.file(TransportKind::Udp, false, &[("[switch]", "listen", &address(&to_switch))]);
    let mut rack = Running::start(&base);
    let stop = Arc::new(AtomicBool::new(false));
    let [switch, _, node, _] = folder.ports;
    let forwarders = [(to_switch, switch), (to_node, node)].map(|(from, to)| {
        let stop = Arc::clone(&stop);
        thread::spawn(move || forward(&from, to, &stop))
    });
    let expected = Reason::Version { ours: WIRE_VERSION, theirs: NEXT };
    let Err(StartError::Join(JoinError::Refused(refusal))) = Rack::join(&file, NodeId(1)) else {
        panic!("not refused");
    };
    assert_eq!((refusal.peer, &refusal.reason), (PeerId::SWITCH, &expected));
    let both = format!("version {NEXT} of rackmem's messages, and this process version {WIRE_VERSION}");
    assert!(
        refusal.to_string().contains(&both) && refusal.to_string().contains("the same release"),
        "{refusal}"
    );
    rack.switch_says(|reason| *reason == expected);
    rack.assert_works();
    stop.store(true, Ordering::Relaxed);
    forwarders.into_iter().for_each(|forwarder| forwarder.join().unwrap());
}

#[test]
fn a_rack_goes_on_while_anybody_greets_it_with_anything() {
    let folder = Folder::new();
    let file = folder.file(TransportKind::Udp, false, &[]);
    let mut rack = Running::start(&file);
    let before = rack.report();
    // A genuine greeting of node 1 to the switch, caught on its way.
    let caught = loopback();
    let address = format!("\"{}\"", caught.local_addr().unwrap());
    let led_here = folder.file(TransportKind::Udp, false, &[("[switch]", "listen", &address)]);
    let mut greeting = vec![0; 2048];
    let node = led_here.open(PeerId::node(NodeId(1))).unwrap();
    let length = caught.recv(&mut greeting).unwrap();
    greeting.truncate(length);
    drop(node);

    let unknown_peer = loopback();
    let [switch, node, ..] = folder.ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let mut sent = 0;
    let mut send = |bytes: &[u8]| {
        for to in [switch, node] {
            // It names the switch as who it is for; node 0 drops it for that.
            unknown_peer.send_to(bytes, to).unwrap();
        }
        sent += 1;
        // Nothing is to be lost for lack of capacity.
        thread::sleep(Duration::from_micros(200));
    };
    for length in 0..greeting.len() {
        send(&greeting[..length]);
    }
    for at in 0..greeting.len() {
        for value in [0, 0xff, greeting[at] ^ 1] {
            let mut damaged = greeting.clone();
            damaged[at] = value;
            send(&damaged);
        }
    }
    for version in 0..=u8::MAX {
        let mut other = greeting.clone();
        other[VERSION] = version;
        send(&other);
    }
    let dropped = |report: &rackmem::SwitchReport, cause| report.transport.dropped_for(cause);
    until("most of it is counted", || {
        let now = rack.report();
        let counted =
            [Cause::Malformed, Cause::Refused].map(|cause| dropped(&now, cause) - dropped(&before, cause));
        counted.iter().all(|count| *count > 0) && counted.iter().sum::<u64>() > sent / 2
    });
    // What makes no sense, but says whom it is from, is told with what to do.
    rack.switch_says(|reason| *reason == Reason::Malformed && reason.to_string().contains("see that"));
    rack.assert_works();
    let now = rack.report();
    assert_eq!((now.epoch, now.membership.silent), (before.epoch, 0), "nobody has noticed");
    // The node itself is let in as ever.
    let other = Rack::join(&file, NodeId(1)).unwrap();
    assert!(other.leave(Duration::from_secs(10)));
}
