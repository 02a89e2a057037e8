//! What a shell sees where results cannot be written, or a file cannot be read: what, where, and what to do; and nothing is
//! measured first.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::COMMAND;
use crate::shell::{folder, mistake};

/// The device that is always full.
const FULL: &str = "/dev/full";

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn a_key_is_never_written_over_another_file() {
    let folder = folder("a-key");
    let key = folder.join("rack.key");
    fs::write(&key, "mine").expect("written");
    let said = mistake(&["key", text(&key)], 1);
    assert!(said.contains(text(&key)) && said.contains("over another file: name another one"), "{said}");
    assert_eq!(fs::read_to_string(&key).expect("it is there"), "mine");
    let said = mistake(&["key", text(&folder.join("nowhere/rack.key"))], 1);
    assert!(said.contains("in a folder that exists"), "{said}");
}

#[test]
fn a_key_for_which_there_is_no_room_is_not_left_behind() {
    let key = folder("room").join("rack.key");
    // No file may become longer than nothing, and nobody is killed for trying.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" key \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, COMMAND, text(&key)]);
    let Output { status, stderr, .. } = shell.output().expect("a shell");
    let said = String::from_utf8(stderr).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(text(&key)), "{said}");
    assert!(!key.exists(), "half a key is in the way of the next try");
}

#[test]
fn a_directory_is_no_rack_file_and_is_not_to_be_written_over() {
    let folder = folder("rack-file");
    for args in [&["switch"][..], &["node", "--id", "0"], &["up"], &["status"]] {
        let said = mistake(&[args, &["--config", text(&folder)]].concat(), 2);
        assert!(said.contains("Is a directory") && !said.contains("rack-file >"), "{said}");
    }
}

#[test]
fn a_place_for_sockets_that_cannot_be_made_is_named_with_what_to_do() {
    let file = folder("runtime").join("file");
    fs::write(&file, "mine").expect("written");
    let mut command = Command::new(COMMAND);
    let Output { status, stderr, .. } =
        command.arg("up").env("XDG_RUNTIME_DIR", &file).output().expect("it runs");
    let said = String::from_utf8(stderr).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(text(&file)) && said.contains("XDG_RUNTIME_DIR"), "{said}");
}

#[test]
fn a_full_disk_under_standard_output_is_a_failure() {
    // Where there is no such device, there is nothing to test with.
    let Ok(full) = File::options().write(true).open(FULL) else { return };
    for args in [&["--help"][..], &["--version"], &["ycsb", "--help"], &["rack-file"]] {
        let full: Stdio = full.try_clone().expect("another handle").into();
        let output = Command::new(COMMAND).args(args).stdout(full).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            said.contains("cannot write the result to standard output: No space left"),
            "{args:?}: {said}"
        );
    }
}
