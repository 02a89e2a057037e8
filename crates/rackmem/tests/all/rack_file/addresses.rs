//! Where places listen, and what they advertise: what is possible, and what is said about what is not.

use rackmem::rack_file::{Placement, RackFile};

use crate::rack_file::{SHM, UDP, all_refused, folder, key_file, parse, refused, with};

/// The last node of a rack over UDP advertises this.
fn advertising(what: &str) -> String {
    with(UDP, "listen = \"127.0.0.1:7402\"", &format!("listen = \"127.0.0.1:7402\"\nadvertise = {what}"))
}

#[test]
fn what_is_advertised_must_be_something_to_send_to() {
    all_refused(&[
        (
            advertising("\"node-1\""),
            "rack.toml:12: `node-1` is neither an IP address nor a host name, with a port: write one of both, for example advertise = \"10.0.0.2:7400\"",
        ),
        (
            advertising("\"10.0.0.300:7400\""),
            "rack.toml:12: `10.0.0.300:7400` is neither an IP address nor a host name, with a port: write one of both, for example advertise = \"10.0.0.2:7400\"",
        ),
        (
            advertising("\"node-1.rack:0\""),
            "rack.toml:12: node-1.rack:0 has no port that the others could know: write one from 1 to 65535, for example advertise = \"10.0.0.2:7400\"",
        ),
        (
            advertising("\"[::]:7400\""),
            "rack.toml:12: [::]:7400 is no address that the others could send to: write the one of this machine that they reach, for example advertise = \"10.0.0.2:7400\"",
        ),
        (
            advertising("7402"),
            "rack.toml:12: `advertise` must be text in quotes, and not of type integer: write advertise = \"10.0.0.2:7400\"",
        ),
        (
            advertising("\"127.0.0.1:7401\""),
            "rack.toml:12: node 0 and node 1 have the same `advertise`, 127.0.0.1:7401: write another port or address for one of them",
        ),
        (
            advertising("\"[::1]:7402\""),
            "rack.toml:12: node 1 ([::1]:7402) cannot talk to the switch (127.0.0.1:7400): one is IPv4, the other IPv6: write all addresses of one kind",
        ),
        (
            format!("{SHM}advertise = \"node-1.rack:7400\"\n"),
            "rack.toml:8: [[node]] has an address that nothing listens on with transport = \"shm\": remove it, or write transport = \"udp\"",
        ),
    ]);
    for what in ["\"localhost:7402\"", "\"127.0.0.2:7402\""] {
        parse(&advertising(what));
    }
}

#[test]
fn several_places_may_listen_alike_where_all_addresses_are_listened_at() {
    let folder = folder("alike");
    key_file(&folder.join("rack.key"), &"0".repeat(64), 0o600);
    let text = with(UDP, "[switch]", "key = \"rack.key\"\n[switch]");
    let text = ["7400", "7401", "7402"].into_iter().enumerate().fold(text, |text, (place, port)| {
        let listen = format!("listen = \"127.0.0.1:{port}\"");
        with(&text, &listen, &format!("listen = \"[::]:7400\"\nadvertise = \"10.0.0.{place}:7400\""))
    });
    RackFile::parse(&folder.join("rack.toml"), &text).unwrap();
}

#[test]
fn who_listens_at_all_addresses_needs_a_key_whatever_is_advertised() {
    let all = "listen = \"0.0.0.0:7402\"\nadvertise = \"127.0.0.1:7402\"";
    assert_eq!(
        refused(&with(UDP, "listen = \"127.0.0.1:7402\"", all)),
        "rack.toml:11: 0.0.0.0:7402 is not loopback, and the rack has no key, so anybody could write its memory: \
         write key = \"rack.key\" under [rack], and make that file with: rackmem key rack.key"
    );
}

#[test]
fn a_rack_that_others_reach_needs_a_key() {
    assert_eq!(
        refused(&with(UDP, "127.0.0.1", "10.0.0.1")),
        "rack.toml:5: 10.0.0.1:7400 is not loopback, and the rack has no key, so anybody could write its memory: \
         write key = \"rack.key\" under [rack], and make that file with: rackmem key rack.key"
    );
}

#[test]
fn loopback_needs_no_key_and_has_room_for_long_datagrams() {
    let Placement::Udp { key, mtu, .. } = parse(UDP).placement else { panic!("udp") };
    assert_eq!((key.is_none(), mtu), (true, 65_535));
}

