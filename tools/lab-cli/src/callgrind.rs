//! Valgrind's callgrind, which counts the instructions inside a function.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::installed;
use cli::fault::Fault;

/// Valgrind, and where it writes to.
pub(crate) struct Callgrind {
    valgrind: PathBuf,
    out: PathBuf,
}

impl Callgrind {
    pub(crate) fn new(folder: &Path) -> Result<Self, Fault> {
        let valgrind = installed("valgrind").ok_or_else(|| {
            Fault::usage(
                "valgrind counts the instructions, and is not installed; on Debian: apt-get install valgrind",
            )
        })?;
        Ok(Self { valgrind, out: folder.join("counted") })
    }

    pub(crate) fn version(&self) -> String {
        let said = Command::new(&self.valgrind).arg("--version").output();
        said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default()
    }

    /// What stands in front of the program that is counted.
    pub(crate) fn command(&self, counted: &str) -> Vec<OsString> {
        let mut out = OsString::from("--callgrind-out-file=");
        out.push(&self.out);
        let mut all: Vec<OsString> = vec![self.valgrind.clone().into_os_string()];
        // Threads that only wait get in its way otherwise.
        all.extend(
            ["-q", "--fair-sched=yes", "--tool=callgrind", "--collect-atstart=no"].map(OsString::from),
        );
        all.extend(["toggle-collect", "dump-after"].map(|what| format!("--{what}={counted}").into()));
        all.push(out);
        all
    }

    /// What was counted the n-th time, from 1, that the function was left. Whoever asks has it no longer.
    pub(crate) fn take(&self, number: usize) -> Option<u64> {
        let mut dumped = self.out.clone().into_os_string();
        dumped.push(format!(".{number}"));
        let text = fs::read_to_string(&dumped).ok()?;
        let _ = fs::remove_file(&dumped);
        total(&text)
    }

    /// The instructions inside this function, of what this runs.
    pub(crate) fn around(
        &self,
        counted: &str,
        run: impl FnOnce(&[OsString]) -> Result<(), Fault>,
    ) -> Result<u64, Fault> {
        run(&self.command(counted))?;
        // What was dumped when the function was left; what is without a number is written at the end.
        self.take(1).ok_or_else(|| {
            Fault::failed("callgrind has counted nothing: it never came to the function that it looks for")
        })
    }
}

/// All that a file of callgrind's has counted.
fn total(text: &str) -> Option<u64> {
    let of = |line: &str| line.strip_prefix("totals:")?.trim().parse().ok();
    text.lines().find_map(of).filter(|total| *total > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_the_total_and_nothing_is_no_count() {
        assert_eq!(total("events: Ir\nsummary: 7\nfn=x\ntotals: 42\n"), Some(42));
        assert_eq!(total("events: Ir\ntotals: 0\n"), None);
        assert_eq!(total("events: Ir\n"), None);
    }
}
