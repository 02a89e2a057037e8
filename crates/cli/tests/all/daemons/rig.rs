//! A folder that a test has for itself, as the runtime directory of its user, and the commands that it runs there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{self, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rackmem::transport::udp;
use serde_json::Value;

/// Longer than anything here takes on a busy machine.
const MOST_WAIT: Duration = Duration::from_secs(60);

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + MOST_WAIT;
    while !is_so() {
        assert!(Instant::now() < until, "it does not come about that {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The networks that this `rackmem up` has made, the switch's first: in the order in which it opened them.
pub(crate) fn networks(up: u32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{up}/fd")).unwrap().map(|entry| entry.unwrap());
    let is_network = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("net:"))
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
    let mut numbers: Vec<_> = open.filter(is_network).filter_map(number).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| format!("/proc/{up}/fd/{number}").into()).collect()
}

/// What is answered to a GET, with its head.
pub(crate) fn page(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).unwrap();
    page
}

/// A port that nobody has.
pub(crate) fn free_port() -> u16 {
    udp::unused_addresses(1).unwrap()[0].port()
}

/// The folder. Whatever is in it when the test ends goes, and whoever still runs there.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        // The names of sockets are short, so that the folder must not lie deep.
        let folder = std::env::temp_dir().join(format!("rackmem-{}-{name}", process::id()));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The file of the rack that `rackmem up` runs.
    pub(crate) fn rack_file(&self) -> PathBuf {
        self.0.join("rackmem-up/rack.toml")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.within(Command::new(crate::COMMAND));
        command.args(args).stdin(Stdio::null());
        command
    }

    /// A program that runs here, so that an orphan is known by its folder.
    pub(crate) fn within(&self, mut program: Command) -> Command {
        program.current_dir(&self.0).env("XDG_RUNTIME_DIR", &self.0).env_remove("RACKMEM_LOG");
        program
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn output(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    pub(crate) fn try_output(&self, args: &[&str]) -> Option<String> {
        let output = self.command(args).output().unwrap();
        output.status.success().then(|| text(&output.stdout))
    }

    /// Standard error of a command that must end with this code, and print no result.
    pub(crate) fn mistake(&self, args: &[&str], code: i32) -> String {
        let output = self.command(args).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), String::new()), "{said}");
        said
    }

    /// How the rack is that `rackmem up` runs.
    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.output(&["status", "--json"])).unwrap()
    }

    pub(crate) fn try_status(&self) -> Option<Value> {
        serde_json::from_str(&self.try_output(&["status", "--json"])?).ok()
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_with(args, &[])
    }

    /// The same, with more in its environment.
    pub(crate) fn start_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut command = self.command(args);
        command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { process: command.spawn().unwrap() }
    }

    /// `rackmem up`, when it is up.
    pub(crate) fn up(&self, args: &[&str]) -> Running {
        // Many tests run at a time: whoever only has no processor for a while must not be taken for dead.
        let patient: &[&str] = if args.contains(&"--config") { &[] } else { &["--timeout", "3s"] };
        let mut up = self.start(&[&["up"], patient, args].concat());
        let mut lines = BufReader::new(up.process.stdout.take().unwrap()).lines();
        if !lines.any(|line| line.unwrap().contains("Ctrl-C")) {
            panic!("it did not come up: {}", text(&up.output().stderr));
        }
        up
    }

    /// Processes of ours that run here, with their arguments.
    fn processes(&self) -> Vec<(u32, Vec<String>)> {
        let own = |entry: fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // Processes come and go meanwhile; and one that has ended, but was not waited for, runs nowhere.
            (fs::read_link(entry.path().join("cwd")).ok()? == self.0).then_some(())?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let args = line.split(|byte| *byte == 0).map(|arg| String::from_utf8_lossy(arg).into_owned());
            Some((pid, args.collect()))
        };
        fs::read_dir("/proc").unwrap().filter_map(|entry| own(entry.ok()?)).collect()
    }

    /// The daemon that was started with these arguments.
    pub(crate) fn find(&self, args: &[&str]) -> Option<u32> {
        let has = |line: &[String]| line.windows(args.len()).any(|some| some == args);
        self.processes().into_iter().find(|(_, line)| has(line)).map(|(pid, _)| pid)
    }

    /// Kills the daemon that was started with these arguments.
    pub(crate) fn kill(&self, args: &[&str]) {
        let pid = self.find(args).unwrap_or_else(|| panic!("nobody runs with {args:?}"));
        send("KILL", pid);
    }

    /// No process runs here, and there is no file.
    pub(crate) fn is_clean(&self) -> bool {
        self.processes().is_empty() && fs::read_dir(&self.0).unwrap().next().is_none()
    }

    pub(crate) fn assert_nothing_left(&self) {
        let files: Vec<_> = walk(&self.0);
        assert_eq!((self.processes(), files), (Vec::new(), Vec::new()));
    }
}

fn walk(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [walk(&path), vec![path]].concat() } else { vec![path] })
        .collect()
}

impl Drop for Home {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            send("KILL", pid);
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sends a signal.
fn send(signal: &str, pid: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status().unwrap();
    assert!(sent.success() || thread::panicking(), "kill -{signal} {pid}");
}

/// A command that goes on.
pub(crate) struct Running {
    process: process::Child,
}

impl Running {
    /// Its standard error, as it comes.
    pub(crate) fn errors(&mut self) -> ChildStderr {
        self.process.stderr.take().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(self, signal: &str) -> Self {
        send(signal, self.process.id());
        self
    }

    /// What it has said when it has ended.
    pub(crate) fn output(self) -> Output {
        self.process.wait_with_output().unwrap()
    }

    /// Ctrl-C, and what it has said then.
    pub(crate) fn interrupt(self) -> Output {
        self.signal("INT").output()
    }
}
