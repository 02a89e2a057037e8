//! What daemons say to their operators: the right lines, when somebody joins, leaves, dies, is fenced or is refused.

use rackmem::{Discipline, NodeId, Rack, RackFile};
use serde_json::Value;

use super::rig::{Home, Running, eventually, text};

/// A rack of three nodes in shared memory, and its daemons with logs for programs: the switch first.
fn rack(home: &Home) -> (String, Vec<Running>) {
    let text = home.output(&["rack-file", "--nodes", "3", "--transport", "shm"]);
    let file = home.write("rack.toml", &text.replacen("[rack]", "[rack]\nruntime = \"run\"", 1));
    let of = |args: &[&str]| home.start(&[args, &["--log", "json", "--config", &file]].concat());
    let mut daemons = vec![of(&["switch"])];
    daemons.extend(["0", "1", "2"].map(|id| of(&["node", "--id", id])));
    let all_up = || nodes(home, &file).is_some_and(|nodes| nodes.iter().all(|node| node["up"] == true));
    eventually("all nodes are up", all_up);
    (file, daemons)
}

fn nodes(home: &Home, file: &str) -> Option<Vec<Value>> {
    let status = home.try_output(&["status", "--json", "--config", file])?;
    let status: Value = serde_json::from_str(&status).ok()?;
    status["nodes"].as_array().cloned()
}

/// Asks a daemon to end, and returns the lines of its log. Each of them is a document with all that a line must have.
fn log(daemon: Running) -> Vec<Value> {
    let said = text(&daemon.signal("TERM").output().stderr);
    let lines = said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
    let lines: Vec<Value> = lines.collect();
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(line["level"].is_string() && line["place"].is_string(), "{line}");
        assert!(line["epoch"].is_u64() && line["message"].is_string(), "{line}");
    }
    lines
}

/// The one line that begins so about this node.
fn the_line<'l>(lines: &'l [Value], message: &str, node: u64) -> &'l Value {
    let mut such = lines
        .iter()
        .filter(|line| line["node"] == node && line["message"].as_str().unwrap().starts_with(message));
    let found = such.next().unwrap_or_else(|| panic!("`{message}` about node {node} in {lines:#?}"));
    assert!(such.next().is_none(), "more than one `{message}` about node {node} in {lines:#?}");
    found
}

fn has_line(lines: &[Value], message: &str, node: u64) -> bool {
    lines.iter().any(|line| line["node"] == node && line["message"].as_str().unwrap().starts_with(message))
}

#[test]
fn a_node_that_is_killed_is_logged_with_why_and_what_died_with_it() {
    let home = Home::new("log_killed");
    let (path, mut daemons) = rack(&home);
    let file = RackFile::read(&path).unwrap();
    let mut app = Rack::attach(&file, NodeId(1)).unwrap().here();
    app.alloc(5 << 12, NodeId(1), Discipline::Coherent).unwrap();
    let only_there = app.alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    app.write_word(only_there, 1).unwrap();
    let used = || nodes(&home, &path).unwrap()[1]["counts"]["memory_live_bytes"].as_u64();
    eventually("the switch has heard of the memory that is in use", || used() >= Some(5 << 12));
    home.kill(&["node", "--id", "1"]);
    eventually("home 0 has found out", || {
        let nodes = nodes(&home, &path).unwrap();
        nodes[1]["up"] == false && nodes[0]["counts"]["lost_blocks"] == 1
    });
    daemons.remove(2);
    let mut logs: Vec<Vec<Value>> = daemons.into_iter().rev().map(log).collect();
    let switch = logs.pop().unwrap();
    for node in 0..3 {
        assert_eq!(the_line(&switch, "joined", node)["level"], "info");
    }
    let joined = the_line(&switch, "joined", 1)["epoch"].as_u64();
    let dead = the_line(&switch, "declared dead", 1);
    assert_eq!((&dead["level"], &dead["why"], &dead["up"]), (&"warn".into(), &"silent".into(), &2.into()));
    assert!(dead["epoch"].as_u64() > joined, "{dead}");
    let lost = the_line(&switch, "lost", 1);
    assert_eq!((&lost["level"], &lost["what"]), (&"error".into(), &"allocations".into()));
    assert!(lost["bytes"].as_u64() >= Some(5 << 12), "{lost}");
    let home_0 = logs.pop().unwrap();
    let lost = the_line(&home_0, "lost", 0);
    assert_eq!(
        (&lost["what"], &lost["count"], &lost["level"]),
        (&"blocks".into(), &1.into(), &"error".into())
    );
    assert_eq!(lost["epoch"], dead["epoch"]);
    assert_eq!(the_line(&home_0, "joined", 0)["place"], "node 0");
    assert!(!has_line(&logs[0], "lost", 2), "node 2 has lost nothing: {:#?}", logs[0]);
    // The others have left in order, and both sides say so.
    for node in [0, 2] {
        the_line(&switch, "left", node);
    }
    the_line(&home_0, "left", 0);
}

