//! Names that processes make, open and remove at once, some of which are killed meanwhile: at any time here, at every step in
//! `named_steps`.
//!
//! The tests start their own executable again, to run the same test; told by the environment, it is the application there.

use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, io, thread};

use rackmem::{AttachError, Locked, NameError, NodeHandle, NodeId, Rack, RackFile, Value, Words};

use super::rig::Home;

/// Set in the applications: the rack file, the node, and a number.
const ARGUMENTS: &str = "RACKMEM_TEST_NAMED";

pub(super) fn application(
    test: &str,
    file: &RackFile,
    node: u16,
    number: u64,
    input: impl Into<Stdio>,
) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("daemons::{test}")])
        .env(ARGUMENTS, format!("{}\n{node}\n{number}", file.runtime.join("rack.toml").display()))
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// In an application: the file, the node and the number.
pub(super) fn told() -> Option<(RackFile, NodeId, u64)> {
    let arguments = env::var(ARGUMENTS).ok()?;
    let [file, node, number] = arguments.split('\n').collect::<Vec<_>>().try_into().unwrap();
    Some((RackFile::read(file).unwrap(), NodeId(node.parse().unwrap()), number.parse().unwrap()))
}

/// Attaches to a daemon, which has so many applications at once and no more.
pub(super) fn attached(file: &RackFile, node: NodeId) -> NodeHandle {
    loop {
        match Rack::attach(file, node) {
            Ok(rack) => return rack.here(),
            // A thousand that try more often leave nothing of the machine to others.
            Err(AttachError::Full { .. }) => thread::sleep(Duration::from_millis(50)),
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn of_a_thousand_processes_that_make_one_name_at_once_one_does() {
    const PROCESSES: u64 = 1000;
    if let Some((file, node, number)) = told() {
        // Until all are there.
        io::read_to_string(io::stdin()).unwrap();
        let mut here = attached(&file, node);
        let lock = here.named::<Locked<[u64; 2]>>("it").open_or(|| [number, 0]).unwrap();
        lock.write(&mut here).unwrap()[1] += 1;
        return;
    }
    let home = Home::new("thousand_makers");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let (waiting, go) = io::pipe().unwrap();
    let start = |number: u64| {
        let node = u16::try_from(number % 2).unwrap();
        let waiting = waiting.try_clone().unwrap();
        application(
            "named::of_a_thousand_processes_that_make_one_name_at_once_one_does",
            &file,
            node,
            number,
            waiting,
        )
    };
    let processes: Vec<_> = (0..PROCESSES).map(start).collect();
    drop(go);
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let mut here = attached(&file, NodeId(0));
    let lock = here.named::<Locked<[u64; 2]>>("it").open().unwrap();
    let [maker, counted] = *lock.read(&mut here).unwrap();
    assert!(maker < PROCESSES && counted == PROCESSES, "{counted} counted");
    assert_eq!(here.names("").unwrap().len(), 1);
    drop(here);
    up.interrupt();
    home.assert_nothing_left();
}

/// Marks of what is whole.
pub(super) const MARKS: [u64; 64] = [7; 64];

/// Makes, opens and removes, as long as it may.
fn make_and_remove(here: &mut NodeHandle, number: u64) {
    for round in 0.. {
        let name = format!("{}", (number + round) % 5);
        let failed = match round % 3 {
            0 => here.named::<Locked<[u64; 64]>>(&format!("lock/{name}")).open_or(|| MARKS).err(),
            1 => here.named::<Value<[u64; 64]>>(&format!("value/{name}")).open_or(|| MARKS).err(),
            _ => here.named::<Words<u64>>(&format!("words/{name}")).open_or(|| 64).err(),
        };
        assert_eq!(failed, None);
        let kind = ["lock", "value", "words"][round as usize % 3];
        match here.remove_name(&format!("{kind}/{}", (number + round + 3) % 5)) {
            Ok(()) | Err(NameError::NotFound { .. }) => {}
            Err(why) => panic!("{why}"),
        }
    }
}

/// Finds the thing whole, and takes it away.
pub(super) fn take_whole(here: &mut NodeHandle, name: &str) -> Result<(), Box<dyn std::error::Error>> {
    match name.split('/').next() {
        Some("lock") => {
            let lock = here.named::<Locked<[u64; 64]>>(name).open()?;
            assert_eq!(*lock.read(here)?, MARKS, "{name}");
        }
        Some("value") => {
            let value = here.named::<Value<[u64; 64]>>(name).open()?;
            assert_eq!(value.get(here)?, MARKS, "{name}");
        }
        _ => {
            let words = here.named::<Words<u64>>(name).open()?;
            assert_eq!(words.load(here, 63)?, 0, "{name}");
        }
    }
    Ok(here.remove_name(name)?)
}

#[test]
fn whoever_is_killed_while_he_makes_or_removes_a_name_leaves_nothing_or_the_finished_thing() {
    if let Some((file, node, number)) = told() {
        // Joined, or attached.
        if node == NodeId(2) {
            let rack = Rack::join(&file, node).unwrap();
            make_and_remove(&mut rack.here(), number);
        }
        make_and_remove(&mut attached(&file, node), number);
    }
    let home = Home::new("killed_makers");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let live = || -> u64 {
        let status = home.status();
        let bytes = |node: &serde_json::Value| node["counts"]["memory_live_bytes"].as_u64().unwrap_or(0);
        status["nodes"].as_array().unwrap().iter().take(2).map(bytes).sum()
    };
    let mut here = attached(&file, NodeId(0));
    let (mut left, mut early) = (0, 0);
    for round in 0..60_u64 {
        let joined = round % 20 == 0;
        let node = if joined { 2 } else { u16::try_from(round % 2).unwrap() };
        let mut maker = application(
            "named::whoever_is_killed_while_he_makes_or_removes_a_name_leaves_nothing_or_the_finished_thing",
            &file,
            node,
            round,
            Stdio::null(),
        );
        // Some are hardly there, some are in the middle of it. An attached maker has no steps of its own: it asks, and its daemon does it.
        thread::sleep(Duration::from_micros(700 * round + if joined { 500_000 } else { 0 }));
        maker.kill().unwrap();
        maker.wait().unwrap();
        // What it asked for last may be done only now: then one thing goes that was listed.
        let mut gone = 0;
        let there = here.names("").unwrap();
        early += u64::from(there.is_empty());
        for info in there {
            match take_whole(&mut here, &info.name) {
                Ok(()) => left += 1,
                Err(why) => {
                    let is_gone = matches!(here.name_info(&info.name), Err(NameError::NotFound { .. }));
                    assert!(is_gone, "{}: {why}", info.name);
                    gone += 1;
                }
            }
        }
        assert!(gone <= 1, "{gone} names have gone");
    }
    assert!(left > 0 && early > 0, "{left} things were made, and {early} makers came too early to make one");
    // The last one may have made one more.
    super::rig::eventually("no name is left", || {
        let names = here.names("").unwrap();
        names.iter().for_each(|info| take_whole(&mut here, &info.name).unwrap());
        names.is_empty()
    });
    super::rig::eventually("no memory is kept for what nobody can name", || live() == 0);
    drop(here);
    up.interrupt();
    home.assert_nothing_left();
}

#[test]
fn a_rack_file_says_which_nodes_keep_names_and_no_more_than_there_are_can() {
    let home = Home::new("keepers");
    let written = |args: &[&str]| {
        let text = home.output(&[&["rack-file", "--nodes", "3", "--transport", "shm"], args].concat());
        RackFile::read(home.write("rack.toml", &text)).unwrap().config.name_nodes
    };
    assert_eq!(
        (written(&[]), written(&["--name-nodes", "2"]), written(&["--name-nodes", "3"])),
        (None, Some(2), Some(3))
    );
    let said = home.mistake(&["rack-file", "--nodes", "3", "--name-nodes", "4"], 2);
    assert!(said.contains("--name-nodes 4: the rack has 3 nodes: take 1 to 3"), "{said}");
}
