//! `rackmem drain`: a node leaves when others have what it keeps.

use rackmem::{Discipline, NodeId, Rack, RackFile};
use serde_json::Value;

use super::rig::{Home, Running, eventually, text};

/// They take a moment to copy: 20 MiB come in a second.
const BYTES: usize = 6 << 20;

/// A rack of so many nodes over shared memory, each a daemon; its file.
fn rack(home: &Home, nodes: u16, copies: u16) -> (String, Vec<Running>) {
    let written =
        home.output(&["rack-file", "--name", "lab", "--nodes", &nodes.to_string(), "--transport", "shm"]);
    let copies = format!("[rack]\nruntime = \"run\"\ncopies = {copies}\nmemory = \"16 MiB\"");
    let written: Vec<_> = written.lines().filter(|line| !line.starts_with("memory")).collect();
    let file = home.write("rack.toml", &written.join("\n").replacen("[rack]", &copies, 1));
    let mut daemons = vec![home.start(&["switch"])];
    daemons.extend((0..nodes).map(|node| home.start(&["node", "--id", &node.to_string()])));
    eventually("all are up", || {
        let up = |status: &Value| (0..nodes).all(|node| status["nodes"][usize::from(node)]["up"] == true);
        home.try_status().is_some_and(|status| up(&status))
    });
    eventually("all serve applications", || {
        let socket = |node: u16| home.path(&format!("run/node-{node}-apps.sock"));
        (0..nodes).all(|node| socket(node).exists())
    });
    (file, daemons)
}

fn end(daemons: impl IntoIterator<Item = Running>) {
    for daemon in daemons {
        assert_eq!(daemon.signal("TERM").output().status.code(), Some(0));
    }
}

#[test]
fn a_node_leaves_when_others_have_what_it_keeps_and_what_it_had_outlives_the_next_one() {
    let home = Home::new("drain");
    let (file, mut daemons) = rack(&home, 4, 2);
    let file = RackFile::read(&file).unwrap();
    let mut app = Rack::attach(&file, NodeId(0)).unwrap().here();
    let addr = app.alloc_with_copies(BYTES as u64, NodeId(2)).unwrap();
    app.write(addr, &[7; BYTES]).unwrap();
    app.sync().unwrap();
    // What has no copies holds it.
    let alone = app.alloc(64, NodeId(2), Discipline::Coherent).unwrap();
    let said = home.mistake(&["drain", "--node", "2", "--config", "rack.toml"], 1);
    assert!(said.starts_with("error: node 2 stays: ") && said.contains("--lose-the-rest"), "{said}");
    app.free(alone).unwrap();

    let drain = home.start(&["drain", "--node", "2", "--json"]);
    eventually("its state is shown", || {
        home.output(&["status"]).contains("draining") || home.status()["nodes"][2]["up"] == false
    });
    let drained = drain.output();
    let (result, said) = (text(&drained.stdout), text(&drained.stderr));
    assert_eq!(drained.status.code(), Some(0), "{said}");
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(
        (&result["command"], &result["state"], &result["on_nodes"]),
        (&"drain".into(), &"left".into(), &2.into())
    );
    assert!(said.contains("node 2 waits until ") && said.contains(" on 2 of the other nodes"), "{said}");
    // Its daemon ends by itself, with success; the node behind it, which has the other copy, dies.
    let ended = daemons.remove(3).output();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(
        text(&ended.stderr).contains("draining: others get what this node keeps"),
        "{}",
        text(&ended.stderr)
    );
    home.kill(&["node", "--id", "3"]);
    drop(daemons.pop().unwrap().output());
    let mut found = vec![0; BYTES];
    app.read(addr, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 7));
    // What the coordinator was told is so in the epoch that begins then.
    eventually("the node that has left is not up", || home.status()["nodes"][2]["up"] == false);

    // Two are left. One more may go, and says that there are too few.
    let said = home.output(&["drain", "--node", "1"]);
    assert_eq!(said, "node 1 has left; each memory with copies is on 1 of 2 nodes, for want of more\n");
    assert_eq!(daemons.pop().unwrap().output().status.code(), Some(0));
    app.read(addr, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 7));
    drop(app);

    // The last one waits for somebody to take what it keeps; told by nobody but Ctrl-C, it goes on with that.
    let drain = home.start(&["drain", "--node", "0"]);
    eventually("it drains", || !home.status()["nodes"][0]["draining"].is_null());
    let stopped = drain.interrupt();
    let said = text(&stopped.stderr);
    assert_eq!(stopped.status.code(), Some(130), "{said}");
    assert!(
        said.contains("node 0 waits: no node stays that could take") && said.contains("goes on draining"),
        "{said}"
    );
    assert!(home.output(&["status"]).contains("node 0 drains: no node stays"));
    assert_eq!(home.output(&["drain", "--node", "0", "--stop"]), "node 0 stays\n");
    eventually("it does not drain", || home.status()["nodes"][0]["draining"].is_null());
    end(daemons.into_iter().rev());
}

#[test]
fn what_cannot_be_asked_and_what_would_be_lost_is_said() {
    let home = Home::new("drain_lost");
    let (file, mut daemons) = rack(&home, 2, 1);
    let said = home.mistake(&["drain", "--node", "2"], 2);
    assert!(said.contains("error: --node 2: rack `lab` has nodes 0 to 1"), "{said}");
    let file = RackFile::read(&file).unwrap();
    let mut app = Rack::attach(&file, NodeId(0)).unwrap().here();
    let addr = app.alloc(5000, NodeId(1), Discipline::Coherent).unwrap();
    let said = home.mistake(&["drain", "--node", "1"], 1);
    assert!(said.contains("node 1 stays: 8 KiB of allocations without copies"), "{said}");
    assert!(said.contains("rack `lab` keeps no copies"), "{said}");
    assert_eq!(home.output(&["drain", "--node", "1", "--lose-the-rest"]), "node 1 has left\n");
    assert_eq!(daemons.pop().unwrap().output().status.code(), Some(0));
    assert_eq!(app.read_word(addr), Err(rackmem::Error::NodeDown { addr }));
    drop(app);
    let said = home.mistake(&["drain", "--node", "1"], 1);
    assert!(said.contains("node 1 of rack `lab` has no daemon on this machine"), "{said}");
    end(daemons.into_iter().rev());
}

#[test]
fn a_node_of_rackmem_up_that_has_left_is_not_started_again() {
    let home = Home::new("drain_up");
    let up = home.up(&["--nodes", "2", "--seats", "0", "--restart"]);
    assert_eq!(home.output(&["drain", "--node", "1"]), "node 1 has left\n");
    let incarnation = home.status()["nodes"][0]["incarnation"].clone();
    home.kill(&["node", "--id", "0"]);
    eventually("the other one comes back", || {
        home.status()["nodes"][0]["up"] == true && home.status()["nodes"][0]["incarnation"] != incarnation
    });
    assert_eq!(home.status()["nodes"][1]["up"], false);
    let ended = up.interrupt();
    assert_eq!(ended.status.code(), Some(0));
    let said = text(&ended.stderr);
    assert!(said.contains("node 1 ended with exit code 0; start it again with"), "{said}");
    home.assert_nothing_left();
}
