//! Hosts that do not have the rack's key are not heard, and are counted.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};

use rackmem::{Discipline, NodeId};
use serde_json::Value;

use super::rig::{Rig, SWITCH, Shape, eventually, host};

fn dropped(status: &Value, cause: &str) -> u64 {
    status["switch"]["transport"]["dropped"][cause].as_u64().unwrap()
}

#[test]
fn a_host_with_another_key_is_kept_out_and_counted_until_it_has_the_right_one() {
    let Some(mut rig) = Rig::new("other_key", &Shape { nodes: 2, ..Shape::usual() }) else { return };
    rig.new_key("other.key");
    rig.give_key("other.key", host(1));
    rig.start_switch();
    rig.start_node(1);
    let rack = rig.join(0);
    let status = rig.until_status(host(0), "its datagrams are dropped and counted", |status| {
        dropped(status, "wrong_key") > 0 && status["nodes"][0]["up"] == true
    });
    assert_eq!(status["nodes"][1]["incarnation"], 0, "it was never there: {status}");
    let mut here = rack.here();
    let word = here.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    here.write_word(word, 1).unwrap();
    let refuses = |said: &str, who: &str, other: &str| {
        let named =
            |line: &str| line.contains(who) && line.contains(&format!("who says to be {other}, is refused"));
        said.lines()
            .any(|line| named(line) && line.contains("compare the files that `key` in the rack file names"))
    };
    eventually("both say that the key differs", || {
        refuses(&rig.said(host(1)), " WARN  node 1: somebody at ", "the switch")
            && refuses(&rig.said(SWITCH), " WARN  switch: somebody at ", "node 1")
    });
    assert_eq!(rig.end(host(1)).0, Some(0));

    rig.give_key("rack.key", host(1));
    rig.start_node(1);
    rig.until_up(host(0));
}

#[test]
fn an_unknown_peer_s_datagrams_are_dropped_and_counted() {
    let Some(mut rig) = Rig::new("unknown_peer", &Shape { nodes: 1, unknown_peers: 1, ..Shape::usual() })
    else {
        return;
    };
    let unknown_peer = host(1);
    rig.start_switch();
    rig.start_node(0);
    let before = dropped(&rig.until_up(unknown_peer), "malformed");
    let switch = rig.switch_address();
    rig.network.on(unknown_peer, || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for length in 0..50_u8 {
            let bytes: Vec<u8> = (0..length * 4).map(|at| at.wrapping_mul(length)).collect();
            socket.send_to(&bytes, switch).unwrap();
        }
    });
    rig.until_status(unknown_peer, "they are counted", |status| dropped(status, "malformed") == before + 50);
    let metrics = rig.network.on(unknown_peer, || {
        let mut connection = TcpStream::connect((switch.0, 9400)).unwrap();
        write!(connection, "GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", switch.0).unwrap();
        let mut page = String::new();
        connection.read_to_string(&mut page).unwrap();
        page
    });
    let counted =
        format!("rackmem_transport_dropped_total{{place=\"switch\",cause=\"malformed\"}} {}\n", before + 50);
    assert!(metrics.contains(&counted), "{metrics}");
    let status = rig.until_up(host(0));
    assert_eq!(status["membership"]["ended"]["silent"], 0, "the rack has not noticed: {status}");
}
