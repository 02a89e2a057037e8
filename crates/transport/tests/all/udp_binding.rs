//! What a UDP transport refuses before it listens, and how it waits once it does.

use crate::tapped;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tapped::{A, B, Pair, TIMEOUT, config, key, loopback};
use transport::Transport;
use transport::udp::{Error, Key, KeyError, UdpTransport};
use wire::Nanos;

/// A file's name that no other test uses; the file goes away with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("rackmem-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

#[test]
fn without_a_key_only_loopback_is_bound() {
    for (listen, bound) in
        [("0.0.0.0:0", false), ("[::]:0", false), ("127.0.0.1:0", true), ("127.1.2.3:0", true)]
    {
        let mut config = config(A, &[], None, 1_500);
        config.listen = listen.parse().expect("an address");
        match UdpTransport::bind(&config) {
            Ok(_) => assert!(bound, "{listen}"),
            Err(error) => {
                assert!(!bound && matches!(error, Error::NeedsKey { .. }), "{listen}: {error}");
                assert!(error.to_string().contains("key file"), "{error}");
            }
        }
        config.key = key(1);
        // A machine may lack IPv6; it is never the key then.
        if let Err(error) = UdpTransport::bind(&config) {
            assert!(matches!(error, Error::Bind { .. }), "{listen}: {error}");
        }
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut transport::udp::UdpConfig)| {
        let mut config = config(A, &[(B, loopback())], None, 1_500);
        change(&mut config);
        UdpTransport::bind(&config).expect_err("refused")
    };
    assert!(matches!(refused(&|config| config.mtu = 1_279), Error::Mtu { mtu: 1_279 }));
    assert!(matches!(refused(&|config| config.mtu = 65_536), Error::Mtu { mtu: 65_536 }));
    assert!(matches!(refused(&|config| config.block = 0), Error::Block { block: 0 }));
    assert!(matches!(refused(&|config| config.block = 12), Error::Block { block: 12 }));
    assert!(
        matches!(refused(&|config| config.peers.push((B, loopback().into()))), Error::Twice { peer } if peer == B)
    );
    assert!(
        matches!(refused(&|config| config.peers.push((A, loopback().into()))), Error::Twice { peer } if peer == A)
    );
    let ipv6: std::net::SocketAddr = "[::1]:9".parse().expect("an address");
    assert!(matches!(refused(&|config| config.peers[0].1 = ipv6.into()), Error::Family { .. }));
    let taken = std::net::UdpSocket::bind(loopback()).expect("loopback");
    let address = taken.local_addr().expect("bound");
    assert!(
        matches!(refused(&|config| config.listen = address), Error::Bind { listen, .. } if listen == address)
    );
}

#[test]
fn a_key_file_is_written_for_its_owner_alone_and_read_back() {
    let file = Scratch::new("key");
    let key = Key::generate().expect("random numbers");
    key.create(&file.0).expect("written");
    assert_eq!(std::fs::metadata(&file.0).expect("there").permissions().mode() & 0o777, 0o600);
    let text = std::fs::read(&file.0).expect("readable");
    assert_eq!(text.len(), 65);
    let read = Key::read(&file.0).expect("a key");
    // Both write the same digits.
    let again = Scratch::new("key-again");
    read.create(&again.0).expect("written");
    assert_eq!(std::fs::read(&again.0).expect("readable"), text);
    assert!(matches!(key.create(&file.0), Err(KeyError::Io { .. })), "a key is never overwritten");
}

#[test]
fn a_key_file_that_others_can_read_is_refused_with_what_to_do() {
    let file = Scratch::new("exposed");
    Key::generate().and_then(|key| key.create(&file.0).map_err(std::io::Error::other)).expect("written");
    for mode in [0o640, 0o604, 0o660, 0o601] {
        std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(mode)).expect("changed");
        let error = Key::read(&file.0).expect_err("refused");
        assert!(matches!(error, KeyError::Exposed { .. }), "{mode:o}");
        let text = error.to_string();
        assert!(text.contains("chmod 600") && text.contains(&file.0.display().to_string()), "{text}");
    }
    std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o400)).expect("changed");
    Key::read(&file.0).expect("its owner's");
}

#[test]
fn a_key_file_with_anything_but_digits_is_refused_and_its_contents_are_not_shown() {
    for text in
        ["", "12", &"z".repeat(64), &"a".repeat(65), &format!("{}\n{}", "a".repeat(64), "b".repeat(64))]
    {
        let file = Scratch::new(&format!("digits-{}", text.len()));
        std::fs::write(&file.0, text).expect("written");
        std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o600)).expect("changed");
        let error = Key::read(&file.0).expect_err("refused");
        assert!(matches!(error, KeyError::Digits { .. }), "{error}");
        assert!(text.is_empty() || text.len() < 10 || !format!("{error} {error:?}").contains(text));
    }
    assert!(matches!(Key::read(&Scratch::new("missing").0), Err(KeyError::Io { .. })));
}

#[test]
fn waiting_ends_when_the_time_is_over() {
    let pair = Pair::connected(65_535);
    let start = Instant::now();
    pair.b.wait(Nanos::from_millis(30));
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[test]
fn who_waits_sleeps_while_others_attend_and_is_there_when_they_leave() {
    let mut pair = Pair::connected(65_535);
    let sealed = pair.sealed([1], 1);
    let woke = AtomicBool::new(false);
    pair.b.attend();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            pair.b.wait(Nanos::from_millis(20_000));
            woke.store(true, SeqCst);
        });
        pair.tap.to_b(&pair.b, &sealed[0]);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!woke.load(SeqCst), "somebody attends");
        let start = Instant::now();
        assert!(!pair.b.leave(), "whoever waits takes care of the rest");
        waiting.join().expect("it waits");
        assert!(start.elapsed() < TIMEOUT);
    });
    pair.receive();
    assert_eq!(pair.numbers(), [1]);
}
