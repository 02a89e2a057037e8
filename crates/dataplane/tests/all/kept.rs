//! What a process keeps of its programs is the next one's, if they are the same; and whose they are.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, io, process};

use dataplane::kernel::Error;
use dataplane::network::{self, Network};
use dataplane::{Claim, Hook, Kernel, Ports};
use live::networked::DataPlane as _;
use switch::coherence::SwitchConfig;
use switch::locks::DirectoryConfig;
use transport::udp::{Key, Naming, UdpConfig, UdpTransport};
use transport::{PeerId, Terms};
use wire::{LockEnd, NodeId, SwitchEpoch};

/// Runs something at a rack's switch, with a file system of bpf. It is skipped where that is not permitted.
fn at_switch(name: &str, work: impl FnOnce(&Path, &Ports) + Send) {
    at_switch_of(Network::with_programs_in_drivers, name, work);
}

/// The same in a network that is made so.
fn at_switch_of(
    made: impl FnOnce(Network) -> io::Result<Network>,
    name: &str,
    work: impl FnOnce(&Path, &Ports) + Send,
) {
    let required = env::var("RACKMEM_NEEDS_KERNEL").is_ok();
    if let Err(why) = network::can_run() {
        assert!(!required, "no switch in the kernel: {why}");
        return;
    }
    let network = Network::new(2).and_then(made).expect("it could be had");
    let path = env::temp_dir().join(format!("rackmem-{}-{name}", process::id()));
    fs::create_dir(&path).expect("nobody else has the name");
    let command = |command: &str, args: &[&str]| {
        let done = Command::new(command).args(args).arg(&path).status();
        done.is_ok_and(|done| done.success())
    };
    let mounted = command("mount", &["-t", "bpf", "bpf"]);
    assert!(mounted || !required, "no file system of bpf");
    if mounted {
        let done = network.at(0, || {
            work(&path.join("rack"), &Ports { devices: Network::ports(2), hook: None });
            Ok::<_, io::Error>(())
        });
        assert!(command("umount", &["-l"]), "it can be taken away");
        done.expect("it could enter");
    }
    fs::remove_dir(&path).expect("it is empty");
}

/// The programs of a rack of so many nodes, as a process has them.
fn attach(nodes: usize, ports: &Ports, claim: Option<Claim>) -> Kernel {
    try_attach(nodes, ports, claim).expect("it can be attached")
}

