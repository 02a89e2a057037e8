//! `rackmem names`, and what `rackmem status` and metrics say of locks that have names.

use std::time::Duration;
use std::{fs, thread};

use rackmem::{Chains, ChainsConfig, Locked, NodeHandle, NodeId, Rack, RackFile, Words};
use serde_json::Value;

use super::rig::{Home, eventually, free_port, page, text};

fn attached(file: &RackFile, node: u16) -> NodeHandle {
    let mut found = None;
    eventually("the node serves", || {
        found = Rack::attach(file, NodeId(node)).ok();
        found.is_some()
    });
    found.unwrap().here()
}

fn names(home: &Home, args: &[&str]) -> Vec<Value> {
    let shown = home.output(&[&["names", "--json"], args].concat());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["command"], &shown["rack"]), (&"names".into(), &"up".into()));
    shown["names"].as_array().unwrap().clone()
}

/// The file of a rack in the folder of the test, whose sockets this process finds, too.
fn rack_file(home: &Home, nodes: &str) -> String {
    let text = home.output(&["rack-file", "--name", "alone", "--nodes", nodes, "--transport", "shm"]);
    home.write("rack.toml", &text.replacen("[rack]", "[rack]\nruntime = \"run\"", 1))
}

/// The lock with this name, as `rackmem status` shows it.
fn lock(home: &Home, name: &str) -> Value {
    let status = home.status();
    assert_eq!(status["locks_unknown"], Value::Null);
    let mut locks = status["locks"].as_array().unwrap().iter();
    locks.find(|lock| lock["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn the_names_of_a_rack_that_runs_here_are_listed_with_what_they_are_until_they_are_removed() {
    let home = Home::new("listed");
    let said = home.mistake(&["names"], 1);
    assert!(said.starts_with("error: no rack runs on this machine"), "{said}");
    let up = home.up(&["--nodes", "3"]);
    assert_eq!(
        home.output(&["names"]),
        "nothing has a name in rack `up`\nnot up, and without names that could be listed: node 2\n"
    );
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut app = attached(&file, 1);
    let stems = |stem: &str| {
        // Node 2 has no process here, and keeps no names.
        let mut all = (0..).map(|number| format!("{stem}/{number}"));
        let name = all.find(|name| app.home_of_name(name) != NodeId(2)).unwrap();
        (app.home_of_name(&name).0, name)
    };
    let [(home_of_quota, quota), (home_of_hits, hits)] = [stems("quota \"x\""), stems("hits")];
    app.named::<Locked<[u64; 3]>>(&quota).create([1, 2, 3]).unwrap();
    app.named::<Words<u64>>(&hits).tag("hits", 4).create(16).unwrap();
    app.named::<Words<u64>>(&hits).tag("hits", 4).open().unwrap();

    let all = names(&home, &[]);
    assert_eq!(all.iter().map(|name| &name["name"]).collect::<Vec<_>>(), [&*hits, &*quota]);
    let expected = serde_json::json!({
        "discipline": "Word", "tag": "hits", "version": 4, "bytes": 8, "count": 16, "home": home_of_hits, "maker": 1, "opened": 1
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&all[0][key], value, "{key} of {}", all[0]);
    }
    assert!(all[0]["incarnation"].as_u64() > Some(0) && all[0]["number"].as_u64() > Some(0), "{}", all[0]);
    assert_eq!((&all[1]["tag"], &all[1]["bytes"]), (&"[u64; 3]".into(), &40.into()));
    assert_eq!(all[1]["home"], home_of_quota);
    assert_eq!(names(&home, &["hi"]).len(), 1);
    assert!(names(&home, &["other"]).is_empty());
    let table = home.output(&["names", "--config", home.rack_file().to_str().unwrap()]);
    for shown in [&*hits, &*quota, "hits, version 4", "16 of 8 B", "Locked", "[u64; 3]"] {
        assert!(table.contains(shown), "{shown} in {table}");
    }
    app.remove_name(&hits).unwrap();
    assert_eq!(names(&home, &[]).len(), 1);

    let long = "x".repeat(300);
    for wrong in ["a\nb", &*long] {
        let said = home.mistake(&["names", wrong], 2);
        assert!(
            said.starts_with("error: no name begins with \"") && said.contains("1 to 255 bytes"),
            "{said}"
        );
    }
    drop(app);
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn names_of_a_rack_with_copies_are_listed_when_the_node_is_killed_that_kept_them() {
    let home = Home::new("listed_copies");
    let up = home.up(&["--nodes", "4", "--copies", "2", "--restart"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut app = attached(&file, 1);
    let mut all = (0..).map(|number| format!("quota/{number}"));
    let quota = all.find(|name| app.home_of_name(name) == NodeId(0)).unwrap();
    app.named::<rackmem::Value<u64>>(&quota).with_copies().create(7).unwrap();
    let users = all.find(|name| app.home_of_name(name) == NodeId(0)).unwrap();
    let config = ChainsConfig::at(NodeId(0), 64 << 10);
    let mut store = app.named::<Chains>(&users).with_copies().create(config).unwrap();
    store.put(&mut app, 1, b"ann").unwrap();
    let listed = || names(&home, &[]).into_iter().map(|name| (name["name"].clone(), name["copies"].clone()));
    let both = || [&quota, &users].map(|name| (name.as_str().into(), true.into()));
    assert!(listed().eq(both()));
    let table = home.output(&["names"]);
    assert_eq!(table.matches(" 0, with copies ").count(), 2, "{table}");
    assert!(!table.contains("not up"), "{table}");
    home.kill(&["node", "--id", "0"]);
    assert_eq!(app.named::<rackmem::Value<u64>>(&quota).open().unwrap().get(&mut app), Ok(7));
    let (mut same, mut found) = (app.named::<Chains>(&users).open().unwrap(), Vec::new());
    assert!(same.get(&mut app, 1, &mut found).unwrap() && found == b"ann");
    same.put(&mut app, 2, b"bob").unwrap();
    assert!(store.get(&mut app, 2, &mut found).unwrap() && found == b"bob", "opened before, it goes on");
    assert!(listed().eq(both()));
    eventually("node 2 has it, too", || {
        names(&home, &[])[0]["kept"]["by"].as_array().is_some_and(|by| by.len() == 2)
    });
    drop(app);
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn of_a_name_whose_copies_are_missing_that_is_told() {
    let home = Home::new("listed_missing");
    let up = home.up(&["--nodes", "3", "--copies", "2"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut app = attached(&file, 0);
    app.named::<rackmem::Value<u64>>("quota").with_copies().create(7).unwrap();
    let listed = || names(&home, &[])[0].clone();
    assert_eq!((&listed()["kept"]["by"].as_array().unwrap().len(), &listed()["kept"]["of"]), (&2, &2.into()));
    // There are two nodes, the third is for an application; then there is one.
    home.kill(&["node", "--id", "1"]);
    eventually("one copy is missing", || listed()["kept"]["by"] == serde_json::json!([0]));
    let table = home.output(&["names"]);
    assert!(table.contains(", on 1 of 2 nodes"), "{table}");
    drop(app);
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_rack_without_a_daemon_on_this_machine_cannot_be_asked_for_names_and_says_so() {
    let home = Home::new("no_daemon");
    let path = rack_file(&home, "1");
    let switch = home.start(&["switch", "--config", &path]);
    eventually("it answers", || home.try_output(&["status", "--config", &path]).is_some());
    for args in [&["names"][..], &["names", "--config", &path]] {
        let said = home.mistake(args, 1);
        let why = "error: the names of rack `alone` are not known: no node of the rack runs as a daemon on this machine";
        assert!(said.contains(why) && said.contains("rackmem node --id N"), "{said}");
    }
    // An application that is the node shows no names to others.
    let joined = Rack::join(&RackFile::read(&path).unwrap(), NodeId(0)).unwrap();
    eventually("it is up", || home.status()["nodes"][0]["up"] == true);
    let status = home.status();
    assert!(status["locks_unknown"].as_str().unwrap().starts_with("no node of the rack runs as a daemon"));
    assert!(home.output(&["status"]).contains("locks that have names: not known: no node"));
    drop(joined);
    assert_eq!(switch.signal("TERM").output().status.code(), Some(0));
    fs::remove_file(path).unwrap();
}

#[test]
fn a_stopped_daemon_does_not_keep_whoever_asks_for_long() {
    let home = Home::new("asleep");
    let up = home.up(&["--nodes", "2"]);
    eventually("it can be asked", || home.try_output(&["names"]).is_some());
    let daemon = home.find(&["node", "--id", "0"]).unwrap();
    crate::shell::signal("-STOP", daemon);
    let began = std::time::Instant::now();
    let said = home.mistake(&["names"], 1);
    assert!(said.contains("are not known: no"), "{said}");
    assert!(home.output(&["status"]).starts_with("rack `up` over shm"));
    assert!(began.elapsed() < Duration::from_secs(60));
    crate::shell::signal("-CONT", daemon);
    up.interrupt();
}

#[test]
fn of_a_stopped_daemon_and_one_that_serves_the_second_answers_also_for_who_asks_over_http() {
    let home = Home::new("one_asleep");
    let address = format!("127.0.0.1:{}", free_port());
    let up = home.up(&["--nodes", "3", "--metrics", &address]);
    let mut app = attached(&RackFile::read(home.rack_file()).unwrap(), 1);
    let name = (0..).map(|number| format!("lock/{number}")).find(|name| app.home_of_name(name) == NodeId(1));
    let name = name.unwrap();
    app.named::<Locked<u64>>(&name).create(1).unwrap();
    let daemon = home.find(&["node", "--id", "0"]).unwrap();
    crate::shell::signal("-STOP", daemon);
    // The other one waits for it until it is declared dead.
    eventually("the locks are known", || {
        let status = home.status();
        assert_eq!(status["file"], home.rack_file().to_str().unwrap());
        status["locks_unknown"].is_null() && status["locks"][0]["name"] == *name
    });
    assert_eq!(names(&home, &[]).len(), 1);
    let status = page(&address, "/status");
    assert!(status.contains(&format!("\"locks\":[{{\"name\":\"{name}\"")), "{status}");
    assert!(status.contains("\"file\":null") && status.contains("\"locks_unknown\":null"), "{status}");
    crate::shell::signal("-CONT", daemon);
    drop(app);
    up.interrupt();
}

#[test]
fn status_and_metrics_say_who_holds_a_named_lock_who_waits_and_for_how_long() {
    const HELD: Duration = Duration::from_millis(300);
    let home = Home::new("watched");
    let addresses = [0, 1].map(|_| format!("127.0.0.1:{}", free_port()));
    let [first, second] = &addresses;
    let path = rack_file(&home, "2");
    let switch = home.start(&["switch", "--config", &path]);
    let nodes = [("0", first), ("1", second)]
        .map(|(id, at)| home.start(&["node", "--id", id, "--config", &path, "--metrics", at]));
    let file = RackFile::read(&path).unwrap();
    let (mut here, mut there) = (attached(&file, 0), attached(&file, 1));
    let made = here.named::<Locked<u64>>("a \"lock\\").create(1).unwrap();
    let same = there.named::<Locked<u64>>("a \"lock\\").open().unwrap();
    let name = "a \"lock\\";
    drop(made.write(&mut here).unwrap());
    let guard = same.write(&mut there).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| *made.write(&mut here).unwrap() += 1);
        eventually("it is seen that somebody waits", || {
            // The switch may have heard of the nodes only just now.
            let lock = lock(&home, name);
            lock["writer"] == 1 && lock["waiting"]["0"] == 1
        });
        let table = home.output(&["status"]);
        assert!(table.contains("the busiest 1 of 1 locks") && table.contains("node 1 writes"), "{table}");
        assert!(
            page(first, "/metrics").contains("rackmem_lock_waiting{node=\"0\",name=\"a \\\"lock\\\\\"} 1\n")
        );
        assert!(
            page(second, "/metrics").contains("rackmem_lock_writers{node=\"1\",name=\"a \\\"lock\\\\\"} 1\n")
        );
        thread::sleep(HELD);
        drop(guard);
    });
    let lock = lock(&home, name);
    assert_eq!(
        (&lock["writer"], &lock["kept_by"], &lock["writes"]),
        (&Value::Null, &0.into(), &3.into()),
        "{lock}"
    );
    let long = HELD.as_nanos() as u64;
    for times in ["waits", "holds"] {
        // Whoever looked took a while, too.
        let longest = lock[times]["buckets"].as_array().unwrap().last().unwrap()["at_most_ns"].as_u64();
        assert!(longest.is_none_or(|most| most >= long), "{lock}");
        assert!(lock[times]["sum_ns"].as_u64() < Some(100 * long), "{lock}");
    }
    let page = page(first, "/metrics");
    let labels = "{node=\"0\",name=\"a \\\"lock\\\\\"";
    for line in [
        "# TYPE rackmem_lock_wait_seconds histogram\n".to_owned(),
        format!("rackmem_lock_wait_seconds_bucket{{le=\"+Inf\",{}", &labels[1..]),
        format!("rackmem_lock_wait_seconds_count{labels}}} "),
        format!("rackmem_lock_hold_seconds_count{labels}}} "),
        format!("rackmem_lock_waiting{labels}}} 0\n"),
    ] {
        assert!(page.contains(&line), "{line} in {page}");
    }
    drop((here, there));
    for daemon in nodes.into_iter().chain([switch]) {
        let ended = daemon.signal("TERM").output();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    }
}
