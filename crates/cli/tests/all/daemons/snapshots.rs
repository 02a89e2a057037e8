//! `rackmem snapshot` and `rackmem restore`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use apps::kv::{KvConfig, KvStore};
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use apps::named;
use rackmem::{Locked, NameError, NodeHandle, NodeId, Rack, RackFile, Region, Value, Words, block_on};

use super::rig::{Home, eventually, text};

fn attached(home: &Home, node: u16) -> NodeHandle {
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut found = None;
    // Both nodes have heard of each other. (A node that had no processor for long is another one by then.)
    eventually("the node serves, and names are kept", || {
        let mut app = Rack::attach(&file, NodeId(node)).ok().map(|rack| rack.here());
        let kept = app.as_mut().is_some_and(|app| {
            let mut names = (0..20).map(|number| format!("none/{number}"));
            names.all(|name| matches!(app.name_info(&name), Err(NameError::NotFound { .. })))
        });
        found = app.filter(|_| kept);
        found.is_some()
    });
    found.unwrap()
}

/// A name that this node keeps.
fn name_at(handle: &NodeHandle, node: u16, what: &str) -> String {
    let mut names = (0..).map(|number| format!("{what}/{number}"));
    names.find(|name| handle.home_of_name(name) == NodeId(node)).unwrap()
}

/// The files in the folder, but for those of the rack.
fn files(home: &Home) -> Vec<String> {
    let names = fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "rackmem-up");
    names.sort();
    names
}

fn end(home: &Home, up: super::rig::Running) {
    up.interrupt();
    for file in files(home) {
        fs::remove_file(home.path(&file)).unwrap();
    }
    home.assert_nothing_left();
}