#[test]
fn a_program_in_the_kernel_takes_an_address_of_ipv4_and_a_key() {
    let in_kernel = |switch: &str| with(UDP, "[switch]\n", &format!("[switch]\n{switch}\n"));
    assert_eq!(
        refused(&in_kernel("data_plane = \"kernel\"\nports = \"eth1 eth2\"")),
        "rack.toml:5: a program in the kernel takes packets with a tag only: write key = \"rack.key\" under [rack], \
         and make that file with: rackmem key rack.key"
    );
    assert_eq!(
        refused(&in_kernel("data_plane = \"nic\"")),
        "rack.toml:5: no switch's program runs in `nic`: write data_plane = \"kernel\" or \"process\""
    );
    let elsewhere = refused(&in_kernel("data_plane = \"kernel\"\nhook = \"nic\""));
    assert!(elsewhere.contains("no port has a place `nic` for programs: write hook = \"tc\""), "{elsewhere}");
    let shm = SHM.replace("[[node]]\nid = 0", "[switch]\ndata_plane = \"kernel\"\n[[node]]\nid = 0");
    let refusal = refused(&shm);
    assert!(
        refusal.starts_with("rack.toml:5: `data_plane` has no meaning (there are no ports)"),
        "{refusal}"
    );
}

#[test]
fn copies_that_nobody_could_keep_or_find_are_refused() {
    let in_rack = |text: &str, line: &str| with(text, "[rack]\n", &format!("[rack]\n{line}\n"));
    assert_eq!(
        refused(&in_rack(SHM, "copies = 3")),
        "rack.toml:2: 3 copies on 2 nodes are not possible: 1 to 3 are, on as many nodes or more, and with more than one the rack begins with at most 64 nodes less `most_nodes`; change `copies`",
    );
}

#[test]
fn addresses_that_two_places_have_are_refused() {
    all_refused(&[
        (
            with(UDP, "127.0.0.1:7402", "127.0.0.1:7401"),
            "rack.toml:11: node 0 and node 1 have the same `listen`, 127.0.0.1:7401: write another port or address for one of them",
        ),
        (
            with(UDP, "127.0.0.1:7401", "127.0.0.1:7400"),
            "rack.toml:8: the switch and node 0 have the same `listen`, 127.0.0.1:7400: write another port or address for one of them",
        ),
        (
            with(SHM, "id = ", "metrics = \"127.0.0.1:9400\"\nid = "),
            "rack.toml:8: node 0 and node 1 have the same `metrics`, 127.0.0.1:9400: write another port or address for one of them",
        ),
    ]);
}

#[test]
fn addresses_that_nobody_could_send_to_are_refused() {
    let listen = |address: &str| with(UDP, "127.0.0.1:7402", address);
    all_refused(&[
        (
            listen("rack2:7400"),
            "rack.toml:11: `rack2:7400` is not an IP address with a port: write listen = \"10.0.0.2:7400\" (names are not looked up)",
        ),
        (
            listen("127.0.0.1"),
            "rack.toml:11: `127.0.0.1` is not an IP address with a port: write listen = \"10.0.0.2:7400\" (names are not looked up)",
        ),
        (
            listen("127.0.0.1:0"),
            "rack.toml:11: 127.0.0.1:0 has no port that the others could know: write one from 1 to 65535, for example listen = \"10.0.0.2:7400\"",
        ),
        (
            listen("0.0.0.0:7400"),
            "rack.toml:11: 0.0.0.0:7400 is no address that the others could send to: write what they use, too, for example advertise = \"10.0.0.2:7400\" or a host name with a port",
        ),
        (
            listen("224.0.0.1:7400"),
            "rack.toml:11: 224.0.0.1:7400 is the address of more than one machine: write the one of this machine that the others reach, for example listen = \"10.0.0.2:7400\"",
        ),
        (
            listen("[::1]:7400"),
            "rack.toml:11: node 1 ([::1]:7400) cannot talk to the switch (127.0.0.1:7400): one is IPv4, the other IPv6: write all addresses of one kind",
        ),
        (
            listen("10.0.0.2:7400"),
            "rack.toml:11: node 1 (10.0.0.2:7400) cannot talk to the switch (127.0.0.1:7400): one is loopback, so only this machine reaches it: write loopback addresses for all or for none",
        ),
    ]);
}
