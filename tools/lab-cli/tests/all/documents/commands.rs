//! What can be typed: the subcommands of `rackmem` and `rackmem-lab` and their flags, from the commands themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command as Process;

use clap::{Command, CommandFactory as _};
use cli::command::Rackmem;

/// A command.
#[derive(Default)]
pub(super) struct Known {
    pub(super) flags: BTreeSet<String>,
    pub(super) subcommands: BTreeMap<String, Known>,
    /// What can stand behind it, where it has a list of that.
    pub(super) values: BTreeSet<String>,
}

impl Known {
    /// Both commands, by name.
    pub(super) fn all() -> BTreeMap<String, Self> {
        let mut rackmem = Rackmem::command();
        rackmem.build();
        let all = [("rackmem", Self::defined(&rackmem)), ("rackmem-lab", Self::explained(&[]))];
        all.into_iter().map(|(name, known)| (name.to_owned(), known)).collect()
    }

    /// As clap has it.
    fn defined(command: &Command) -> Self {
        let flags = command.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?)));
        let subcommands = command.get_subcommands();
        Self {
            flags: flags.collect(),
            subcommands: subcommands.map(|sub| (sub.get_name().to_owned(), Self::defined(sub))).collect(),
            values: BTreeSet::new(),
        }
    }

    /// As the command's own help has it.
    fn explained(path: &[&str]) -> Self {
        let help = said(path, "--help");
        let mut known = Self::default();
        let mut section = "";
        for line in help.lines().filter(|line| !line.is_empty()) {
            if !line.starts_with(' ') {
                section = line;
                continue;
            }
            let mut words = line.split_whitespace();
            match section {
                "Commands:" => {
                    // What goes on for a second line is farther to the right.
                    let name = words.next().filter(|name| line.find(name) == Some(2) && *name != "help");
                    if let Some(name) = name {
                        known.subcommands.insert(name.to_owned(), Self::explained(&[path, &[name]].concat()));
                    }
                }
                _ if section.ends_with("ptions:") => {
                    // `-x, --flag <VALUE>`.
                    let flag = words.find(|word| !(word.len() == 3 && word.ends_with(',')));
                    known.flags.extend(flag.filter(|flag| flag.starts_with("--")).map(bare));
                }
                _ => {}
            }
        }
        if known.flags.contains("--list") {
            let names = said(path, "--list");
            let first = names.lines().filter_map(|line| line.split_whitespace().next());
            known.values.extend(first.map(str::to_owned));
        }
        known
    }

    /// Whether any command has it.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag) || self.subcommands.values().any(|sub| sub.has(flag))
    }
}

/// What the command prints with this flag.
fn said(path: &[&str], flag: &str) -> String {
    let output = Process::new(crate::COMMAND).args(path).arg(flag).output().expect("it runs");
    assert!(output.status.success(), "{path:?} {flag} fails");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// `--flag[=VALUE]` without the value.
fn bare(flag: &str) -> String {
    flag.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect()
}

#[test]
fn both_commands_are_known() {
    let all = Known::all();
    let (rackmem, lab) = (&all["rackmem"], &all["rackmem-lab"]);
    assert!(rackmem.subcommands["rack-file"].flags.contains("--nodes"));
    assert!(rackmem.flags.contains("--version") && lab.flags.contains("--version"));
    let hit = &lab.subcommands["bench"].subcommands["hit"];
    assert!(hit.flags.contains("--json") && hit.flags.contains("--help"), "{:?}", hit.flags);
    assert!(
        lab.subcommands["figure"].values.contains("gcs")
            && lab.subcommands["figure"].values.contains("gcs-7")
    );
    assert!(lab.has("--seeds") && !lab.has("--nobody") && !lab.subcommands.contains_key("nobody"));
}
