//! Applications that are attached to the daemons of `rackmem up`.

use apps::kv::{KvConfig, KvStore};
use rackmem::{AttachError, Discipline, Error, LockMode, NodeId, Rack, RackFile, block_on};

use super::rig::{Home, eventually, free_port, page};

#[test]
fn a_key_value_store_is_shared_by_applications_that_are_attached_and_one_that_has_joined() {
    let home = Home::new("attached");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut first = Rack::attach(&file, NodeId(0)).unwrap().here();
    let mut second = Rack::attach(&file, NodeId(1)).unwrap().here();
    let rack = Rack::join(&file, NodeId(2)).unwrap();
    let mut node = rack.here();
    let config = KvConfig { expected_keys: 100, ..KvConfig::default() };
    let store = block_on(KvStore::create(&mut first, &config)).unwrap();
    let root = store.root();
    let stores = [
        block_on(KvStore::open(&mut second, root)).unwrap(),
        block_on(KvStore::open(&mut node, root)).unwrap(),
    ];
    let mut value = Vec::new();
    for round in 0..50u32 {
        let key = format!("key {round}");
        block_on(store.put(&mut first, key.as_bytes(), b"by the first")).unwrap();
        assert!(block_on(stores[0].get(&mut second, key.as_bytes(), &mut value)).unwrap());
        assert_eq!(value, b"by the first");
        block_on(stores[0].update_in_place(&mut second, key.as_bytes(), 7, b"third")).unwrap();
        assert!(block_on(stores[1].get(&mut node, key.as_bytes(), &mut value)).unwrap());
        assert_eq!(value, b"by the third");
    }
    drop((first, second, node, rack));
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn an_application_whose_daemon_is_killed_is_told_so_and_its_locks_are_released() {
    let home = Home::new("detached");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut app = Rack::attach(&file, NodeId(1)).unwrap().here();
    let mut other = Rack::attach(&file, NodeId(0)).unwrap().here();
    let addr = other.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    let lock = app.lock_block(addr, LockMode::Write).unwrap();
    home.kill(&["node", "--id", "1"]);
    assert_eq!(app.read_word(addr), Err(Error::Detached));
    drop(lock);
    eventually("nobody is there", || {
        matches!(Rack::attach(&file, NodeId(1)), Err(AttachError::NoDaemon { .. }))
    });
    drop(other.lock_block(addr, LockMode::Write).unwrap());
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_node_counts_what_it_does_for_applications() {
    let home = Home::new("counted");
    let address = format!("127.0.0.1:{}", free_port());
    let text = home.output(&["rack-file", "--nodes", "1", "--transport", "shm"]);
    let path = home.write("rack.toml", &text.replacen("[rack]", "[rack]\nruntime = \"run\"", 1));
    let switch = home.start(&["switch", "--config", &path]);
    let node = home.start(&["node", "--id", "0", "--config", &path, "--metrics", &address]);
    let file = RackFile::read(&path).unwrap();
    eventually("the node is there", || Rack::attach(&file, NodeId(0)).is_ok());
    let mut app = Rack::attach(&file, NodeId(0)).unwrap().here();
    let addr = app.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    app.write_word(addr, 1).unwrap();
    let page = page(&address, "/metrics");
    for line in [
        "rackmem_applications_operations_total{node=\"0\"} 2\n",
        "rackmem_applications_ended_total{node=\"0\",why=\"malformed\"} 0\n",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    for daemon in [node, switch] {
        assert_eq!(daemon.signal("TERM").output().status.code(), Some(0));
    }
    assert_eq!(app.read_word(addr), Err(Error::Detached), "the node has ended");
    std::fs::remove_file(&path).unwrap();
    home.assert_nothing_left();
}
