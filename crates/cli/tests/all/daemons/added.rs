//! A node is appended to the rack file, and joins the rack that runs.

use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use rackmem::{Discipline, NodeId, Rack, RackFile, Value};
use serde_json::Value as Json;

use super::rig::{Home, Running, eventually, free_port, text};

fn is_up(status: &Json, node: usize) -> bool {
    status["nodes"][node]["up"] == true
}

fn await_up(home: &Home, nodes: usize) {
    let all = |status: &Json| (0..nodes).all(|node| is_up(status, node));
    eventually("all are up", || home.try_status().is_some_and(|status| all(&status)));
}

/// A handle of an application, when the daemon serves it.
fn attach(file: &str, node: u16) -> rackmem::NodeHandle {
    let file = RackFile::read(file).expect("a rack file");
    let mut rack = None;
    eventually("it serves applications", || {
        rack = Rack::attach(&file, NodeId(node)).ok();
        rack.is_some()
    });
    rack.expect("as was waited for").here()
}

fn start(home: &Home, nodes: u16) -> Vec<Running> {
    let mut daemons = vec![home.start(&["switch"])];
    daemons.extend((0..nodes).map(|node| home.start(&["node", "--id", &node.to_string()])));
    await_up(home, nodes.into());
    daemons
}

fn end(daemons: impl IntoIterator<Item = Running>) {
    for daemon in daemons {
        let ended = daemon.signal("TERM").output();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    }
}

#[test]
fn a_node_that_is_appended_to_the_switchs_file_joins_the_rack_that_runs() {
    let home = Home::new("added");
    let written = home.output(&["rack-file", "--name", "lab", "--nodes", "3", "--transport", "shm"]);
    let settings = "[rack]\nruntime = \"run\"\ncopies = 2\nmemory = \"16 MiB\"";
    let written: Vec<_> = written.lines().filter(|line| !line.starts_with("memory")).collect();
    let written = written.join("\n").replacen("[rack]", settings, 1);
    let file = home.write("rack.toml", &written);
    let longer = home.write("longer.toml", &format!("{written}\n[[node]]\nid = 3\n"));
    let mut daemons = start(&home, 3);
    let said: Arc<Mutex<String>> = Arc::default();
    let (lines, saying) = (BufReader::new(daemons[0].errors()).lines(), Arc::clone(&said));
    thread::spawn(move || {
        lines.map_while(Result::ok).for_each(|line| saying.lock().unwrap().push_str(&line))
    });
    let says = |what: &str| eventually(what, || said.lock().unwrap().contains(what));

    // It calls, and the switch's file does not have it.
    let added = home.start(&["node", "--id", "3", "--config", "longer.toml"]);
    says("node 3 wants to join, and rack.toml does not list it: append its [[node]] to let it in");
    // It says so, too, when its first attempt is over.
    thread::sleep(Duration::from_secs(4));
    let mut old = attach(&file, 0);
    let given = old.alloc_with_copies(64, NodeId(2)).unwrap();
    old.write_word(given, 7).unwrap();
    old.sync().unwrap();
    // Nor may anything else be different there.
    let other = written.replace("16 MiB", "32 MiB");
    fs::write(home.path("rack.toml"), format!("{other}\n[[node]]\nid = 3\n")).unwrap();
    says("rack.toml has changed, and that would take a new rack: `memory` is 16 MiB here and 32 MiB there");
    assert!(!is_up(&home.status(), 3));
    fs::copy(home.path("longer.toml"), home.path("rack.toml")).unwrap();
    await_up(&home, 4);

    // Its memory is the rack's, and the other way round; what has a name has it there, too.
    let mut new = attach(&longer, 3);
    assert_eq!((old.nodes(), new.nodes()), (3, 3), "programs place data by what the rack began with");
    let addr = old.alloc(64, NodeId(3), Discipline::Coherent).unwrap();
    old.write_word(addr, 8).unwrap();
    assert_eq!((new.read_word(addr), new.read_word(given)), (Ok(8), Ok(7)));
    for number in 0..8 {
        let name = format!("of node 3, {number}");
        new.named::<Value<u64>>(&name).create(number).unwrap();
        assert_eq!(old.named::<Value<u64>>(&name).open().unwrap().get(&mut old), Ok(number));
    }
    let near = new.alloc_with_copies(64, NodeId(3)).unwrap();
    new.write_word(near, 9).unwrap();
    new.sync().unwrap();
    // Nobody has heard of node 4.
    assert!(matches!(old.alloc(8, NodeId(4), Discipline::Coherent), Err(rackmem::Error::NoSuchNode { .. })));

    // It keeps copies: of the memory near node 2 it has one, and serves it when that node is gone.
    let has = |status: &Json| {
        let memory = status["memories"].as_array().unwrap().iter().find(|it| it["near"] == 2).unwrap();
        memory["kept_by"].as_array().unwrap().contains(&3.into())
    };
    eventually("it has copies", || has(&home.status()));
    home.kill(&["node", "--id", "2"]);
    drop(daemons.pop().unwrap().output());
    assert_eq!((old.read_word(given), new.read_word(near)), (Ok(7), Ok(9)));

    // A switch that is started anew knows it, as it knows the others.
    home.kill(&["switch"]);
    drop(daemons.remove(0).output());
    says("the rack file lists more nodes");
    fs::write(home.path("rack.toml"), &written).unwrap();
    daemons.insert(0, home.start(&["switch"]));
    eventually("it is still there", || home.try_status().is_some_and(|status| is_up(&status, 3)));
    assert_eq!((old.read_word(addr), new.read_word(given)), (Ok(8), Ok(7)));
    drop((old, new));
    let ended = added.signal("TERM").output();
    assert_eq!(ended.status.code(), Some(0));
    let told = "the switch's rack file has no node 3: append its [[node]] there, too";
    assert_eq!(text(&ended.stderr).matches(told).count(), 1, "{}", text(&ended.stderr));
    end(daemons.into_iter().rev());
}

