//! What a shell sees where results cannot be written, or a file cannot be read: what, where, and what to do; and nothing is
//! measured first.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The device that is always full.
const FULL: &str = "/dev/full";

fn rackmem(args: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmem"));
    command.args(args).stdout(stdout).stderr(Stdio::piped());
    command.spawn().and_then(std::process::Child::wait_with_output).expect("the command runs")
}

/// What a command says that must end with this code, without a result.
fn mistake(args: &[&str], code: i32) -> String {
    let Output { status, stdout, stderr } = rackmem(args, Stdio::piped());
    let said = String::from_utf8(stderr).expect("text");
    assert_eq!((status.code(), stdout.len()), (Some(code), 0), "{args:?}: {said}");
    said
}

/// A directory that a test has for itself.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unwritable-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn results_of_several_files_want_a_directory_and_say_so_before_anything_is_measured() {
    let folder = folder("lab");
    let file = folder.join("file");
    fs::write(&file, "mine").expect("written");
    for path in [text(&file), "/dev/null"] {
        for args in [["lab", "concordia-9", "--out", path], ["lab", "peers", "--out", path]] {
            let said = mistake(&args, 2);
            assert!(said.contains(&format!("--out {path}: that is no directory")), "{said}");
            assert!(said.contains("name a directory") && !said.contains("File exists"), "{said}");
        }
        let said = mistake(&["explain", "--svg", path], 2);
        assert!(said.contains(&format!("--svg {path}: that is no directory")), "{said}");
    }
    // Below a file there is no directory to be made.
    let below = file.join("below");
    let said = mistake(&["lab", "concordia-9", "--out", text(&below)], 2);
    assert!(said.contains("cannot be written to: Not a directory"), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
}

#[test]
fn a_page_is_a_file() {
    let folder = folder("page");
    let out = folder.join("out");
    let said = mistake(&["lab", "concordia-9", "--out", text(&out), "--page", text(&folder)], 2);
    assert!(said.contains("that is a directory") && said.contains("page.md"), "{said}");
    assert_eq!(fs::read_dir(&out).expect("it was made").count(), 0, "something is left of finding that out");
}

#[test]
fn a_key_is_never_written_over_another_file() {
    let folder = folder("key");
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
    shell.args(["-c", script, env!("CARGO_BIN_EXE_rackmem"), text(&key)]);
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmem"));
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
    for args in
        [&["--help"][..], &["--version"], &["ycsb", "--help"], &["explain", "read-miss"], &["rack-file"]]
    {
        let output = rackmem(args, full.try_clone().expect("another handle").into());
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            said.contains("cannot write the result to standard output: No space left"),
            "{args:?}: {said}"
        );
    }
}
