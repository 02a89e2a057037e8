//! Racks of processes as a shell sees them: what starts, what is said, and that nothing is left behind.

mod added;
mod attached;
mod c;
mod draining;
mod found;
mod frames;
mod listed;
mod log;
mod named;
mod named_steps;
mod names;
mod rig;
mod snapshots;
mod start;
mod storm;
mod wires;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use std::{fs, thread};

use rackmem::{Discipline, NodeId, Rack, RackFile};

use rig::{Home, eventually, free_port, page, text};

#[test]
fn a_rack_in_shared_memory_comes_up_and_ctrl_c_leaves_nothing() {
    let home = Home::new("shm");
    let up = home.up(&["--nodes", "3"]);
    let status = home.status();
    assert_eq!((&status["phase"], &status["transport"]), (&"running".into(), &"shm".into()));
    let states: Vec<_> = status["nodes"].as_array().unwrap().iter().map(|node| &node["up"]).collect();
    assert_eq!(states, [true, true, false], "the last one is left to an application");
    let ended = up.interrupt();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    home.assert_nothing_left();
}

#[test]
fn a_rack_over_udp_comes_up_and_ctrl_c_leaves_nothing() {
    let home = Home::new("udp");
    let up = home.up(&["--nodes", "2", "--seats", "0", "--transport", "udp"]);
    let status = home.status();
    assert_eq!((&status["phase"], &status["transport"]), (&"running".into(), &"udp".into()));
    assert!(status["nodes"].as_array().unwrap().iter().all(|node| node["up"] == true));
    assert_eq!(up.interrupt().status.code(), Some(0));
    home.assert_nothing_left();
}

#[test]
fn racks_of_several_names_run_at_a_time() {
    let home = Home::new("several");
    let racks = ["one", "other"].map(|name| home.up(&["--nodes", "2", "--name", name]));
    for name in ["one", "other"] {
        let status = home.output(&["status", "--rack", name]);
        assert!(status.contains(name), "{status}");
    }
    for name in ["", "../up", "a-name-of-more-than-32-characters-"] {
        let said = home.mistake(&["up", "--name", name], 2);
        assert!(said.contains("use 1 to 32 letters, digits and -"), "{said}");
    }
    for (timeout, wants) in [("3", "write 3s or 400ms"), ("1ms", "write 50 ms to 10 min")] {
        let said = home.mistake(&["up", "--timeout", timeout], 2);
        assert!(said.contains(wants), "{said}");
    }
    for rack in racks {
        assert_eq!(rack.interrupt().status.code(), Some(0));
    }
    home.assert_nothing_left();
}

#[test]
fn a_rack_whose_starter_is_killed_ends_and_leaves_nothing() {
    let home = Home::new("orphans");
    let up = home.up(&["--nodes", "2"]);
    up.signal("KILL");
    eventually("the children end and take the files along", || home.is_clean());
}

#[test]
fn an_application_joins_as_the_node_that_has_no_process() {
    let home = Home::new("join");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let rack = Rack::join(&file, NodeId(2)).unwrap();
    let mut here = rack.here();
    let addr = here.alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    here.write_word(addr, 42).unwrap();
    assert_eq!(here.read_word(addr).unwrap(), 42);
    eventually("the switch has heard of the node's accesses", || {
        let counts = &home.status()["nodes"][2]["counts"];
        counts["misses"].as_u64() > Some(0)
    });
    assert!(rack.leave(Duration::from_secs(10)), "what it had cached has gone home");
    drop((here, rack));
    eventually("the node is seen to have left", || home.status()["nodes"][2]["up"] == false);
    assert_eq!(home.status()["membership"]["ended"]["left"], 1);
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_node_that_is_killed_is_reported_with_how_to_start_it_again() {
    let home = Home::new("killed");
    let up = home.up(&["--nodes", "3"]);
    home.kill(&["node", "--id", "1"]);
    eventually("the switch has declared it dead", || home.status()["nodes"][1]["up"] == false);
    let ended = up.interrupt();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "the others went on: {said}");
    assert!(
        said.contains("node 1 was killed by signal 9; start it again with: rackmem node --config "),
        "{said}"
    );
    home.assert_nothing_left();
}