#[test]
fn a_node_that_was_stopped_says_that_it_was_fenced_and_comes_back() {
    let home = Home::new("log_fenced");
    let (path, mut daemons) = rack(&home);
    let up = |state: bool| nodes(&home, &path).is_some_and(|nodes| nodes[1]["up"] == state);
    let stopped = daemons.remove(2).signal("STOP");
    eventually("it is declared dead", || up(false));
    let stopped = stopped.signal("CONT");
    eventually("it is up again", || up(true));
    let (node, switch) = (log(stopped), log(daemons.remove(0)));
    assert_eq!(the_line(&node, "fenced", 1)["level"], "warn");
    the_line(&node, "joining anew", 1);
    let joins = |lines: &[Value]| {
        lines.iter().filter(|line| line["node"] == 1 && line["message"] == "joined").count()
    };
    assert_eq!((joins(&node), joins(&switch)), (2, 2));
    the_line(&switch, "declared dead", 1);
}

#[test]
fn who_has_another_key_is_refused_and_the_switch_says_so() {
    let home = Home::new("log_refused");
    let text = home.output(&["rack-file", "--nodes", "1", "--port", &super::rig::free_port().to_string()]);
    let files = ["one", "other"].map(|name| {
        home.output(&["key", home.path(&format!("{name}.key")).to_str().unwrap()]);
        let key = format!("[rack]\nruntime = \"{name}\"\nkey = \"{name}.key\"");
        home.write(&format!("{name}.toml"), &text.replacen("[rack]", &key, 1))
    });
    let switch = home.start(&["switch", "--log", "json", "--config", &files[0]]);
    let node = home.start(&["node", "--id", "0", "--log", "json", "--config", &files[1]]);
    eventually("it is refused", || {
        let status = home.try_output(&["status", "--json", "--config", &files[0]]).unwrap_or_default();
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        status["switch"]["transport"]["dropped"]["wrong_key"].as_u64() > Some(0)
    });
    let both = [log(node), log(switch)].map(|lines| {
        let refused =
            lines.into_iter().filter(|line| line["message"].as_str().unwrap().contains("is refused"));
        refused.collect::<Vec<_>>()
    });
    for (lines, peer) in both.iter().zip(["the switch", "node 0"]) {
        assert_eq!(lines.len(), 1, "one line, however many messages: {lines:#?}");
        assert_eq!((&lines[0]["peer"], &lines[0]["level"]), (&peer.into(), &"warn".into()));
        assert!(lines[0]["message"].as_str().unwrap().contains("the key differs"), "{lines:#?}");
    }
}

#[test]
fn how_much_is_logged_is_set_in_the_environment_and_a_wrong_level_is_a_mistake() {
    let home = Home::new("log_level");
    let file = home.write("rack.toml", &home.output(&["rack-file", "--nodes", "1", "--transport", "shm"]));
    let args = ["switch", "--config", &file];
    let said = |level: &str| {
        let switch = home.start_with(&args, &[("RACKMEM_LOG", level)]);
        eventually("it runs", || home.try_output(&["status", "--config", &file]).is_some());
        text(&switch.signal("TERM").output().stderr)
    };
    assert!(said("info").contains(" INFO  switch: serving; Ctrl-C ends it "));
    assert_eq!(said("warn"), "");
    let said = text(&home.start_with(&args, &[("RACKMEM_LOG", "loud")]).output().stderr);
    assert!(
        said.starts_with("error: RACKMEM_LOG=loud is no level of a log: set it to one of off, "),
        "{said}"
    );
}
