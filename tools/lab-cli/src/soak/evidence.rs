//! What is left of a run that is stuck, or whose answers were wrong: a directory that outlives it.
//!
//! | file | holds |
//! | --- | --- |
//! | `rack.txt` | what the command waits for, of whom |
//! | `threads.txt` | every thread of every process: asleep where, for how much processor time so far |
//! | `the switch.txt`, `node 0.txt`, ... | what each place says of itself, if it still can |
//! | `history-R-C` | what client C has done in round R, as its log has it |
//!
//! What must always hold: gathering it waits for nobody for long. Whatever cannot be read is left out.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::events::LOOK_EVERY;
use super::node::{Event, Order};
use super::rounds::Soak;
use cli::fault::Fault;
use cli::say;

/// How long places may take to say what they are in the middle of.
const WITNESSES_WITHIN: Duration = Duration::from_secs(10);

/// What is told of each thread, where the system allows it.
const OF_A_THREAD: [&str; 5] = ["comm", "wchan", "syscall", "schedstat", "stack"];

impl Soak<'_> {
    /// The same fault, with a word on where to find what is known of it.
    pub(super) fn with_evidence(&mut self, fault: Fault) -> Fault {
        let with = |message: String, dir: Option<PathBuf>| match dir {
            Some(dir) => format!("{message}\n  what each process was doing: {}", dir.display()),
            None => message,
        };
        match fault {
            Fault::Stuck(message) => {
                let dir = self.leave_evidence(&message);
                Fault::Stuck(with(message, dir))
            }
            Fault::Failed(message) => {
                let dir = self.leave_evidence(&message);
                Fault::Failed(with(message, dir))
            }
            other => other,
        }
    }

    fn leave_evidence(&mut self, message: &str) -> Option<PathBuf> {
        let dir = directory()?;
        let places = 0..self.joined.len();
        let threads: String =
            places.clone().map(|at| threads(self.workers.name(at), self.workers.process(at))).collect();
        write(&dir.join("threads.txt"), &threads);
        write(&dir.join("rack.txt"), &self.in_flight(message));
        copy_histories(&self.histories, &dir);
        let mut asked = 0;
        for at in places {
            let file = dir.join(format!("{}.txt", self.workers.name(at)));
            asked += usize::from(self.workers.order(at, Order::Evidence(file)).is_ok());
        }
        let began = Instant::now();
        while asked > 0 && began.elapsed() < WITNESSES_WITHIN {
            // What else they say comes too late, and whoever has ended says nothing.
            if let Ok(Some((_, Event::Witnessed))) = self.workers.hear(LOOK_EVERY) {
                asked -= 1;
            }
        }
        Some(dir)
    }

    /// What the command knows, in words.
    fn in_flight(&self, message: &str) -> String {
        let mut text = format!("{message}\n");
        for (at, joined) in self.joined.iter().enumerate() {
            let is = if *joined { "in the rack" } else { "on its way into the rack" };
            text += &format!("{}: {is}\n", self.workers.name(at));
        }
        for (slot, (key, asked)) in &self.wanted {
            text +=
                &format!("word {key} (slot {slot}) is being allocated by {}\n", self.workers.name(*asked));
        }
        for word in &self.words {
            text += &format!("word {} is at {:#x}\n", word.key, word.addr);
        }
        text
    }
}

/// A new directory for the evidence of this run, which only its user can enter.
pub(super) fn directory() -> Option<PathBuf> {
    let temporary = std::env::temp_dir();
    (0..1000)
        .map(|number| temporary.join(format!("rackmem-soak-{}-{number}", std::process::id())))
        .find(|path| fs::DirBuilder::new().mode(0o700).create(path).is_ok())
}

/// Writes a file, or says why not.
pub(super) fn write(file: &Path, text: &str) {
    if let Err(error) = fs::write(file, text) {
        say!("warning: cannot write {}: {error}", file.display());
    }
}

/// What the system says of the threads of a process.
pub(super) fn threads(name: &str, process: u32) -> String {
    let mut text = format!("{name}, process {process}\n");
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        text.push_str("  it is gone\n");
        return text;
    };
    let mut threads: Vec<PathBuf> = threads.flatten().map(|thread| thread.path()).collect();
    threads.sort();
    for thread in threads {
        let number = thread.file_name().unwrap_or_default().to_string_lossy();
        // Writing to a string does not fail.
        let _ = writeln!(text, "  thread {number}, {}", state(&thread));
        for what in OF_A_THREAD {
            let told = fs::read_to_string(thread.join(what)).unwrap_or_default();
            let told = told.trim().replace('\n', "\n      ");
            if !told.is_empty() {
                let _ = writeln!(text, "    {what}: {told}");
            }
        }
    }
    text
}

/// Running, sleeping, stopped: a letter, as `ps` has it.
fn state(thread: &Path) -> String {
    let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
    // The name before it is in parentheses, and may have spaces.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().next().unwrap_or("?").to_owned()
}

/// Copies the histories that are left.
pub(super) fn copy_histories(from: &Path, to: &Path) {
    let Ok(files) = fs::read_dir(from) else { return };
    for file in files.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("history-")) {
        // What is not there says so.
        let _ = fs::copy(file.path(), to.join(file.file_name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_this_process_are_found_with_their_names() {
        let thread = std::thread::Builder::new().name("asleep here".into());
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = thread.spawn(move || ended.recv().is_err()).unwrap();
        // It has its name when it runs.
        let found = (0..10_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            threads("this test", std::process::id()).contains("comm: asleep here")
        });
        drop(end);
        sleeper.join().unwrap();
        assert!(found);
    }

    #[test]
    fn of_a_process_that_is_gone_it_is_said_that_it_is() {
        assert!(threads("nobody", u32::MAX).contains("it is gone"));
    }
}
