//! Applications that are attached to the daemons of `rackmem up`.

use apps::kv::{KvConfig, KvStore};
use rackmem::attach::Batch;
use rackmem::{
    AttachError, ChainsConfig, Discipline, Error, LockMode, Locked, NodeHandle, NodeId, Objects, Rack,
    RackFile, Retry, WordOperation, Words, block_on,
};

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
fn an_application_whose_daemon_is_killed_is_told_so_by_every_call_and_its_locks_are_released() {
    is_told_that_its_daemon_was_killed("detached", Rack::attach_by_socket);
}

#[test]
fn an_application_that_has_words_and_objects_mapped_is_told_so_too_when_its_daemon_is_killed() {
    is_told_that_its_daemon_was_killed("unmapped", Rack::attach);
}

fn is_told_that_its_daemon_was_killed(
    test: &str,
    attach: fn(&RackFile, NodeId) -> Result<Rack, AttachError>,
) {
    let home = Home::new(test);
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let rack = attach(&file, NodeId(1)).unwrap();
    let (mut app, mut late) = (rack.here(), rack.here());
    let mut other = Rack::attach(&file, NodeId(0)).unwrap().here();
    let addr = other.alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    let words: Words<u64> = app.words(4, NodeId(0)).unwrap();
    let objects: Objects<[u64; 9]> = app.objects(2, NodeId(0)).unwrap();
    let value = Locked::new(&mut app, NodeId(0), 5_u64).unwrap();
    let mut store = app.chains(&ChainsConfig::at(NodeId(0), 64 << 10)).unwrap();
    store.put(&mut app, 1, b"one").unwrap();
    let lock = app.lock_block(addr, LockMode::Write).unwrap();
    let mut guard = value.write(&mut app).unwrap();
    *guard = 6;
    let pending = words.post(&mut app, 0, WordOperation::Add(1)).unwrap();
    words.add(&mut app, 1, 1).unwrap();
    home.kill(&["node", "--id", "1"]);

    let gone = Some(Error::Detached);
    assert_eq!(app.read_word(addr).err(), gone);
    assert_eq!(app.write_word(addr, 1).err(), gone);
    assert_eq!(app.read(addr, &mut [0; 20]).err(), gone);
    assert_eq!(app.write(addr, &[0; 20]).err(), gone);
    assert_eq!(app.inspect(addr, 8, |_| ()).err(), gone);
    assert_eq!(app.update(addr, 8, |_| ()).err(), gone);
    assert_eq!(app.alloc(8, NodeId(0), Discipline::Coherent).err(), gone);
    assert_eq!(app.free(addr).err(), gone);
    assert_eq!(app.try_lock_block(addr, LockMode::Read).err(), gone);
    assert_eq!(value.read(&mut app).err().and_then(|why| why.failure()), gone);
    assert_eq!(value.try_write(&mut app).err().and_then(|why| why.failure()), gone);
    // What is mapped is changed at once, and until the kernel has told of the death.
    let is_mapped = pending.wait(&mut app).is_ok();
    eventually("it is told", || words.fetch_add(&mut app, 0, 1).err() == gone);
    assert_eq!(words.write_bytes(&mut app, 0, &[0; 8]).err(), gone);
    assert_eq!(app.flush().err(), gone.filter(|_| !is_mapped), "of what nobody waits for");
    assert_eq!(app.words_at::<u64>(words.addr()).err(), gone);
    assert_eq!(objects.read(&mut app, 0, Retry::Forever).err(), Some(Error::Detached.into()));
    assert_eq!(objects.update(&mut app, 0, |_| ()).err(), gone);
    assert_eq!(store.get(&mut app, 1, &mut Vec::new()).err(), gone);
    assert_eq!(store.put(&mut app, 1, b"two").err(), gone);
    assert_eq!(app.chains_at(store.addr()).err(), gone);
    let mut batch = Batch::new();
    assert!(batch.read(addr, 8));
    assert_eq!(app.run(&batch).err(), gone);
    assert_eq!(late.read_word(addr).err(), gone, "also of a handle that was not used before");
    drop((lock, guard, store));
    assert!(rack.is_fenced());
    eventually("nobody is there", || {
        matches!(Rack::attach(&file, NodeId(1)), Err(AttachError::NoDaemon { .. }))
    });

    drop(other.lock_block(addr, LockMode::Write).unwrap());
    let value = Locked::<u64>::at(&other, value.addr()).unwrap();
    let found = value.read(&mut other).map(|guard| *guard).map_err(|why| why.failure());
    // The lock was at the node that was killed, where it was written.
    assert_eq!(found.err(), Some(Some(Error::Lost { addr: value.addr() })));
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn an_application_whose_daemon_is_stopped_changes_nothing_any_more_and_is_told_when_that_goes_on() {
    let home = Home::new("stopped");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut app = Rack::attach(&file, NodeId(0)).unwrap().here();
    let words = app.words::<u64>(4, NodeId(1)).unwrap();
    let mut other = Rack::attach(&file, NodeId(1)).unwrap().here();
    let same = other.words_at::<u64>(words.addr()).unwrap();
    let adding = std::thread::spawn(move || {
        loop {
            if let Err(why) = words.fetch_add(&mut app, 0, 1) {
                return why;
            }
        }
    });
    eventually("it adds", || same.load(&mut other, 0).unwrap() > 1000);
    let daemon = home.find(&["node", "--id", "0"]).unwrap();
    crate::shell::signal("-STOP", daemon);
    eventually("it is declared dead", || {
        let error = other.alloc(8, NodeId(0), Discipline::Coherent).err();
        error == Some(Error::NodeDown { addr: rackmem::GlobalAddr::new(NodeId(0), 0) })
    });
    let mut then = 0;
    eventually("it waits", || {
        let before = std::mem::replace(&mut then, same.load(&mut other, 0).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(100));
        before == then
    });
    assert!(!adding.is_finished());
    crate::shell::signal("-CONT", daemon);
    assert_eq!(adding.join().unwrap(), Error::Detached);
    assert_eq!(same.load(&mut other, 0), Ok(then), "nothing came after it");
    up.interrupt();
    home.assert_nothing_left();
}

/// Threads, descriptors and mappings of a process, and KiB of its memory.
fn held_by(process: u32) -> (usize, usize, usize, u64) {
    let folder = std::path::PathBuf::from(format!("/proc/{process}"));
    let status = std::fs::read_to_string(folder.join("status")).unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib = kib.trim().trim_end_matches(" kB").parse().unwrap();
    let entries = |of: &str| std::fs::read_dir(folder.join(of)).unwrap().count();
    let mappings = std::fs::read_to_string(folder.join("maps")).unwrap();
    let shared = mappings.lines().filter(|line| line.contains("memfd")).count();
    (entries("task"), entries("fd"), shared, kib)
}

#[test]
fn an_application_that_comes_and_goes_a_thousand_times_leaves_no_trace_in_the_daemon() {
    let home = Home::new("thousand");
    let up = home.up(&["--nodes", "2"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let daemon = home.find(&["node", "--id", "0"]).unwrap();
    let attach = || Rack::attach(&file, NodeId(0)).unwrap().here();
    let mut app = attach();
    let words = app.words::<u64>(4, NodeId(0)).unwrap().addr();
    let objects = app.objects::<[u64; 9]>(2, NodeId(0)).unwrap().addr();
    let value = Locked::new(&mut app, NodeId(0), 0_u64).unwrap().addr();
    let store = app.chains(&ChainsConfig::at(NodeId(0), 64 << 10)).unwrap().addr();
    let block = app.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    // Words and objects are mapped, by each that comes.
    let visit = |app: &mut NodeHandle, round: u64| {
        app.words_at::<u64>(words).unwrap().fetch_add(app, 0, 1).unwrap();
        app.objects_at::<[u64; 9]>(objects).unwrap().update(app, 0, |words| words[3] += 1).unwrap();
        *Locked::<u64>::at(app, value).unwrap().write(app).unwrap() += 1;
        app.chains_at(store).unwrap().put(app, 1, &round.to_le_bytes()).unwrap();
        let own = app.words::<u64>(1000, NodeId(0)).unwrap();
        own.free(app).unwrap();
        drop(app.lock_block(block, LockMode::Read).unwrap());
    };
    let (mut before, mut ours) = ((0, 0, 0, 0), (0, 0, 0, 0));
    // After a first thousand: everything that is kept for use has been made by then.
    for round in 0..2000 {
        if round == 1000 {
            (before, ours) = (held_by(daemon), held_by(std::process::id()));
        }
        visit(&mut attach(), round);
    }
    // The last one may still be on its way out.
    eventually("threads and descriptors are gone", || {
        let (threads, descriptors, shared, _) = held_by(daemon);
        threads <= before.0 && descriptors <= before.1 && shared <= before.2
    });
    // Other tests run in this process, but not a thousand.
    let (threads, descriptors, shared, _) = held_by(std::process::id());
    assert!(threads < ours.0 + 200 && descriptors < ours.1 + 500 && shared < ours.2 + 500);
    // Keys of regions that have ended are known for a while: less than a KiB each. A page for each visit would be 4000. (On a
    // machine that is full more threads of the daemon are about at a time, each with memory of its own.)
    let grown = held_by(daemon).3.saturating_sub(before.3);
    println!("{grown} KiB more");
    assert!(grown < 3600, "{grown} KiB more");
    assert_eq!(Locked::<u64>::at(&app, value).map(|value| *value.read(&mut app).unwrap()), Ok(2000));
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