#[test]
fn what_has_a_name_comes_back_when_the_rack_was_started_anew() {
    let home = Home::new("snapshots");
    let up = home.up(&["--nodes", "2", "--seats", "0"]);
    let mut app = attached(&home, 1);
    app.named::<Locked<[u64; 3]>>("quotas").create([1, 2, 3]).unwrap();
    app.named::<Value<u64>>("limit").create(7).unwrap();
    app.named::<Words<u64>>("hits").create(16).unwrap().fetch_add(&mut app, 3, 5).unwrap();
    let config = KvConfig { expected_keys: 100, ..KvConfig::default() };
    let users: KvStore = named::open_or(&mut app, "users", &config).unwrap();
    let config = LockedStoreConfig { expected_keys: 100, ..LockedStoreConfig::default() };
    let orders: LockedStore = named::open_or(&mut app, "orders", &config).unwrap();
    for key in 0..200u64 {
        block_on(users.put(&mut app, &key.to_le_bytes(), &[1; 100])).unwrap();
        orders.put(&mut app, &key.to_le_bytes(), &[2; 50]).unwrap();
    }
    let said = home.output(&["snapshot", "quotas", "quotas.snap"]);
    let expected =
        "\"quotas\" of rack `up` is in quotas.snap: value behind a lock, 24 B, all of one moment\n";
    assert_eq!(said, expected);
    for name in ["limit", "hits", "users"] {
        home.output(&["snapshot", name, name, "--config", home.rack_file().to_str().unwrap()]);
    }
    let said = home.output(&["snapshot", "orders", "orders", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let expected = serde_json::json!({
        "command": "snapshot", "rack": "up", "name": "orders", "file": "orders", "kind": "key-value store in locks",
        "entries": 200, "moment": "all of one moment", "tag": "store in locks",
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&said[key], value, "{key} of {said}");
    }
    assert_eq!(files(&home), ["hits", "limit", "orders", "quotas.snap", "users"]);
    drop(app);
    up.interrupt();

    let up = home.up(&["--nodes", "2", "--seats", "0"]);
    let said = home.output(&["restore", "quotas", "quotas.snap"]);
    assert_eq!(said, "\"quotas\" of rack `up` was made from quotas.snap: value behind a lock, 24 B\n");
    for name in ["limit", "hits", "users", "orders"] {
        home.output(&["restore", name, name]);
    }
    let mut app = attached(&home, 0);
    let quotas = app.named::<Locked<[u64; 3]>>("quotas").open().unwrap();
    assert_eq!(quotas.read(&mut app).map(|it| *it), Ok([1, 2, 3]));
    assert_eq!(app.named::<Value<u64>>("limit").open().unwrap().get(&mut app), Ok(7));
    let hits = app.named::<Words<u64>>("hits").open().unwrap();
    assert_eq!((hits.len(), hits.load(&mut app, 3)), (16, Ok(5)));
    let (users, mut value) = (named::open::<KvStore>(&mut app, "users").unwrap(), Vec::new());
    let orders: LockedStore = named::open(&mut app, "orders").unwrap();
    for key in 0..200u64 {
        assert_eq!(block_on(users.get(&mut app, &key.to_le_bytes(), &mut value)), Ok(true));
        assert_eq!(value, [1; 100]);
        assert_eq!(orders.get(&mut app, &key.to_le_bytes(), &mut value), Ok(true));
        assert_eq!(value, [2; 50]);
    }

    // What is there stays, unless it is said.
    *quotas.write(&mut app).unwrap() = [9; 3];
    users.put_in(&mut app, b"new");
    let said = home.mistake(&["restore", "quotas", "quotas.snap"], 1);
    assert!(said.contains("\"quotas\" exists already (Locked, 24 B, type [u64; 3])"), "{said}");
    assert!(said.contains("with --replace its contents become those of quotas.snap"), "{said}");
    assert_eq!(quotas.read(&mut app).map(|it| *it), Ok([9; 3]));
    let said = home.output(&["restore", "quotas", "quotas.snap", "--replace"]);
    assert_eq!(said, "\"quotas\" of rack `up` was replaced from quotas.snap: value behind a lock, 24 B\n");
    assert_eq!(quotas.read(&mut app).map(|it| *it), Ok([1, 2, 3]));
    let said = home.output(&["restore", "users", "users", "--replace", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["made"], &said["entries"], &said["was"]),
        (&false.into(), &200.into(), &"users".into())
    );
    assert_eq!(block_on(users.get(&mut app, b"new", &mut value)), Ok(false));
    drop(app);
    end(&home, up);
}

trait PutIn {
    fn put_in(&self, app: &mut NodeHandle, key: &[u8]);
}

impl PutIn for KvStore {
    fn put_in(&self, app: &mut NodeHandle, key: &[u8]) {
        block_on(self.put(app, key, b"value")).unwrap();
    }
}

#[test]
fn what_cannot_be_saved_or_brought_back_is_said_with_what_to_do_and_leaves_nothing() {
    let home = Home::new("unsaved");
    fs::write(home.path("mine.txt"), "mine").unwrap();
    let said = home.mistake(&["snapshot", "quotas", "file"], 1);
    assert!(said.starts_with("error: no rack runs on this machine"), "{said}");
    let up = home.up(&["--nodes", "2", "--seats", "0"]);
    let mut app = attached(&home, 0);
    app.named::<Locked<[u64; 3]>>("three").create([1, 2, 3]).unwrap();
    app.named::<Locked<[u64; 4]>>("four").create([0; 4]).unwrap();
    app.named::<Words<u64>>("words").create(4).unwrap();
    let before = files(&home);
    let long = "x".repeat(300);
    for (args, code, why) in [
        (&["snapshot", "none", "file"][..], 1, "nothing is named \"none\""),
        (&["snapshot", &long, "file"], 2, "is no name: use 1 to 255 bytes"),
        (&["snapshot", "three", "nowhere/file"], 1, "nowhere/file: cannot be written: No such file"),
        (&["snapshot", "three", "."], 2, ". is no plain file"),
        (&["snapshot", "three", "/dev/full"], 2, "/dev/full is no plain file"),
        (&["snapshot", "three", "mine.txt"], 1, "mine.txt is something else than a snapshot"),
        (&["restore", "three", "nowhere"], 2, "nowhere: No such file"),
        (&["restore", "three", "."], 2, ".: the snapshot cannot be read: Is a directory"),
        (&["restore", "three", "mine.txt"], 2, "mine.txt: that is no snapshot"),
    ] {
        let said = home.mistake(args, code);
        assert!(said.contains(why), "{args:?}: {said}");
        assert_eq!(files(&home), before, "{args:?}");
    }
    assert_eq!(fs::read_to_string(home.path("mine.txt")).unwrap(), "mine");

    home.output(&["snapshot", "three", "three"]);
    home.output(&["snapshot", "words", "words"]);
    let whole = fs::read(home.path("three")).unwrap();
    fs::write(home.path("cut"), &whole[..whole.len() - 1]).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    fs::write(home.path("damaged"), &damaged).unwrap();
    let mut future = whole;
    future[8] = 9;
    fs::write(home.path("future"), &future).unwrap();
    for (args, code, why) in [
        (&["restore", "new", "cut"][..], 2, "cut: the snapshot is cut short"),
        (&["restore", "new", "damaged"], 2, "damaged: the snapshot is damaged"),
        (&["restore", "new", "future"], 2, "snapshot of version 9, and this program knows version 1"),
        (
            &["restore", "new", "words", "--copies"],
            2,
            "--copies: what is in words (words) cannot have copies",
        ),
        (&["restore", "new", "three", "--copies"], 1, "--copies: rack `up`: "),
        (&["restore", &long, "three"], 2, "is no name"),
        (
            &["restore", "four", "three", "--replace"],
            1,
            "there is Locked, 32 B, type [u64; 4], and in the file is Locked, 24 B, type [u64; 3]",
        ),
    ] {
        let said = home.mistake(args, code);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    assert_eq!(app.names("").unwrap().len(), 3, "nothing new");
    drop(app);
    end(&home, up);
}

#[test]
fn a_full_disk_under_a_snapshot_is_an_error_and_the_older_one_stays() {
    let home = Home::new("full");
    let up = home.up(&["--nodes", "2", "--seats", "0"]);
    let mut app = attached(&home, 0);
    let region = app.named::<Region>("region").create(1 << 20).unwrap();
    home.output(&["snapshot", "region", "file"]);
    let older = fs::read(home.path("file")).unwrap();
    app.write(region.addr(), &[1; 1 << 20]).unwrap();
    // No file may become longer than 512 KiB, or 256, and nobody is killed for trying.
    let script = "trap '' XFSZ; ulimit -f 512; exec \"$0\" snapshot region \"$1\"";
    for file in ["file", "new"] {
        let mut shell = home.within(Command::new("sh"));
        let ended = shell.args(["-c", script, crate::COMMAND, file]).output().unwrap();
        let said = text(&ended.stderr);
        assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(1), String::new()), "{said}");
        assert!(said.contains(&format!("{file}: cannot be written: File too large")), "{said}");
        assert!(said.contains("make room"), "{said}");
    }
    assert_eq!(files(&home), ["file"]);
    assert!(fs::read(home.path("file")).unwrap() == older);
    home.output(&["snapshot", "region", "file"]);
    assert!(fs::read(home.path("file")).unwrap() != older);
    drop(app);
    end(&home, up);
}

#[test]
fn a_new_file_is_its_owners_and_an_older_one_keeps_who_may_read_it_also_behind_a_link() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let home = Home::new("modes");
    let up = home.up(&["--nodes", "2", "--seats", "0"]);
    attached(&home, 0).named::<Value<u64>>("value").create(1).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    home.output(&["snapshot", "value", "file"]);
    assert_eq!(mode(&home.path("file")), 0o600);
    fs::set_permissions(home.path("file"), fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink("file", home.path("link")).unwrap();
    home.output(&["snapshot", "value", "link"]);
    assert_eq!(mode(&home.path("file")), 0o644);
    assert!(fs::symlink_metadata(home.path("link")).unwrap().is_symlink());
    end(&home, up);
}

#[test]
fn a_lock_that_others_have_is_waited_for_as_long_as_was_said_and_ctrl_c_leaves_nothing() {
    let home = Home::new("held");
    let up = home.up(&["--nodes", "2", "--seats", "0"]);
    let mut app = attached(&home, 0);
    let lock = app.named::<Locked<u64>>("lock").create(1).unwrap();
    home.output(&["snapshot", "lock", "file"]);
    let guard = lock.write(&mut app).unwrap();
    for args in [&["snapshot", "lock", "file"][..], &["restore", "lock", "file", "--replace"]] {
        let said = home.mistake(&[args, &["--wait", "1"]].concat(), 1);
        assert!(said.contains("others hold \"lock\", or write it all the time, for 1 s now"), "{said}");
    }
    let waits = home.start(&["snapshot", "lock", "new", "--wait", "600"]);
    eventually("it waits", || files(&home).len() == 2);
    let ended = waits.interrupt();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert_eq!(files(&home), ["file"]);
    let waits = home.start(&["restore", "lock", "file", "--replace", "--wait", "600"]);
    thread::sleep(Duration::from_millis(500));
    let ended = waits.interrupt();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    drop(guard);
    assert_eq!(lock.read(&mut app).map(|it| *it), Ok(1));
    drop(app);
    end(&home, up);
}

#[test]
fn a_death_under_a_snapshot_is_an_error_and_leaves_nothing_and_what_was_lost_comes_back() {
    let home = Home::new("dies");
    let up = home.up(&["--nodes", "2", "--seats", "0", "--restart"]);
    let mut app = attached(&home, 1);
    let name = name_at(&app, 1, "lock");
    let lock = app.named::<Locked<u64>>(&name).create(17).unwrap();
    home.output(&["snapshot", &name, "file"]);
    let guard = lock.write(&mut app).unwrap();
    let waits = home.start(&["snapshot", &name, "new", "--wait", "600"]);
    eventually("it has begun", || files(&home).len() == 2);
    // Time to come to the lock. (If it does not, the name is lost.)
    thread::sleep(Duration::from_millis(500));
    home.kill(&["node", "--id", "1"]);
    let ended = waits.output();
    let said = text(&ended.stderr);
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(1), String::new()), "{said}");
    let whys = ["the memory of \"lock/", "the node that had what \"lock/"];
    assert!(whys.iter().any(|why| said.contains(&format!("error: rack `up`: {why}"))), "{said}");
    assert_eq!(files(&home), ["file"]);
    drop(guard);
    drop(app);
    eventually("it comes back", || home.status()["nodes"][1]["up"] == true);
    let said = home.mistake(&["snapshot", &name, "new"], 1);
    assert!(said.contains("has died, and that is lost"), "{said}");
    home.output(&["restore", &name, "file"]);
    let mut app = Rack::attach(&RackFile::read(home.rack_file()).unwrap(), NodeId(0)).unwrap().here();
    let lock = app.named::<Locked<u64>>(&name).open().unwrap();
    assert_eq!(lock.read(&mut app).map(|it| *it), Ok(17));
    drop(app);
    end(&home, up);
}

#[test]
fn what_is_restored_with_copies_outlives_its_node() {
    let home = Home::new("snapshot_copies");
    let up = home.up(&["--nodes", "3", "--seats", "0", "--copies", "2"]);
    let mut app = attached(&home, 0);
    let name = name_at(&app, 1, "value");
    app.named::<Value<u64>>(&name).create(3).unwrap();
    home.output(&["snapshot", &name, "file"]);
    let output = |args: &[&str]| {
        let mut command = home.within(Command::new(crate::COMMAND));
        let ended = command.args(args).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        (text(&ended.stdout), text(&ended.stderr))
    };
    let (_, said) = output(&["restore", &name, "file", "--replace", "--copies"]);
    assert!(said.contains("was there without copies, and has none"), "{said}");
    app.remove_name(&name).unwrap();
    let (made, _) = output(&["restore", &name, "file", "--copies"]);
    assert!(made.ends_with(": value, 8 B, with copies\n"), "{made}");
    home.kill(&["node", "--id", "1"]);
    let value = app.named::<Value<u64>>(&name).open().unwrap();
    assert_eq!(value.get(&mut app), Ok(3));
    drop(app);
    end(&home, up);
}