#[test]
fn with_restart_a_node_that_is_killed_comes_back_as_a_new_incarnation() {
    let home = Home::new("restart");
    let up = home.up(&["--nodes", "2", "--seats", "0", "--restart"]);
    let incarnation = |status: &serde_json::Value| status["nodes"][1]["incarnation"].as_u64().unwrap();
    let first = incarnation(&home.status());
    home.kill(&["node", "--id", "1"]);
    eventually("the node is up in another incarnation", || {
        let status = home.status();
        status["nodes"][1]["up"] == true && incarnation(&status) > first
    });
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn with_restart_a_switch_that_is_killed_comes_back_to_the_same_incarnations() {
    let home = Home::new("restart_switch");
    let up = home.up(&["--nodes", "2", "--seats", "0", "--restart"]);
    let before = home.status();
    home.kill(&["switch"]);
    eventually("the rack runs again, in a later epoch", || {
        home.try_status().is_some_and(|status| {
            status["phase"] == "running" && status["epoch"].as_u64() > before["epoch"].as_u64()
        })
    });
    let incarnations = |status: &serde_json::Value| {
        status["nodes"].as_array().unwrap().iter().map(|node| node["incarnation"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(incarnations(&home.status()), incarnations(&before), "no node has died");
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_rack_of_a_given_file_comes_up_and_the_file_stays() {
    let home = Home::new("given");
    let file = home.write(
        "lab.toml",
        &home.output(&["rack-file", "--name", "lab", "--nodes", "2", "--transport", "shm"]),
    );
    let up = home.up(&["--config", &file]);
    let status = home.output(&["status", "--config", &file]);
    assert!(status.starts_with("rack `lab` over shm: running, 2 of 2 nodes up"), "{status}");
    up.interrupt();
    assert!(fs::exists(&file).unwrap());
    fs::remove_file(&file).unwrap();
    home.assert_nothing_left();
}

#[test]
fn a_watched_status_ends_with_ctrl_c_as_a_success() {
    let home = Home::new("watch");
    let up = home.up(&["--nodes", "2"]);
    let watch = home.start(&["status", "--watch"]);
    // Longer than one look takes: it must not end by itself.
    thread::sleep(Duration::from_millis(1500));
    let ended = watch.interrupt();
    let tables = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(tables.matches("rack `up` over shm: running, 1 of 2 nodes up").count() >= 1, "{tables}");
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_second_rack_without_a_file_is_refused_and_the_first_goes_on() {
    let home = Home::new("second");
    let up = home.up(&["--nodes", "2"]);
    let said = home.mistake(&["up"], 1);
    assert!(said.contains("`rackmem up` runs already") && said.contains("--config"), "{said}");
    assert_eq!(home.status()["phase"], "running");
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_second_process_of_a_node_is_refused() {
    let home = Home::new("second_node");
    let up = home.up(&["--nodes", "2"]);
    let file = home.rack_file();
    let said = home.mistake(&["node", "--id", "0", "--config", file.to_str().unwrap()], 1);
    assert!(said.contains("node 0 of rack `up`") && said.contains("already"), "{said}");
    assert_eq!(home.status()["nodes"][0]["up"], true);
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn metrics_are_answered_over_http_where_they_were_asked_for() {
    let home = Home::new("metrics");
    let address = format!("127.0.0.1:{}", free_port());
    let up = home.up(&["--nodes", "2", "--metrics", &address]);
    let page = |path: &str| page(&address, path);
    eventually("the nodes have told their counts", || page("/metrics").contains("rackmem_node_hits"));
    let metrics = page("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    for line in [
        "# TYPE rackmem_node_up gauge",
        "rackmem_node_up{node=\"0\"} 1",
        "rackmem_node_up{node=\"1\"} 0",
        "rackmem_rack_running 1",
        "# TYPE rackmem_transport_sent counter",
        "rackmem_transport_dropped_total{place=\"switch\",cause=\"wrong_key\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let status = page("/status");
    assert!(status.contains("\"phase\":\"running\"") && status.contains("\"file\":null"), "{status}");
    assert!(page("/etc/passwd").starts_with("HTTP/1.1 404 "));
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn all_metrics_are_described_in_the_documentation() {
    let home = Home::new("documented");
    let address = format!("127.0.0.1:{}", free_port());
    let up = home.up(&["--nodes", "2", "--metrics", &address]);
    let mut metrics = String::new();
    eventually("the nodes have told their counts", || {
        metrics = page(&address, "/metrics");
        metrics.contains("rackmem_node_hits")
    });
    up.interrupt();
    let documentation =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/running.md")).unwrap();
    let names: Vec<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(names.len() > 20, "{metrics}");
    for name in names {
        assert!(documentation.contains(&format!("`{name}`")), "{name} is not described");
    }
}

#[test]
fn a_wrong_rack_file_is_a_usage_mistake_of_every_command() {
    let home = Home::new("wrong");
    let file = home.write(
        "rack.toml",
        "[rack]\nname = \"lab\"\ntransport = \"shm\"\nchace = \"1 MiB\"\n[[node]]\nid = 0\n",
    );
    for command in [&["switch"][..], &["node", "--id", "0"], &["status"], &["up"]]
        .map(|args| [args, &["--config", &file]].concat())
    {
        let said = home.mistake(&command, 2);
        let expected = format!("error: {file}:4: `chace` is not a key of [rack]: did you mean `cache`?\n");
        assert_eq!(said, expected, "{command:?}");
    }
}

#[test]
fn a_node_that_the_rack_does_not_have_is_a_usage_mistake() {
    let home = Home::new("no_such_node");
    let file = home.write("rack.toml", &home.output(&["rack-file", "--nodes", "2"]));
    let said = home.mistake(&["node", "--id", "2", "--config", &file], 2);
    assert!(said.contains("--id 2") && said.contains("has nodes 0 to 1"), "{said}");
}

#[test]
fn an_address_for_a_switch_in_shared_memory_is_refused() {
    let home = Home::new("no_address");
    let file = home.write("rack.toml", &home.output(&["rack-file", "--transport", "shm"]));
    let said = home.mistake(&["switch", "--listen", "127.0.0.1:7400", "--config", &file], 1);
    assert!(said.contains("127.0.0.1:7400") && said.contains("shared memory"), "{said}");
}

#[test]
fn a_switch_that_others_could_reach_is_refused_without_a_key() {
    let home = Home::new("no_key");
    let file = home.write("rack.toml", &home.output(&["rack-file"]));
    let said = home.mistake(&["switch", "--listen", "0.0.0.0:0", "--config", &file], 1);
    assert!(said.contains("0.0.0.0:0") && said.contains("key"), "{said}");
}

#[test]
fn the_status_of_a_rack_that_is_not_there_says_how_to_start_it() {
    let home = Home::new("not_there");
    let file = home.write("rack.toml", &home.output(&["rack-file"]));
    let said = home.mistake(&["status", "--config", &file], 1);
    for words in [
        "nothing answers on this machine",
        "status.sock",
        &format!("rackmem switch --config {file}"),
        "rackmem up",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[test]
fn a_status_that_is_to_come_from_another_machine_names_the_address() {
    let home = Home::new("elsewhere");
    let address = format!("127.0.0.1:{}", free_port());
    let text = home
        .output(&["rack-file"])
        .replace("# metrics = \"127.0.0.1:9400\"", &format!("metrics = \"{address}\""));
    let file = home.write("rack.toml", &text);
    let said = home.mistake(&["status", "--config", &file], 1);
    assert!(said.contains(&format!("nothing answers at http://{address}/status")), "{said}");
}

#[test]
fn a_node_says_within_three_seconds_whom_it_waits_for_and_where_and_ends_when_it_is_told_to() {
    let home = Home::new("waiting");
    let file = home.write("rack.toml", &home.output(&["rack-file", "--transport", "shm"]));
    let node = home.start(&["node", "--id", "0", "--config", &file]);
    eventually("the node is there", || home.find(&["node", "--id", "0"]).is_some());
    thread::sleep(Duration::from_secs(3));
    let ended = node.signal("TERM").output();
    let said = text(&ended.stderr);
    let socket = home.path("rackmem-rack/switch.sock");
    let expected = format!(" INFO  node 0: waiting for the switch at {}: not heard", socket.display());
    assert!(said.contains(&expected) && said.lines().count() == 1, "{said}");
    assert_eq!(ended.status.code(), Some(0));
    fs::remove_file(&file).unwrap();
    home.assert_nothing_left();
}

#[test]
fn daemons_started_one_by_one_are_a_rack() {
    let home = Home::new("one_by_one");
    let file = home.write("rack.toml", &home.output(&["rack-file", "--nodes", "2", "--transport", "shm"]));
    let switch = home.start(&["switch", "--config", &file]);
    let nodes = ["0", "1"].map(|id| home.start(&["node", "--id", id, "--config", &file]));
    let up = || {
        let status = home.try_output(&["status", "--json", "--config", &file])?;
        let status: serde_json::Value = serde_json::from_str(&status).ok()?;
        Some(status["nodes"].as_array()?.iter().all(|node| node["up"] == true))
    };
    eventually("both nodes are up", || up() == Some(true));
    for daemon in nodes.into_iter().chain([switch]) {
        let ended = daemon.signal("TERM").output();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    }
    fs::remove_file(&file).unwrap();
    home.assert_nothing_left();
}

#[test]
fn a_node_with_other_blocks_ends_and_says_why_and_so_does_the_switch() {
    let home = Home::new("differs");
    let text_of_file = home.output(&["rack-file", "--nodes", "2", "--transport", "shm"]);
    let file = home.write("rack.toml", &text_of_file);
    let block = "# block = \"4 KiB\"";
    assert!(text_of_file.contains(block));
    let other = home.write("other.toml", &text_of_file.replace(block, "block = \"8 KiB\""));
    let switch = home.start(&["switch", "--config", &file]);
    let node = home.start(&["node", "--id", "0", "--config", &file]);
    let status = || -> Option<serde_json::Value> {
        serde_json::from_str(&home.try_output(&["status", "--json", "--config", &file])?).ok()
    };
    eventually("node 0 is up", || status().is_some_and(|status| status["nodes"][0]["up"] == true));
    let said = home.mistake(&["node", "--id", "1", "--config", &other], 1);
    assert!(said.starts_with("error: node 1 of rack `rack`: the switch at "), "{said}");
    let instead = "give both the same rack file";
    assert!(said.contains("`block` is 8 KiB here and 4 KiB there") && said.contains(instead), "{said}");
    let now = status().unwrap();
    assert_eq!((&now["nodes"][1]["incarnation"], &now["nodes"][0]["up"]), (&0.into(), &true.into()));
    assert_eq!(node.signal("TERM").output().status.code(), Some(0));
    let said = text(&switch.signal("TERM").output().stderr);
    let line = said.lines().find(|line| line.contains(" WARN  switch: node 1 at ")).unwrap_or(&said);
    assert!(line.contains("`block` is 4 KiB here and 8 KiB there") && line.contains(instead), "{said}");
    for file in [file, other] {
        fs::remove_file(file).unwrap();
    }
    home.assert_nothing_left();
}

#[test]
fn a_key_is_written_for_its_owner_only_and_never_over_another() {
    let home = Home::new("key");
    let file = home.path("rack.key");
    home.output(&["key", file.to_str().unwrap()]);
    let key = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(key.trim_end().len() == 64 && key.trim_end().bytes().all(|digit| digit.is_ascii_hexdigit()));
    let said = home.mistake(&["key", file.to_str().unwrap()], 1);
    assert!(said.contains("rack.key") && said.contains("exists"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), key);
}

#[test]
fn no_rack_file_is_written_with_a_name_that_cannot_be() {
    let said = Home::new("name").mistake(&["rack-file", "--name", "my lab"], 2);
    assert!(said.contains("`my lab` cannot be a rack's name"), "{said}");
}

#[test]
fn a_rack_file_for_several_machines_names_them_and_asks_for_a_key() {
    let home = Home::new("machines");
    let text = home.output(&["rack-file", "--address", "10.0.0.1,10.0.0.2,10.0.0.3"]);
    home.output(&["key", home.path("rack.key").to_str().unwrap()]);
    let rack = RackFile::parse(&home.path("rack.toml"), &text).unwrap();
    assert_eq!(rack.config.nodes, 2);
    fs::remove_file(home.path("rack.key")).unwrap();
    assert!(RackFile::parse(&home.path("rack.toml"), &text).is_err(), "there is no key file any more");
}

#[test]
fn copies_that_are_missing_are_told_until_they_are_made() {
    let home = Home::new("copies");
    let written = home.output(&["rack-file", "--name", "lab", "--nodes", "3", "--transport", "shm"]);
    let file = home.write("lab.toml", &written.replace("[rack]\n", "[rack]\ncopies = 2\n"));
    let address = format!("127.0.0.1:{}", free_port());
    let up = home.up(&["--config", &file, "--metrics", &address]);
    let status = || home.output(&["status", "--config", &file]);
    assert!(status().contains("memories with copies: all 3 are on 2 nodes\n"), "{}", status());
    home.kill(&["node", "--id", "1"]);
    let told = |line: &str| {
        eventually(line, || status().contains(line));
    };
    // Node 2 gets what was on nodes 0 and 1, and node 0 what was on nodes 1 and 2; there is nothing in it.
    told("memories with copies: all 3 are on 2 nodes\n");
    eventually("metrics say so, too", || {
        page(&address, "/metrics").contains("rackmem_memory_copies_missing 0\n")
    });
    home.kill(&["node", "--id", "2"]);
    told("  that near node 0: on 0; there is no node more\n");
    told("memories with copies: 0 of 3 are on 2 nodes, 3 copies are missing");
    eventually("metrics say so, too", || {
        page(&address, "/metrics").contains("rackmem_memory_copies_missing 3\n")
    });
    up.interrupt();
    fs::remove_file(&file).unwrap();
    home.assert_nothing_left();
}
