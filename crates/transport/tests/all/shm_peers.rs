//! Opening peers in shared memory: who may, where, and what is said to those who may not.
#![cfg(target_os = "linux")]

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use transport::shm::{Error, ShmConfig, ShmTransport};
use transport::{PeerId, Terms};
use wire::NodeId;

/// A directory for one test, which goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("rackmem-peers-{test}-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&dir).unwrap();
        Self(dir)
    }

    fn rack(&self) -> PathBuf {
        self.0.join("rack")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn config(dir: &Path) -> ShmConfig {
    ShmConfig {
        dir: dir.to_path_buf(),
        me: PeerId::node(NodeId(3)),
        block: 4096,
        ring_bytes: None,
        terms: Terms::default(),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Opening fails, and the message has all these words.
fn refusal(config: &ShmConfig, words: &[&str]) -> Error {
    let error = ShmTransport::open(config).expect_err("refused");
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} in {message:?}");
    }
    error
}

#[test]
fn the_directory_is_made_for_its_user_alone_and_left_empty() {
    let scratch = Scratch::new("made");
    let peer = ShmTransport::open(&config(&scratch.rack())).unwrap();
    assert_eq!(mode(&scratch.rack()), 0o700);
    assert!(scratch.rack().join("node-3.sock").exists());
    drop(peer);
    assert_eq!(fs::read_dir(scratch.rack()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_lets_others_in_is_refused() {
    let scratch = Scratch::new("open");
    for mode in [0o755, 0o710, 0o701, 0o770] {
        let _ = fs::remove_dir(scratch.rack());
        fs::create_dir(scratch.rack()).unwrap();
        fs::set_permissions(scratch.rack(), Permissions::from_mode(mode)).unwrap();
        refusal(&config(&scratch.rack()), &["chmod 700", &format!("{mode:o}")]);
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let scratch = Scratch::new("foreign");
    DirBuilder::new().mode(0o700).create(scratch.rack()).unwrap();
    if chown(scratch.rack(), Some(65_534), None).is_err() {
        println!("skipped: only root can give a directory away");
        return;
    }
    refusal(&config(&scratch.rack()), &["user 65534", "as one user"]);
}

#[test]
fn what_is_no_directory_is_refused() {
    let scratch = Scratch::new("link");
    let target = scratch.0.join("target");
    DirBuilder::new().mode(0o700).create(&target).unwrap();
    symlink(&target, scratch.rack()).unwrap();
    refusal(&config(&scratch.rack()), &["not a directory"]);
    fs::remove_file(scratch.rack()).unwrap();
    fs::write(scratch.rack(), "").unwrap();
    ShmTransport::open(&config(&scratch.rack())).unwrap_err();
}

#[test]
fn a_peer_that_lives_is_not_opened_twice() {
    let scratch = Scratch::new("twice");
    let config = config(&scratch.rack());
    let peer = ShmTransport::open(&config).unwrap();
    refusal(&config, &["node 3", "node-3.lock", "end it first"]);
    drop(peer);
    ShmTransport::open(&config).unwrap();
}

#[test]
fn what_a_dead_peer_left_is_repeerd() {
    let scratch = Scratch::new("stale");
    DirBuilder::new().mode(0o700).create(scratch.rack()).unwrap();
    let socket = scratch.rack().join("node-3.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    fs::write(scratch.rack().join("node-3.lock"), "").unwrap();
    assert!(socket.exists());
    ShmTransport::open(&config(&scratch.rack())).unwrap();
}

#[test]
fn what_a_dead_observer_left_is_swept_away_by_the_next() {
    let scratch = Scratch::new("observers");
    DirBuilder::new().mode(0o700).create(scratch.rack()).unwrap();
    fs::write(scratch.rack().join("observer-1-0.sock"), "").unwrap();
    fs::write(scratch.rack().join("observer-1-0.lock"), "").unwrap();
    let living = ShmConfig { me: PeerId::OBSERVER, ..config(&scratch.rack()) };
    let observers = [ShmTransport::open(&living).unwrap(), ShmTransport::open(&living).unwrap()];
    assert_eq!(fs::read_dir(scratch.rack()).unwrap().count(), 2 * observers.len(), "the living ones stay");
}

#[test]
fn a_directory_with_too_long_a_name_is_refused() {
    let scratch = Scratch::new("long");
    refusal(&config(&scratch.rack().join("x".repeat(100))), &["shorter directory"]);
}

#[test]
fn a_ring_that_cannot_carry_the_largest_message_is_refused() {
    let scratch = Scratch::new("small");
    for (block, ring) in [(4096, 32 << 10), (1 << 20, 1 << 20), (4096, 100_000)] {
        let config = ShmConfig { block, ring_bytes: Some(ring), ..config(&scratch.rack()) };
        refusal(&config, &[&ring.to_string(), "power of two"]);
    }
    refusal(&ShmConfig { block: 2 << 20, ..config(&scratch.rack()) }, &["1048576"]);
}