#[test]
fn over_udp_places_that_do_not_know_a_node_find_it_where_it_speaks_from() {
    let home = Home::new("added_udp");
    let ports: Vec<u16> = (0..5).map(|_| free_port()).collect();
    let table = |node: usize| format!("[[node]]\nid = {node}\nlisten = \"127.0.0.1:{}\"\n", ports[1 + node]);
    let written = format!(
        "[rack]\nname = \"lab\"\ntransport = \"udp\"\nruntime = \"run\"\nmemory = \"16 MiB\"\n[switch]\nlisten = \"127.0.0.1:{}\"\n{}{}",
        ports[0],
        table(0),
        table(1)
    );
    let file = home.write("rack.toml", &written);
    let longer = home.write("longer.toml", &format!("{written}{}", table(2)));
    let mut daemons = start(&home, 2);
    fs::copy(home.path("longer.toml"), home.path("rack.toml")).unwrap();
    let added = home.start(&["node", "--id", "2", "--config", "longer.toml"]);
    await_up(&home, 3);
    let (mut old, mut new) = (attach(&file, 1), attach(&longer, 2));
    let there = old.alloc(64, NodeId(2), Discipline::Coherent).unwrap();
    let here = new.alloc(64, NodeId(1), Discipline::Coherent).unwrap();
    for round in 0..100 {
        old.write_word(there, round).unwrap();
        assert_eq!(new.read_word(there), Ok(round));
        new.write_word(here, round).unwrap();
        assert_eq!(old.read_word(here), Ok(round));
    }
    // It comes back elsewhere, and says so to nobody but by speaking.
    drop(new);
    home.kill(&["node", "--id", "2"]);
    drop(added.output());
    let elsewhere = home.write(
        "elsewhere.toml",
        &text(&fs::read(&longer).unwrap())
            .replace(&format!("127.0.0.1:{}", ports[3]), &format!("127.0.0.1:{}", ports[4])),
    );
    daemons.push(home.start(&["node", "--id", "2", "--config", "elsewhere.toml"]));
    let mut new = attach(&elsewhere, 2);
    let again = new.alloc(64, NodeId(2), Discipline::Coherent).unwrap();
    for round in 0..100 {
        old.write_word(again, round).unwrap();
        assert_eq!(new.read_word(again), Ok(round));
    }
    drop((old, new));
    end(daemons.into_iter().rev());
}
