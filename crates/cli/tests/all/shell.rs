//! The command in a shell's hands: run, told to end, and looked after.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::COMMAND;

/// What the command does with these arguments.
pub(crate) fn run(args: &[&str]) -> Output {
    Command::new(COMMAND).args(args).output().unwrap()
}

/// Standard error of a command that must end with this code, and print no result.
pub(crate) fn mistake(args: &[&str], code: i32) -> String {
    let output = run(args);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(code), String::new()),
        "{}",
        text(&output.stderr)
    );
    text(&output.stderr)
}

/// Whether this machine takes a rack whose switch's programs are in the kernel. If not, that is said.
pub(crate) fn can_have_kernel() -> bool {
    let Err(why) = rackmem::dataplane::network::can_run() else { return true };
    assert!(std::env::var("RACKMEM_HOSTS").as_deref() != Ok("required"), "no switch in the kernel: {why}");
    // Not with a macro: what those print in a test that passes is thrown away.
    let _ = std::io::stderr().write_all(format!("SKIPPED: no switch in the kernel: {why}\n").as_bytes());
    false
}

/// As text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file that this test has for itself, with this content.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path
}

/// A directory that a test has for itself.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// A directory for temporary files that is this test's own: what a command leaves behind is seen there.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn new(test: &str) -> Self {
        // Sockets live below it, and their paths must be short.
        let path = std::env::temp_dir().join(format!("rmt-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(COMMAND);
        command.args(args).env("TMPDIR", &self.0);
        command
    }

    /// Runs a command that must succeed and leave nothing behind; gives its document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        self.assert_nothing_left();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs commands that must be refused with these words before anything is started.
    pub(crate) fn refuses(&self, commands: &[(&[&str], &str)]) {
        for (args, words) in commands {
            let output = self.command(args).stdin(Stdio::null()).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(
                (output.status.code(), text(&output.stdout).as_str()),
                (Some(2), ""),
                "{args:?}: {said}"
            );
            assert!(said.contains(words), "{args:?}: {said}");
        }
        self.assert_nothing_left();
    }

    pub(crate) fn runtime_directories(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("rackmem-")).collect()
    }

    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.runtime_directories(), Vec::<PathBuf>::new());
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Looks until it is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The fields of a process's status that follow its name: state, parent, and so on.
fn status(process: &Path) -> Option<Vec<String>> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// The processes that a process has started.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let of_parent = status(&entry.path())?.get(1)? == &parent.to_string();
            of_parent.then_some(id)
        })
        .collect()
}

pub(crate) fn is_alive(process: u32) -> bool {
    status(&Path::new("/proc").join(process.to_string())).is_some_and(|fields| fields[0] != "Z")
}

pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").arg(name).arg(process.to_string()).status().unwrap();
    assert!(sent.success());
}