/// A child that another test is just starting has the sockets of this process, too, until it is another program.
fn bound(config: &UdpConfig) -> UdpTransport {
    let began = Instant::now();
    loop {
        match UdpTransport::bind(config) {
            Ok(udp) => return udp,
            Err(why) => assert!(began.elapsed() < Duration::from_secs(10), "somebody else is there: {why}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn try_attach(nodes: usize, ports: &Ports, claim: Option<Claim>) -> Result<Kernel, Error> {
    let here = "10.77.0.1:7400".parse().expect("an address");
    let config = UdpConfig {
        me: PeerId::SWITCH,
        listen: here,
        peers: Vec::new(),
        unlisted: Vec::new(),
        naming: Naming::default(),
        key: Some(Key::from_bytes([9; 32])),
        mtu: 1500,
        block: 512,
        coalescing: false,
        singles: true,
        terms: Terms::default(),
    };
    let udp = Arc::new(bound(&config));
    let epoch = SwitchEpoch(0);
    let blocks = SwitchConfig { entries: 64, epoch, peeks: true, ..SwitchConfig::for_nodes(nodes) };
    let locks = DirectoryConfig { at: LockEnd::Switch, nodes, entries: 64, epoch };
    Kernel::attach(&blocks, &locks, udp, ports, claim)
}

fn claim(directory: &Path) -> Claim {
    Claim::make(directory, "10.77.0.1:7400".parse().expect("an address"), 2).expect("it can be claimed")
}

fn names(directory: &Path) -> usize {
    fs::read_dir(directory).expect("it is there").count()
}

#[test]
fn the_next_process_learns_what_was_held_if_its_programs_are_the_same() {
    at_switch("same", |directory, ports| {
        let mut first = attach(2, ports, Some(claim(directory)));
        assert_eq!(first.epoch(), SwitchEpoch(0));
        assert_eq!(first.begin_epoch(SwitchEpoch(5), NodeId(0), &Some), None, "there was nothing before");
        drop(first);
        // Of each program three parts, and one at each port; and whose they are.
        assert_eq!(names(directory), 2 * (3 + 2) + 1);
        let one = Ports { devices: ports.devices[..1].to_vec(), hook: None };
        let mut next = attach(2, &one, Some(claim(directory)));
        assert_eq!(next.epoch(), SwitchEpoch(5));
        assert_eq!(names(directory), 2 * (3 + 1) + 1, "it is not at the other port any more");
        let held = next.begin_epoch(SwitchEpoch(9), NodeId(0), &Some).expect("there was an epoch");
        assert_eq!(held.epoch, SwitchEpoch(5));
        assert_eq!(next.epoch(), SwitchEpoch(9));
        drop(next);
        let mut other = attach(1, ports, Some(claim(directory)));
        assert_eq!(other.epoch(), SwitchEpoch(0), "of a rack with other programs nothing is known");
        assert_eq!(other.begin_epoch(SwitchEpoch(5), NodeId(0), &Some), None);
        drop(other);
        fs::remove_file(directory.join("locks-state")).expect("it is there");
        let other = attach(1, ports, Some(claim(directory)));
        assert_eq!(other.epoch(), SwitchEpoch(0), "what is there in part counts for nothing");
        drop(other);
        Claim::remove(directory).expect("it is ours");
        assert!(!directory.exists());
    });
}

#[test]
fn whoever_claims_last_has_them_and_the_one_before_is_told() {
    at_switch("last", |directory, ports| {
        let mut first = attach(2, ports, Some(claim(directory)));
        assert!(first.look());
        let here = "10.77.0.1:7400".parse().expect("an address");
        let later = Claim::make(directory, here, 4).expect("it can be claimed");
        assert!(!first.look());
        drop(first);
        let mut later = attach(2, ports, Some(later));
        assert!(later.look());
        let there = "10.77.0.2:7400".parse().expect("an address");
        let refused = Claim::make(directory, there, 6).err().expect("it is of another switch");
        assert!(refused.to_string().contains("a switch at 10.77.0.1:7400"), "{refused}");
        let here = "10.77.0.1:7400".parse().expect("an address");
        let nobody = Ports { devices: vec!["nobody".to_owned()], hook: None };
        let refused = Kernel::claim(directory, here, &nobody, 8).err().expect("no such port");
        assert!(refused.to_string().contains("port nobody: cannot find the device"), "{refused}");
        assert!(later.look(), "who was refused has claimed nothing");
        fs::create_dir(directory.join("of-somebody-else")).expect("it can be made");
        Claim::remove(directory).expect("it is ours");
        assert_eq!(names(directory), 1, "what is not ours stays");
    });
}

/// In the driver of a virtual port a program is where that is asked for. It is kept like the others, taken over by a process that
/// wants it there, and taken off by one that does not.
#[test]
fn programs_in_drivers_are_where_they_are_asked_for() {
    at_switch("driver", |directory, ports| {
        let hooks =
            |kernel: &mut Kernel| kernel.report().ports.into_iter().map(|(_, hook)| hook).collect::<Vec<_>>();
        let in_drivers = Ports { hook: Some(Hook::Driver), ..ports.clone() };
        let mut by_default = attach(2, ports, None);
        assert_eq!(hooks(&mut by_default), ["tcx/ingress"; 2]);
        drop(by_default);
        for _ in 0..2 {
            let mut asked = attach(2, &in_drivers, Some(claim(directory)));
            assert_eq!(hooks(&mut asked), ["xdp/native"; 2]);
            drop(asked);
            assert_eq!(names(directory), 2 * (3 + 2) + 2 + 1, "one more at each port");
        }
        let mut not_asked = attach(2, ports, Some(claim(directory)));
        assert_eq!(hooks(&mut not_asked), ["tcx/ingress"; 2]);
        assert_eq!(names(directory), 2 * (3 + 2) + 1);
        drop(not_asked);
        Claim::remove(directory).expect("it is ours");
        let lo = Ports { devices: vec!["lo".to_owned()], hook: Some(Hook::Driver) };
        let refused = try_attach(2, &lo, None).expect_err("nothing runs programs there");
        assert!(
            refused.to_string().starts_with("port lo: cannot attach the program in its driver"),
            "{refused}"
        );
        let probed = Ports { hook: None, ..lo };
        assert_eq!(hooks(&mut attach(2, &probed, None)), ["tcx/ingress"], "where it can be");
    });
}

/// What a program in a driver sends on would be lost there, packet by packet.
#[test]
fn programs_in_drivers_need_ports_that_send_on_what_they_are_given() {
    at_switch_of(Ok, "sends-on", |_, ports| {
        let in_drivers = Ports { hook: Some(Hook::Driver), ..ports.clone() };
        let refused = try_attach(2, &in_drivers, None).expect_err("the other ends do not merge").to_string();
        assert!(refused.starts_with("port p0: cannot send on what drivers give it"), "{refused}");
    });
}

#[test]
fn a_port_that_is_too_narrow_for_the_rack_is_refused() {
    at_switch("narrow", |_, ports| {
        let narrowed = Command::new("ip").args(["link", "set", "p1", "mtu", "1400"]).status();
        assert!(narrowed.expect("there is `ip`").success());
        let refused = try_attach(2, ports, None).expect_err("a packet of 1500 bytes would be lost there");
        let said = refused.to_string();
        assert!(said.starts_with("port p1: cannot carry the rack's packets: its MTU is 1400"), "{said}");
    });
}
