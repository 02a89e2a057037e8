//! Which rack `rackmem status` shows where none is named, and what is said at once.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use super::rig::{Home, Running, eventually, text};

/// A switch of a rack with this name, which is in the user's runtime directory.
fn switch(home: &Home, name: &str) -> (String, Running) {
    let text = home.output(&["rack-file", "--name", name, "--nodes", "1", "--transport", "shm"]);
    let file = home.write(&format!("{name}.toml"), &text);
    let switch = home.start(&["switch", "--config", &file]);
    eventually("it answers", || home.try_output(&["status", "--config", &file]).is_some());
    (file, switch)
}

fn end(switch: Running) {
    assert_eq!(switch.signal("TERM").output().status.code(), Some(0));
}

#[test]
fn the_rack_that_runs_is_found_and_of_several_one_is_to_be_chosen() {
    let home = Home::new("found");
    let said = home.mistake(&["status"], 1);
    assert!(said.starts_with("error: no rack runs on this machine") && said.contains("rackmem up"), "{said}");

    let (_, lab) = switch(&home, "lab");
    let shown = home.start(&["status"]).output();
    assert!(text(&shown.stdout).starts_with("rack `lab` over shm: "), "{}", text(&shown.stdout));
    let socket = home.path("rackmem-lab/status.sock");
    assert_eq!(text(&shown.stderr), format!("rack `lab`, which answers at {}\n", socket.display()));

    let (_, other) = switch(&home, "other");
    let said = home.mistake(&["status"], 2);
    assert_eq!(said, "error: 2 racks run on this machine: lab, other; choose one with --rack NAME\n");
    assert!(home.output(&["status", "--rack", "other"]).starts_with("rack `other` over shm: "));
    let said = home.mistake(&["status", "--rack", "third"], 1);
    assert!(said.contains("--rack third: no rack with this name") && said.contains("lab, other"), "{said}");

    // One that was killed leaves its socket, and is no rack that runs.
    home.kill(&["switch", "--config", home.path("lab.toml").to_str().unwrap()]);
    eventually("the other one is the only one", || home.try_output(&["status"]).is_some());
    assert!(fs::exists(socket).unwrap());
    assert!(home.output(&["status"]).starts_with("rack `other` over shm: "));
    drop(lab.output());
    end(other);
}

#[test]
fn the_rack_of_the_file_in_this_folder_is_meant_if_it_runs_and_else_the_one_that_does() {
    let home = Home::new("found_file");
    let (_, other) = switch(&home, "other");
    let text_of = home.output(&["rack-file", "--name", "mine", "--nodes", "1", "--transport", "shm"]);
    let file = home.write("rack.toml", &text_of.replacen("[rack]", "[rack]\nruntime = \"run\"", 1));
    let shown = home.start(&["status"]).output();
    assert!(text(&shown.stdout).starts_with("rack `other` over shm: "));
    let said = text(&shown.stderr);
    assert!(
        said.starts_with("rack `mine` of ./rack.toml does not run on this machine; rack `other`, which"),
        "{said}"
    );

    let mine = home.start(&["switch"]);
    eventually("it answers", || home.try_output(&["status", "--config", &file]).is_some());
    let shown = home.start(&["status"]).output();
    assert!(text(&shown.stdout).starts_with("rack `mine` over shm: "));
    assert_eq!(text(&shown.stderr), "rack `mine` of rack.toml\n");
    end(mine);
    end(other);
}

#[test]
fn up_says_at_once_what_it_waits_for() {
    let home = Home::new("at_once");
    // The machine may be full for a moment.
    let took = (0..3).map(|_| {
        let mut up = home.start(&["up", "--nodes", "5", "--transport", "udp"]);
        let began = Instant::now();
        let mut line = String::new();
        BufReader::new(up.errors()).read_line(&mut line).unwrap();
        let took = began.elapsed();
        let said =
            " INFO  up: starting the switch and 4 nodes over udp, and waiting until they are a rack rack=up";
        assert!(line.contains(said), "{line}");
        up.interrupt();
        eventually("nothing is left", || home.is_clean());
        took
    });
    assert!(took.min() < Some(Duration::from_millis(300)));
}
